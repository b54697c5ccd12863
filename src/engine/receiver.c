/* Entries: their end, well or not. */
#include "engine/receiver.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "engine/receiver_impl.h"

const char rcv_no_directory[] = "its directory could not be made at the destination";
const char rcv_no_file[] = "the file that it is another name of failed (send both again)";

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
	list_init(&r->asking);
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

void rcv_frame_free(struct rcv *r, struct item *f)
{
	if (f->frame != NULL)
		r->frame_bytes -= f->frame_bytes;
	free(f->frame);
	f->frame = NULL;
}

/* Frees an ended entry once its last child or other name has let go of it; for that a file does not hold up its
 * directory. */
static void release(struct item *f)
{
	struct item *parent;

	while (f != NULL && f->ended && f->children == 0) {
		parent = f->parent;
		f->parent = NULL;
		if (f->file != NULL) {
			f->file->names--;
			release(f->file);
		}
		if (f->names == 0)
			free(f);
		f = parent;
		if (f != NULL)
			f->children--;
	}
}

/* What waits for it waits in `to` now, or (NULL) for nothing. */
static void take_waiters(struct item *f, struct list *to)
{
	struct list *l;

	while (!list_empty(&f->waiters)) {
		l = f->waiters.next;
		list_remove(l);
		if (to != NULL)
			list_append(to, l);
	}
}

void rcv_end(struct rcv *r, struct item *f, bool skipped, const struct ptcp_err *why)
{
	r->slot[wire_slot(f->id)] = NULL;
	r->stats.live--;
	if (why != NULL) {
		r->stats.done.failed++;
		if (f->type == WIRE_FILE)
			r->lost[wire_slot(f->id)] = f->id;
	} else if (f->type == WIRE_FILE) {
		r->stats.done.files++;
		r->stats.done.file_bytes += f->size_bytes;
	} else {
		r->stats.done.others++;
	}
	list_remove(&f->waiting);
	take_waiters(f, f->type == WIRE_FILE && why == NULL ? &r->runnable : NULL);
	rcv_bitmaps_free(r, f);
	rcv_frame_free(r, f);
	f->ended = true;
	f->lost = why != NULL;
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

/* Another name of a file, its directory being there, waits for that file. */
static bool waits_for_file(const struct item *f)
{
	return f->type == WIRE_HARDLINK && (f->parent == NULL || f->parent->state == OPEN);
}

/* And what waits for that. */
void rcv_fail_waiters(struct rcv *r, struct item *f)
{
	struct ptcp_err lost;
	struct item *c;

	while (!list_empty(&f->waiters)) {
		c = CONTAINER_OF(f->waiters.next, struct item, waiting);
		take_waiters(c, &f->waiters);
		err_set(&lost, PTCP_EPEER, "%s", waits_for_file(c) ? rcv_no_file : rcv_no_directory);
		fail_one(r, c, &lost);
	}
}

void rcv_fail(struct rcv *r, struct item *f, const struct ptcp_err *why)
{
	rcv_fail_waiters(r, f);
	fail_one(r, f, why);
}

void rcv_done(struct rcv *r, struct item *f)
{
	struct wire_done done = { f->id };

	OUTBOX_PUT(r->out, done, DONE, &done);
	rcv_end(r, f, false, NULL);
}

void rcv_refuse(struct rcv *r, const struct wire_entry *w, int code, const char *text)
{
	struct ptcp_err why;

	err_set(&why, code, "%s", text);
	r->stats.done.failed++;
	if (w->type == WIRE_FILE)
		r->lost[wire_slot(w->id)] = w->id;
	outbox_put_fail(r->out, w->id, &why);
}

int rcv_violation(const char *what, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame from the sender", what);
}

void rcv_drop(struct rcv *r)
{
	uint64_t failed = r->stats.done.failed;
	struct ptcp_err why;
	unsigned i;

	err_set(&why, PTCP_ECANCELED, "%s", ptcp_err_text(PTCP_ECANCELED));
	for (i = 0; i < WIRE_SLOTS; i++)
		if (r->slot[i] != NULL)
			rcv_end(r, r->slot[i], false, &why);
	r->stats.done.failed = failed;
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
	struct rcv_stats s = r->stats;

	s.done.wire_bytes = s.done.bytes - s.done.resumed_bytes - s.hole_bytes;
	return s;
}
