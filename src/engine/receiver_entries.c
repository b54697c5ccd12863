/* Entries: from ENTRY to the first block. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "engine/receiver_impl.h"
#include "wire/attrs.h"

#define FRAMES_MAX_BYTES (16u << 20) /* ENTRY frames that wait */
#define DEPTH_MAX 2048               /* directories within each other */

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

static void accept_file(struct rcv *r, struct item *f, uint64_t *claimed)
{
	f->state = f->n_blocks > 0 ? RECEIVING : COMPLETE;
	rcv_claim(r, f, claimed);
	r->o.ops->accepted(r->o.arg, f->id, f->cookie, f->size_bytes, f->claimed != NULL);
	answer(r, f, f->claimed != NULL ? WIRE_SEND_PARTS : WIRE_SEND_ALL);
}

static void accept_dir(struct rcv *r, struct item *f)
{
	struct list *l;

	f->state = OPEN;
	answer(r, f, WIRE_SEND_ALL);
	while (!list_empty(&f->waiters)) {
		l = f->waiters.next;
		list_remove(l);
		list_append(&r->runnable, l);
	}
}

static void accept_entry(struct rcv *r, struct item *f, uint64_t *claimed)
{
	if (f->type == WIRE_DIR) {
		accept_dir(r, f);
	} else if (r->o.dry_run) {
		free(claimed);
		rcv_done(r, f);
	} else if (f->type == WIRE_FILE) {
		accept_file(r, f, claimed);
	} else {
		answer(r, f, WIRE_SEND_ALL);
		rcv_commit(r, f, NULL);
	}
}

/* `claimed` is given away. */
static void verdict(struct rcv *r, struct item *f, enum rcv_prep v, uint64_t *claimed,
    const struct ptcp_err *why)
{
	switch (v) {
	case RCV_ACCEPT:
	case RCV_PARTS:
		accept_entry(r, f, claimed);
		break;
	case RCV_COMPARE:
		assert(f->type == WIRE_FILE && r->o.verify && !f->has_own);
		f->state = COMPARING;
		answer(r, f, WIRE_COMPARE);
		break;
	case RCV_HAVE_IT:
		r->stats.done.bytes += f->size_bytes;
		r->stats.done.resumed_bytes += f->size_bytes;
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
	uint64_t *claimed = NULL;
	struct wire_entry w;
	struct ptcp_err why;
	enum rcv_prep v;

	f->state = PREPARING;
	if (wire_entry_decode(&w, (struct span){ f->frame, f->frame_bytes }, &why) < 0)
		v = RCV_REFUSE; /* it was decoded before: cannot be */
	else
		v = r->o.ops->prepare(r->o.arg, f->id, &w,
		    f->parent != NULL ? f->parent->cookie : NULL, &f->cookie, &claimed, &why);
	rcv_frame_free(r, f);
	verdict(r, f, v, claimed, &why);
}

/* Another name of a file comes after that file; it fails with it. */
static void prepare_link(struct rcv *r, struct item *f)
{
	struct ptcp_err why;

	if (f->file == NULL || (f->file->ended && !f->file->lost)) {
		prepare(r, f);
	} else if (f->file->lost) {
		err_set(&why, PTCP_EPEER, "%s", rcv_no_file);
		rcv_fail(r, f, &why);
	} else {
		list_append(&f->file->waiters, &f->waiting);
	}
}

/* In a loop, however deep the tree. */
void rcv_run_waiting(struct rcv *r)
{
	struct item *f;

	while (!list_empty(&r->runnable)) {
		f = CONTAINER_OF(r->runnable.next, struct item, waiting);
		list_remove(&f->waiting);
		if (f->type == WIRE_HARDLINK)
			prepare_link(r, f);
		else
			prepare(r, f);
	}
}

void rcv_prepared(struct rcv *r, uint64_t id, enum rcv_prep v, uint64_t *claimed,
    const struct ptcp_err *why)
{
	struct item *f = rcv_find(r, id);

	if (f == NULL || f->state != PREPARING) {
		free(claimed);
		return;
	}
	verdict(r, f, v, claimed, why);
	rcv_run_waiting(r);
}

/* ---- Comparing with a file that is here ---- */

void rcv_try_compare(struct rcv *r, struct item *f)
{
	if (!f->has_own || !f->has_digest)
		return;
	if (!f->unreadable && digest_equal(f->sum, f->wanted)) {
		f->state = PREPARING;
		r->o.ops->same(r->o.arg, f->id, f->cookie);
		return;
	}
	f->sum = f->wanted = (struct digest){ 0, 0 };
	f->has_digest = false;
	f->state = PREPARING;
	r->o.ops->differs(r->o.arg, f->id, f->cookie);
}

void rcv_compared(struct rcv *r, uint64_t id, struct digest digest, const struct ptcp_err *why)
{
	struct item *f = rcv_find(r, id);

	if (f == NULL || f->state != COMPARING || f->has_own)
		return;
	f->has_own = true;
	f->unreadable = why != NULL;
	f->sum = digest;
	rcv_try_compare(r, f);
	rcv_run_waiting(r);
}

/* ---- New ones ---- */

static struct item *item_new(struct rcv *r, const struct wire_entry *w, const struct wire_attrs *attrs, struct span in)
{
	struct item *f = calloc(1, sizeof *f);

	if (f == NULL || (f->frame = malloc(in.n)) == NULL) {
		free(f);
		return NULL;
	}
	r->frame_bytes += in.n;
	memcpy(f->frame, in.p, in.n);
	f->frame_bytes = in.n;
	f->id = w->id;
	f->type = w->type;
	f->size_bytes = w->size_bytes;
	f->n_blocks = wire_grid_blocks(w->size_bytes);
	f->sparse = attrs->sparse;
	if (w->type == WIRE_HARDLINK && (f->file = rcv_find(r, attrs->link_id)) != NULL)
		f->file->names++;
	list_init(&f->waiting);
	list_init(&f->waiters);
	return f;
}

void rcv_new_entry(struct rcv *r, const struct wire_entry *w, struct span in)
{
	struct item *parent = w->parent != 0 ? rcv_find(r, w->parent) : NULL, *f;
	struct wire_attrs attrs = { 0 };

	wire_attrs_decode(&attrs, w, NULL); /* they were decoded before: cannot fail */
	if (w->parent != 0 && parent == NULL) {
		rcv_refuse(r, w, PTCP_EPEER, rcv_no_directory);
		return;
	}
	if (parent != NULL && parent->depth == DEPTH_MAX) {
		rcv_refuse(r, w, PTCP_ERANGE, "more than 2048 directories within each other");
		return;
	}
	if (w->type == WIRE_HARDLINK && r->lost[wire_slot(attrs.link_id)] == attrs.link_id) {
		rcv_refuse(r, w, PTCP_EPEER, rcv_no_file);
		return;
	}
	if (r->frame_bytes + in.n > FRAMES_MAX_BYTES) {
		rcv_refuse(r, w, PTCP_ENOMEM, "too much waits for its directories at the receiver");
		return;
	}
	if ((f = item_new(r, w, &attrs, in)) == NULL) {
		rcv_refuse(r, w, PTCP_ENOMEM, ptcp_err_text(PTCP_ENOMEM));
		return;
	}
	if ((f->parent = parent) != NULL) {
		parent->children++;
		f->depth = parent->depth + 1;
	}
	r->slot[wire_slot(f->id)] = f;
	r->stats.live++;
	list_append(parent != NULL && parent->state != OPEN ? &parent->waiters : &r->runnable,
	    &f->waiting);
	rcv_run_waiting(r);
}

