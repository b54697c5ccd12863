#include "core/charged.h"
#include "session/hardlinks.h"

#define BUCKETS (1u << 16) /* chains of 8 at WIRE_LINKED_MAX_BYTES and the shortest paths */

static struct hardlink **bucket_of(const struct hardlinks *t, uint64_t dev, uint64_t ino)
{
	return &t->bucket[((ino ^ dev << 32) * UINT64_C(0x9e3779b97f4a7c15)) >> 17 & (BUCKETS - 1)];
}

void hardlinks_fini(struct hardlinks *t)
{
	memory_free(t->records.memory, t->bucket, BUCKETS * sizeof *t->bucket);
	t->bucket = NULL;
	arena_fini(&t->records);
}

struct hardlink *hardlinks_find(const struct hardlinks *t, uint64_t dev, uint64_t ino)
{
	struct hardlink *l = t->bucket != NULL ? *bucket_of(t, dev, ino) : NULL;

	while (l != NULL && (l->ino != ino || l->dev != dev))
		l = l->next;
	return l;
}

struct hardlink *hardlinks_add(struct hardlinks *t, uint64_t dev, uint64_t ino, struct ptcp_err *e)
{
	struct hardlink *l, **at;

	if ((t->bucket == NULL &&
	    (t->bucket = memory_calloc(t->records.memory, BUCKETS * sizeof *t->bucket, e)) == NULL) ||
	    (l = arena_take(&t->records, sizeof *l, e)) == NULL)
		return NULL;
	l->dev = dev;
	l->ino = ino;
	at = bucket_of(t, dev, ino);
	l->next = *at;
	*at = l;
	return l;
}
