#include "core/charged.h"
#include "core/name_set.h"

#define FIRST_SLOTS 1024
#define STEP_SLOTS 64 /* an old table of n slots is moved within n / 64 additions; the next one grows after 3n / 4 */

static uint64_t *name_set_find(const struct name_table *t, uint64_t hash)
{
	size_t i = hash & (t->cap - 1);

	while (t->slot[i] != 0 && t->slot[i] != hash)
		i = (i + 1) & (t->cap - 1);
	return &t->slot[i];
}

static void free_table(struct name_set *s, struct name_table *t)
{
	memory_free(s->memory, t->slot, t->cap * sizeof *t->slot);
	*t = (struct name_table){ 0 };
}

static void move_some(struct name_set *s)
{
	size_t end = s->moved + STEP_SLOTS;

	for (; s->moved < s->old.cap && s->moved < end; s->moved++)
		if (s->old.slot[s->moved] != 0)
			*name_set_find(&s->now, s->old.slot[s->moved]) = s->old.slot[s->moved];
	if (s->moved == s->old.cap)
		free_table(s, &s->old);
}

static int grow(struct name_set *s, struct ptcp_err *e)
{
	struct name_table t = { .cap = s->now.cap > 0 ? 2 * s->now.cap : FIRST_SLOTS };

	if ((t.slot = memory_calloc(s->memory, t.cap * sizeof *t.slot, e)) == NULL)
		return PTCP_ENOMEM;
	s->old = s->now;
	s->now = t;
	s->moved = 0;
	return 0;
}

int name_set_add(struct name_set *s, uint64_t hash, struct ptcp_err *e)
{
	int r;

	if (s->old.cap > 0)
		move_some(s);
	else if (4 * s->n >= 3 * s->now.cap && (r = grow(s, e)) < 0)
		return r;
	if (!name_set_has(s, hash)) {
		*name_set_find(&s->now, hash) = hash;
		s->n++;
	}
	return 0;
}

bool name_set_has(const struct name_set *s, uint64_t hash)
{
	return (s->now.cap > 0 && *name_set_find(&s->now, hash) != 0) ||
	    (s->old.cap > 0 && *name_set_find(&s->old, hash) != 0);
}

static int add_all(struct name_set *s, const struct name_table *t, struct ptcp_err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < t->cap && r == 0; i++)
		if (t->slot[i] != 0)
			r = name_set_add(s, t->slot[i], e);
	return r;
}

int name_set_move(struct name_set *s, struct name_set *from, struct ptcp_err *e)
{
	int r = add_all(s, &from->now, e);

	if (r == 0)
		r = add_all(s, &from->old, e);
	if (r == 0)
		name_set_fini(from);
	return r;
}

void name_set_fini(struct name_set *s)
{
	free_table(s, &s->now);
	free_table(s, &s->old);
	*s = (struct name_set){ .memory = s->memory };
}
