#include "session/hardlinks.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS (1u << 16) /* chains of 5 at HARDLINKS_MAX_BYTES and short paths */

static struct hardlink **bucket_of(const struct hardlinks *t, uint64_t dev, uint64_t ino)
{
	return &t->bucket[((ino ^ dev << 32) * UINT64_C(0x9e3779b97f4a7c15)) >> 17 & (BUCKETS - 1)];
}

void hardlinks_fini(struct hardlinks *t)
{
	struct hardlink *l;
	unsigned i;

	for (i = 0; t->bucket != NULL && i < BUCKETS; i++)
		while ((l = t->bucket[i]) != NULL) {
			t->bucket[i] = l->next;
			free(l->path);
			free(l);
		}
	free(t->bucket);
	*t = (struct hardlinks){ 0 };
}

struct hardlink *hardlinks_find(const struct hardlinks *t, uint64_t dev, uint64_t ino)
{
	struct hardlink *l = t->bucket != NULL ? *bucket_of(t, dev, ino) : NULL;

	while (l != NULL && (l->ino != ino || l->dev != dev))
		l = l->next;
	return l;
}

struct hardlink *hardlinks_add(struct hardlinks *t, uint64_t dev, uint64_t ino)
{
	struct hardlink *l, **at;

	if (t->bytes + sizeof *l > HARDLINKS_MAX_BYTES ||
	    (t->bucket == NULL && (t->bucket = calloc(BUCKETS, sizeof *t->bucket)) == NULL) ||
	    (l = calloc(1, sizeof *l)) == NULL)
		return NULL;
	l->dev = dev;
	l->ino = ino;
	at = bucket_of(t, dev, ino);
	l->next = *at;
	*at = l;
	t->bytes += sizeof *l;
	return l;
}

bool hardlinks_set_path(struct hardlinks *t, struct hardlink *l, const char *path)
{
	size_t n = strlen(path) + 1;
	char *copy;

	if (t->bytes + n > HARDLINKS_MAX_BYTES || (copy = strdup(path)) == NULL)
		return false;
	t->bytes += n - (l->path != NULL ? strlen(l->path) + 1 : 0);
	free(l->path);
	l->path = copy;
	return true;
}
