#include "engine/tape.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/bitmap.h"
#include "core/byteorder.h"
#include "core/charged.h"

const char *const tape_call_names[TAPE_N_CALLS] = {
#define X(name) #name,
	TAPE_CALLS(X)
#undef X
};

/* ---- Lines ---- */

struct line {
	char text[512]; /* longer than any */
	size_t n;
};

#define ADD(l, ...) ((l)->n += (size_t)snprintf((l)->text + (l)->n, sizeof (l)->text - (l)->n, __VA_ARGS__))

void tape_write_data(struct tape *t, struct span data)
{
	struct line l;
	size_t i, n;

	for (; data.n > 0; data = (struct span){ data.p + n, data.n - n }) {
		n = data.n < TAPE_LINE_BYTES ? data.n : TAPE_LINE_BYTES;
		l.n = 0;
		for (i = 0; i < n; i++)
			ADD(&l, "%02x", data.p[i]);
		log_write(t->log, LOG_TRACE, "tape", "%u data %s", t->number, l.text);
	}
}

/* Of a line what follows its name; the data before it. */
static void add_members(struct tape *t, struct line *l, const struct tape_args *a)
{
	unsigned i, n = TAPE_NUMBERS;
	struct digest d;

	*l = (struct line){ .n = 0 };
	if (a->at.ns > 0 && a->at.ns != t->at.ns) {
		ADD(l, " at=%" PRIu64, mono_diff_ns(a->at, t->since));
		t->at = a->at;
	}
	while (n > 0 && a->u[n - 1] == 0)
		n--;
	for (i = 0; i < n; i++)
		ADD(l, "%s%" PRIu64, i == 0 ? " u=" : ",", a->u[i]);
	if (a->why != NULL)
		ADD(l, " why=%d,%zu", a->why->code, strlen(a->why->msg));
	if (a->digest != NULL) {
		d = tape_mask_digest(&t->mask, *a->digest);
		ADD(l, " digest=%" PRIx64 ",%" PRIx64, d.hi, d.lo);
	}
	tape_write_data(t, a->data);
}

void tape_write(struct tape *t, const char *kind, const char *name, const struct tape_args *a)
{
	struct line l;

	add_members(t, &l, a);
	log_write(t->log, LOG_TRACE, "tape", "%u %s %s%s", t->number, kind, name, l.text);
}

void tape_write_call(struct tape *t, enum tape_call call, const struct tape_args *a)
{
	struct line l;

	add_members(t, &l, a);
	log_write(t->log, LOG_TRACE, "tape", "%u %s %u %s%s", t->number, "call", t->depth,
	    tape_call_names[call], l.text);
}

/* ---- Frames and bitmaps ---- */

/* The frames that have become complete. */
static void write_frames(struct tape *t)
{
	struct wire_header h;
	size_t n;

	while (buf_len(&t->in) >= WIRE_HEADER_BYTES && wire_header_decode(&h, buf_head(&t->in), NULL) == 0 &&
	    buf_len(&t->in) >= (n = WIRE_HEADER_BYTES + h.length)) {
		tape_mask_frame(&t->mask, buf_head(&t->in), n);
		tape_write_data(t, (struct span){ buf_head(&t->in), n });
		buf_consume(&t->in, n);
	}
}

void tape_write_input(struct tape *t, const uint8_t *p, size_t n, struct mono now)
{
	uint8_t *room;

	if (t == NULL)
		return;
	if (n > 0 && (room = buf_reserve(&t->in, n, NULL)) != NULL) {
		memcpy(room, p, n);
		buf_added(&t->in, n);
		write_frames(t);
	}
	TAPE(t, input, .at = now, .u = { n });
}

void tape_write_opened(struct tape *t, const struct wire_opened *o, struct mono now)
{
	uint8_t frame[WIRE_OPENED_MAX_BYTES];
	size_t n;

	if (t == NULL)
		return;
	n = wire_opened_encode(frame, o);
	tape_mask_frame(&t->mask, frame, n);
	tape_write_call(t, TAPE_accept, &(struct tape_args){ .at = now, .data = { frame, n } });
}

void tape_write_entry(struct tape *t, enum tape_call call, uint64_t id, const struct wire_entry *f)
{
	struct wire_entry known = *f;
	uint8_t *frame;
	size_t n;

	if (t == NULL || (frame = malloc(WIRE_ENTRY_MAX_BYTES)) == NULL)
		return;
	known.id = UINT64_MAX << 16; /* the engine chooses it; it has to be above that of a linked file */
	known.parent = 0;
	n = wire_entry_encode(frame, &known);
	tape_mask_frame(&t->mask, frame, n);
	tape_write_call(t, call, &(struct tape_args){ .u = { id }, .data = { frame, n } });
	free(frame);
}

void tape_write_words(struct tape *t, const uint64_t *bitmap, uint32_t n)
{
	uint8_t word[TAPE_LINE_BYTES];
	uint64_t i, words = bitmap_bytes(n) / 8;
	size_t at = 0;

	for (i = 0; bitmap != NULL && i < words; i++) {
		put_u64(word + at, bitmap[i]);
		if ((at += 8) == sizeof word || i + 1 == words) {
			tape_write_data(t, (struct span){ word, at });
			at = 0;
		}
	}
}

void tape_write_bitmap(struct tape *t, enum tape_call call, const struct tape_args *a, const uint64_t *bitmap,
    uint32_t n)
{
	if (t == NULL)
		return;
	tape_write_words(t, bitmap, n);
	tape_write_call(t, call, a);
}

void tape_write_job(struct tape *t, const struct snd_job *job)
{
	struct tape_args a = { .u = { 0 } };

	if (t == NULL)
		return;
	if (job != NULL)
		a = (struct tape_args){ .u = { job->n, job->extent[0].id, job->extent[0].block,
			job->extent[job->n - 1].id, job->extent[job->n - 1].block } };
	tape_write(t, "op", "job", &a);
}

/* ---- Its life ---- */

static uint64_t optional(const struct engine_ops *ops)
{
	return (ops->finish != NULL ? TAPE_HAS_FINISH : 0u) | (ops->paced != NULL ? TAPE_HAS_PACED : 0u) |
	    (ops->rcv != NULL && ops->rcv->hole != NULL ? TAPE_HAS_HOLE : 0u) |
	    (ops->rcv != NULL && ops->rcv->beginning != NULL ? TAPE_HAS_BEGINNING : 0u);
}

static const char *one_word(char out[TAPE_NAME_BYTES], const char *text)
{
	char *at;

	snprintf(out, TAPE_NAME_BYTES, "%s", text);
	while ((at = strchr(out, ' ')) != NULL)
		*at = '_';
	return out;
}

struct tape *tape_new(struct engine_opts *o, const struct wire_open *open, struct mono now)
{
	static atomic_uint n_tapes;
	uint64_t secret[2];
	char name[TAPE_NAME_BYTES];
	uint8_t *frame = NULL;
	struct tape *t;
	size_t n = 0;

	if (o->log == NULL || o->log->level < LOG_TRACE || getrandom(secret, sizeof secret, 0) != sizeof secret ||
	    (open != NULL && (frame = malloc(WIRE_OPEN_BYTES(open->paths.n))) == NULL))
		return NULL;
	if ((t = calloc(1, sizeof *t)) != NULL) {
		t->log = o->log;
		t->number = atomic_fetch_add(&n_tapes, 1) + 1;
		t->since = (struct mono){ now.ns - 1 }; /* `at` is never 0 */
		t->in.memory = o->memory;
		tape_mask_init(&t->mask, secret[0], secret[1]);
		if (open != NULL) {
			n = wire_open_encode(frame, open);
			tape_mask_frame(&t->mask, frame, n);
		}
		tape_write(t, "new", one_word(name, o->software), &(struct tape_args){ .at = now, .data = { frame, n },
			.u = { o->starter, o->one_channel, o->timeout_ns, o->quiet_ns, o->linger_ns, o->max_entries,
			o->max_streams, o->region_bytes, optional(o->ops) } });
		t->real = o->ops;
		t->arg = o->arg;
		tape_wrap_ops(t);
		o->ops = &t->ops;
		o->arg = t;
	}
	free(frame);
	return t;
}

void tape_free(struct tape *t)
{
	if (t == NULL)
		return;
	buf_fini(&t->in);
	free(t);
}
