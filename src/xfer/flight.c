#include "xfer/flight.h"

#include <stdlib.h>

#include "core/units.h"

void flights_init(struct flights *t)
{
	unsigned i;

	*t = (struct flights){ 0 };
	list_init(&t->all);
	list_init(&t->spare);
	for (i = 0; i < FLIGHT_STREAMS; i++)
		list_init(&t->stream[i]);
}

void flights_fini(struct flights *t)
{
	struct flight *f;

	while (!list_empty(&t->spare)) {
		f = CONTAINER_OF(t->spare.next, struct flight, in_all);
		list_remove(&f->in_all);
		free(f);
	}
}

struct flight *flight_add(struct flights *t, struct list *file_list, void *file, uint32_t block,
    unsigned stream, struct mono now)
{
	struct flight *f;

	if (!list_empty(&t->spare)) {
		f = CONTAINER_OF(t->spare.next, struct flight, in_all);
		list_remove(&f->in_all);
	} else if ((f = malloc(sizeof *f)) == NULL) {
		return NULL;
	}
	f->file = file;
	f->block = block;
	f->stream = stream;
	f->since = now;
	f->copied = false;
	t->unread[stream]++;
	t->handed[stream] = now;
	list_append(&t->all, &f->in_all);
	list_append(&t->stream[stream], &f->in_stream);
	list_append(file_list, &f->in_file);
	return f;
}

void flight_remove(struct flights *t, struct flight *f)
{
	list_remove(&f->in_all);
	list_remove(&f->in_stream);
	list_remove(&f->in_file);
	list_append(&t->spare, &f->in_all);
}

struct flight *flight_other(const struct flight *f, const struct list *file_list)
{
	struct list *l;
	struct flight *o;

	for (l = file_list->next; l != file_list; l = l->next) {
		o = CONTAINER_OF(l, struct flight, in_file);
		if (o != f && o->block == f->block)
			return o;
	}
	return NULL;
}

void flight_acked(struct flights *t, const struct flight *f, uint32_t bytes, struct mono now)
{
	uint64_t *avg = &t->latency_ns[f->stream], ns = mono_diff_ns(now, f->since);

	*avg = *avg == 0 ? ns + 1 : *avg - *avg / 8 + ns / 8;
	t->last_ack[f->stream] = now;
	t->acked_bytes[f->stream] += bytes;
}

uint64_t flight_patience_ns(const struct flights *t, unsigned stream)
{
	uint64_t avg = t->latency_ns[stream];

	return 50 * NS_PER_MS + 2 * (avg > 0 ? avg : 100 * NS_PER_MS);
}
