#include "xfer/receiver.h"

#include <stdlib.h>
#include <string.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "core/list.h"

enum state { WAITING, PREPARING, RECEIVING, COMPLETE, COMMITTING, OPEN };

#define BITMAPS_MAX_BYTES (64u << 20) /* of all unfinished files together */

#define DEPTH_MAX 2048 /* directories within each other */

static const char no_directory[] = "its directory could not be made at the destination";

struct file {
	uint64_t id, size_bytes;
	struct file *parent;
	void *cookie;
	enum state state;
	uint8_t type;
	bool ended;               /* a directory that failed, kept for its children */
	bool has_digest;
	uint32_t children, depth;
	struct list waiting;      /* in the directory's list of children that wait for it */
	struct list waiters;
	uint8_t *frame;           /* the ENTRY, until it is prepared */
	size_t frame_bytes;
	uint32_t n_blocks, n_done;
	uint64_t *done, few;      /* bitmap; `few` is that of up to 64 blocks */
	struct digest sum, wanted;
};

struct rcv {
	struct rcv_opts o;
	struct outbox *out;
	struct file *slot[WIRE_SLOTS];
	uint64_t bitmap_bytes;
	struct rcv_stats stats;
};

int rcv_new(struct rcv **out, const struct rcv_opts *o, struct outbox *outbox, struct ptcp_err *e)
{
	struct rcv *r = calloc(1, sizeof *r);

	if (r == NULL)
		return err_nomem(e);
	r->o = *o;
	if (r->o.max_entries > WIRE_SLOTS)
		r->o.max_entries = WIRE_SLOTS;
	r->out = outbox;
	*out = r;
	return 0;
}

static struct file *find(const struct rcv *r, uint64_t id)
{
	unsigned slot = wire_slot(id);

	if (slot >= WIRE_SLOTS || r->slot[slot] == NULL || r->slot[slot]->id != id)
		return NULL;
	return r->slot[slot];
}

/* Frees an ended directory once its last child has let go of it. */
static void release(struct file *f)
{
	struct file *parent;

	while (f != NULL && f->ended && f->children == 0) {
		parent = f->parent;
		free(f->frame);
		free(f);
		f = parent;
		if (f != NULL)
			f->children--;
	}
}

/* The entry is over and its slot free; `why` NULL: complete. */
static void end(struct rcv *r, struct file *f, bool skipped, const struct ptcp_err *why)
{
	r->slot[wire_slot(f->id)] = NULL;
	r->stats.live--;
	if (why != NULL) {
		r->stats.failed++;
	} else if (f->type == WIRE_FILE) {
		r->stats.files++;
		r->stats.file_bytes += f->size_bytes;
	}
	list_remove(&f->waiting);
	if (f->done != NULL && f->done != &f->few) {
		r->bitmap_bytes -= bitmap_bytes(f->n_blocks);
		free(f->done);
	}
	f->done = NULL;
	f->ended = true;
	if (f->cookie != NULL)
		r->o.ops->ended(r->o.arg, f->id, f->cookie, skipped, why);
	f->cookie = NULL;
	release(f);
}

/* Tells the sender and ends it. */
static void fail_one(struct rcv *r, struct file *f, const struct ptcp_err *why)
{
	outbox_put_fail(r->out, f->id, why);
	end(r, f, false, why);
}

/* Children that wait for a directory fail with it; DEPTH_MAX bounds the recursion. */
static void fail_waiters(struct rcv *r, struct file *d, const struct ptcp_err *why)
{
	struct file *c;

	d->children++; /* so that it outlives them */
	while (!list_empty(&d->waiters)) {
		c = LIST_OF(d->waiters.next, struct file, waiting);
		list_remove(&c->waiting);
		fail_waiters(r, c, why);
		fail_one(r, c, why);
	}
	d->children--;
}

static void fail(struct rcv *r, struct file *f, const struct ptcp_err *why)
{
	struct ptcp_err lost;

	if (!list_empty(&f->waiters)) {
		err_set(&lost, PTCP_EPEER, "%s", no_directory);
		fail_waiters(r, f, &lost);
	}
	fail_one(r, f, why);
}

void rcv_drop(struct rcv *r)
{
	uint64_t failed = r->stats.failed;
	struct ptcp_err why;
	unsigned i;

	err_set(&why, PTCP_ECANCELED, "%s", ptcp_err_text(PTCP_ECANCELED));
	for (i = 0; i < WIRE_SLOTS; i++)
		if (r->slot[i] != NULL)
			end(r, r->slot[i], false, &why);
	r->stats.failed = failed;
}

void rcv_free(struct rcv *r)
{
	if (r == NULL)
		return;
	rcv_drop(r);
	free(r);
}

bool rcv_idle(const struct rcv *r)
{
	return r->stats.live == 0;
}

struct rcv_stats rcv_stats(const struct rcv *r)
{
	return r->stats;
}

/* ---- From ENTRY to the first block ---- */

static int violation(const char *what, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame from the sender", what);
}

static void commit(struct rcv *r, struct file *f, const struct wire_entry *end_frame)
{
	f->state = COMMITTING;
	r->o.ops->commit(r->o.arg, f->id, f->cookie, end_frame);
}

static void answer(struct rcv *r, struct file *f, uint8_t verdict)
{
	struct wire_answer a = { f->id, verdict };

	OUTBOX_PUT(r->out, answer, ANSWER, &a);
}

static void prepare(struct rcv *r, struct file *f);

static void accept_file(struct rcv *r, struct file *f)
{
	struct ptcp_err why;

	f->done = &f->few;
	if (f->n_blocks > 64) {
		if (r->bitmap_bytes + bitmap_bytes(f->n_blocks) > BITMAPS_MAX_BYTES ||
		    (f->done = bitmap_new(f->n_blocks)) == NULL) {
			f->done = NULL;
			err_set(&why, PTCP_ENOMEM, "too many large files at once for the receiver");
			fail(r, f, &why);
			return;
		}
		r->bitmap_bytes += bitmap_bytes(f->n_blocks);
	}
	f->state = f->n_blocks > 0 ? RECEIVING : COMPLETE;
	r->o.ops->accepted(r->o.arg, f->id, f->cookie, f->size_bytes);
	answer(r, f, WIRE_SEND_ALL);
}

static void accept_entry(struct rcv *r, struct file *f)
{
	switch (f->type) {
	case WIRE_FILE:
		accept_file(r, f);
		break;
	case WIRE_DIR:
		f->state = OPEN;
		answer(r, f, WIRE_SEND_ALL);
		while (!list_empty(&f->waiters)) {
			struct file *c = LIST_OF(f->waiters.next, struct file, waiting);

			list_remove(&c->waiting);
			prepare(r, c);
		}
		break;
	default:
		answer(r, f, WIRE_SEND_ALL);
		commit(r, f, NULL);
	}
}

static void verdict(struct rcv *r, struct file *f, enum rcv_prep v, const struct ptcp_err *why)
{
	switch (v) {
	case RCV_ACCEPT:
		accept_entry(r, f);
		break;
	case RCV_HAVE_IT:
		r->stats.bytes += f->size_bytes;
		r->stats.resumed_bytes += f->size_bytes;
		answer(r, f, WIRE_SEND_NONE);
		end(r, f, true, NULL);
		break;
	case RCV_REFUSE:
		fail(r, f, why);
		break;
	case RCV_LATER:
		break;
	}
}

static void prepare(struct rcv *r, struct file *f)
{
	struct wire_entry w;
	struct ptcp_err why;
	enum rcv_prep v;

	f->state = PREPARING;
	if (wire_entry_decode(&w, (struct span){ f->frame, f->frame_bytes }, &why) < 0)
		v = RCV_REFUSE; /* it was decoded before: cannot be */
	else
		v = r->o.ops->prepare(r->o.arg, f->id, &w,
		    f->parent != NULL ? f->parent->cookie : NULL, &f->cookie, &why);
	free(f->frame);
	f->frame = NULL;
	verdict(r, f, v, &why);
}

void rcv_prepared(struct rcv *r, uint64_t id, enum rcv_prep v, const struct ptcp_err *why)
{
	struct file *f = find(r, id);

	if (f != NULL && f->state == PREPARING)
		verdict(r, f, v, why);
}

/* Fails an entry for which nothing has been kept. */
static void refuse(struct rcv *r, uint64_t id, int code, const char *text)
{
	struct ptcp_err why;

	err_set(&why, code, "%s", text);
	r->stats.failed++;
	outbox_put_fail(r->out, id, &why);
}

static void new_entry(struct rcv *r, const struct wire_entry *w, struct span in)
{
	struct file *parent = w->parent != 0 ? find(r, w->parent) : NULL, *f;

	if (w->parent != 0 && (parent == NULL || parent->type != WIRE_DIR)) {
		refuse(r, w->id, PTCP_EPEER, no_directory);
		return;
	}
	if (parent != NULL && parent->depth == DEPTH_MAX) {
		refuse(r, w->id, PTCP_ERANGE, "more than 2048 directories within each other");
		return;
	}
	if (w->type == WIRE_HARDLINK) {
		refuse(r, w->id, PTCP_ENOTYET, "hard links are not available yet");
		return;
	}
	if ((f = calloc(1, sizeof *f)) == NULL || (f->frame = malloc(in.n)) == NULL) {
		free(f);
		refuse(r, w->id, PTCP_ENOMEM, ptcp_err_text(PTCP_ENOMEM));
		return;
	}
	memcpy(f->frame, in.p, in.n);
	f->frame_bytes = in.n;
	f->id = w->id;
	f->type = w->type;
	f->size_bytes = w->size_bytes;
	f->n_blocks = wire_grid_blocks(w->size_bytes);
	list_init(&f->waiting);
	list_init(&f->waiters);
	if ((f->parent = parent) != NULL) {
		parent->children++;
		f->depth = parent->depth + 1;
	}
	r->slot[wire_slot(f->id)] = f;
	r->stats.live++;
	if (parent != NULL && parent->state != OPEN)
		list_append(&parent->waiters, &f->waiting);
	else
		prepare(r, f);
}

static int on_entry(struct rcv *r, struct span in, struct ptcp_err *e)
{
	struct wire_entry w;
	struct file *f;
	int err;

	if ((err = wire_entry_decode(&w, in, e)) < 0)
		return err;
	if (w.type == WIRE_DIR_END) {
		if ((f = find(r, w.id)) == NULL)
			return 0;
		if (f->state != OPEN || f->children > 0)
			return violation("DIR_END", e);
		commit(r, f, &w);
		return 0;
	}
	if (wire_slot(w.id) >= r->o.max_entries || r->slot[wire_slot(w.id)] != NULL)
		return violation("ENTRY", e);
	new_entry(r, &w, in);
	return 0;
}

/* ---- Blocks and the end of a file ---- */

/* Everything is here: compare, and give it its name. */
static void try_commit(struct rcv *r, struct file *f)
{
	struct ptcp_err why;

	if (f->n_done < f->n_blocks)
		return;
	f->state = COMPLETE;
	if (f->n_blocks != 1 && !f->has_digest)
		return;
	if (f->n_blocks != 1 && r->o.verify && !digest_equal(f->sum, f->wanted)) {
		err_set(&why, PTCP_EVERIFY, "the file's digest differs from the source's "
		    "(check memory and disk of both hosts, then send it again)");
		fail(r, f, &why);
		return;
	}
	commit(r, f, NULL);
}

void rcv_block(struct rcv *r, uint64_t id, uint32_t block, enum rcv_block_news news,
    struct digest term, const struct ptcp_err *why)
{
	struct wire_ack ack = { id, block };
	struct wire_blocks need = { .id = id, .first = block, .count = 1 };
	struct file *f = find(r, id);

	if (f == NULL || f->state != RECEIVING || block >= f->n_blocks ||
	    bitmap_has(f->done, block))
		return;
	switch (news) {
	case RCV_BLOCK_FAILED:
		fail(r, f, why);
		break;
	case RCV_BLOCK_BAD:
		OUTBOX_PUT(r->out, need, NEED, &need);
		break;
	case RCV_BLOCK_WRITTEN:
		bitmap_add(f->done, block);
		f->n_done++;
		digest_add(&f->sum, term);
		r->stats.bytes += wire_grid_length(f->size_bytes, block);
		OUTBOX_PUT(r->out, ack, ACK, &ack);
		try_commit(r, f);
		break;
	}
}

static int on_file_end(struct rcv *r, struct span in, struct ptcp_err *e)
{
	struct wire_file_end w;
	struct file *f;
	int err;

	if ((err = wire_file_end_decode(&w, in, e)) < 0)
		return err;
	if ((f = find(r, w.id)) == NULL)
		return 0;
	if (f->type != WIRE_FILE || f->state != COMPLETE || f->n_blocks == 1 || f->has_digest)
		return violation("FILE_END", e);
	f->wanted = w.digest;
	f->has_digest = true;
	try_commit(r, f);
	return 0;
}

static int on_fail(struct rcv *r, struct span in, struct ptcp_err *e)
{
	struct wire_fail w;
	struct wire_done done;
	struct ptcp_err why;
	struct file *f;
	int err;

	if ((err = wire_fail_decode(&w, in, e)) < 0)
		return err;
	if ((f = find(r, w.id)) == NULL || f->state == COMMITTING)
		return 0; /* too late: its DONE or FAIL is on the way */
	if (f->type != WIRE_FILE)
		return violation("FAIL", e);
	outbox_reason(&why, w.code, w.text);
	done.id = f->id;
	OUTBOX_PUT(r->out, done, DONE, &done);
	end(r, f, false, &why);
	return 0;
}

void rcv_committed(struct rcv *r, uint64_t id, const struct ptcp_err *why)
{
	struct wire_done done = { id };
	struct file *f = find(r, id);

	if (f == NULL || f->state != COMMITTING)
		return;
	if (why != NULL) {
		fail(r, f, why);
		return;
	}
	OUTBOX_PUT(r->out, done, DONE, &done);
	end(r, f, false, NULL);
}

int rcv_frame(struct rcv *r, unsigned type, struct span in, struct ptcp_err *e)
{
	struct wire_totals t;
	int err;

	switch (type) {
	case WIRE_ENTRY:    return on_entry(r, in, e);
	case WIRE_FILE_END: return on_file_end(r, in, e);
	case WIRE_FAIL:     return on_fail(r, in, e);
	case WIRE_TOTALS:
		if ((err = wire_totals_decode(&t, in, e)) < 0)
			return err;
		r->o.ops->totals(r->o.arg, t.files, t.bytes, t.final);
		return 0;
	default:
		return violation(wire_type_name(type), e);
	}
}
