#include "xfer/sender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "xfer/flight.h"

enum state { OFFERED, SENDING, CHECKING, FINISHING, MADE, FAILING, LOST };

#define MISMATCHES_MAX 16 /* blocks of one file that did not verify before it fails */
#define RANGES_MAX (1u << 20) /* of one file, waiting to be sent again */

struct range {
	uint32_t first, count;
};

struct file {
	uint64_t id, size_bytes;
	struct file *parent;
	void *cookie;
	enum state state;
	uint8_t type;
	/* directories */
	bool left;
	uint32_t children;
	struct wire_entry end; /* its DIR_END */
	/* regular files */
	uint32_t n_blocks, next, n_acked, n_read, mismatches;
	uint64_t *acked, *read, few[2]; /* bitmaps; `few` holds both of up to 64 blocks */
	struct range *again;            /* lost or asked for, to be sent next */
	uint32_t n_again, cap_again;
	struct digest digest;
	struct list in_ready, flights;
	struct ptcp_err *why;           /* FAILING; NULL without memory */
};

struct snd {
	struct snd_opts o;
	struct outbox *out;
	struct file *slot[WIRE_SLOTS];
	uint16_t spare[WIRE_SLOTS];
	unsigned n_spare;
	uint64_t n_ids;
	struct file **stack;            /* directories entered and not left */
	unsigned depth, cap_stack;
	struct list ready;              /* files with blocks to send */
	struct flights flights;
	bool up[FLIGHT_STREAMS], listed;
	struct mono tail_at;            /* an idle stream could copy a block then */
	struct snd_stats stats;
};

int snd_new(struct snd **out, const struct snd_opts *o, struct outbox *outbox, struct ptcp_err *e)
{
	struct snd *s = calloc(1, sizeof *s);
	unsigned i;

	if (s == NULL)
		return err_nomem(e);
	s->o = *o;
	s->out = outbox;
	s->n_spare = o->max_entries < WIRE_SLOTS ? o->max_entries : WIRE_SLOTS;
	for (i = 0; i < s->n_spare; i++)
		s->spare[i] = (uint16_t)(s->n_spare - 1 - i);
	list_init(&s->ready);
	flights_init(&s->flights);
	s->tail_at = MONO_NEVER;
	*out = s;
	return 0;
}

/* ---- The life of an entry ---- */

static struct file *find(const struct snd *s, uint64_t id)
{
	unsigned slot = wire_slot(id);

	if (slot >= WIRE_SLOTS || s->slot[slot] == NULL || s->slot[slot]->id != id)
		return NULL;
	return s->slot[slot];
}

static void drop_flights(struct snd *s, struct file *f)
{
	while (!list_empty(&f->flights))
		flight_remove(&s->flights, LIST_OF(f->flights.next, struct flight, in_file));
	list_remove(&f->in_ready);
}

static void file_free(struct snd *s, struct file *f)
{
	drop_flights(s, f);
	if (f->id != 0) {
		s->slot[wire_slot(f->id)] = NULL;
		s->spare[s->n_spare++] = (uint16_t)wire_slot(f->id);
		s->stats.live--;
	}
	if (f->acked != &f->few[0]) {
		free(f->acked);
		free(f->read);
	}
	free(f->again);
	free(f->why);
	free(f);
}

static void tell_ended(struct snd *s, struct file *f, enum snd_fate fate, const struct ptcp_err *why)
{
	void *cookie = f->cookie;

	f->cookie = NULL;
	if (fate == SND_FAILED)
		s->stats.failed++;
	if (f->type == WIRE_FILE && (fate == SND_DONE || fate == SND_SKIPPED)) {
		s->stats.files++;
		s->stats.bytes += f->size_bytes;
	}
	if (cookie != NULL)
		s->o.ops->ended(s->o.arg, cookie, fate, why);
}

static void dir_try_end(struct snd *s, struct file *d);

/* The entry is over. */
static void end(struct snd *s, struct file *f, enum snd_fate fate, const struct ptcp_err *why)
{
	struct file *parent = f->parent;

	if (f->state != LOST) /* that has been told */
		tell_ended(s, f, fate, why);
	file_free(s, f);
	if (parent != NULL) {
		parent->children--;
		dir_try_end(s, parent);
	}
}

/* A directory that was left and has no children any more gets its last word. */
static void dir_try_end(struct snd *s, struct file *d)
{
	if (!d->left || d->children > 0)
		return;
	if (d->state == MADE) {
		d->state = FINISHING;
		OUTBOX_PUT(s->out, entry, DIR_END, &d->end);
	} else if (d->state == LOST) {
		end(s, d, SND_FAILED, NULL);
	}
}

/* Fails on our side: the receiver is told and drops it; its DONE ends it. */
static void fail(struct snd *s, struct file *f, const struct ptcp_err *why)
{
	if (f->state == FAILING)
		return;
	drop_flights(s, f);
	f->state = FAILING;
	if ((f->why = malloc(sizeof *why)) != NULL)
		*f->why = *why;
	outbox_put_fail(s->out, f->id, why);
}

static void lose_dir(struct snd *s, struct file *d, const struct ptcp_err *why)
{
	tell_ended(s, d, SND_FAILED, why);
	d->state = LOST;
	dir_try_end(s, d);
}

unsigned snd_room(const struct snd *s)
{
	return s->out->failed ? 0 : s->n_spare;
}

unsigned snd_depth(const struct snd *s)
{
	return s->depth;
}

/* A new entry in the directory on top of the stack; `number`: with an id. */
static struct file *file_new(struct snd *s, const struct wire_entry *f, void *cookie, bool number)
{
	struct file *n = calloc(1, sizeof *n), *top = s->depth > 0 ? s->stack[s->depth - 1] : NULL;
	struct file **stack;

	if (n != NULL && f->type == WIRE_DIR && s->depth == s->cap_stack) {
		stack = realloc(s->stack, (s->cap_stack + 64) * sizeof *stack);
		if (stack == NULL) {
			free(n);
			return NULL;
		}
		s->stack = stack;
		s->cap_stack += 64;
	}
	if (n == NULL)
		return NULL;
	n->type = f->type;
	n->cookie = cookie;
	n->size_bytes = f->size_bytes;
	n->n_blocks = wire_grid_blocks(f->size_bytes);
	n->acked = &n->few[0];
	n->read = &n->few[1];
	list_init(&n->in_ready);
	list_init(&n->flights);
	if ((n->parent = top) != NULL)
		top->children++;
	if (number) {
		unsigned slot = s->spare[--s->n_spare];

		n->id = ++s->n_ids << 16 | slot;
		s->slot[slot] = n;
		s->stats.live++;
	}
	if (f->type == WIRE_DIR)
		s->stack[s->depth++] = n;
	return n;
}

void snd_offer(struct snd *s, struct wire_entry *f, void *cookie)
{
	struct file *top = s->depth > 0 ? s->stack[s->depth - 1] : NULL, *n;
	bool lost = top != NULL && top->state == LOST;
	struct ptcp_err why;
	uint8_t *p;

	assert(s->n_spare > 0);
	if ((n = file_new(s, f, cookie, !lost)) == NULL) {
		err_nomem(&why);
		s->out->failed = true; /* a tree with a hole in it cannot go on */
		s->o.ops->ended(s->o.arg, cookie, SND_FAILED, &why);
		return;
	}
	if (lost) {
		err_set(&why, PTCP_EPEER, "its directory could not be made at the destination");
		if (f->type == WIRE_DIR)
			lose_dir(s, n, &why);
		else
			end(s, n, SND_FAILED, &why);
		return;
	}
	f->id = n->id;
	f->parent = top != NULL ? top->id : 0;
	n->end = (struct wire_entry){ .type = WIRE_DIR_END, .id = n->id, .mode = f->mode,
		.mtime_s = f->mtime_s, .mtime_ns = f->mtime_ns };
	if ((p = outbox_room(s->out, WIRE_ENTRY_MAX_BYTES(f->attrs.n))) != NULL)
		outbox_added(s->out, wire_entry_encode(p, f));
}

void snd_leave(struct snd *s)
{
	struct file *d;

	assert(s->depth > 0);
	d = s->stack[--s->depth];
	d->left = true;
	dir_try_end(s, d);
}

void snd_listed(struct snd *s, uint64_t files, uint64_t bytes, bool final)
{
	struct wire_totals f = { files, bytes, final };

	s->listed = final;
	OUTBOX_PUT(s->out, totals, TOTALS, &f);
}

bool snd_finished(const struct snd *s)
{
	return s->listed && s->stats.live == 0;
}

struct snd_stats snd_stats(const struct snd *s)
{
	return s->stats;
}

void snd_drop(struct snd *s)
{
	unsigned i;

	for (i = 0; i < s->depth; i++)
		if (s->stack[i]->id == 0)
			file_free(s, s->stack[i]); /* lost ones are in no slot */
	for (i = 0; i < WIRE_SLOTS; i++)
		if (s->slot[i] != NULL) {
			tell_ended(s, s->slot[i], SND_DROPPED, NULL);
			file_free(s, s->slot[i]);
		}
	s->depth = 0;
}

void snd_free(struct snd *s)
{
	if (s == NULL)
		return;
	snd_drop(s);
	flights_fini(&s->flights);
	free(s->stack);
	free(s);
}

/* ---- Blocks ---- */

static bool want_again(struct file *f, uint32_t first, uint32_t count)
{
	struct range *a;

	if (f->n_again == f->cap_again) {
		uint32_t cap = f->cap_again > 0 ? f->cap_again * 2 : 4;

		if ((a = realloc(f->again, cap * sizeof *a)) == NULL)
			return false;
		f->again = a;
		f->cap_again = cap;
	}
	f->again[f->n_again++] = (struct range){ first, count };
	return true;
}

/* Sends blocks again, ahead of what is new. */
static void requeue(struct snd *s, struct file *f, uint32_t first, uint32_t count)
{
	struct ptcp_err why;

	if (!want_again(f, first, count)) {
		err_nomem(&why);
		fail(s, f, &why);
		return;
	}
	list_remove(&f->in_ready);
	list_append(s->ready.next, &f->in_ready); /* before the first */
}

void snd_stream_up(struct snd *s, unsigned stream, struct mono now)
{
	assert(stream < FLIGHT_STREAMS && list_empty(&s->flights.stream[stream]));
	s->up[stream] = true;
	s->flights.last_ack[stream] = now;
	s->flights.latency_ns[stream] = 0;
}

void snd_stream_lost(struct snd *s, unsigned stream)
{
	struct list *l = &s->flights.stream[stream];
	struct flight *t, *other;
	struct file *f;
	uint32_t block;

	s->up[stream] = false;
	while (!list_empty(l)) {
		t = LIST_OF(l->next, struct flight, in_stream);
		f = t->file;
		block = t->block;
		if ((other = flight_other(t, &f->flights)) != NULL)
			other->copied = false;
		flight_remove(&s->flights, t);
		if (other == NULL)
			requeue(s, f, block, 1);
	}
}

/* Puts a block into the job and in flight; false if it is full or without memory. */
static bool job_add(struct snd *s, struct snd_job *job, uint32_t *bytes, struct file *f,
    uint32_t block, unsigned stream, struct mono now)
{
	uint32_t length = wire_grid_length(f->size_bytes, block);
	struct snd_extent *x;

	if (job->n == SND_JOB_EXTENTS || (job->n > 0 && *bytes + length > SND_JOB_BYTES))
		return false;
	if (flight_add(&s->flights, &f->flights, f, block, stream, now) == NULL)
		return false;
	x = &job->extent[job->n++];
	x->id = f->id;
	x->block = block;
	x->offset = (uint64_t)block * wire_grid_bytes(f->size_bytes);
	x->length = length;
	x->cookie = f->cookie;
	*bytes += length;
	s->stats.sent_bytes += length;
	if (bitmap_has(f->read, block))
		s->stats.blocks_again++;
	return true;
}

/* The next block the file has to send; false when there is none. */
static bool next_block(const struct file *f, uint32_t *block)
{
	if (f->n_again > 0)
		*block = f->again[f->n_again - 1].first;
	else if (f->next < f->n_blocks)
		*block = f->next;
	else
		return false;
	return true;
}

static void block_taken(struct file *f)
{
	struct range *a;

	if (f->n_again == 0) {
		f->next++;
		return;
	}
	a = &f->again[f->n_again - 1];
	a->first++;
	if (--a->count == 0)
		f->n_again--;
}

static void take_new(struct snd *s, unsigned stream, struct mono now, struct snd_job *job,
    uint32_t *bytes)
{
	struct file *f;
	uint32_t block;

	while (!list_empty(&s->ready)) {
		f = LIST_OF(s->ready.next, struct file, in_ready);
		while (next_block(f, &block)) {
			/* Asked for or lost, but a copy has arrived meanwhile. */
			if (!bitmap_has(f->acked, block) &&
			    !job_add(s, job, bytes, f, block, stream, now))
				return;
			block_taken(f);
		}
		list_remove(&f->in_ready);
	}
}

/* Copies of what others carry, oldest first, once older than this stream's patience. */
static void take_copies(struct snd *s, unsigned stream, struct mono now, struct snd_job *job,
    uint32_t *bytes)
{
	uint64_t patience = flight_patience_ns(&s->flights, stream);
	struct list *l, *next, *last = s->flights.all.prev;
	struct flight *t;
	struct mono due;

	for (l = s->flights.all.next; l != &s->flights.all; l = next) {
		next = l->next;
		t = LIST_OF(l, struct flight, in_all);
		due = mono_add_ns(t->since, patience);
		if (t->stream != stream && !t->copied) {
			if (due.ns > now.ns) {
				if (due.ns < s->tail_at.ns)
					s->tail_at = due;
				break;
			}
			if (!job_add(s, job, bytes, t->file, t->block, stream, now))
				break;
			t->copied = true;
			LIST_OF(s->flights.all.prev, struct flight, in_all)->copied = true;
		}
		if (l == last)
			break;
	}
}

bool snd_take(struct snd *s, unsigned stream, struct mono now, struct snd_job *job)
{
	uint32_t bytes = 0;

	assert(s->up[stream]);
	job->n = 0;
	take_new(s, stream, now, job, &bytes);
	if (job->n == 0 && s->listed && list_empty(&s->ready))
		take_copies(s, stream, now, job, &bytes);
	return job->n > 0;
}

/* Both halves of the news are in: acknowledged and read. */
static void try_complete(struct snd *s, struct file *f)
{
	if (f->state != SENDING || f->n_acked < f->n_blocks || f->n_read < f->n_blocks)
		return;
	if (f->n_blocks == 1) {
		f->state = FINISHING;
	} else {
		f->state = CHECKING;
		s->o.ops->check(s->o.arg, f->cookie, f->id);
	}
}

void snd_read(struct snd *s, unsigned stream, uint64_t id, uint32_t block, struct digest term,
    const struct ptcp_err *why, struct mono now)
{
	struct file *f = find(s, id);
	struct list *l;
	struct flight *t;

	if (f == NULL || f->state == FAILING)
		return;
	if (why != NULL) {
		fail(s, f, why);
		return;
	}
	for (l = f->flights.next; l != &f->flights; l = l->next) {
		t = LIST_OF(l, struct flight, in_file);
		if (t->block == block && t->stream == stream) {
			t->since = now;
			break;
		}
	}
	if (!bitmap_add(f->read, block))
		return;
	f->n_read++;
	digest_add(&f->digest, term);
	try_complete(s, f);
}

void snd_checked(struct snd *s, uint64_t id, const struct ptcp_err *why)
{
	struct file *f = find(s, id);
	struct wire_file_end end_frame;

	if (f == NULL || f->state != CHECKING)
		return;
	if (why != NULL) {
		fail(s, f, why);
		return;
	}
	end_frame = (struct wire_file_end){ f->id, f->digest };
	f->state = FINISHING;
	OUTBOX_PUT(s->out, file_end, FILE_END, &end_frame);
}

/* ---- What the receiver says ---- */

static int violation(const char *what, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame from the receiver", what);
}

/* The file's blocks may flow. `parts`: only those that NEED names. */
static void start(struct snd *s, struct file *f, bool parts)
{
	struct ptcp_err why;

	if (f->n_blocks > 64) {
		f->acked = bitmap_new(f->n_blocks);
		f->read = bitmap_new(f->n_blocks);
		if (f->acked == NULL || f->read == NULL) {
			err_nomem(&why);
			fail(s, f, &why);
			return;
		}
	}
	f->state = SENDING;
	if (parts)
		f->next = f->n_blocks;
	else if (f->n_blocks > 0)
		list_append(&s->ready, &f->in_ready);
	try_complete(s, f);
}

static int on_answer(struct snd *s, struct span in, struct ptcp_err *e)
{
	struct wire_answer a;
	struct file *f;
	int r;

	if ((r = wire_answer_decode(&a, in, e)) < 0)
		return r;
	if ((f = find(s, a.id)) == NULL)
		return violation("ANSWER", e);
	if (f->state == FAILING)
		return 0;
	if (f->state != OFFERED || (f->type != WIRE_FILE && a.verdict == WIRE_SEND_PARTS) ||
	    (f->type == WIRE_DIR && a.verdict != WIRE_SEND_ALL))
		return violation("ANSWER", e);
	if (a.verdict == WIRE_SEND_NONE) {
		s->stats.resumed_bytes += f->size_bytes;
		end(s, f, SND_SKIPPED, NULL);
	} else if (f->type == WIRE_DIR) {
		f->state = MADE;
		dir_try_end(s, f);
	} else if (f->type == WIRE_FILE) {
		start(s, f, a.verdict == WIRE_SEND_PARTS);
	} else {
		f->state = FINISHING;
	}
	return 0;
}

static int on_need(struct snd *s, struct span in, struct ptcp_err *e)
{
	struct wire_blocks b;
	struct ptcp_err why;
	struct file *f;
	int r;

	if ((r = wire_need_decode(&b, in, e)) < 0)
		return r;
	if ((f = find(s, b.id)) == NULL)
		return violation("NEED", e);
	if (f->state == FAILING)
		return 0;
	if (f->state != SENDING || b.first + b.count > f->n_blocks)
		return violation("NEED", e);
	if (f->n_again >= RANGES_MAX)
		return violation("NEED", e);
	if (bitmap_has(f->read, b.first) && ++f->mismatches > MISMATCHES_MAX) {
		err_set(&why, PTCP_EVERIFY, "%u blocks did not verify at the receiver "
		    "(check memory and network of both hosts)", f->mismatches);
		fail(s, f, &why);
		return 0;
	}
	requeue(s, f, b.first, b.count);
	return 0;
}

static int on_have(struct snd *s, struct span in, struct ptcp_err *e)
{
	struct wire_blocks b;
	struct file *f;
	uint32_t i, length;
	int r;

	if ((r = wire_have_decode(&b, in, e)) < 0)
		return r;
	if ((f = find(s, b.id)) == NULL)
		return violation("HAVE", e);
	if (f->state == FAILING)
		return 0;
	if (f->state != SENDING || b.first + b.count > f->n_blocks)
		return violation("HAVE", e);
	for (i = b.first; i < b.first + b.count; i++) {
		if (!bitmap_add(f->acked, i) || !bitmap_add(f->read, i))
			return violation("HAVE", e);
		length = wire_grid_length(f->size_bytes, i);
		s->stats.acked_bytes += length;
		s->stats.resumed_bytes += length;
	}
	f->n_acked += b.count;
	f->n_read += b.count;
	digest_add(&f->digest, b.digest);
	try_complete(s, f);
	return 0;
}

static int on_ack(struct snd *s, struct span in, struct mono now, struct ptcp_err *e)
{
	struct wire_ack a;
	struct file *f;
	struct list *l, *next;
	struct flight *t;
	int r;

	if ((r = wire_ack_decode(&a, in, e)) < 0)
		return r;
	if ((f = find(s, a.id)) == NULL)
		return violation("ACK", e);
	if (f->state == FAILING)
		return 0;
	if (f->state != SENDING || a.block >= f->n_blocks || !bitmap_add(f->acked, a.block))
		return violation("ACK", e);
	f->n_acked++;
	s->stats.acked_bytes += wire_grid_length(f->size_bytes, a.block);
	for (l = f->flights.next; l != &f->flights; l = next) {
		next = l->next;
		t = LIST_OF(l, struct flight, in_file);
		if (t->block != a.block)
			continue;
		/* Which of two copies it was is not said: the older one counts. */
		flight_acked(&s->flights, t, now);
		flight_remove(&s->flights, t);
	}
	try_complete(s, f);
	return 0;
}

static int on_done(struct snd *s, struct span in, struct ptcp_err *e)
{
	struct ptcp_err nomem;
	struct wire_done d;
	struct file *f;
	int r;

	if ((r = wire_done_decode(&d, in, e)) < 0)
		return r;
	if ((f = find(s, d.id)) == NULL)
		return violation("DONE", e);
	if (f->state == FINISHING) {
		end(s, f, SND_DONE, NULL);
	} else if (f->state == FAILING) {
		err_nomem(&nomem);
		end(s, f, SND_FAILED, f->why != NULL ? f->why : &nomem);
	} else {
		return violation("DONE", e);
	}
	return 0;
}

static int on_fail(struct snd *s, struct span in, struct ptcp_err *e)
{
	struct wire_fail d;
	struct ptcp_err why;
	struct file *f;
	int r;

	if ((r = wire_fail_decode(&d, in, e)) < 0)
		return r;
	if ((f = find(s, d.id)) == NULL)
		return violation("FAIL", e);
	outbox_reason(&why, d.code, d.text);
	if (f->type == WIRE_DIR && (f->state == OFFERED || f->state == MADE))
		lose_dir(s, f, &why);
	else if (f->state == LOST)
		return violation("FAIL", e);
	else
		end(s, f, SND_FAILED, f->why != NULL ? f->why : &why);
	return 0;
}

int snd_frame(struct snd *s, unsigned type, struct span in, struct mono now, struct ptcp_err *e)
{
	switch (type) {
	case WIRE_ANSWER: return on_answer(s, in, e);
	case WIRE_NEED:   return on_need(s, in, e);
	case WIRE_HAVE:   return on_have(s, in, e);
	case WIRE_ACK:    return on_ack(s, in, now, e);
	case WIRE_DONE:   return on_done(s, in, e);
	case WIRE_FAIL:   return on_fail(s, in, e);
	default:          return violation(wire_type_name(type), e);
	}
}

/* ---- Time ---- */

void snd_excuse(struct snd *s, struct mono now)
{
	unsigned i;

	for (i = 0; i < FLIGHT_STREAMS; i++)
		s->flights.last_ack[i] = now;
}

/* When a stream counts as stalled; MONO_NEVER if it carries nothing. */
static struct mono stalls_at(const struct snd *s, unsigned stream)
{
	const struct list *l = &s->flights.stream[stream];
	struct mono since;

	if (!s->up[stream] || list_empty(l))
		return MONO_NEVER;
	since = LIST_OF(l->next, struct flight, in_stream)->since;
	if (since.ns < s->flights.last_ack[stream].ns)
		since = s->flights.last_ack[stream];
	return mono_add_ns(since, s->o.timeout_ns);
}

struct mono snd_deadline(const struct snd *s)
{
	struct mono at = s->tail_at, t;
	unsigned i;

	for (i = 0; i < FLIGHT_STREAMS; i++) {
		t = stalls_at(s, i);
		if (t.ns < at.ns)
			at = t;
	}
	return at;
}

void snd_tick(struct snd *s, struct mono now)
{
	unsigned i;

	if (s->tail_at.ns <= now.ns)
		s->tail_at = MONO_NEVER;
	for (i = 0; i < FLIGHT_STREAMS; i++)
		if (stalls_at(s, i).ns <= now.ns) {
			s->flights.last_ack[i] = now; /* said once */
			s->o.ops->stalled(s->o.arg, i);
		}
}
