/* Quickest paths through an overlay.
 *
 * Wu, Rao, Iyengar, "Measurement-based transport for message delay
 * minimisation": a path of links that are pipelined delivers r bytes in
 *     8 r / EBW + d_min,   EBW = min of its links',  d_min = sum of theirs;
 * with hosts that store a message whole before they pass it on (its equation 4)
 * in sum over links of (8 r / EBW_l + d_l), i.e. 1 / EBW = sum of 1 / EBW_l.
 *
 * Where we differ: the paper runs Dijkstra with the pipelined key, which is not
 * exact, since a key of a minimum and a sum has no optimal substructure. We take
 * the path of least delay, then that of least delay among links faster than its
 * slowest, and so on until the ends are cut apart: one of those is the quickest.
 * Stored paths have additive keys; for them Dijkstra is exact as it is. */
#ifndef MODEL_PATHS_H
#define MODEL_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ptcp/err.h>

enum paths_kind { PATHS_PIPELINED, PATHS_STORED };

/* Directed. A link without a rate does not exist for the search. */
struct paths_link {
	size_t from, to; /* hosts, 0..hosts-1 */
	double rate_bps, delay_s;
};

struct paths_graph {
	size_t hosts, link_count;
	const bool *may_relay;    /* by host: passes on what is not its own; NULL: all do */
	struct paths_link *links; /* only paths_take() writes here */
};

struct paths_path {
	double rate_bps, delay_s; /* EBW and d_min by the kind asked for */
	size_t hops;
	size_t *links;            /* the caller's, room for hosts - 1: indices, in order */
};

/* Scratch of the searches, one element a host; the contents do not matter. */
struct paths_node {
	double cost, delay_s;
	size_t candidate; /* link */
	bool done;
};

/* The path that delivers size_bytes soonest; of equally quick ones any.
 * PTCP_EUSAGE for hosts out of range, from == to, or a rate or delay that is
 * negative or not finite; PTCP_EINFEASIBLE when no path exists. *out is then
 * untouched except for what its links point to. O(k (hosts^2 + links)), k the
 * number of rates that lie on some path of least delay. */
int paths_quickest(struct paths_path *out, const struct paths_graph *g, enum paths_kind kind,
    size_t from, size_t to, uint64_t size_bytes, struct paths_node *scratch, struct ptcp_err *e);

/* Seconds in which the path delivers so many bytes. */
double paths_delivery_s(const struct paths_path *p, uint64_t size_bytes);

/* Subtracts the path's rate from its links; a rest below 1e-9 of it is nothing. */
void paths_take(struct paths_graph *g, const struct paths_path *p);

#endif
