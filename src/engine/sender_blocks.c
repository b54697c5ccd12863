/* Blocks: jobs for streams, blocks in flight, retransmission, completion. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/charged.h"
#include "core/err.h"
#include "engine/sender_impl.h"
#include "wire/block.h"

#define RANGES_MAX (1u << 22) /* max ranges of all files, waiting for retransmission */

/* ---- Retransmission ---- */

/* Makes room for another range: moves live ranges to the front, or allocates. */
static bool ranges_room(struct snd *s, struct ranges *r, struct ptcp_err *e)
{
	struct range *at;
	uint32_t cap = r->cap > 0 ? r->cap * 2 : 4;

	if (r->end < r->cap)
		return true;
	if (r->head > r->cap / 2) {
		memmove(r->at, r->at + r->head, (r->end - r->head) * sizeof *r->at);
		r->end -= r->head;
		r->head = 0;
		return true;
	}
	if ((at = memory_realloc(s->o.memory, r->at, r->cap * sizeof *at, cap * sizeof *at, e)) == NULL)
		return false;
	r->at = at;
	r->cap = cap;
	return true;
}

bool snd_ranges_add(struct snd *s, struct ranges *r, uint32_t first, uint32_t count, uint64_t omit,
    struct ptcp_err *e)
{
	struct range *last = r->head < r->end ? &r->at[r->end - 1] : NULL;

	if (last != NULL && last->first + last->count == first && last->omit == 0 && omit == 0) {
		last->count += count;
	} else {
		if (!ranges_room(s, r, e))
			return false;
		r->at[r->end++] = (struct range){ first, count, omit };
		s->n_ranges++;
	}
	r->blocks += count;
	return true;
}

void snd_ranges_taken(struct snd *s, struct ranges *r, uint32_t count)
{
	r->blocks -= count;
	r->at[r->head].first += count;
	r->at[r->head].count -= count;
	if (r->at[r->head].count > 0)
		return;
	s->n_ranges--;
	if (++r->head == r->end)
		r->head = r->end = 0;
}

void snd_ranges_clear(struct snd *s, struct ranges *r)
{
	s->n_ranges -= r->end - r->head;
	r->head = r->end = 0;
	r->blocks = 0;
}

void snd_ranges_fini(struct snd *s, struct ranges *r) { memory_free(s->o.memory, r->at, r->cap * sizeof *r->at); }

/* Blocks of an open region stay with its mover, which sends them whole. */
static bool requeue(struct snd *s, struct snd_entry *f, uint32_t first, uint32_t *count, uint64_t omit,
    struct ptcp_err *e)
{
	struct snd_lane *lane = f->n_regions > 0 ? snd_lane_with(s, f, first, count) : NULL;

	if (!snd_ranges_add(s, lane != NULL ? &lane->blocks : &f->again, first, *count, lane != NULL ? 0 : omit, e))
		return false;
	if (lane != NULL)
		f->region_blocks += *count;
	else if (list_empty(&f->in_ready) && !f->unmapped)
		list_append(s->ready.next, &f->in_ready); /* inserts before the first */
	return true;
}

bool snd_requeue(struct snd *s, struct snd_entry *f, uint32_t first, uint32_t count, uint64_t omit)
{
	struct ptcp_err why;
	uint32_t n;

	if (s->n_ranges >= RANGES_MAX)
		return false;
	for (; count > 0; first += n, count -= n) {
		n = count;
		if (!requeue(s, f, first, &n, omit, &why)) {
			snd_fail(s, f, &why);
			return true;
		}
	}
	return true;
}

/* ---- Blocks in flight ---- */

void snd_drop_blocks(struct snd *s, struct snd_entry *f)
{
	inflight_remove_blocks(&s->flights, &f->flights, f, 0, UINT32_MAX);
	snd_drop_map(s, f);
	list_remove(&f->in_ready);
	snd_ranges_clear(s, &f->again);
	snd_ranges_clear(s, &f->split);
	if (f->n_regions > 0)
		snd_drop_regions(s, f);
}

void snd_stream_up(struct snd *s, unsigned stream, struct mono now)
{
	TAPE(s->o.tape, stream_up, .at = now, .u = { stream });
	assert(stream < INFLIGHT_STREAMS && list_empty(&s->flights.stream[stream]));
	s->up[stream] = true;
	snd_lane_join(s, stream);
	inflight_stream_up(&s->flights, stream, now);
	s->stalls_at = (struct mono){ 0 };
}

/* The stream is lost: retransmits the block unless another stream carries a copy. An acknowledged block, too, if
 * snd_read() is missing: the digest needs its term. */
static void inflight_lost(struct snd *s, struct inflight *t)
{
	struct snd_entry *f = t->file;
	struct inflight *other = inflight_other(&s->flights, t);
	uint32_t block = t->block;
	struct ptcp_err why;

	inflight_remove(&s->flights, t);
	if (other != NULL) {
		inflight_uncopy(&s->flights, other);
	} else if (!snd_requeue(s, f, block, 1, 0)) {
		err_set(&why, PTCP_ENOMEM, "too many blocks wait to be sent again");
		snd_fail(s, f, &why);
	}
}

void snd_stream_lost(struct snd *s, unsigned stream)
{
	struct list *l = &s->flights.stream[stream];

	TAPE(s->o.tape, stream_lost, .u = { stream });
	if (s->up[stream])
		snd_lane_leave(s, stream);
	s->up[stream] = false;
	s->flights.lost[stream] |= !list_empty(l);
	while (!list_empty(l))
		inflight_lost(s, CONTAINER_OF(l->next, struct inflight, in_stream));
}

/* ---- The tail: copies of blocks in flight on slower streams ---- */

/* Whether `stream` may carry copies of blocks in flight on `other`: not where one rate delays both streams, and a
 * stream with blocks of its own only helps a stream of at least twice its latency. */
static bool may_help(const struct snd *s, unsigned stream, unsigned other)
{
	const uint64_t *latency_ns = s->flights.latency_ns;

	if (s->paced && s->flights.rate_of[other] == s->flights.rate_of[stream])
		return false;
	return !snd_stream_carries(s, stream) || (latency_ns[stream] > 0 && latency_ns[other] / 2 >= latency_ns[stream]);
}

static bool may_help_any(const struct snd *s, unsigned stream)
{
	unsigned i;

	for (i = 0; i < INFLIGHT_STREAMS; i++)
		if (!list_empty(&s->flights.stream[i]) && may_help(s, stream, i))
			return true;
	return false;
}

static bool may_copy(const struct snd *s, const struct inflight *t, unsigned stream)
{
	return may_help(s, stream, t->stream) && !snd_settled(t->file, t->block) &&
	    inflight_on(&s->flights, t->file, stream, t->block) == NULL;
}

/* Copies blocks of one list from that age on, the oldest first; or the newest first if relays spool: they forward the
 * oldest blocks meanwhile. False: the job is full, or the stream helps none. */
static bool copy_older(struct snd *s, struct list *list, uint64_t age_ns, unsigned stream, struct mono now,
    struct snd_job *job, uint32_t *bytes)
{
	bool helps = false, newest_first = s->terms.spooled;
	struct list *at, *next;
	struct inflight *t;
	struct mono due;

	for (at = newest_first ? list->prev : list->next; at != list; at = next) {
		next = newest_first ? at->prev : at->next;
		t = CONTAINER_OF(at, struct inflight, in_age);
		due = mono_add_ns(t->since, age_ns);
		if (due.ns > now.ns) {
			s->tail_at = mono_min(s->tail_at, due);
			if (newest_first)
				continue;
			return true;
		}
		if (!helps && !(helps = may_help_any(s, stream)))
			return false;
		if (!may_copy(s, t, stream))
			continue;
		if (!snd_job_add(s, job, bytes, t->file, t->block, 0, stream, now))
			return false;
		inflight_copy(&s->flights, t, stream);
	}
	return true;
}

/* Blocks older than the stream's patience; acknowledged blocks as well, if their snd_read() is
 * missing. A copy is copied at twice the age, as both may be on a dead path, and so on, but early enough that a third
 * comes within the session's time-out. Copies cost shared capacity: one at a time before the first acknowledgment. */
static void take_copies(struct snd *s, unsigned stream, struct mono now, struct snd_job *job, uint32_t *bytes)
{
	uint64_t patience = inflight_patience_ns(&s->flights, stream);
	uint64_t most = s->terms.timeout_ns / 3, age;
	unsigned i;

	if (!s->flights.any_acked && s->flights.n_copies > 0)
		return;
	for (i = 0; i <= INFLIGHT_DOUBLINGS; i++) {
		age = patience << i;
		if (!copy_older(s, &s->flights.age[i], age < most ? age : most, stream, now, job, bytes) ||
		    s->flights.n_copies == 0)
			return;
	}
}

/* ---- Jobs ---- */

bool snd_job_add(struct snd *s, struct snd_job *job, uint32_t *bytes, struct snd_entry *f,
    uint32_t block, uint64_t omit, unsigned stream, struct mono now)
{
	uint32_t length = wire_grid_length(f->grid, block);
	struct snd_extent *x;

	if (job->n == SND_JOB_EXTENTS || (job->n > 0 && *bytes + length > SND_JOB_BYTES))
		return false;
	if (inflight_add(&s->flights, &f->flights, f, block, length, stream, now) == NULL) {
		/* Without any block in flight no memory will be freed. */
		s->out->failed |= s->flights.n == 0;
		return false;
	}
	snd_stall_soon(s, stream);
	x = &job->extent[job->n++];
	x->id = f->id;
	x->block = block;
	x->offset = (uint64_t)block * f->grid.block_bytes;
	x->length = length;
	x->omit = omit;
	x->cookie = f->cookie;
	*bytes += length;
	if (bitmap_has(f->read, block))
		s->stats.blocks_again++;
	return true;
}

bool snd_next_block(const struct snd_entry *f, uint32_t *block, uint32_t *end)
{
	const struct range *r;

	if (f->again.head < f->again.end) {
		r = &f->again.at[f->again.head];
		*block = r->first;
		*end = r->first + r->count;
	} else {
		*block = f->next;
		*end = f->n_offered;
	}
	return *block < *end;
}

uint64_t snd_next_omit(const struct snd_entry *f)
{
	return f->again.head < f->again.end ? f->again.at[f->again.head].omit : 0;
}

void snd_taken(struct snd *s, struct snd_entry *f, uint32_t count)
{
	if (f->again.head == f->again.end)
		f->next += count;
	else
		snd_ranges_taken(s, &f->again, count);
}

static void take_new(struct snd *s, unsigned stream, struct mono now, struct snd_job *job,
    uint32_t *bytes)
{
	struct snd_entry *f;
	uint32_t block, end;

	while (!list_empty(&s->ready)) {
		f = CONTAINER_OF(s->ready.next, struct snd_entry, in_ready);
		if (!snd_track(s, f))
			continue;
		while (snd_next_block(f, &block, &end)) {
			if (snd_is_hole(f, block)) {
				if (!snd_put_holes(s, f, NULL, block, end))
					return;
				continue;
			}
			/* Requested or lost, but a copy has arrived meanwhile. */
			if (!snd_settled(f, block) &&
			    !snd_job_add(s, job, bytes, f, block, snd_next_omit(f), stream, now))
				return;
			snd_taken(s, f, 1);
		}
		list_remove(&f->in_ready);
	}
}

static bool take(struct snd *s, unsigned stream, struct mono now, struct snd_job *job)
{
	uint32_t bytes = 0;

	job->n = 0;
	if (snd_stream_waits(s, stream))
		return false;
	if (snd_has_regions(s, stream))
		snd_take_regions(s, stream, now, job, &bytes);
	else
		take_new(s, stream, now, job, &bytes);
	/* While a file grows, one slow block delays all others. */
	if (job->n == 0 && (s->listed || s->n_unended > 0) && list_empty(&s->ready) && s->n_regions == 0)
		take_copies(s, stream, now, job, &bytes);
	return job->n > 0;
}

bool snd_take(struct snd *s, unsigned stream, struct mono now, struct snd_job *job)
{
	bool any;

	assert(s->up[stream]);
	TAPE(s->o.tape, take, .at = now, .u = { stream });
	any = take(s, stream, now, job);
	tape_write_job(s->o.tape, any ? job : NULL);
	return any;
}

/* ---- News ---- */

/* Blocks that an input, whose length is unknown, may have. */
static uint32_t room_of(const struct snd_entry *f)
{
	return f->unsized ? wire_grid_blocks(wire_grid_unsized(WIRE_UNSIZED_MAX)) : f->n_blocks;
}

bool snd_track(struct snd *s, struct snd_entry *f)
{
	uint32_t room = room_of(f);
	struct ptcp_err why;

	if (room <= 64 || f->read != &f->few[1])
		return true;
	if (memory_charge(s->o.memory, 2 * bitmap_bytes(room), &why) == 0) {
		f->acked = bitmap_new(room);
		f->read = bitmap_new(room);
		if (f->acked != NULL && f->read != NULL)
			return true;
		snd_untrack(s, f);
		err_nomem(&why);
	}
	snd_fail(s, f, &why);
	return false;
}

void snd_untrack(struct snd *s, struct snd_entry *f)
{
	if (f->read == &f->few[1])
		return;
	memory_release(s->o.memory, 2 * bitmap_bytes(room_of(f)));
	free(f->acked);
	free(f->read);
	f->acked = &f->few[0];
	f->read = &f->few[1];
}

void snd_start(struct snd *s, struct snd_entry *f, bool parts)
{
	f->state = SENDING;
	f->parts = parts;
	if (parts)
		f->next = f->n_blocks;
	if (f->unsized)
		snd_start_unsized(s, f);
	else if (f->sparse && f->n_blocks > 0)
		snd_await_map(s, f);
	else if (!parts && f->n_blocks > 0)
		list_append(&s->ready, &f->in_ready);
	snd_try_complete(s, f);
}

void snd_try_complete(struct snd *s, struct snd_entry *f)
{
	if (f->state != SENDING || f->unended || f->n_acked < f->n_blocks)
		return;
	if (f->n_blocks == 1 && !f->unsized) {
		snd_drop_blocks(s, f); /* no need for snd_read(): no digest of one block */
		f->state = FINISHING;
	} else if (f->n_read == f->n_blocks) {
		snd_drop_blocks(s, f);
		f->state = CHECKING;
		s->o.ops->check(s->o.arg, f->cookie, f->id);
	}
}

/* A read error fails the file, unless the receiver has the block or another stream has already read it. */
static void read_failed(struct snd *s, struct snd_entry *f, struct inflight *t,
    const struct ptcp_err *why)
{
	const struct inflight *other;

	if (t == NULL)
		return;
	other = inflight_other(&s->flights, t);
	if (snd_settled(f, t->block) || (other != NULL && (other->sent || bitmap_has(f->acked, t->block))))
		inflight_remove(&s->flights, t);
	else
		snd_fail(s, f, why);
}

void snd_read(struct snd *s, unsigned stream, uint64_t id, uint32_t block, struct digest term,
    const struct ptcp_err *why, struct mono now)
{
	struct snd_entry *f = snd_find(s, id);
	struct inflight *t;

	TAPE(s->o.tape, read, .at = now, .u = { stream, id, block }, .digest = &term, .why = why);
	t = f != NULL ? inflight_on(&s->flights, f, stream, block) : NULL;
	inflight_sent(&s->flights, stream, why == NULL ? t : NULL, now);
	if (s->rate[s->flights.rate_of[stream]].bps > 0)
		s->stalls_at = (struct mono){ 0 }; /* less is queued at the rate */
	if (f == NULL || f->state != SENDING)
		return;
	if (why != NULL) {
		read_failed(s, f, t, why);
		return;
	}
	if (bitmap_add(f->read, block)) {
		f->n_read++;
		digest_add(&f->digest, term);
		if (bitmap_has(f->acked, block))
			snd_release_block(s, f, block);
	}
	if (snd_settled(f, block))
		inflight_remove_blocks(&s->flights, &f->flights, f, block, 1);
	snd_try_complete(s, f);
}

/* Sends FILE_END with the digest, or fails a source that has changed. */
static void end_file(struct snd *s, struct snd_entry *f, struct digest digest, enum snd_state next,
    const struct ptcp_err *why)
{
	struct wire_file_end end_frame = { f->id, digest };

	if (why != NULL) {
		snd_fail(s, f, why);
		return;
	}
	f->state = next;
	OUTBOX_PUT(s->out, file_end, FILE_END, &end_frame);
}

void snd_checked(struct snd *s, uint64_t id, const struct ptcp_err *why)
{
	struct snd_entry *f = snd_find(s, id);

	TAPE(s->o.tape, checked, .u = { id }, .why = why);
	if (f != NULL && f->state == CHECKING)
		end_file(s, f, f->digest, FINISHING, why);
}

bool snd_awaits_digest(const struct snd *s, uint64_t id)
{
	const struct snd_entry *f = snd_find(s, id);

	return f != NULL && (f->state == COMPARING || f->state == CHECKING ||
	    (f->state == SENDING && (f->match[0].count > 0 || f->split.blocks > 0)));
}

static struct wire_hashes hashes_of(uint64_t id, uint32_t first, const struct block_sum *sum, uint32_t n, uint8_t *out)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		wire_hash_encode(out + i * WIRE_HASH_BYTES, sum[i]);
	return (struct wire_hashes){ id, first, (uint16_t)n, { out, n * WIRE_HASH_BYTES } };
}

void snd_hashed(struct snd *s, uint64_t id, const struct block_sum *sum, uint32_t n, const struct ptcp_err *why)
{
	struct snd_entry *f = snd_find(s, id);
	uint8_t hashes[WIRE_HASH_BYTES * WIRE_HASHES_MAX];
	struct wire_hashes frame;

	TAPE(s->o.tape, hashed, .u = { id, n }, .why = why);
	if (f == NULL || f->state != SENDING || f->match[0].count == 0)
		return;
	if (why != NULL) {
		snd_fail(s, f, why);
		return;
	}
	if (n == 0 || n > f->match[0].count)
		return;
	frame = hashes_of(f->id, f->match[0].first, sum, n, hashes);
	OUTBOX_PUT(s->out, hashes, HASHES, &frame);
	f->match[0].first += n;
	f->match[0].count -= n;
	if (f->match[0].count > 0)
		return;
	f->match[0] = f->match[1];
	f->match[1] = (struct range){ 0 };
	if (f->match[0].count > 0)
		s->o.ops->hash(s->o.arg, f->cookie, f->id, f->match[0].first, f->match[0].count);
}

void snd_pieces(struct snd *s, uint64_t id, const struct block_sum *sum, uint32_t n, const struct ptcp_err *why)
{
	uint8_t hashes[WIRE_HASH_BYTES * WIRE_PIECES_MAX];
	struct snd_entry *f = snd_find(s, id);
	struct wire_hashes frame;
	uint32_t block;

	TAPE(s->o.tape, pieces, .u = { id, n }, .why = why);
	if (f == NULL || f->state != SENDING || f->split.blocks == 0)
		return;
	if (why != NULL) {
		snd_fail(s, f, why);
		return;
	}
	block = f->split.at[f->split.head].first;
	if (n != wire_pieces(wire_grid_length(f->grid, block)))
		return;
	frame = hashes_of(f->id, block, sum, n, hashes);
	OUTBOX_PUT(s->out, pieces, PIECES, &frame);
	snd_ranges_taken(s, &f->split, 1);
	if (f->split.blocks > 0)
		s->o.ops->pieces(s->o.arg, f->cookie, f->id, f->split.at[f->split.head].first);
}

bool snd_digest_is(const struct snd *s, uint64_t id, struct digest digest)
{
	const struct snd_entry *f = snd_find(s, id);

	return f != NULL && digest_equal(f->digest, digest);
}

void snd_compared(struct snd *s, uint64_t id, struct digest digest, const struct ptcp_err *why)
{
	struct snd_entry *f = snd_find(s, id);

	TAPE(s->o.tape, compared, .u = { id }, .digest = &digest, .why = why);
	if (f != NULL && f->state == COMPARING)
		end_file(s, f, digest, COMPARED, why);
}
