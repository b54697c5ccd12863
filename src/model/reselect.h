/* Which k of the candidate relays a source uses, and which it gives up.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng, "Application-layer multipath
 * data transfer via TCP": k paths uniformly at random, or in proportion to their
 * available bandwidth; a source that stays unsatisfied replaces its worst path
 * (1-reselection) or all of them (k-reselection). Where we differ: what the paper
 * leaves open, 1-reselection never takes back the path it gives up, and with no
 * candidate left nothing changes. */
#ifndef MODEL_RESELECT_H
#define MODEL_RESELECT_H

#include <stddef.h>

#include "model/rng.h"

enum reselect_paths { RESELECT_WORST, RESELECT_ALL };

/* k different indices of 0..candidates-1, drawn one after the other with chances
 * in proportion to weight[] (not negative; NULL: all alike; those of weight 0
 * last). k <= candidates. */
void choose_paths(size_t *chosen, size_t k, const double *weight, size_t candidates, struct rng *r);

/* Reselects in place. With RESELECT_WORST the path with the least of seen_bps[0..k-1]
 * makes room. Returns how many places of chosen[] hold another candidate now. */
size_t reselect_paths(size_t *chosen, size_t k, enum reselect_paths how, const double *seen_bps,
    const double *weight, size_t candidates, struct rng *r);

#endif
