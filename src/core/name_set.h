/* A set of paths as 64-bit hashes other than 0, 16 bytes a path or less. Two paths with the same hash count as one: use the set only
 * where a path that is taken for a member does no harm. Any thread, one at a time. */
#ifndef CORE_NAME_SET_H
#define CORE_NAME_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_set { /* zeroed: empty */
	uint64_t *slot;
	size_t n, cap;
};

/* False without memory. */
bool name_set_add(struct name_set *s, uint64_t hash);
bool name_set_has(const struct name_set *s, uint64_t hash);
void name_set_fini(struct name_set *s);

#endif
