/* Rounds of links without a common host, for measurements that must not disturb each other. */
#ifndef MODEL_DISJOINT_H
#define MODEL_DISJOINT_H

#include <stdbool.h>
#include <stddef.h>

struct disjoint_link {
	int from, to; /* hosts */
};

/* Chooses a round of at most `max` of the links that wait, without a common host, and stores their indices,
 * ascending by choice. Links of the hosts with most waiting links come first, since those hosts determine the number
 * of rounds. `scratch`: two ints per host. Returns the number of links; 0 only if none waits. */
size_t disjoint_round(size_t *out, size_t max, const struct disjoint_link *link, const bool *waits, size_t n,
    int *scratch, size_t n_hosts);

#endif
