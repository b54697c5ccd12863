/* Blocks of files: claims of an earlier session, holes, requests, written blocks, and the end of a file. */
#include <stdlib.h>

#include "core/err.h"
#include "engine/receiver_impl.h"

/* Bytes in the outbox, and blocks requested and not received, above which no more are requested: the sender stores
 * each range. */
#define BACKLOG_BYTES (1u << 20)
#define REQUESTED_MAX (1u << 17)

static bool take_bitmap(struct rcv *r, uint64_t bytes)
{
	if (r->bitmap_bytes + bytes > BITMAPS_MAX_BYTES || memory_charge(r->o.memory, bytes, NULL) < 0)
		return false;
	r->bitmap_bytes += bytes;
	return true;
}

static void give_bitmap(struct rcv *r, uint64_t bytes)
{
	r->bitmap_bytes -= bytes;
	memory_release(r->o.memory, bytes);
}

/* Allocates a file's bitmap with its first block, as thousands of large files may wait. */
static bool track(struct rcv *r, struct rcv_entry *f)
{
	if (f->done != NULL)
		return true;
	if (f->n_blocks <= 64) {
		f->done = &f->few;
		return true;
	}
	if (!take_bitmap(r, bitmap_bytes(f->n_blocks)))
		return false;
	if ((f->done = bitmap_new(f->n_blocks)) == NULL) {
		give_bitmap(r, bitmap_bytes(f->n_blocks));
		return false;
	}
	f->done_room = f->n_blocks;
	return true;
}

static bool track_or_fail(struct rcv *r, struct rcv_entry *f)
{
	struct ptcp_err why;

	if (track(r, f))
		return true;
	err_set(&why, PTCP_ENOMEM, "too many large files at once for the receiver");
	rcv_fail(r, f, &why);
	return false;
}

void rcv_claim(struct rcv *r, struct rcv_entry *f, uint64_t *claimed)
{
	uint64_t bytes = bitmap_bytes(f->n_blocks);

	if (claimed == NULL || f->n_blocks == 0 || !take_bitmap(r, bytes)) {
		free(claimed);
		return;
	}
	if (!track(r, f)) {
		give_bitmap(r, bytes);
		free(claimed);
		return;
	}
	f->claimed = claimed;
	list_append(&r->requesting, &f->waiting);
}

void rcv_bitmaps_free(struct rcv *r, struct rcv_entry *f)
{
	if (f->done != NULL && f->done != &f->few) {
		give_bitmap(r, bitmap_bytes(f->done_room));
		free(f->done);
	}
	if (f->claimed != NULL)
		give_bitmap(r, bitmap_bytes(f->n_blocks));
	if (f->split.of != NULL)
		give_bitmap(r, bitmap_bytes(f->n_blocks));
	free(f->claimed);
	free(f->split.of);
	f->done = f->claimed = f->split.of = NULL;
	r->requested -= f->requested;
	f->requested = 0;
}

uint64_t rcv_beginning_bytes(const struct rcv_entry *f)
{
	uint32_t n = f->done != NULL ? bitmap_next(f->done, false, 0, f->end) : 0;

	return wire_grid_range_bytes(f->grid, 0, n);
}

/* ---- Received blocks ---- */

/* Missing and requested. */
static bool expects(const struct rcv_entry *f, uint32_t block)
{
	return !bitmap_has(f->done, block) &&
	    (f->claimed == NULL || (block < f->need_next && !bitmap_has(f->claimed, block)));
}

static void mark(struct rcv *r, struct rcv_entry *f, uint32_t first, uint32_t count)
{
	bitmap_set(f->done, true, first, first + count);
	f->n_done += count;
	f->end = first + count > f->end ? first + count : f->end;
	r->stats.done.bytes += wire_grid_range_bytes(f->grid, first, count);
}

static void add_blocks(struct rcv *r, struct rcv_entry *f, uint32_t first, uint32_t count)
{
	mark(r, f, first, count);
	if (f->claimed != NULL) {
		f->requested -= count;
		r->requested -= count;
	}
}

static bool expects_all(const struct rcv_entry *f, uint32_t first, uint32_t end)
{
	if (bitmap_next(f->done, true, first, end) < end)
		return false;
	return f->claimed == NULL ||
	    (end <= f->need_next && bitmap_next(f->claimed, true, first, end) == end);
}

static bool range_fits(const struct rcv_entry *f, uint32_t first, uint32_t count)
{
	return first < f->n_blocks && count <= f->n_blocks - first;
}

/* The check of the only block covers the file, but not the end of an input. */
static bool needs_end(const struct rcv_entry *f) { return f->n_blocks != 1 || f->unsized; }

static void try_commit(struct rcv *r, struct rcv_entry *f)
{
	struct ptcp_err why;

	if (f->unended || f->n_done < f->n_blocks)
		return;
	f->state = COMPLETE;
	if (needs_end(f) && !f->has_digest)
		return;
	if (needs_end(f) && r->o.verify && !digest_equal(f->sum, f->expected)) {
		err_set(&why, PTCP_EVERIFY, "the file's digest differs from the source's "
		    "(check memory and disk of both hosts, then send it again)");
		rcv_fail(r, f, &why);
		return;
	}
	rcv_commit(r, f, NULL);
}

int rcv_on_hole(struct rcv *r, const struct wire_blocks *b, struct ptcp_err *e)
{
	struct rcv_entry *f;

	if ((f = rcv_find(r, b->id)) == NULL && !rcv_is_new(r, b->id))
		return 0;
	if (f == NULL || f->state != RECEIVING || !f->sparse || !range_fits(f, b->first, b->count))
		return rcv_violation("HOLE", e);
	if (!track_or_fail(r, f))
		return 0;
	if (!expects_all(f, b->first, b->first + b->count))
		return rcv_violation("HOLE", e);
	add_blocks(r, f, b->first, b->count);
	r->stats.hole_bytes += wire_grid_range_bytes(f->grid, b->first, b->count);
	if (r->o.ops->hole != NULL)
		r->o.ops->hole(r->o.arg, f->id, f->cookie, b->first, b->count);
	try_commit(r, f);
	return 0;
}

/* ---- Comparing with an existing file ---- */

/* With both digests known: skips the file, or prepares to receive it. */
static void rcv_try_compare(struct rcv *r, struct rcv_entry *f)
{
	if (!f->has_own || !f->has_digest)
		return;
	if (!f->unreadable && digest_equal(f->sum, f->expected)) {
		f->state = PREPARING;
		r->o.ops->same(r->o.arg, f->id, f->cookie);
		return;
	}
	f->sum = (struct digest){ 0, 0 };
	f->has_digest = false;
	f->state = PREPARING;
	r->o.ops->differs(r->o.arg, f->id, f->cookie);
}

void rcv_compared(struct rcv *r, uint64_t id, struct digest digest, const struct ptcp_err *why)
{
	struct rcv_entry *f = rcv_find(r, id);

	TAPE(r->o.tape, rcv_compared, .u = { id }, .digest = &digest, .why = why);
	if (f == NULL || f->state != COMPARING || f->has_own)
		return;
	f->has_own = true;
	f->unreadable = why != NULL;
	f->sum = digest;
	rcv_try_compare(r, f);
	rcv_run_waiting(r);
}

/* ---- Claims ---- */

static void need(struct rcv *r, struct rcv_entry *f, uint32_t first, uint32_t end)
{
	struct wire_blocks b = { .id = f->id, .first = first, .count = end - first };

	f->requested += b.count;
	r->requested += b.count;
	OUTBOX_PUT(r->out, need, NEED, &b);
}

static void claims_good(struct rcv *r, struct rcv_entry *f, uint32_t first, uint32_t count,
    struct digest sum)
{
	struct wire_blocks b = { .id = f->id, .first = first, .count = count, .digest = sum };

	mark(r, f, first, count);
	r->stats.done.resumed_bytes += wire_grid_range_bytes(f->grid, first, count);
	digest_add(&f->sum, sum);
	OUTBOX_PUT(r->out, have, HAVE, &b);
	try_commit(r, f);
}

/* Blocks before need_next are requested at once. */
static void claims_bad(struct rcv *r, struct rcv_entry *f, uint32_t first, uint32_t end)
{
	bitmap_set(f->claimed, false, first, end);
	if (first < f->need_next)
		need(r, f, first, end < f->need_next ? end : f->need_next);
}

/* Claimed, and not verified. */
static bool is_claim(const struct rcv_entry *f, uint32_t first, uint32_t count)
{
	uint32_t end = first + count;

	return f != NULL && f->state == RECEIVING && f->claimed != NULL && range_fits(f, first, count) &&
	    bitmap_next(f->claimed, false, first, end) == end && bitmap_next(f->done, true, first, end) == end;
}

void rcv_verified(struct rcv *r, uint64_t id, uint32_t first, uint32_t count, bool good,
    struct digest sum)
{
	struct rcv_entry *f = rcv_find(r, id);
	uint32_t end = first + count;

	TAPE(r->o.tape, verified, .u = { id, first, count, good }, .digest = &sum);
	if (!is_claim(f, first, count))
		return;
	if (good)
		claims_good(r, f, first, count, sum);
	else
		claims_bad(r, f, first, end);
	rcv_run_waiting(r);
}

void rcv_patch(struct rcv *r, uint64_t id, uint32_t block, uint64_t has)
{
	struct wire_patch patch = { .id = id, .block = block, .omit = has };
	struct rcv_entry *f = rcv_find(r, id);

	TAPE(r->o.tape, patch, .u = { id, block, has });
	if (!is_claim(f, block, 1))
		return;
	if (has == 0 || block >= f->need_next) {
		claims_bad(r, f, block, block + 1);
	} else {
		bitmap_set(f->claimed, false, block, block + 1);
		f->requested++;
		r->requested++;
		OUTBOX_PUT(r->out, patch, PATCH, &patch);
	}
	rcv_run_waiting(r);
}

void rcv_match(struct rcv *r, uint64_t id, uint32_t first, uint32_t count)
{
	struct wire_blocks b = { .id = id, .first = first, .count = count };
	struct rcv_entry *f = rcv_find(r, id);
	unsigned i;

	TAPE(r->o.tape, match, .u = { id, first, count });
	if (f == NULL || f->state != RECEIVING || f->claimed == NULL || !range_fits(f, first, count) || count == 0 ||
	    count > WIRE_HASHES_MAX || f->match[1].count > 0)
		return;
	i = f->match[0].count > 0;
	f->match[i].first = first;
	f->match[i].count = count;
	r->stats.compared_bytes += wire_grid_range_bytes(f->grid, first, count);
	OUTBOX_PUT(r->out, match, MATCH, &b);
}

/* Hashes may cross the end of a file received without hashes. */
int rcv_on_hashes(struct rcv *r, const struct wire_hashes *w, struct ptcp_err *e)
{
	struct rcv_entry *f;

	if ((f = rcv_find(r, w->id)) == NULL && !rcv_is_new(r, w->id))
		return 0;
	if (f == NULL || w->first != f->match[0].first || w->n > f->match[0].count)
		return rcv_violation("HASHES", e);
	f->match[0].first += w->n;
	f->match[0].count -= w->n;
	if (f->match[0].count == 0) {
		f->match[0] = f->match[1];
		f->match[1].count = 0;
	}
	if (f->state == RECEIVING)
		r->o.ops->hashes(r->o.arg, f->id, f->cookie, w->first, w->hashes);
	return 0;
}

static bool track_split(struct rcv *r, struct rcv_entry *f)
{
	if (f->split.of != NULL)
		return true;
	if (!take_bitmap(r, bitmap_bytes(f->n_blocks)))
		return false;
	if ((f->split.of = bitmap_new(f->n_blocks)) == NULL)
		give_bitmap(r, bitmap_bytes(f->n_blocks));
	return f->split.of != NULL;
}

bool rcv_split(struct rcv *r, uint64_t id, uint32_t first, uint32_t count)
{
	struct wire_blocks b = { .id = id, .first = first, .count = count };
	struct rcv_entry *f = rcv_find(r, id);

	TAPE(r->o.tape, split, .u = { id, first, count });
	if (f == NULL || f->state != RECEIVING || f->claimed == NULL || !range_fits(f, first, count) || count == 0 ||
	    first < f->split.end || f->grid.block_bytes != WIRE_CHUNK_BYTES || !track_split(r, f))
		return false;
	bitmap_set(f->split.of, true, first, first + count);
	f->split.end = first + count;
	OUTBOX_PUT(r->out, split, SPLIT, &b);
	return true;
}

/* In the order of the requests. Hashes may cross the end of a file received without hashes. */
int rcv_on_pieces(struct rcv *r, const struct wire_hashes *w, struct ptcp_err *e)
{
	struct rcv_entry *f;

	if ((f = rcv_find(r, w->id)) == NULL && !rcv_is_new(r, w->id))
		return 0;
	if (f == NULL || w->first >= f->split.end ||
	    bitmap_next(f->split.of, true, f->split.from, f->split.end) != w->first ||
	    w->n != wire_pieces(wire_grid_length(f->grid, w->first)))
		return rcv_violation("PIECES", e);
	f->split.from = w->first + 1;
	if (f->state == RECEIVING)
		r->o.ops->pieces(r->o.arg, f->id, f->cookie, w->first, w->hashes);
	return 0;
}

void rcv_broken(struct rcv *r, uint64_t id, const struct ptcp_err *why)
{
	struct rcv_entry *f = rcv_find(r, id);

	TAPE(r->o.tape, broken, .u = { id }, .why = why);
	if (f != NULL && (f->state == RECEIVING || f->state == COMPLETE))
		rcv_fail(r, f, why);
	rcv_run_waiting(r);
}

/* ---- Requests ---- */

/* The next run of blocks without a claim. */
static void request_next(struct rcv *r, struct rcv_entry *f)
{
	uint32_t end = f->need_end < f->n_blocks ? f->need_end : f->n_blocks;
	uint32_t first = bitmap_next(f->claimed, false, f->need_next, end);

	f->need_next = bitmap_next(f->claimed, true, first, end);
	if (first < f->need_next)
		need(r, f, first, f->need_next);
	if (f->need_next >= end)
		list_remove(&f->waiting);
}

void rcv_limit(struct rcv *r, uint64_t id, uint32_t end)
{
	struct rcv_entry *f = rcv_find(r, id);

	TAPE(r->o.tape, limit, .u = { id, end });
	if (f == NULL || f->state != RECEIVING || f->claimed == NULL)
		return;
	f->need_end = end;
	if (list_empty(&f->waiting) && f->need_next < end && f->need_next < f->n_blocks)
		list_append(&r->requesting, &f->waiting);
}

void rcv_tick(struct rcv *r)
{
	r->needs_wait = false;
	while (!list_empty(&r->requesting) && r->requested < REQUESTED_MAX && !r->needs_wait) {
		if (buf_len(&r->out->b) > BACKLOG_BYTES)
			r->needs_wait = true;
		else
			request_next(r, CONTAINER_OF(r->requesting.next, struct rcv_entry, waiting));
	}
}

struct mono rcv_deadline(const struct rcv *r)
{
	return r->needs_wait && buf_len(&r->out->b) <= BACKLOG_BYTES ? (struct mono){ 0 } : MONO_NEVER;
}

/* ---- Blocks and the end of a file ---- */

void rcv_block(struct rcv *r, uint64_t id, uint32_t block, enum rcv_block_result result,
    struct digest term, const struct ptcp_err *why)
{
	struct wire_ack ack = { id, block };
	struct wire_blocks need = { .id = id, .first = block, .count = 1 };
	struct rcv_entry *f = rcv_find(r, id);

	TAPE(r->o.tape, block, .u = { id, block, result }, .digest = &term, .why = why);
	if (f == NULL || f->state != RECEIVING || block >= f->n_blocks || !track_or_fail(r, f) ||
	    !expects(f, block))
		return;
	switch (result) {
	case RCV_BLOCK_FAILED:
		rcv_fail(r, f, why);
		break;
	case RCV_BLOCK_BAD:
		OUTBOX_PUT(r->out, need, NEED, &need);
		break;
	case RCV_BLOCK_WRITTEN:
		add_blocks(r, f, block, 1);
		digest_add(&f->sum, term);
		OUTBOX_PUT(r->out, ack, ACK, &ack);
		try_commit(r, f);
		break;
	}
}

int rcv_on_file_end(struct rcv *r, const struct wire_file_end *w, struct ptcp_err *e)
{
	struct rcv_entry *f;

	if ((f = rcv_find(r, w->id)) == NULL && !rcv_is_new(r, w->id))
		return 0;
	if (f == NULL || f->has_digest || (f->state != COMPARING && f->state != COMPLETE))
		return rcv_violation("FILE_END", e);
	f->expected = w->digest;
	f->has_digest = true;
	if (f->state == COMPARING)
		rcv_try_compare(r, f);
	else
		try_commit(r, f);
	return 0;
}

/* A shorter last block is sent on request: before SIZE its length would not fit the grid. */
int rcv_on_size(struct rcv *r, const struct wire_size *w, struct ptcp_err *e)
{
	struct rcv_entry *f;

	if ((f = rcv_find(r, w->id)) == NULL && !rcv_is_new(r, w->id))
		return 0;
	if (f == NULL || f->state != RECEIVING || !f->unended || f->end > w->size_bytes / f->grid.block_bytes)
		return rcv_violation("SIZE", e);
	f->unended = false;
	f->size_bytes = w->size_bytes;
	f->grid = wire_grid_unsized(w->size_bytes);
	f->n_blocks = wire_grid_blocks(f->grid);
	r->o.ops->sized(r->o.arg, f->id, f->cookie, w->size_bytes);
	if (w->size_bytes % f->grid.block_bytes != 0)
		OUTBOX_PUT(r->out, need, NEED, &(struct wire_blocks){ .id = f->id, .first = f->n_blocks - 1, .count = 1 });
	try_commit(r, f);
	return 0;
}

int rcv_on_fail(struct rcv *r, const struct wire_fail *w, struct ptcp_err *e)
{
	struct ptcp_err why;
	struct rcv_entry *f;
	uint8_t *p;

	if ((f = rcv_find(r, w->id)) == NULL && !rcv_is_new(r, w->id))
		return 0;
	if (f == NULL || f->type != WIRE_FILE || f->state == WAITING || f->state == PREPARING)
		return rcv_violation("FAIL", e);
	if (f->state == COMMITTING)
		return 0; /* too late: DONE or FAIL is in transit */
	outbox_reason(&why, &w->why);
	if ((p = outbox_room(r->out, WIRE_FAIL_MAX_BYTES)) != NULL)
		outbox_added(r->out, wire_fail_encode(p, w));
	rcv_fail_waiters(r, f);
	rcv_end(r, f, false, &why);
	return 0;
}

void rcv_committed(struct rcv *r, uint64_t id, const struct ptcp_err *why)
{
	struct rcv_entry *f = rcv_find(r, id);

	TAPE(r->o.tape, committed, .u = { id }, .why = why);
	if (f == NULL || f->state != COMMITTING)
		return;
	if (why != NULL)
		rcv_fail(r, f, why);
	else
		rcv_done(r, f);
	rcv_run_waiting(r);
}

int rcv_on_totals(struct rcv *r, const struct wire_totals *t, struct ptcp_err *e)
{
	(void)e;

	r->o.ops->totals(r->o.arg, t->files, t->bytes, t->final);
	return 0;
}
