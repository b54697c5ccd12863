/* Sorting arrays that may be empty: qsort() permits no NULL, which is the address of many a list without elements. */
#ifndef CORE_SORTED_H
#define CORE_SORTED_H

#include <stdlib.h>

/* Sorts `n` elements of `size` bytes; `at` may be NULL if n is 0. */
static inline void sort_array(void *at, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	if (n > 1)
		qsort(at, n, size, compare);
}

#endif
