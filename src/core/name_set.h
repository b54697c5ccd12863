/* A set of paths as 64-bit hashes other than 0, 16 bytes a path or less. Two paths with the same hash count as one: use
 * the set only where a path that is taken for a member does no harm. It grows in steps: no call moves more than a few
 * hundred paths. Any thread, one at a time. */
#ifndef CORE_NAME_SET_H
#define CORE_NAME_SET_H

#include "core/memory_budget.h"

struct name_set { /* zeroed, with the account: empty */
	struct memory_account *memory;
	struct name_table {
		uint64_t *slot;
		size_t cap;
	} now, old;           /* what `old` has from `moved` on is not in `now` yet */
	size_t moved;
	size_t n;
};

/* PTCP_ENOMEM: see memory_charge(). */
int name_set_add(struct name_set *s, uint64_t hash, struct ptcp_err *e);
/* Adds all of `from`, which is empty then, unless that fails. Up to a microsecond for each. */
int name_set_move(struct name_set *s, struct name_set *from, struct ptcp_err *e);
bool name_set_has(const struct name_set *s, uint64_t hash);
void name_set_fini(struct name_set *s);

#endif
