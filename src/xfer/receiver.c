/* Entries: from ENTRY to the first block, and their end. */
#include "xfer/receiver.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "xfer/receiver_impl.h"

/* Of all unfinished entries together: */
#define BITMAPS_MAX_BYTES (64u << 20)
#define FRAMES_MAX_BYTES (16u << 20)  /* ENTRY frames that wait for their directory */

#define DEPTH_MAX 2048 /* directories within each other */

static const char no_directory[] = "its directory could not be made at the destination";

int rcv_new(struct rcv **out, const struct rcv_opts *o, struct outbox *outbox, struct ptcp_err *e)
{
	struct rcv *r = calloc(1, sizeof *r);

	if (r == NULL)
		return err_nomem(e);
	r->o = *o;
	if (r->o.max_entries > WIRE_SLOTS)
		r->o.max_entries = WIRE_SLOTS;
	r->out = outbox;
	list_init(&r->runnable);
	*out = r;
	return 0;
}

struct item *rcv_find(const struct rcv *r, uint64_t id)
{
	unsigned slot = wire_slot(id);

	if (slot >= WIRE_SLOTS || r->slot[slot] == NULL || r->slot[slot]->id != id)
		return NULL;
	return r->slot[slot];
}

bool rcv_unheard(const struct rcv *r, uint64_t id)
{
	return id >> 16 > r->highest;
}

static void frame_free(struct rcv *r, struct item *f)
{
	if (f->frame != NULL)
		r->frame_bytes -= f->frame_bytes;
	free(f->frame);
	f->frame = NULL;
}

/* Frees an ended directory once its last child has let go of it. */
static void release(struct item *f)
{
	struct item *parent;

	while (f != NULL && f->ended && f->children == 0) {
		parent = f->parent;
		free(f);
		f = parent;
		if (f != NULL)
			f->children--;
	}
}

void rcv_end(struct rcv *r, struct item *f, bool skipped, const struct ptcp_err *why)
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
	frame_free(r, f);
	f->ended = true;
	if (f->cookie != NULL)
		r->o.ops->ended(r->o.arg, f->id, f->cookie, skipped, why);
	f->cookie = NULL;
	release(f);
}

/* Tells the sender and ends it. */
static void fail_one(struct rcv *r, struct item *f, const struct ptcp_err *why)
{
	outbox_put_fail(r->out, f->id, why);
	rcv_end(r, f, false, why);
}

/* What waits for a directory fails with it, and what waits for that. */
void rcv_fail(struct rcv *r, struct item *f, const struct ptcp_err *why)
{
	struct ptcp_err lost;
	struct item *c;

	while (!list_empty(&f->waiters)) {
		c = CONTAINER_OF(f->waiters.next, struct item, waiting);
		while (!list_empty(&c->waiters)) {
			struct list *l = c->waiters.next;

			list_remove(l);
			list_append(&f->waiters, l);
		}
		err_set(&lost, PTCP_EPEER, "%s", no_directory);
		fail_one(r, c, &lost);
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
			rcv_end(r, r->slot[i], false, &why);
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

int rcv_violation(const char *what, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame from the sender", what);
}

void rcv_commit(struct rcv *r, struct item *f, const struct wire_entry *end_frame)
{
	f->state = COMMITTING;
	r->o.ops->commit(r->o.arg, f->id, f->cookie, end_frame);
}

static void answer(struct rcv *r, struct item *f, uint8_t verdict)
{
	struct wire_answer a = { f->id, verdict };

	OUTBOX_PUT(r->out, answer, ANSWER, &a);
}

bool rcv_track(struct rcv *r, struct item *f)
{
	struct ptcp_err why;

	if (f->done != NULL)
		return true;
	if (f->n_blocks <= 64) {
		f->done = &f->few;
		return true;
	}
	if (r->bitmap_bytes + bitmap_bytes(f->n_blocks) <= BITMAPS_MAX_BYTES &&
	    (f->done = bitmap_new(f->n_blocks)) != NULL) {
		r->bitmap_bytes += bitmap_bytes(f->n_blocks);
		return true;
	}
	err_set(&why, PTCP_ENOMEM, "too many large files at once for the receiver");
	rcv_fail(r, f, &why);
	return false;
}

static void accept_file(struct rcv *r, struct item *f)
{
	f->state = f->n_blocks > 0 ? RECEIVING : COMPLETE;
	r->o.ops->accepted(r->o.arg, f->id, f->cookie, f->size_bytes);
	answer(r, f, WIRE_SEND_ALL);
}

static void accept_entry(struct rcv *r, struct item *f)
{
	switch (f->type) {
	case WIRE_FILE:
		accept_file(r, f);
		break;
	case WIRE_DIR:
		f->state = OPEN;
		answer(r, f, WIRE_SEND_ALL);
		while (!list_empty(&f->waiters)) {
			struct list *l = f->waiters.next;

			list_remove(l);
			list_append(&r->runnable, l);
		}
		break;
	default:
		answer(r, f, WIRE_SEND_ALL);
		rcv_commit(r, f, NULL);
	}
}

static void verdict(struct rcv *r, struct item *f, enum rcv_prep v, const struct ptcp_err *why)
{
	switch (v) {
	case RCV_ACCEPT:
		accept_entry(r, f);
		break;
	case RCV_HAVE_IT:
		r->stats.bytes += f->size_bytes;
		r->stats.resumed_bytes += f->size_bytes;
		answer(r, f, WIRE_SEND_NONE);
		rcv_end(r, f, true, NULL);
		break;
	case RCV_REFUSE:
		rcv_fail(r, f, why);
		break;
	case RCV_LATER:
		break;
	}
}

static void prepare(struct rcv *r, struct item *f)
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
	frame_free(r, f);
	verdict(r, f, v, &why);
}

/* What waited for directories that are there now; in a loop, however deep the tree. */
static void prepare_runnable(struct rcv *r)
{
	struct item *f;

	while (!list_empty(&r->runnable)) {
		f = CONTAINER_OF(r->runnable.next, struct item, waiting);
		list_remove(&f->waiting);
		prepare(r, f);
	}
}

void rcv_prepared(struct rcv *r, uint64_t id, enum rcv_prep v, const struct ptcp_err *why)
{
	struct item *f = rcv_find(r, id);

	if (f == NULL || f->state != PREPARING)
		return;
	verdict(r, f, v, why);
	prepare_runnable(r);
}

/* Fails an entry for which nothing has been kept. */
static void refuse(struct rcv *r, uint64_t id, int code, const char *text)
{
	struct ptcp_err why;

	err_set(&why, code, "%s", text);
	r->stats.failed++;
	outbox_put_fail(r->out, id, &why);
}

void rcv_new_entry(struct rcv *r, const struct wire_entry *w, struct span in)
{
	struct item *parent = w->parent != 0 ? rcv_find(r, w->parent) : NULL, *f;

	if (w->parent != 0 && parent == NULL) {
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
	if (r->frame_bytes + in.n > FRAMES_MAX_BYTES) {
		refuse(r, w->id, PTCP_ENOMEM, "too much waits for its directories at the receiver");
		return;
	}
	if ((f = calloc(1, sizeof *f)) == NULL || (f->frame = malloc(in.n)) == NULL) {
		free(f);
		refuse(r, w->id, PTCP_ENOMEM, ptcp_err_text(PTCP_ENOMEM));
		return;
	}
	r->frame_bytes += in.n;
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
	list_append(parent != NULL && parent->state != OPEN ? &parent->waiters : &r->runnable,
	    &f->waiting);
	prepare_runnable(r);
}

