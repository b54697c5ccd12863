/* Frames of the receiver: PROTOCOL.md, section 8, "At the sender". */
#include "core/err.h"
#include "core/units.h"
#include "engine/sender_impl.h"
#include "wire/block.h"

/* A file fails after MISMATCHES_MAX corrupt blocks, and one more for each MISMATCHES_ONE_IN acknowledged. */
#define MISMATCHES_MAX 16
#define MISMATCHES_ONE_IN 64
enum { SPLITS_MAX = 1024 }; /* requests of a file that wait for PIECES */

static int violation(const char *what, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame from the receiver", what);
}

static bool answer_fits(const struct snd *s, const struct snd_entry *f, uint8_t verdict)
{
	if (verdict == WIRE_NO_LINK)
		return f->type == WIRE_HARDLINK && (f->state == OFFERED || f->state == FINISHING);
	if (f->state != OFFERED && f->state != COMPARED)
		return false;
	if (verdict == WIRE_COMPARE)
		return f->type == WIRE_FILE && !f->unsized && f->state == OFFERED && s->o.verify;
	if (f->type == WIRE_DIR)
		return verdict == WIRE_SEND_ALL;
	if (verdict == WIRE_SEND_NONE || f->type == WIRE_NAME)
		return verdict == WIRE_SEND_NONE;
	return !s->o.dry_run && (verdict == WIRE_SEND_ALL || (f->type == WIRE_FILE && !f->unsized));
}

int snd_on_answer(struct snd *s, const struct wire_answer *a, struct ptcp_err *e)
{
	struct snd_entry *f;

	if ((f = snd_find(s, a->id)) == NULL || !answer_fits(s, f, a->verdict))
		return violation("ANSWER", e);
	if (a->verdict == WIRE_SEND_NONE) {
		s->stats.done.bytes += f->size_bytes;
		s->stats.done.resumed_bytes += f->size_bytes;
		snd_end(s, f, SND_SKIPPED, NULL);
	} else if (a->verdict == WIRE_NO_LINK) {
		f->state = AGAIN;
		s->o.ops->again(s->o.arg, f->cookie, f->id);
	} else if (a->verdict == WIRE_COMPARE) {
		f->state = COMPARING;
		s->o.ops->compare(s->o.arg, f->cookie, f->id);
	} else if (f->type == WIRE_DIR) {
		f->state = MADE;
		snd_dir_try_end(s, f);
	} else if (f->type == WIRE_FILE) {
		snd_start(s, f, a->verdict == WIRE_SEND_PARTS);
	} else {
		f->state = FINISHING;
	}
	return 0;
}

static bool blocks_fit(const struct snd_entry *f, const struct wire_blocks *b)
{
	return f->state == SENDING && b->first < f->n_blocks && b->count <= f->n_blocks - b->first;
}

static bool any_acked(const struct snd_entry *f, const struct wire_blocks *b)
{
	return bitmap_next(f->acked, true, b->first, b->first + b->count) < b->first + b->count;
}

/* A block may wait because the receiver requested it, because a stream lost it, and, a few, because a copy
 * arrived corrupt. Without a limit, a receiver could make us search the same blocks without end. */
static bool too_many_wait(const struct snd_entry *f, uint32_t count)
{
	return f->again.blocks + f->region_blocks + count > 3 * (uint64_t)f->n_blocks + MISMATCHES_MAX;
}

/* `omit`: of a PATCH. */
static int send_requested(struct snd *s, struct snd_entry *f, const struct wire_blocks *b, uint64_t omit,
    const char *frame, struct ptcp_err *e)
{
	struct ptcp_err why;

	if (!snd_track(s, f))
		return 0;
	if (any_acked(f, b) || too_many_wait(f, b->count))
		return violation(frame, e);
	if ((bitmap_has(f->read, b->first) || (!f->parts && b->first < f->n_offered)) &&
	    ++f->mismatches > MISMATCHES_MAX + f->n_acked / MISMATCHES_ONE_IN) {
		err_set(&why, PTCP_EVERIFY, "%u block%s did not verify at the receiver "
		    "(check memory and network of both hosts)", f->mismatches, plural(f->mismatches));
		snd_fail(s, f, &why);
		return 0;
	}
	/* Blocks in flight are corrupt: do not wait for their acknowledgment. */
	inflight_remove_blocks(&s->flights, &f->flights, f, b->first, b->count);
	return snd_requeue(s, f, b->first, b->count, omit) ? 0 : violation(frame, e);
}

int snd_on_need(struct snd *s, const struct wire_blocks *b, struct ptcp_err *e)
{
	struct snd_entry *f;

	if ((f = snd_find(s, b->id)) == NULL)
		return violation("NEED", e);
	if (f->state == FAILING)
		return 0;
	return blocks_fit(f, b) ? send_requested(s, f, b, 0, "NEED", e) : violation("NEED", e);
}

/* Only files of the smallest blocks have pieces. */
static bool has_pieces(const struct snd_entry *f) { return f->parts && f->grid.block_bytes == WIRE_CHUNK_BYTES; }

int snd_on_patch(struct snd *s, const struct wire_patch *p, struct ptcp_err *e)
{
	struct wire_blocks b = { .id = p->id, .first = p->block, .count = 1 };
	struct snd_entry *f;

	if ((f = snd_find(s, p->id)) == NULL)
		return violation("PATCH", e);
	if (f->state == FAILING)
		return 0;
	if (!blocks_fit(f, &b) || !has_pieces(f) || !wire_omit_fits(p->omit, wire_grid_length(f->grid, p->block)))
		return violation("PATCH", e);
	return send_requested(s, f, &b, p->omit, "PATCH", e);
}

int snd_on_have(struct snd *s, const struct wire_blocks *b, struct ptcp_err *e)
{
	struct snd_entry *f;
	uint64_t bytes;
	uint32_t end;

	if ((f = snd_find(s, b->id)) == NULL)
		return violation("HAVE", e);
	if (f->state == FAILING)
		return 0;
	if (!blocks_fit(f, b) || !f->parts)
		return violation("HAVE", e);
	if (!snd_track(s, f))
		return 0;
	end = b->first + b->count;
	if (any_acked(f, b) || bitmap_next(f->read, true, b->first, end) < end)
		return violation("HAVE", e);
	bitmap_set(f->acked, true, b->first, end);
	bitmap_set(f->read, true, b->first, end);
	bytes = wire_grid_range_bytes(f->grid, b->first, b->count);
	s->stats.done.bytes += bytes;
	s->stats.done.resumed_bytes += bytes;
	f->n_acked += b->count;
	f->n_read += b->count;
	digest_add(&f->digest, b->digest);
	inflight_remove_blocks(&s->flights, &f->flights, f, b->first, b->count);
	snd_try_complete(s, f);
	return 0;
}

/* In ascending order, so that each block is hashed at most once, and two requests at a time. */
int snd_on_match(struct snd *s, const struct wire_blocks *b, struct ptcp_err *e)
{
	struct snd_entry *f;

	if ((f = snd_find(s, b->id)) == NULL)
		return violation("MATCH", e);
	if (f->state == FAILING)
		return 0;
	if (!blocks_fit(f, b) || !f->parts || b->count > WIRE_HASHES_MAX || b->first < f->match_end ||
	    f->match[1].count > 0)
		return violation("MATCH", e);
	f->match_end = b->first + b->count;
	s->stats.compared_bytes += wire_grid_range_bytes(f->grid, b->first, b->count);
	if (f->match[0].count > 0) {
		f->match[1] = (struct range){ b->first, b->count, 0 };
		return 0;
	}
	f->match[0] = (struct range){ b->first, b->count, 0 };
	s->o.ops->hash(s->o.arg, f->cookie, f->id, b->first, b->count);
	return 0;
}

/* In ascending order, so that each block is split at most once. */
int snd_on_split(struct snd *s, const struct wire_blocks *b, struct ptcp_err *e)
{
	struct ptcp_err why;
	struct snd_entry *f;
	bool first;

	if ((f = snd_find(s, b->id)) == NULL)
		return violation("SPLIT", e);
	if (f->state == FAILING)
		return 0;
	if (!blocks_fit(f, b) || !has_pieces(f) || b->first < f->split_end ||
	    f->split.end - f->split.head >= SPLITS_MAX)
		return violation("SPLIT", e);
	f->split_end = b->first + b->count;
	first = f->split.blocks == 0;
	if (!snd_ranges_add(s, &f->split, b->first, b->count, 0, &why))
		snd_fail(s, f, &why);
	else if (first)
		s->o.ops->pieces(s->o.arg, f->cookie, f->id, b->first);
	return 0;
}

int snd_on_ack(struct snd *s, const struct wire_ack *a, struct mono now, struct ptcp_err *e)
{
	struct snd_entry *f;
	int by;

	if ((f = snd_find(s, a->id)) == NULL)
		return violation("ACK", e);
	if (f->state == FAILING)
		return 0;
	if (f->state != SENDING || a->block >= f->n_blocks)
		return violation("ACK", e);
	if (!snd_track(s, f))
		return 0;
	if (!bitmap_add(f->acked, a->block))
		return violation("ACK", e);
	f->n_acked++;
	s->stats.done.bytes += wire_grid_length(f->grid, a->block);
	by = inflight_acked(&s->flights, f, a->block, wire_grid_length(f->grid, a->block), now);
	if (by >= 0)
		snd_stall_soon(s, (unsigned)by);
	if (bitmap_has(f->read, a->block)) { /* else the digest still needs snd_read() */
		inflight_remove_blocks(&s->flights, &f->flights, f, a->block, 1);
		snd_release_block(s, f, a->block);
	}
	snd_try_complete(s, f);
	return 0;
}

static bool done_fits(const struct snd *s, const struct snd_entry *f)
{
	/* FAILING: our FAIL came too late, the file is complete at the receiver. */
	return f->state == FINISHING || f->state == FAILING || (s->o.dry_run && f->type != WIRE_DIR &&
	    (f->state == OFFERED || f->state == COMPARED));
}

int snd_on_done(struct snd *s, const struct wire_done *d, struct ptcp_err *e)
{
	struct snd_entry *f;

	if ((f = snd_find(s, d->id)) == NULL || !done_fits(s, f))
		return violation("DONE", e);
	snd_end(s, f, SND_DONE, NULL);
	return 0;
}

int snd_on_fail(struct snd *s, const struct wire_fail *d, struct ptcp_err *e)
{
	struct ptcp_err why;
	struct snd_entry *f;

	if ((f = snd_find(s, d->id)) == NULL || f->state == AGAIN)
		return violation("FAIL", e);
	outbox_reason(&why, &d->why);
	/* Our own reason, unless the receiver has failed at the same time, and counts a failure. */
	if (f->state == FAILING && f->why != NULL && outbox_is_failure(f->why->code) == outbox_is_failure(why.code))
		why = *f->why;
	else if (!outbox_is_failure(why.code)) /* only the sender knows of sources */
		why.code = PTCP_EPEER;
	if (f->type == WIRE_DIR && (f->state == OFFERED || f->state == MADE))
		snd_lose_dir(s, f, &why);
	else
		snd_end(s, f, SND_FAILED, &why);
	return 0;
}
