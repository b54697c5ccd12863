#include "core/charged.h"
#include "core/units.h"
#include "engine/inflight.h"

#define UNKNOWN_NS NS_PER_S /* estimate before the first acknowledgment */

void inflights_init(struct inflights *t, struct memory_account *memory)
{
	unsigned i;

	*t = (struct inflights){ .memory = memory };
	t->index = t->few;
	t->n_index = INFLIGHT_FEW;
	list_init(&t->spare);
	for (i = 0; i <= INFLIGHT_DOUBLINGS; i++)
		list_init(&t->age[i]);
	for (i = 0; i < INFLIGHT_STREAMS; i++)
		list_init(&t->stream[i]);
}

void inflights_fini(struct inflights *t)
{
	struct inflight *f;

	while (!list_empty(&t->spare)) {
		f = CONTAINER_OF(t->spare.next, struct inflight, in_stream);
		list_remove(&f->in_stream);
		memory_free(t->memory, f, sizeof *f);
	}
	if (t->index != t->few)
		memory_free(t->memory, t->index, t->n_index * sizeof *t->index);
}

/* ---- The index ---- */

static struct inflight **place(const struct inflights *t, const void *file, uint32_t block)
{
	uint64_t h = ((uint64_t)(uintptr_t)file ^ (uint64_t)block * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

	return &t->index[h >> 32 & (t->n_index - 1)];
}

/* The flights of the block are `f` and what follows with this function. */
static struct inflight *next_of(struct inflight *f, const void *file, uint32_t block)
{
	while (f != NULL && (f->block != block || f->file != file))
		f = f->next;
	return f;
}

static struct inflight *first_of(const struct inflights *t, const void *file, uint32_t block)
{
	return next_of(*place(t, file, block), file, block);
}

/* Keeps the order of each block's flights. Without memory the lists grow longer instead. */
static void grow(struct inflights *t)
{
	struct inflight **old = t->index, *f, *next, **end;
	uint32_t n_old = t->n_index, i;

	if ((t->index = memory_calloc(t->memory, 2 * (size_t)n_old * sizeof *t->index, NULL)) == NULL) {
		t->index = old;
		return;
	}
	t->n_index = 2 * n_old;
	for (i = 0; i < n_old; i++)
		for (f = old[i]; f != NULL; f = next) {
			next = f->next;
			f->next = NULL;
			for (end = place(t, f->file, f->block); *end != NULL; end = &(*end)->next)
				;
			*end = f;
		}
	if (old != t->few)
		memory_free(t->memory, old, n_old * sizeof *old);
}

/* ---- Flights ---- */

static struct list *age_of(struct inflights *t, const struct inflight *f)
{
	return &t->age[f->copies < INFLIGHT_DOUBLINGS ? f->copies : INFLIGHT_DOUBLINGS];
}

static void add_unread(struct inflights *t, unsigned stream, uint64_t bytes)
{
	t->unread_bytes[stream] += bytes;
	t->queued_bytes[t->rate_of[stream]] += bytes;
}

static void drop_unread(struct inflights *t, unsigned stream, uint64_t bytes)
{
	t->unread_bytes[stream] -= bytes;
	t->queued_bytes[t->rate_of[stream]] -= bytes;
}

void inflight_stream_up(struct inflights *t, unsigned stream, struct mono now)
{
	t->last_ack[stream] = now;
	t->latency_ns[stream] = 0;
	t->unread[stream] = 0;
	drop_unread(t, stream, t->unread_bytes[stream]);
}

void inflight_share(struct inflights *t, unsigned stream, unsigned rate)
{
	uint64_t bytes = t->unread_bytes[stream];

	drop_unread(t, stream, bytes);
	t->rate_of[stream] = (uint8_t)rate;
	add_unread(t, stream, bytes);
}

struct inflight *inflight_add(struct inflights *t, struct list *file_list, void *file, uint32_t block,
    uint32_t bytes, unsigned stream, struct mono now)
{
	struct inflight *f, **at;

	if (!list_empty(&t->spare)) {
		f = CONTAINER_OF(t->spare.next, struct inflight, in_stream);
		list_remove(&f->in_stream);
	} else if ((f = memory_calloc(t->memory, sizeof *f, NULL)) == NULL) {
		return NULL;
	}
	if (++t->n > t->n_index)
		grow(t);
	f->file = file;
	f->block = block;
	f->stream = stream;
	f->handed = f->since = now;
	f->sent = f->copied = false;
	f->copies = 0;
	t->unread[stream]++;
	add_unread(t, stream, bytes);
	t->handed[stream] = now;
	at = place(t, file, block);
	f->next = *at;
	*at = f;
	list_append(&t->age[0], &f->in_age);
	list_append(&t->stream[stream], &f->in_stream);
	list_append(file_list, &f->in_file);
	return f;
}

void inflight_sent(struct inflights *t, unsigned stream, struct inflight *f, struct mono now)
{
	if (t->unread[stream] > 0) {
		drop_unread(t, stream, t->unread_bytes[stream] / t->unread[stream]);
		t->unread[stream]--;
	}
	if (f == NULL)
		return;
	f->sent = true;
	f->since = now;
	if (!f->copied) {
		list_remove(&f->in_age);
		list_append(age_of(t, f), &f->in_age);
	}
}

void inflight_remove(struct inflights *t, struct inflight *f)
{
	struct inflight **at = place(t, f->file, f->block);

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	t->n--;
	t->n_copies -= f->copies > 0;
	list_remove(&f->in_age);
	list_remove(&f->in_stream);
	list_remove(&f->in_file);
	list_append(&t->spare, &f->in_stream);
}

/* Looks the blocks up, or walks through the flights of the file, whichever is shorter. */
void inflight_remove_blocks(struct inflights *t, struct list *file_list, const void *file, uint32_t first,
    uint32_t count)
{
	struct inflight *f, *next;
	uint32_t i;

	for (i = 0; count < t->n && i < count; i++)
		for (f = first_of(t, file, first + i); f != NULL; f = next) {
			next = next_of(f->next, file, first + i);
			inflight_remove(t, f);
		}
	if (i > 0)
		return;
	LIST_EACH(file_list, f, struct inflight, in_file)
		if (f->block >= first && f->block - first < count)
			inflight_remove(t, f);
}

struct inflight *inflight_on(const struct inflights *t, const void *file, unsigned stream, uint32_t block)
{
	struct inflight *f = first_of(t, file, block);

	while (f != NULL && f->stream != stream)
		f = next_of(f->next, file, block);
	return f;
}

void inflight_copy(struct inflights *t, struct inflight *of, unsigned stream)
{
	struct inflight *f = CONTAINER_OF(t->stream[stream].prev, struct inflight, in_stream);

	f->copies = of->copies + 1;
	list_remove(&f->in_age);
	list_append(age_of(t, f), &f->in_age);
	of->copied = true;
	list_remove(&of->in_age);
	t->n_copies++;
}

void inflight_uncopy(struct inflights *t, struct inflight *f)
{
	struct list *at, *head = age_of(t, f);

	if (!f->copied)
		return;
	f->copied = false;
	for (at = head->next; at != head && CONTAINER_OF(at, struct inflight, in_age)->since.ns < f->since.ns;
	    at = at->next)
		;
	list_append(at, &f->in_age); /* inserts before *at */
}

struct inflight *inflight_other(const struct inflights *t, const struct inflight *f)
{
	struct inflight *o, *found = NULL;

	for (o = first_of(t, f->file, f->block); o != NULL; o = next_of(o->next, f->file, f->block)) {
		if (o == f)
			continue;
		if (o->sent)
			return o;
		found = o;
	}
	return found;
}

/* The only sent flight of the block, else its only flight, else NULL. */
static const struct inflight *delivered_by(const struct inflights *t, const void *file, uint32_t block)
{
	const struct inflight *sent = NULL, *any = NULL;
	struct inflight *f;
	unsigned n = 0, n_sent = 0;

	for (f = first_of(t, file, block); f != NULL; f = next_of(f->next, file, block)) {
		any = f;
		n++;
		if (f->sent) {
			sent = f;
			n_sent++;
		}
	}
	return n_sent == 1 ? sent : n == 1 ? any : NULL;
}

int inflight_acked(struct inflights *t, const void *file, uint32_t block, uint32_t bytes, struct mono now)
{
	const struct inflight *f = delivered_by(t, file, block);
	struct mono begun;
	uint64_t *avg, ns;

	if (f == NULL)
		return -1;
	begun = f->handed.ns > t->last_ack[f->stream].ns ? f->handed : t->last_ack[f->stream];
	ns = mono_diff_ns(now, begun.ns < f->since.ns ? begun : f->since);
	avg = &t->latency_ns[f->stream];
	*avg = *avg == 0 ? ns + 1 : *avg - *avg / 8 + ns / 8;
	t->last_ack[f->stream] = now;
	t->stalls[f->stream] = 0;
	t->lost[f->stream] = false;
	t->acked_bytes[f->stream] += bytes;
	t->any_acked = true;
	return (int)f->stream;
}

uint64_t inflight_patience_ns(const struct inflights *t, unsigned stream)
{
	uint64_t avg = t->latency_ns[stream], sum = 0;
	unsigned i, n = 0;

	for (i = 0; avg == 0 && i < INFLIGHT_STREAMS; i++)
		if (t->latency_ns[i] > 0) {
			sum += t->latency_ns[i];
			n++;
		}
	if (avg == 0)
		avg = n > 0 ? sum / n : UNKNOWN_NS;
	return 50 * NS_PER_MS + 2 * avg;
}
