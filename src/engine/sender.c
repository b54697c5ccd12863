/* Entries: offered in the order of the walk, ended by the receiver's verdict. */
#include "engine/sender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
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
	list_init(&s->all);
	list_init(&s->ready);
	list_init(&s->unmapped);
	inflights_init(&s->flights);
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
	free(f->again.at);
	free(f->why);
	memory_free(s->o.memory, f, sizeof *f);
}

static void report_ended(struct snd *s, struct snd_entry *f, enum snd_fate fate,
    const struct ptcp_err *why)
{
	void *cookie = f->cookie;

	f->cookie = NULL;
	if (fate == SND_FAILED)
		s->stats.done.failed++;
	if (fate == SND_DONE || fate == SND_SKIPPED) {
		if (f->type == WIRE_FILE) {
			s->stats.done.files++;
			s->stats.done.file_bytes += f->size_bytes;
		} else {
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

static void set_shape(struct snd_entry *n, const struct wire_entry *f)
{
	struct wire_attrs a = { .sparse = false };

	if (f->type == WIRE_FILE && f->attrs.n > 0)
		wire_attrs_decode(&a, f, NULL);
	n->size_bytes = f->size_bytes;
	n->sparse = a.sparse;
	n->unsized = n->unended = a.unsized;
	n->grid = a.unsized ? wire_grid_unsized(WIRE_UNSIZED_MAX) : wire_grid_of(f->size_bytes);
	n->n_blocks = n->n_offered = a.unsized ? 0 : wire_grid_blocks(n->grid);
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
	if ((n = memory_calloc(s->o.memory, sizeof *n, e)) == NULL)
		return NULL;
	n->type = f->type;
	n->cookie = cookie;
	set_shape(n, f);
	s->n_unended += n->unended;
	n->acked = &n->few[0];
	n->read = &n->few[1];
	list_init(&n->in_ready);
	list_init(&n->flights);
	list_append(&s->all, &n->in_all);
	n->path_bytes = below(top) + f->name.n;
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

/* Without memory: ends the session, as the tree would be incomplete. */
static void offer_nothing(struct snd *s, const struct wire_entry *f, void *cookie, const struct ptcp_err *why)
{
	if (f->type == WIRE_DIR)
		s->untracked++;
	s->out->failed = true;
	s->o.ops->ended(s->o.arg, cookie, SND_FAILED, why);
}

bool snd_may_link(struct snd *s, size_t name_bytes)
{
	uint64_t path = below(s->depth > 0 ? s->stack[s->depth - 1] : NULL) + name_bytes;

	if (WIRE_LINKED_COST(path) > WIRE_LINKED_MAX_BYTES - s->linked_bytes)
		return false;
	s->linked_bytes += WIRE_LINKED_COST(path);
	return true;
}

uint64_t snd_offer(struct snd *s, struct wire_entry *f, void *cookie)
{
	struct snd_entry *top = s->depth > 0 ? s->stack[s->depth - 1] : NULL, *n;
	bool lost = top != NULL && top->state == LOST;
	struct ptcp_err why;
	size_t bytes;
	uint8_t *p;

	assert(s->n_spare > 0 && cookie != NULL);
	err_nomem(&why); /* the failure of the directory above, if that is untracked */
	if (s->untracked > 0 || (n = entry_new(s, f, top, cookie, !lost, &why)) == NULL) {
		offer_nothing(s, f, cookie, &why);
		return 0;
	}
	if (lost) {
		err_set(&why, PTCP_EPEER, "its directory could not be made at the destination");
		if (f->type == WIRE_DIR)
			snd_lose_dir(s, n, &why);
		else
			snd_end(s, n, SND_FAILED, &why);
		return 0;
	}
	f->id = n->id;
	f->parent = top != NULL ? top->id : 0;
	n->end = (struct wire_entry){ .type = WIRE_DIR_END, .id = n->id, .mode = f->mode,
		.mtime_s = f->mtime_s, .mtime_ns = f->mtime_ns };
	if ((p = outbox_room(s->out, WIRE_ENTRY_BYTES(f->attrs.n))) != NULL) {
		bytes = wire_entry_encode(p, f);
		outbox_added(s->out, bytes);
		if (!agreed(s))
			s->early_bytes += bytes;
	}
	return n->id;
}

void snd_leave(struct snd *s)
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

void snd_listed(struct snd *s, uint64_t files, uint64_t bytes, bool final)
{
	struct wire_totals f = { files, bytes, final };

	s->listed = final;
	OUTBOX_PUT(s->out, totals, TOTALS, &f);
}

bool snd_all_ended(const struct snd *s) { return s->listed && s->stats.live == 0; }
void snd_hold(struct snd *s) { s->held++; }

void snd_release(struct snd *s)
{
	assert(s->held > 0);
	s->held--;
}

bool snd_finished(const struct snd *s) { return snd_all_ended(s) && s->held == 0; }

struct snd_stats snd_stats(const struct snd *s)
{
	return s->stats;
}
