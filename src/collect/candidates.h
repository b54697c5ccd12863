/* Candidate paths of a transfer from one source: the plan's paths, and spare paths for changing links,
 * which save a restart of the transfer. */
#ifndef COLLECT_CANDIDATES_H
#define COLLECT_CANDIDATES_H

#include <ptcp/ptcp.h>

#include "collect/schedule.h"

#define CANDIDATES_HOPS_MAX 9 /* max relays of a transfer in a row, and the destination */

struct candidate {
	int hop[CANDIDATES_HOPS_MAX]; /* hosts as in struct schedule_path */
	size_t nhops;
	bool planned;
	unsigned streams;       /* counted by the plan; 0: not counted */
	uint64_t stored_bytes;    /* bytes to spool at relays while the next hop's window is closed or narrow */
	/* A text for ptcp_transfer_opts.paths: relays in the order of connecting, from the destination on; or
	 * "direct". */
	char *text;
};

struct candidates {
	struct candidate at[PTCP_PATHS_MAX];
	size_t n;
};

/* Candidates for a source: the direct path if the link exists, the planned paths by their bytes, then the
 * fastest paths over one relay, preferably behind bottlenecks that few candidates cross. s NULL: without a plan.
 * PTCP_ECONFIG: a host on a planned path has no address. */
int candidates_choose(struct candidates *out, const struct ptcp_overlay *o, const struct schedule *s, int source,
    struct ptcp_err *e);
void candidates_fini(struct candidates *v); /* zero-initialized is fine */

/* Index of the candidate with these hops, or -1. */
int candidates_find(const struct candidates *v, const int *hop, size_t nhops);

#endif
