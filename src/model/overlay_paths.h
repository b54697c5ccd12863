/* Quickest paths through an overlay.
 *
 * Wu, Rao, Iyengar, "Measurement-based transport for message delay minimisation": a path of pipelined links
 * delivers r bytes in
 *     8 r / EBW + d_min,   EBW = min of its links',  d_min = sum of theirs;
 * with hosts that store a whole message before forwarding (its equation 4) in sum over links of (8 r /
 * EBW_l + d_l), i.e. 1 / EBW = sum of 1 / EBW_l.
 *
 * Difference: the paper runs Dijkstra with the pipelined key, which is inexact, since a key of a minimum
 * and a sum has no optimal substructure. We compute the path of smallest delay, then the path of smallest
 * delay among links faster than the previous path's slowest link, and repeat until the ends are
 * disconnected: one of these paths is the quickest. Store-and-forward paths have additive keys; plain
 * Dijkstra is exact for them. */
#ifndef MODEL_OVERLAY_PATHS_H
#define MODEL_OVERLAY_PATHS_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum paths_kind { PATHS_PIPELINED, PATHS_STORED };

/* Directed. The search ignores links without a rate. */
struct paths_link {
	size_t from, to; /* hosts, 0..hosts-1 */
	double rate_bps, delay_s;
};

struct paths_graph {
	size_t hosts, link_count;
	const bool *may_relay;    /* by host: it forwards data of other hosts; NULL: all do */
	struct paths_link *links; /* the caller's */
};

struct paths_path {
	double rate_bps, delay_s; /* EBW and d_min of the requested kind */
	size_t hops;
	size_t *links;            /* the caller's, room for hosts - 1: indices in order */
};

/* Scratch, one element per host. */
struct paths_node {
	double cost, delay_s;
	size_t link;      /* previous link */
	bool done;
};

/* The path with the earliest delivery of size_bytes; any of equally quick paths. PTCP_EUSAGE for hosts out
 * of range, from == to, or a rate or delay negative or not finite; PTCP_EINFEASIBLE without a path; *out is
 * then unchanged except for the elements of its links. O(k (hosts^2 + links)), k the number of different
 * rates on paths of smallest delay. */
int paths_quickest(struct paths_path *out, const struct paths_graph *g, enum paths_kind kind,
    size_t from, size_t to, uint64_t size_bytes, struct paths_node *scratch, struct ptcp_err *e);

/* Seconds to deliver size_bytes over the path. */
double paths_delivery_s(const struct paths_path *p, uint64_t size_bytes);

#endif
