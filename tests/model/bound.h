/* How good quickest paths, taken one after the other, can be at the best. */
#ifndef TESTS_MODEL_BOUND_H
#define TESTS_MODEL_BOUND_H

#include "model/overlay_paths.h"

/* Subtracts the path's rate from its links; a rest below 1e-9 of the rate counts as 0. */
void paths_take(struct paths_graph *g, const struct paths_path *p);

/* Up to `want` pipelined paths, each the quickest on what those before it left; their count in *found. The graph's
 * rates are changed: give a copy. Fails as paths_quickest() for the first path only. */
int bound_greedy(struct paths_path *out, size_t want, size_t *found, struct paths_graph *g, size_t from, size_t to,
    uint64_t size_bytes, struct paths_node *scratch, struct ptcp_err *e);

/* The least time in which any set of pipelined paths and any division can
 * deliver size_bytes (quickest flow: by successive shortest augmenting paths,
 * opened while their delay is below the finish; Burkard, Dlaska, Klinz 1993); INFINITY where there is no path.
 * flow_bps is scratch, one element a link. */
double bound_s(const struct paths_graph *g, size_t from, size_t to, uint64_t size_bytes, double *flow_bps,
    struct paths_node *scratch);

#endif
