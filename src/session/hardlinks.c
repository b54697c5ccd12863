#include "session/hardlinks.h"

#include <stdlib.h>
#include <string.h>

static uint64_t bucket_of(const struct hardlinks *t, uint64_t dev, uint64_t ino)
{
	return ((ino ^ dev << 32) * UINT64_C(0x9e3779b97f4a7c15)) >> 17 & (t->n_buckets - 1);
}

void hardlinks_fini(struct hardlinks *t)
{
	struct link *l, *next;
	uint64_t i;

	for (i = 0; i < t->n_buckets; i++)
		for (l = t->bucket[i]; l != NULL; l = next) {
			next = l->next;
			free(l->path);
			free(l);
		}
	free(t->bucket);
	*t = (struct hardlinks){ 0 };
}

static bool grow(struct hardlinks *t)
{
	uint64_t n = t->n_buckets > 0 ? t->n_buckets * 2 : 64, i, to;
	struct hardlinks bigger = { .n_buckets = n };
	struct link *l;

	if ((bigger.bucket = calloc(n, sizeof(struct link *))) == NULL)
		return false;
	for (i = 0; i < t->n_buckets; i++)
		while ((l = t->bucket[i]) != NULL) {
			t->bucket[i] = l->next;
			to = bucket_of(&bigger, l->dev, l->ino);
			l->next = bigger.bucket[to];
			bigger.bucket[to] = l;
		}
	free(t->bucket);
	t->bucket = bigger.bucket;
	t->n_buckets = n;
	return true;
}

struct link *hardlinks_find(const struct hardlinks *t, uint64_t dev, uint64_t ino)
{
	struct link *l;

	if (t->n_buckets == 0)
		return NULL;
	for (l = t->bucket[bucket_of(t, dev, ino)]; l != NULL; l = l->next)
		if (l->ino == ino && l->dev == dev)
			return l;
	return NULL;
}

struct link *hardlinks_add(struct hardlinks *t, uint64_t dev, uint64_t ino)
{
	struct link *l;
	uint64_t i;

	if (t->bytes + sizeof *l > LINKS_MAX_BYTES || (t->n >= t->n_buckets && !grow(t)) ||
	    (l = calloc(1, sizeof *l)) == NULL)
		return NULL;
	l->dev = dev;
	l->ino = ino;
	i = bucket_of(t, dev, ino);
	l->next = t->bucket[i];
	t->bucket[i] = l;
	t->n++;
	t->bytes += sizeof *l;
	return l;
}

bool hardlinks_set_path(struct hardlinks *t, struct link *l, const char *path)
{
	size_t n = strlen(path) + 1;
	char *copy;

	if (t->bytes + n > LINKS_MAX_BYTES || (copy = malloc(n)) == NULL)
		return false;
	memcpy(copy, path, n);
	if (l->path != NULL)
		t->bytes -= strlen(l->path) + 1;
	free(l->path);
	l->path = copy;
	t->bytes += n;
	return true;
}
