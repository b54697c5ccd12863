#include "engine/inflight.h"

#include <stdlib.h>

#include "core/units.h"

#define UNKNOWN_NS NS_PER_S /* before the first acknowledgment */

void inflights_init(struct inflights *t)
{
	unsigned i;

	*t = (struct inflights){ 0 };
	list_init(&t->all);
	list_init(&t->spare);
	for (i = 0; i < INFLIGHT_STREAMS; i++)
		list_init(&t->stream[i]);
}

void inflights_fini(struct inflights *t)
{
	struct inflight *f;

	while (!list_empty(&t->spare)) {
		f = CONTAINER_OF(t->spare.next, struct inflight, in_all);
		list_remove(&f->in_all);
		free(f);
	}
}

struct inflight *inflight_add(struct inflights *t, struct list *file_list, void *file, uint32_t block,
    uint32_t bytes, unsigned stream, struct mono now)
{
	struct inflight *f;

	if (!list_empty(&t->spare)) {
		f = CONTAINER_OF(t->spare.next, struct inflight, in_all);
		list_remove(&f->in_all);
	} else if ((f = malloc(sizeof *f)) == NULL) {
		return NULL;
	}
	f->file = file;
	f->block = block;
	f->stream = stream;
	f->handed = f->since = now;
	f->sent = f->copied = false;
	f->copies = 0;
	t->unread[stream]++;
	t->unread_bytes[stream] += bytes;
	t->handed[stream] = now;
	list_append(&t->all, &f->in_all);
	list_append(&t->stream[stream], &f->in_stream);
	list_append(file_list, &f->in_file);
	return f;
}

void inflight_sent(struct inflights *t, unsigned stream, struct inflight *f, struct mono now)
{
	if (t->unread[stream] > 0) {
		t->unread_bytes[stream] -= t->unread_bytes[stream] / t->unread[stream];
		t->unread[stream]--;
	}
	if (f != NULL) {
		f->sent = true;
		f->since = now;
	}
}

void inflight_remove(struct inflights *t, struct inflight *f)
{
	t->n_copies -= f->copies > 0;
	list_remove(&f->in_all);
	list_remove(&f->in_stream);
	list_remove(&f->in_file);
	list_append(&t->spare, &f->in_all);
}

struct inflight *inflight_on(const struct list *file_list, unsigned stream, uint32_t block)
{
	struct list *l;
	struct inflight *f;

	for (l = file_list->next; l != file_list; l = l->next) {
		f = CONTAINER_OF(l, struct inflight, in_file);
		if (f->block == block && f->stream == stream)
			return f;
	}
	return NULL;
}

void inflight_copy(struct inflights *t, struct inflight *of, unsigned stream)
{
	CONTAINER_OF(t->stream[stream].prev, struct inflight, in_stream)->copies = of->copies + 1;
	of->copied = true;
	t->n_copies++;
}

struct inflight *inflight_other(const struct inflight *f, const struct list *file_list)
{
	struct inflight *o, *found = NULL;
	struct list *l;

	for (l = file_list->next; l != file_list; l = l->next) {
		o = CONTAINER_OF(l, struct inflight, in_file);
		if (o != f && o->block == f->block && (found == NULL || o->sent))
			found = o;
	}
	return found;
}

/* The only sent flight of the block, else its only flight, else NULL. */
static const struct inflight *delivered_by(const struct list *file_list, uint32_t block)
{
	const struct inflight *f, *sent = NULL, *any = NULL;
	unsigned n = 0, n_sent = 0;
	const struct list *l;

	for (l = file_list->next; l != file_list; l = l->next) {
		f = CONTAINER_OF(l, const struct inflight, in_file);
		if (f->block != block)
			continue;
		any = f;
		n++;
		if (f->sent) {
			sent = f;
			n_sent++;
		}
	}
	return n_sent == 1 ? sent : n == 1 ? any : NULL;
}

void inflight_acked(struct inflights *t, const struct list *file_list, uint32_t block, uint32_t bytes,
    struct mono now)
{
	const struct inflight *f = delivered_by(file_list, block);
	struct mono begun;
	uint64_t *avg, ns;

	if (f == NULL)
		return;
	begun = f->handed.ns > t->last_ack[f->stream].ns ? f->handed : t->last_ack[f->stream];
	ns = mono_diff_ns(now, begun.ns < f->since.ns ? begun : f->since);
	avg = &t->latency_ns[f->stream];
	*avg = *avg == 0 ? ns + 1 : *avg - *avg / 8 + ns / 8;
	t->last_ack[f->stream] = now;
	t->stalls[f->stream] = 0;
	t->lost[f->stream] = false;
	t->acked_bytes[f->stream] += bytes;
	t->any_acked = true;
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
