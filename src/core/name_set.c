#include "core/name_set.h"

#include <stdlib.h>

#define FIRST_SLOTS 1024

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
