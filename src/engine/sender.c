/* Entries: offered in the order of the walk, ended by the receiver's verdict. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sender.h"

#include "core/charged.h"
#include "core/err.h"
#include "core/units.h"
#include "engine/sender_impl.h"
#include "wire/attrs.h"
#include "wire/block.h"

static_assert(INFLIGHT_RATES == SND_RATES + 1, "a queue for each rate");

/* The spare slots of lower numbers come first. */
static void add_slots(struct snd *s, unsigned from, unsigned to)
{
	unsigned i, n = to - from;

	memmove(s->spare + n, s->spare, s->n_spare * sizeof *s->spare);
	for (i = 0; i < n; i++)
		s->spare[i] = (uint16_t)(to - 1 - i);
	s->n_spare += n;
}

int snd_new(struct snd **out, const struct snd_opts *o, struct outbox *outbox, struct ptcp_err *e)
{
	struct snd *s = memory_calloc(o->memory, sizeof *s, e);

	if (s == NULL)
		return PTCP_ENOMEM;
	s->o = *o;
	s->out = outbox;
	add_slots(s, 0, WIRE_EARLY_ENTRIES);
	spares_init(&s->entries, o->memory, sizeof(struct snd_entry), sizeof(struct snd_entry));
	list_init(&s->all);
	list_init(&s->ready);
	list_init(&s->unmapped);
	inflights_init(&s->flights, o->memory);
	s->tail_at = MONO_NEVER;
	*out = s;
	return 0;
}

void snd_agree(struct snd *s, const struct snd_terms *t)
{
	s->terms = *t;
	add_slots(s, WIRE_EARLY_ENTRIES, t->max_entries < WIRE_SLOTS ? t->max_entries : WIRE_SLOTS);
}

/* ---- The end of an entry ---- */

struct snd_entry *snd_find(const struct snd *s, uint64_t id)
{
	unsigned slot = wire_slot(id);

	if (slot >= WIRE_SLOTS || s->slot[slot] == NULL || s->slot[slot]->id != id)
		return NULL;
	return s->slot[slot];
}

static void free_slot(struct snd *s, struct snd_entry *f)
{
	if (f->id == 0)
		return;
	s->slot[wire_slot(f->id)] = NULL;
	s->spare[s->n_spare++] = (uint16_t)wire_slot(f->id);
	s->stats.live--;
	f->id = 0;
}

static void entry_free(struct snd *s, struct snd_entry *f)
{
	snd_drop_blocks(s, f);
	s->n_unended -= f->unended;
	free_slot(s, f);
	list_remove(&f->in_all);
	snd_untrack(s, f);
	snd_ranges_fini(s, &f->again);
	snd_ranges_fini(s, &f->split);
	free(f->why);
	spares_give(&s->entries, f);
}

static void report_ended(struct snd *s, struct snd_entry *f, enum snd_fate fate,
    const struct ptcp_err *why)
{
	void *cookie = f->cookie;

	f->cookie = NULL;
	if (fate == SND_FAILED)
		s->stats.done.failed += why == NULL || outbox_is_failure(why->code);
	if (fate == SND_DONE || fate == SND_SKIPPED) {
		if (f->type == WIRE_FILE) {
			s->stats.done.files++;
			s->stats.done.file_bytes += f->size_bytes;
		} else if (f->type != WIRE_NAME) {
			s->stats.done.others++;
		}
	}
	if (cookie != NULL)
		s->o.ops->ended(s->o.arg, cookie, fate, why);
}

void snd_end(struct snd *s, struct snd_entry *f, enum snd_fate fate, const struct ptcp_err *why)
{
	struct snd_entry *parent;

	/* Lost directories end with their last child. */
	for (;; f = parent) {
		parent = f->parent;
		if (f->state != LOST) /* reported already */
			report_ended(s, f, fate, why);
		entry_free(s, f);
		if (parent == NULL)
			return;
		parent->children--;
		if (parent->state != LOST || !parent->left || parent->children > 0)
			break;
	}
	snd_dir_try_end(s, parent);
}

void snd_dir_try_end(struct snd *s, struct snd_entry *d)
{
	if (!d->left || d->children > 0)
		return;
	if (d->state == MADE) {
		d->state = FINISHING;
		OUTBOX_PUT(s->out, entry, DIR_END, &d->end);
	} else if (d->state == LOST) {
		snd_end(s, d, SND_FAILED, NULL);
	}
}

void snd_fail(struct snd *s, struct snd_entry *f, const struct ptcp_err *why)
{
	if (f->state == FAILING)
		return;
	snd_drop_blocks(s, f);
	f->state = FAILING;
	if ((f->why = malloc(sizeof *why)) != NULL)
		*f->why = *why;
	outbox_put_fail(s->out, f->id, why);
}

void snd_lose_dir(struct snd *s, struct snd_entry *d, const struct ptcp_err *why)
{
	report_ended(s, d, SND_FAILED, why);
	d->state = LOST;
	free_slot(s, d);
	snd_dir_try_end(s, d);
}

void snd_drop(struct snd *s)
{
	struct snd_entry *f;

	while (!list_empty(&s->all)) {
		f = CONTAINER_OF(s->all.next, struct snd_entry, in_all);
		report_ended(s, f, SND_DROPPED, NULL);
		entry_free(s, f);
	}
	s->depth = s->untracked = 0;
}

void snd_free(struct snd *s)
{
	if (s == NULL)
		return;
	snd_drop(s);
	snd_lanes_free(s);
	inflights_fini(&s->flights);
	spares_fini(&s->entries);
	free(s->stack);
	memory_free(s->o.memory, s, sizeof *s);
}

/* ---- Offering entries ---- */

unsigned snd_room(const struct snd *s)
{
	return s->out->failed || buf_len(&s->out->b) > BACKLOG_BYTES ? 0 : s->n_spare;
}

static bool agreed(const struct snd *s) { return s->terms.max_entries > 0; }

bool snd_early_room(const struct snd *s, size_t bytes)
{
	return snd_room(s) > 0 && bytes <= WIRE_EARLY_BYTES - s->early_bytes;
}

unsigned snd_depth(const struct snd *s)
{
	return s->depth + s->untracked;
}

unsigned snd_levels(const struct snd *s)
{
	const uint32_t room = 64; /* slots for what is in the lowest directory, or a quarter of few */
	uint32_t max = s->terms.max_entries < WIRE_SLOTS ? s->terms.max_entries : WIRE_SLOTS;

	return agreed(s) ? max - (max / 4 < room ? max / 4 : room) : UINT_MAX;
}

static bool stack_room(struct snd *s)
{
	struct snd_entry **stack;

	if (s->depth < s->cap_stack)
		return true;
	if ((stack = realloc(s->stack, (s->cap_stack + 64) * sizeof *stack)) == NULL)
		return false;
	s->stack = stack;
	s->cap_stack += 64;
	return true;
}

static void set_shape(struct snd *s, struct snd_entry *n, const struct wire_entry *f)
{
	struct wire_attrs a = { .sparse = false };

	n->type = f->type;
	if (f->type == WIRE_FILE && f->attrs.n > 0)
		wire_attrs_decode(&a, f, NULL);
	n->size_bytes = f->size_bytes;
	n->sparse = a.sparse;
	n->unsized = n->unended = a.unsized;
	n->grid = a.unsized ? wire_grid_unsized(WIRE_UNSIZED_MAX) : wire_grid_of(f->size_bytes);
	n->n_blocks = n->n_offered = a.unsized ? 0 : wire_grid_blocks(n->grid);
	s->n_unended += n->unended;
}

static void set_id(struct snd *s, struct snd_entry *n, unsigned slot)
{
	n->id = ++s->n_ids << 16 | slot;
	s->slot[slot] = n;
}

/* A new entry in the directory `top`; `number`: allocate an id. */
/* Length of the path of an entry in that directory, without its name. */
static uint64_t below(const struct snd_entry *top) { return top != NULL ? top->path_bytes + 1 : 0; }

static struct snd_entry *entry_new(struct snd *s, const struct wire_entry *f, struct snd_entry *top,
    void *cookie, bool number, struct ptcp_err *e)
{
	struct snd_entry *n;

	if (f->type == WIRE_DIR && !stack_room(s)) {
		err_nomem(e);
		return NULL;
	}
	if ((n = spares_take(&s->entries, e)) == NULL)
		return NULL;
	n->cookie = cookie;
	set_shape(s, n, f);
	n->acked = &n->few[0];
	n->read = &n->few[1];
	list_init(&n->in_ready);
	list_init(&n->flights);
	list_append(&s->all, &n->in_all);
	n->path_bytes = below(top) + f->name.n;
	if ((n->parent = top) != NULL)
		top->children++;
	if (number) {
		set_id(s, n, s->spare[--s->n_spare]);
		s->stats.live++;
	}
	if (f->type == WIRE_DIR)
		s->stack[s->depth++] = n;
	return n;
}

/* Without memory: ends the session, as the tree would be incomplete. */
static void offer_nothing(struct snd *s, const struct wire_entry *f, void *cookie, const struct ptcp_err *why)
{
	if (f->type == WIRE_DIR)
		s->untracked++;
	s->out->failed = true;
	s->o.ops->ended(s->o.arg, cookie, SND_FAILED, why);
}

bool snd_may_link(struct snd *s, uint64_t again, size_t name_bytes)
{
	const struct snd_entry *in = again != 0 ? snd_find(s, again)->parent : s->depth > 0 ? s->stack[s->depth - 1] : NULL;
	uint64_t path = below(in) + name_bytes;

	TAPE(s->o.tape, may_link, .u = { again, name_bytes });
	if (WIRE_LINKED_COST(path) > WIRE_LINKED_MAX_BYTES - s->linked_bytes)
		return false;
	s->linked_bytes += WIRE_LINKED_COST(path);
	return true;
}

static uint64_t put_entry(struct snd *s, const struct snd_entry *n, struct wire_entry *f)
{
	size_t bytes;
	uint8_t *p;

	f->id = n->id;
	f->parent = n->parent != NULL ? n->parent->id : 0;
	if ((p = outbox_room(s->out, WIRE_ENTRY_BYTES(f->attrs.n))) != NULL) {
		bytes = wire_entry_encode(p, f);
		outbox_added(s->out, bytes);
		if (!agreed(s))
			s->early_bytes += bytes;
	}
	return n->id;
}

static void in_lost_directory(struct ptcp_err *why)
{
	err_set(why, PTCP_EPARENT, "its directory could not be made at the destination");
}

uint64_t snd_offer(struct snd *s, struct wire_entry *f, void *cookie)
{
	struct snd_entry *top = s->depth > 0 ? s->stack[s->depth - 1] : NULL, *n;
	bool lost = top != NULL && top->state == LOST;
	struct ptcp_err why;

	tape_write_entry(s->o.tape, TAPE_offer, 0, f);
	assert(s->n_spare > 0 && cookie != NULL);
	err_nomem(&why); /* the failure of the directory above, if that is untracked */
	if (s->untracked > 0 || (n = entry_new(s, f, top, cookie, !lost, &why)) == NULL) {
		offer_nothing(s, f, cookie, &why);
		return 0;
	}
	if (lost) {
		in_lost_directory(&why);
		if (f->type == WIRE_DIR)
			snd_lose_dir(s, n, &why);
		else
			snd_end(s, n, SND_FAILED, &why);
		return 0;
	}
	n->end = (struct wire_entry){ .type = WIRE_DIR_END, .id = n->id, .mode = f->mode,
		.mtime_s = f->mtime_s, .mtime_ns = f->mtime_ns };
	return put_entry(s, n, f);
}

uint64_t snd_offer_again(struct snd *s, uint64_t id, struct wire_entry *f, void *cookie)
{
	struct snd_entry *n = snd_find(s, id);
	struct ptcp_err why;

	tape_write_entry(s->o.tape, TAPE_offer_again, id, f);
	assert(n->state == AGAIN && f->type != WIRE_DIR);
	n->cookie = cookie;
	if (n->parent != NULL && n->parent->state == LOST) {
		in_lost_directory(&why);
		snd_end(s, n, SND_FAILED, &why);
		return 0;
	}
	n->state = OFFERED;
	set_shape(s, n, f);
	set_id(s, n, wire_slot(id));
	return put_entry(s, n, f);
}

void snd_give_up(struct snd *s, uint64_t id)
{
	TAPE(s->o.tape, give_up, .u = { id });
	snd_end(s, snd_find(s, id), SND_DROPPED, NULL);
}

bool snd_lack(struct snd *s)
{
	TAPE(s->o.tape, lack, .u = { 0 });
	if (s->untracked > 0) /* the session has failed */
		return true;
	if (s->depth == 0)
		return false;
	s->stack[s->depth - 1]->end.size_bytes = WIRE_DIR_LACKS;
	return true;
}

static void leave(struct snd *s)
{
	struct snd_entry *d;

	if (s->untracked > 0) {
		s->untracked--;
		return;
	}
	assert(s->depth > 0);
	d = s->stack[--s->depth];
	d->left = true;
	snd_dir_try_end(s, d);
}

void snd_leave(struct snd *s)
{
	TAPE(s->o.tape, leave, .u = { 0 });
	leave(s);
}

void snd_close(struct snd *s)
{
	TAPE(s->o.tape, close, .u = { 0 });
	if (s->untracked == 0)
		s->stack[s->depth - 1]->end.size_bytes = WIRE_DIR_CLOSED;
	leave(s);
}

void snd_listed(struct snd *s, uint64_t files, uint64_t bytes, bool final)
{
	struct wire_totals f = { files, bytes, final };

	TAPE(s->o.tape, listed, .u = { files, bytes, final });
	s->listed = final;
	OUTBOX_PUT(s->out, totals, TOTALS, &f);
}

bool snd_all_ended(const struct snd *s) { return s->listed && s->stats.live == 0; }

void snd_hold(struct snd *s)
{
	TAPE(s->o.tape, hold, .u = { 0 });
	s->held++;
}

void snd_release(struct snd *s)
{
	TAPE(s->o.tape, release, .u = { 0 });
	assert(s->held > 0);
	s->held--;
}

bool snd_finished(const struct snd *s) { return snd_all_ended(s) && s->held == 0; }

struct snd_stats snd_stats(const struct snd *s)
{
	return s->stats;
}

/* ---- Files whose size becomes known at the end of their input ---- */

void snd_release_block(struct snd *s, struct snd_entry *f, uint32_t block)
{
	if (f->unsized)
		s->o.ops->release(s->o.arg, f->cookie, block);
}

void snd_start_unsized(struct snd *s, struct snd_entry *f)
{
	if (f->state == SENDING && f->next < f->n_offered && list_empty(&f->in_ready))
		list_append(&s->ready, &f->in_ready);
}

static bool has_ended(const struct snd_entry *f)
{
	return f == NULL || !f->unended || f->state == FAILING;
}

static void grow(struct snd *s, struct snd_entry *f, uint32_t n)
{
	if (has_ended(f) || f->state != SENDING || n <= f->n_blocks)
		return;
	f->n_blocks = f->n_offered = n;
	snd_start_unsized(s, f);
}

void snd_grown(struct snd *s, uint64_t id, uint32_t n)
{
	TAPE(s->o.tape, grown, .u = { id, n });
	grow(s, snd_find(s, id), n);
}

/* The receiver does not know the length of a shorter last block before SIZE: it requests the block. */
bool snd_sized(struct snd *s, uint64_t id, uint64_t size_bytes)
{
	struct wire_size frame = { id, size_bytes };
	struct snd_entry *f = snd_find(s, id);

	TAPE(s->o.tape, sized, .u = { id, size_bytes });
	if (has_ended(f))
		return true;
	if (f->state != SENDING)
		return false;
	grow(s, f, (uint32_t)(size_bytes / f->grid.block_bytes));
	f->unended = false;
	s->n_unended--;
	f->size_bytes = size_bytes;
	f->grid = wire_grid_unsized(size_bytes);
	f->n_blocks = wire_grid_blocks(f->grid);
	OUTBOX_PUT(s->out, size, SIZE, &frame);
	snd_try_complete(s, f);
	return true;
}

bool snd_input_failed(struct snd *s, uint64_t id, const struct ptcp_err *why)
{
	struct snd_entry *f = snd_find(s, id);

	TAPE(s->o.tape, input_failed, .u = { id }, .why = why);
	if (has_ended(f))
		return true;
	if (f->state != SENDING)
		return false;
	snd_fail(s, f, why);
	return true;
}

/* ---- Streams with a shared rate, and stalled streams ---- */

#define STALL_DOUBLINGS 6          /* doublings of the limit for a stalled stream */
#define QUEUE_NS (500 * NS_PER_MS) /* time of blocks at the shared rate, if more than one job */

/* ---- Shared rates ---- */

void snd_share(struct snd *s, unsigned stream, unsigned rate)
{
	TAPE(s->o.tape, share, .u = { stream, rate });
	inflight_share(&s->flights, stream, rate);
	s->stalls_at = (struct mono){ 0 };
}

void snd_set_rate(struct snd *s, unsigned rate, uint64_t bps)
{
	TAPE(s->o.tape, set_rate, .u = { rate, bps });
	s->rate[rate].idle = bps == SND_IDLE;
	if (bps != SND_IDLE) /* queued blocks still leave at the old rate */
		s->rate[rate].bps = bps;
	s->stalls_at = (struct mono){ 0 };
}

/* Of all streams of the stream's rate: blocks that are not sent. */
static uint64_t queued_bytes(const struct snd *s, unsigned stream)
{
	return s->flights.queued_bytes[s->flights.rate_of[stream]];
}

bool snd_stream_waits(const struct snd *s, unsigned stream)
{
	unsigned rate = s->flights.rate_of[stream];
	uint64_t bps = s->rate[rate].bps, queued;

	if (s->rate[rate].idle || (s->flights.lost[stream] && snd_stream_carries(s, stream)))
		return true;
	if (bps == 0 || (queued = queued_bytes(s, stream)) == 0)
		return false;
	return (double)(queued + SND_JOB_BYTES) * 8 * NS_PER_S > (double)bps * QUEUE_NS;
}

void snd_set_paced(struct snd *s, bool paced)
{
	TAPE(s->o.tape, set_paced, .u = { paced });
	if (s->paced != paced)
		s->stalls_at = (struct mono){ 0 };
	s->paced = paced;
}

void snd_peer_busy(struct snd *s, struct mono now)
{
	unsigned i;

	for (i = 0; i < INFLIGHT_STREAMS; i++)
		s->flights.last_ack[i] = now;
}

bool snd_stream_carries(const struct snd *s, unsigned stream)
{
	return s->up[stream] && (!list_empty(&s->flights.stream[stream]) || s->flights.unread[stream] > 0);
}

struct mono snd_stream_acked(const struct snd *s, unsigned stream) { return s->flights.last_ack[stream]; }
uint64_t snd_stream_acked_bytes(const struct snd *s, unsigned stream) { return s->flights.acked_bytes[stream]; }

uint64_t snd_stream_drains_ns(const struct snd *s, unsigned stream, struct mono now)
{
	const struct list *carried = &s->flights.stream[stream], *l;
	uint64_t blocks = 0, age_ns, each_ns = s->flights.latency_ns[stream];
	struct mono since = s->flights.last_ack[stream], handed;

	if (!s->up[stream] || list_empty(carried))
		return 0;
	for (l = carried->next; l != carried; l = l->next)
		blocks++;
	handed = CONTAINER_OF(carried->next, struct inflight, in_stream)->handed;
	/* The block that is under way may take longer than the earlier ones. */
	age_ns = mono_diff_ns(now, handed.ns > since.ns ? handed : since);
	return blocks * (each_ns > age_ns ? each_ns : age_ns);
}

/* Without growing patience a path that needs longer than the time-out for a block (many streams, long buffers) would lose
 * each connection before its first acknowledgment, for ever. */
static uint64_t stall_limit_ns(const struct snd *s, unsigned stream)
{
	uint64_t first = s->terms.timeout_ns / 4 * 3, most = s->terms.linger_ns / 4 * 3;
	uint64_t limit = first << s->flights.stalls[stream], usual = inflight_patience_ns(&s->flights, stream);

	limit = limit > usual ? limit : usual;
	most = most > first ? most : first;
	return limit < most ? limit : most;
}

/* When a stream counts as stalled; MONO_NEVER without blocks. Early enough before the session's time-out for another
 * stream to take over, and with time for the blocks queued at the rate. */
static struct mono stalls_at(const struct snd *s, unsigned stream)
{
	const struct list *l = &s->flights.stream[stream];
	uint64_t bps = s->rate[s->flights.rate_of[stream]].bps, queued_ns;
	struct mono since = s->flights.handed[stream];

	if (s->paced || !snd_stream_carries(s, stream))
		return MONO_NEVER;
	if (!list_empty(l))
		since = CONTAINER_OF(l->next, struct inflight, in_stream)->since;
	if (since.ns < s->flights.last_ack[stream].ns)
		since = s->flights.last_ack[stream];
	queued_ns = bps > 0 ? (uint64_t)((double)queued_bytes(s, stream) * 8e9 / (double)bps) : 0;
	return mono_add_ns(since, stall_limit_ns(s, stream) + queued_ns);
}

void snd_stall_soon(struct snd *s, unsigned stream)
{
	s->stalls_at = mono_min(s->stalls_at, stalls_at(s, stream));
}

/* Acknowledgments postpone the time of each stream: the minimum may be too early, and is then computed again. */
static void find_stalls_at(struct snd *s)
{
	unsigned i;

	s->stalls_at = MONO_NEVER;
	for (i = 0; i < INFLIGHT_STREAMS; i++)
		snd_stall_soon(s, i);
}

struct mono snd_deadline(struct snd *s)
{
	if (s->holes_wait && buf_len(&s->out->b) <= BACKLOG_BYTES)
		return (struct mono){ 0 };
	if (s->stalls_at.ns == 0)
		find_stalls_at(s);
	return mono_min(s->tail_at, s->stalls_at);
}

void snd_tick(struct snd *s, struct mono now)
{
	unsigned i;

	snd_tick_holes(s);
	if (s->tail_at.ns <= now.ns)
		s->tail_at = MONO_NEVER;
	if (s->stalls_at.ns > now.ns)
		return;
	for (i = 0; i < INFLIGHT_STREAMS; i++)
		if (stalls_at(s, i).ns <= now.ns) {
			s->flights.last_ack[i] = now; /* report once */
			if (s->flights.stalls[i] < STALL_DOUBLINGS)
				s->flights.stalls[i]++;
			s->o.ops->stalled(s->o.arg, i);
		}
	find_stalls_at(s);
}
