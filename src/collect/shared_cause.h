/* Links that slow down together share a bottleneck.
 *
 * Links are measured one at a time, so an overlay rarely names the bottlenecks that they share: its plan promises the
 * sum of rates that no two links have at once. If several links become slower than assumed at the same time, and no
 * known limit explains that, the simplest cause is one bottleneck that carries what they carry together; each link
 * keeps its own rate. Only links to the destination are joined: they carry all data, and a relay that is busy towards
 * the destination slows down its other links, too. A wrong conclusion does not last: a link that falls short of the new
 * plan is slower itself. */
#ifndef COLLECT_SHARED_CAUSE_H
#define COLLECT_SHARED_CAUSE_H

#include <ptcp/plan.h>

#include "collect/drift.h"

#define SHARED_CAUSE_MAX 8 /* bottlenecks per collection */

/* Adds room for bottlenecks, without links until concluded: the limits of the overlay keep their indices. Once. */
int shared_cause_reserve(struct ptcp_overlay *o, struct ptcp_err *e);

/* After DRIFT_SLOWER: replaces the found rates of links with that of a bottleneck, adds the bottleneck to the overlay,
 * and sets *limit to its index. false: no bottleneck, nothing is changed. */
bool shared_cause_conclude(struct ptcp_overlay *o, const struct drift_flow *f, size_t n, double *found_bps,
    size_t *n_found, size_t *limit);

/* The concluded bottlenecks, at most SHARED_CAUSE_MAX; the links are the overlay's. Returns their number. */
size_t shared_cause_list(const struct ptcp_overlay *o, struct ptcp_shared_bottleneck *out, size_t *links,
    size_t links_max);

#endif
