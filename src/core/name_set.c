#include "core/name_set.h"

#include <stdlib.h>

#define FIRST_SLOTS 1024

/* The finalizer of MurmurHash3. */
static uint64_t mix(uint64_t h)
{
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 33;
	h *= UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 33;
}

/* FNV-1a, from the hash of the directory on: mixed, as a byte of the name would cancel a difference of few bits. */
uint64_t name_set_hash(uint64_t above, const char *name)
{
	uint64_t h = mix(UINT64_C(0xcbf29ce484222325) ^ above);

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	h = mix(h);
	return h != 0 ? h : 1; /* 0 marks a free slot */
}

static uint64_t *find(uint64_t *slot, size_t cap, uint64_t hash)
{
	size_t i = hash & (cap - 1);

	while (slot[i] != 0 && slot[i] != hash)
		i = (i + 1) & (cap - 1);
	return &slot[i];
}

static bool grow(struct name_set *s)
{
	size_t cap = s->cap > 0 ? 2 * s->cap : FIRST_SLOTS, i;
	uint64_t *slot = calloc(cap, sizeof *slot);

	if (slot == NULL)
		return false;
	for (i = 0; i < s->cap; i++)
		if (s->slot[i] != 0)
			*find(slot, cap, s->slot[i]) = s->slot[i];
	free(s->slot);
	s->slot = slot;
	s->cap = cap;
	return true;
}

bool name_set_add(struct name_set *s, uint64_t hash)
{
	uint64_t *at;

	if (4 * s->n >= 3 * s->cap && !grow(s))
		return false;
	at = find(s->slot, s->cap, hash);
	s->n += *at == 0;
	*at = hash;
	return true;
}

bool name_set_has(const struct name_set *s, uint64_t hash)
{
	return s->cap > 0 && *find(s->slot, s->cap, hash) != 0;
}

void name_set_fini(struct name_set *s)
{
	free(s->slot);
	*s = (struct name_set){ 0 };
}
