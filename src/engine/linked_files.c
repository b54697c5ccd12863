#include "engine/linked_files.h"

#include <string.h>

#include "core/charged.h"

enum { BUCKETS = 1u << 16 }; /* chains of 8 at WIRE_LINKED_MAX_BYTES and the shortest paths */

/* The count in the upper bits of an id rises by one from entry to entry. */
static struct linked_file **bucket_of(const struct linked_files *t, uint64_t id)
{
	return &t->bucket[id >> 16 & (BUCKETS - 1)];
}

void linked_files_fini(struct linked_files *t)
{
	memory_free(t->records.memory, t->bucket, BUCKETS * sizeof *t->bucket);
	t->bucket = NULL;
	arena_fini(&t->records);
}

const struct linked_file *linked_files_find(const struct linked_files *t, uint64_t id)
{
	const struct linked_file *f = t->bucket != NULL ? *bucket_of(t, id) : NULL;

	while (f != NULL && f->id != id)
		f = f->next;
	return f;
}

bool linked_files_add(struct linked_files *t, const struct linked_file *of, const char *path)
{
	struct linked_file *f, **at;
	size_t n = strlen(path) + 1;

	if ((t->bucket == NULL &&
	    (t->bucket = memory_calloc(t->records.memory, BUCKETS * sizeof *t->bucket, NULL)) == NULL) ||
	    (f = arena_take(&t->records, sizeof *f + n, NULL)) == NULL)
		return false;
	*f = *of;
	memcpy(f->path, path, n);
	at = bucket_of(t, f->id);
	f->next = *at;
	*at = f;
	return true;
}
