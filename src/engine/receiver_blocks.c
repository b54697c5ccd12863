/* Which blocks of a file are here: claimed from an earlier session, holes, and what is asked for. */
#include <stdlib.h>

#include "core/err.h"
#include "engine/receiver_impl.h"

/* No more is asked for while so much waits for the sender to read, or so many blocks are to come:
 * it remembers each range that we ask for. */
#define BACKLOG_BYTES (1u << 20)
#define ASKED_MAX (1u << 17)

static bool track(struct rcv *r, struct item *f)
{
	if (f->done != NULL)
		return true;
	if (f->n_blocks <= 64) {
		f->done = &f->few;
		return true;
	}
	if (r->bitmap_bytes + bitmap_bytes(f->n_blocks) > BITMAPS_MAX_BYTES ||
	    (f->done = bitmap_new(f->n_blocks)) == NULL)
		return false;
	r->bitmap_bytes += bitmap_bytes(f->n_blocks);
	return true;
}

bool rcv_track(struct rcv *r, struct item *f)
{
	struct ptcp_err why;

	if (track(r, f))
		return true;
	err_set(&why, PTCP_ENOMEM, "too many large files at once for the receiver");
	rcv_fail(r, f, &why);
	return false;
}

void rcv_claim(struct rcv *r, struct item *f, uint64_t *claimed)
{
	uint64_t bytes = bitmap_bytes(f->n_blocks);

	if (claimed == NULL || f->n_blocks == 0 || r->bitmap_bytes + 2 * bytes > BITMAPS_MAX_BYTES ||
	    !track(r, f)) {
		free(claimed);
		return;
	}
	r->bitmap_bytes += bytes;
	f->claimed = claimed;
	list_append(&r->asking, &f->waiting);
}

void rcv_bitmaps_free(struct rcv *r, struct item *f)
{
	if (f->done != NULL && f->done != &f->few) {
		r->bitmap_bytes -= bitmap_bytes(f->n_blocks);
		free(f->done);
	}
	if (f->claimed != NULL)
		r->bitmap_bytes -= bitmap_bytes(f->n_blocks);
	free(f->claimed);
	f->done = f->claimed = NULL;
	r->asked -= f->asked;
	f->asked = 0;
}

/* ---- What is here ---- */

bool rcv_wanted(const struct item *f, uint32_t block)
{
	return !bitmap_has(f->done, block) &&
	    (f->claimed == NULL || (block < f->need_next && !bitmap_has(f->claimed, block)));
}

static void mark(struct rcv *r, struct item *f, uint32_t first, uint32_t count)
{
	bitmap_set(f->done, true, first, first + count);
	f->n_done += count;
	r->stats.done.bytes += wire_grid_range_bytes(f->size_bytes, first, count);
}

void rcv_add_blocks(struct rcv *r, struct item *f, uint32_t first, uint32_t count)
{
	mark(r, f, first, count);
	if (f->claimed != NULL) {
		f->asked -= count;
		r->asked -= count;
	}
}

/* Whether all of them may come. */
static bool all_wanted(const struct item *f, uint32_t first, uint32_t end)
{
	if (bitmap_next(f->done, true, first, end) < end)
		return false;
	return f->claimed == NULL ||
	    (end <= f->need_next && bitmap_next(f->claimed, true, first, end) == end);
}

static bool range_fits(const struct item *f, uint32_t first, uint32_t count)
{
	return first < f->n_blocks && count <= f->n_blocks - first;
}

int rcv_on_hole(struct rcv *r, struct span in, struct ptcp_err *e)
{
	struct wire_blocks b;
	struct item *f;
	int err;

	if ((err = wire_hole_decode(&b, in, e)) < 0)
		return err;
	if ((f = rcv_find(r, b.id)) == NULL && !rcv_unheard(r, b.id))
		return 0;
	if (f == NULL || f->state != RECEIVING || !f->sparse || !range_fits(f, b.first, b.count))
		return rcv_violation("HOLE", e);
	if (!rcv_track(r, f))
		return 0;
	if (!all_wanted(f, b.first, b.first + b.count))
		return rcv_violation("HOLE", e);
	rcv_add_blocks(r, f, b.first, b.count);
	r->stats.hole_bytes += wire_grid_range_bytes(f->size_bytes, b.first, b.count);
	if (r->o.ops->hole != NULL)
		r->o.ops->hole(r->o.arg, f->id, f->cookie, b.first, b.count);
	rcv_try_commit(r, f);
	return 0;
}

/* ---- Claims ---- */

static void need(struct rcv *r, struct item *f, uint32_t first, uint32_t end)
{
	struct wire_blocks b = { .id = f->id, .first = first, .count = end - first };

	f->asked += b.count;
	r->asked += b.count;
	OUTBOX_PUT(r->out, need, NEED, &b);
}

static void claims_good(struct rcv *r, struct item *f, uint32_t first, uint32_t count,
    struct digest sum)
{
	struct wire_blocks b = { .id = f->id, .first = first, .count = count, .digest = sum };

	mark(r, f, first, count);
	r->stats.done.resumed_bytes += wire_grid_range_bytes(f->size_bytes, first, count);
	digest_add(&f->sum, sum);
	OUTBOX_PUT(r->out, have, HAVE, &b);
	rcv_try_commit(r, f);
}

/* Those that rcv_tick() has passed are asked for at once. */
static void claims_bad(struct rcv *r, struct item *f, uint32_t first, uint32_t end)
{
	bitmap_set(f->claimed, false, first, end);
	if (first < f->need_next)
		need(r, f, first, end < f->need_next ? end : f->need_next);
}

void rcv_verified(struct rcv *r, uint64_t id, uint32_t first, uint32_t count, bool good,
    struct digest sum)
{
	struct item *f = rcv_find(r, id);
	uint32_t end = first + count;

	if (f == NULL || f->state != RECEIVING || f->claimed == NULL || !range_fits(f, first, count) ||
	    bitmap_next(f->claimed, false, first, end) < end ||
	    bitmap_next(f->done, true, first, end) < end)
		return;
	if (good)
		claims_good(r, f, first, count, sum);
	else
		claims_bad(r, f, first, end);
	rcv_run_waiting(r);
}

void rcv_broken(struct rcv *r, uint64_t id, const struct ptcp_err *why)
{
	struct item *f = rcv_find(r, id);

	if (f != NULL && f->state == RECEIVING)
		rcv_fail(r, f, why);
	rcv_run_waiting(r);
}

/* ---- What is missing ---- */

/* The next run of blocks that nobody claims. */
static void ask_next(struct rcv *r, struct item *f)
{
	uint32_t first = bitmap_next(f->claimed, false, f->need_next, f->n_blocks);

	f->need_next = bitmap_next(f->claimed, true, first, f->n_blocks);
	if (first < f->need_next)
		need(r, f, first, f->need_next);
	if (f->need_next == f->n_blocks)
		list_remove(&f->waiting);
}

void rcv_tick(struct rcv *r)
{
	r->needs_wait = false;
	while (!list_empty(&r->asking) && r->asked < ASKED_MAX && !r->needs_wait) {
		if (buf_len(&r->out->b) > BACKLOG_BYTES)
			r->needs_wait = true;
		else
			ask_next(r, CONTAINER_OF(r->asking.next, struct item, waiting));
	}
}

struct mono rcv_deadline(const struct rcv *r)
{
	return r->needs_wait && buf_len(&r->out->b) <= BACKLOG_BYTES ? (struct mono){ 0 } : MONO_NEVER;
}
