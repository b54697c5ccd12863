/* Entries: from ENTRY to the first block, and their end. */
#include "engine/receiver.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "engine/receiver_impl.h"
#include "wire/attrs.h"

#define TEXTS_MAX_BYTES (16u << 20) /* names, targets and attributes of waiting entries */
#define DEPTH_MAX 4200               /* nested directories: more than a walk reports */

static const char no_directory[] = "its directory could not be made at the destination";

int rcv_new(struct rcv **out, const struct rcv_opts *o, struct outbox *outbox, struct ptcp_err *e)
{
	struct rcv *r = memory_calloc(o->memory, sizeof *r, e);

	if (r == NULL)
		return PTCP_ENOMEM;
	r->o = *o;
	if (r->o.max_entries > WIRE_SLOTS)
		r->o.max_entries = WIRE_SLOTS;
	r->out = outbox;
	spares_init(&r->entries, r->o.memory, sizeof(struct rcv_entry), sizeof(struct rcv_entry));
	list_init(&r->runnable);
	list_init(&r->requesting);
	*out = r;
	return 0;
}

struct rcv_entry *rcv_find(const struct rcv *r, uint64_t id)
{
	unsigned slot = wire_slot(id);

	if (slot >= WIRE_SLOTS || r->slot[slot] == NULL || r->slot[slot]->id != id)
		return NULL;
	return r->slot[slot];
}

bool rcv_is_new(const struct rcv *r, uint64_t id)
{
	return id >> 16 > r->highest;
}

static void free_text(struct rcv *r, struct rcv_entry *f)
{
	if (f->text != NULL)
		r->text_bytes -= f->text_bytes;
	if (f->text != f->small)
		memory_free(r->o.memory, f->text, f->text_bytes);
	f->text = NULL;
}

/* Frees an ended entry, once no child or hard link refers to it; LINKED entries leave their directory before. */
static void release(struct rcv *r, struct rcv_entry *f)
{
	struct rcv_entry *parent;

	while (f != NULL && f->ended && f->children == 0) {
		parent = f->parent;
		f->parent = NULL;
		if (f->file != NULL) {
			f->file->names--;
			release(r, f->file);
		}
		if (f->names == 0)
			spares_give(&r->entries, f);
		f = parent;
		if (f != NULL)
			f->children--;
	}
}

/* Moves its waiters to `to`, or (NULL) to no list. */
static void take_waiters(struct rcv_entry *f, struct list *to)
{
	struct list *l;

	while (!list_empty(&f->waiters)) {
		l = f->waiters.next;
		list_remove(l);
		if (to != NULL)
			list_append(to, l);
	}
}

/* The caller does not know the name of an entry that has failed: then the entries of its directory are unknown. */
static void lack(struct rcv *r, struct rcv_entry *parent)
{
	if (parent != NULL)
		parent->incomplete = true;
	else
		r->stats.unplaced++;
}

void rcv_end(struct rcv *r, struct rcv_entry *f, bool skipped, const struct ptcp_err *why)
{
	r->slot[wire_slot(f->id)] = NULL;
	r->stats.live--;
	if (why != NULL) {
		if (f->cookie == NULL)
			lack(r, f->parent);
		r->stats.done.failed += outbox_is_failure(why->code);
		if (wire_may_be_linked(f->type))
			r->lost[wire_slot(f->id)] = f->id;
	} else if (f->type == WIRE_FILE) {
		r->stats.done.files++;
		r->stats.done.file_bytes += f->size_bytes;
	} else if (!f->again && f->type != WIRE_NAME) {
		r->stats.done.others++;
	}
	list_remove(&f->waiting);
	take_waiters(f, wire_may_be_linked(f->type) && why == NULL ? &r->runnable : NULL);
	if (why != NULL && f->unsized && r->o.ops->beginning != NULL && rcv_beginning_bytes(f) > 0)
		r->o.ops->beginning(r->o.arg, f->id, f->cookie, rcv_beginning_bytes(f));
	rcv_bitmaps_free(r, f);
	free_text(r, f);
	f->ended = true;
	f->lost = why != NULL;
	if (f->cookie != NULL)
		r->o.ops->ended(r->o.arg, f->id, f->cookie, skipped, why);
	f->cookie = NULL;
	release(r, f);
}

static void fail_one(struct rcv *r, struct rcv_entry *f, const struct ptcp_err *why)
{
	outbox_put_fail(r->out, f->id, why);
	rcv_end(r, f, false, why);
}

static void answer(struct rcv *r, uint64_t id, uint8_t verdict)
{
	struct wire_answer a = { id, verdict };

	OUTBOX_PUT(r->out, answer, ANSWER, &a);
}

static void not_linked(struct rcv *r, struct rcv_entry *f)
{
	answer(r, f->id, WIRE_NO_LINK);
	f->again = true;
	rcv_end(r, f, true, NULL);
}

/* A hard link in an open directory waits for its LINKED entry. */
static bool waits_for_file(const struct rcv_entry *f)
{
	return f->type == WIRE_HARDLINK && (f->parent == NULL || f->parent->state == OPEN);
}

/* Fails its waiters, and theirs in turn. The sender offers the other names of a file or link again: the next one may
 * have its content. */
void rcv_fail_waiters(struct rcv *r, struct rcv_entry *f)
{
	struct ptcp_err lost;
	struct rcv_entry *c;

	while (!list_empty(&f->waiters)) {
		c = CONTAINER_OF(f->waiters.next, struct rcv_entry, waiting);
		take_waiters(c, &f->waiters);
		if (waits_for_file(c)) {
			not_linked(r, c);
			continue;
		}
		err_set(&lost, PTCP_EPARENT, "%s", no_directory);
		fail_one(r, c, &lost);
	}
}

void rcv_fail(struct rcv *r, struct rcv_entry *f, const struct ptcp_err *why)
{
	outbox_put_fail(r->out, f->id, why); /* the cause first */
	rcv_fail_waiters(r, f);
	rcv_end(r, f, false, why);
}

void rcv_done(struct rcv *r, struct rcv_entry *f)
{
	struct wire_done done = { f->id };

	OUTBOX_PUT(r->out, done, DONE, &done);
	rcv_end(r, f, false, NULL);
}

static void refuse(struct rcv *r, const struct wire_entry *w, int code, const char *text)
{
	struct ptcp_err why;

	if (w->parent == 0 || rcv_find(r, w->parent) != NULL)
		lack(r, rcv_find(r, w->parent));

	err_set(&why, code, "%s", text);
	r->stats.done.failed++;
	if (wire_may_be_linked(w->type))
		r->lost[wire_slot(w->id)] = w->id;
	outbox_put_fail(r->out, w->id, &why);
}

int rcv_violation(const char *what, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame from the sender", what);
}

/* ---- Preparing entries ---- */

void rcv_commit(struct rcv *r, struct rcv_entry *f, const struct wire_entry *end_frame)
{
	f->state = COMMITTING;
	r->o.ops->commit(r->o.arg, f->id, f->cookie, end_frame);
}

static void accept_file(struct rcv *r, struct rcv_entry *f, uint64_t *claimed)
{
	f->state = f->n_blocks > 0 ? RECEIVING : COMPLETE;
	rcv_claim(r, f, claimed);
	r->o.ops->accepted(r->o.arg, f->id, f->cookie, f->size_bytes, f->claimed != NULL);
	answer(r, f->id, f->claimed != NULL ? WIRE_SEND_PARTS : WIRE_SEND_ALL);
}

static void accept_dir(struct rcv *r, struct rcv_entry *f)
{
	struct list *l;

	f->state = OPEN;
	answer(r, f->id, WIRE_SEND_ALL);
	while (!list_empty(&f->waiters)) {
		l = f->waiters.next;
		list_remove(l);
		list_append(&r->runnable, l);
	}
}

static void accept_entry(struct rcv *r, struct rcv_entry *f, uint64_t *claimed)
{
	if (f->type == WIRE_DIR) {
		accept_dir(r, f);
	} else if (r->o.dry_run) {
		free(claimed);
		rcv_done(r, f);
	} else if (f->type == WIRE_FILE) {
		accept_file(r, f, claimed);
	} else {
		answer(r, f->id, WIRE_SEND_ALL);
		rcv_commit(r, f, NULL);
	}
}

/* Takes `claimed`. */
static void verdict(struct rcv *r, struct rcv_entry *f, enum rcv_prep v, uint64_t *claimed,
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
		answer(r, f->id, WIRE_COMPARE);
		break;
	case RCV_UP_TO_DATE:
		r->stats.done.bytes += f->size_bytes;
		r->stats.done.resumed_bytes += f->size_bytes;
		answer(r, f->id, WIRE_SEND_NONE);
		rcv_end(r, f, true, NULL);
		break;
	case RCV_NO_LINK:
		assert(f->type == WIRE_HARDLINK);
		not_linked(r, f);
		break;
	case RCV_REFUSE:
		rcv_fail(r, f, why);
		break;
	case RCV_LATER:
		break;
	}
}

static void prepare(struct rcv *r, struct rcv_entry *f)
{
	uint64_t *claimed = NULL;
	struct ptcp_err why;
	enum rcv_prep v;

	f->state = PREPARING;
	v = r->o.ops->prepare(r->o.arg, f->id, &f->offer, f->parent != NULL ? f->parent->cookie : NULL, &f->cookie,
	    &claimed, &why);
	free_text(r, f);
	verdict(r, f, v, claimed, &why);
}

/* A hard link follows its LINKED entry. */
static void prepare_link(struct rcv *r, struct rcv_entry *f)
{
	if (f->file == NULL || (f->file->ended && !f->file->lost)) {
		prepare(r, f);
	} else if (f->file->lost) {
		not_linked(r, f);
	} else {
		list_append(&f->file->waiters, &f->waiting);
	}
}

/* A loop instead of recursion, as trees are deep. */
void rcv_run_waiting(struct rcv *r)
{
	struct rcv_entry *f;

	while (!list_empty(&r->runnable)) {
		f = CONTAINER_OF(r->runnable.next, struct rcv_entry, waiting);
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
	struct rcv_entry *f = rcv_find(r, id);

	tape_write_bitmap(r->o.tape, TAPE_prepared, &(struct tape_args){ .u = { id, v },
	    .why = v == RCV_REFUSE ? why : NULL }, claimed, f != NULL ? f->n_blocks : 0);
	if (f == NULL || f->state != PREPARING) {
		free(claimed);
		return;
	}
	verdict(r, f, v, claimed, why);
	rcv_run_waiting(r);
}

void rcv_not_linked(struct rcv *r, uint64_t id)
{
	struct rcv_entry *f = rcv_find(r, id);

	TAPE(r->o.tape, not_linked, .u = { id });
	if (f == NULL || f->state != COMMITTING)
		return;
	assert(f->type == WIRE_HARDLINK);
	not_linked(r, f);
}

/* ---- New entries ---- */

static size_t text_bytes(const struct wire_entry *w) { return w->name.n + w->target.n + w->attrs.n; }

static void keep(struct span *s, uint8_t **at)
{
	uint8_t *p = *at;

	if (s->n > 0)
		memcpy(p, s->p, s->n);
	s->p = p;
	*at += s->n;
}

/* The frame is gone when the entry is prepared. */
static void keep_offer(struct rcv *r, struct rcv_entry *f, const struct wire_entry *w)
{
	uint8_t *at = f->text;

	f->offer = *w;
	keep(&f->offer.name, &at);
	keep(&f->offer.target, &at);
	keep(&f->offer.attrs, &at);
	f->text_bytes = text_bytes(w);
	r->text_bytes += f->text_bytes;
}

static struct rcv_entry *entry_new(struct rcv *r, const struct wire_entry *w, const struct wire_attrs *attrs,
    struct ptcp_err *e)
{
	struct rcv_entry *f = spares_take(&r->entries, e);

	if (f == NULL || (f->text = text_bytes(w) <= sizeof f->small ? f->small :
	    memory_realloc(r->o.memory, NULL, 0, text_bytes(w), e)) == NULL) {
		spares_give(&r->entries, f);
		return NULL;
	}
	keep_offer(r, f, w);
	f->id = w->id;
	f->type = w->type;
	f->size_bytes = w->size_bytes;
	f->unsized = f->unended = attrs->unsized;
	f->grid = attrs->unsized ? wire_grid_unsized(WIRE_UNSIZED_MAX) : wire_grid_of(w->size_bytes);
	f->n_blocks = wire_grid_blocks(f->grid);
	f->need_end = UINT32_MAX;
	f->sparse = attrs->sparse;
	if (w->type == WIRE_HARDLINK && (f->file = rcv_find(r, attrs->link_id)) != NULL)
		f->file->names++;
	list_init(&f->waiting);
	list_init(&f->waiters);
	return f;
}

static uint64_t path_bytes(const struct rcv_entry *parent, const struct wire_entry *w)
{
	if (wire_entry_is_base(w))
		return 0;
	return (parent != NULL ? parent->path_bytes + 1 : 0) + w->name.n;
}

static void new_entry(struct rcv *r, const struct wire_entry *w)
{
	struct rcv_entry *parent = w->parent != 0 ? rcv_find(r, w->parent) : NULL, *f;
	struct wire_attrs attrs = { 0 };
	struct ptcp_err why;

	wire_attrs_decode(&attrs, w, NULL); /* cannot fail: decoded before */
	if (w->parent != 0 && parent == NULL) {
		refuse(r, w, PTCP_EPARENT, no_directory);
		return;
	}
	if (parent != NULL && parent->depth == DEPTH_MAX) {
		refuse(r, w, PTCP_ERANGE, "more than 4200 nested directories");
		return;
	}
	if (w->type == WIRE_HARDLINK && r->lost[wire_slot(attrs.link_id)] == attrs.link_id) {
		answer(r, w->id, WIRE_NO_LINK);
		return;
	}
	if (r->text_bytes + text_bytes(w) > TEXTS_MAX_BYTES) {
		refuse(r, w, PTCP_ENOMEM, "too many entries wait for their directories at the receiver");
		return;
	}
	if ((f = entry_new(r, w, &attrs, &why)) == NULL) {
		refuse(r, w, PTCP_ENOMEM, why.msg);
		return;
	}
	f->path_bytes = path_bytes(parent, w);
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

static bool parent_ok(const struct rcv *r, uint64_t id)
{
	const struct rcv_entry *f = rcv_find(r, id);

	if (f != NULL)
		return f->type == WIRE_DIR && f->path_bytes > 0 && f->state != COMMITTING;
	return !rcv_is_new(r, id); /* presumably a directory that failed */
}

static int on_dir_end(struct rcv *r, const struct wire_entry *w, struct ptcp_err *e)
{
	struct rcv_entry *f = rcv_find(r, w->id);

	if (f == NULL && !rcv_is_new(r, w->id))
		return 0;
	if (f == NULL || f->state != OPEN || f->children > 0)
		return rcv_violation("DIR_END", e);
	if (w->size_bytes > 0 || f->incomplete)
		r->o.ops->incomplete(r->o.arg, f->cookie, w->size_bytes == WIRE_DIR_LACKS || f->incomplete);
	if (r->o.dry_run)
		rcv_done(r, f);
	else
		rcv_commit(r, f, w);
	return 0;
}

/* Counts LINKED entries. */
static bool links_ok(struct rcv *r, const struct wire_entry *w)
{
	const struct rcv_entry *f;
	struct wire_attrs a;

	if (wire_attrs_decode(&a, w, NULL) < 0)
		return false;
	if (a.linked)
		r->linked_bytes += WIRE_LINKED_COST(path_bytes(rcv_find(r, w->parent), w));
	if (w->type != WIRE_HARDLINK)
		return r->linked_bytes <= WIRE_LINKED_MAX_BYTES;
	f = rcv_find(r, a.link_id);
	return f != NULL ? wire_may_be_linked(f->type) : !rcv_is_new(r, a.link_id);
}

int rcv_on_entry(struct rcv *r, const struct wire_entry *w, struct ptcp_err *e)
{
	if (w->type == WIRE_DIR_END)
		return on_dir_end(r, w, e);
	if (wire_slot(w->id) >= r->o.max_entries || r->slot[wire_slot(w->id)] != NULL ||
	    !rcv_is_new(r, w->id) || (w->parent != 0 && !parent_ok(r, w->parent)) || !links_ok(r, w))
		return rcv_violation("ENTRY", e);
	r->highest = w->id >> 16;
	new_entry(r, w);
	return 0;
}

/* ---- The end ---- */

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
	spares_fini(&r->entries);
	memory_free(r->o.memory, r, sizeof *r);
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
