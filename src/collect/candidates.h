/* The paths that a transfer from one source is given: those that the plan uses, and some to turn to when links
 * change, so that it need not be begun again. */
#ifndef COLLECT_CANDIDATES_H
#define COLLECT_CANDIDATES_H

#include <ptcp/ptcp.h>

#include "collect/schedule.h"

#define CANDIDATES_HOPS_MAX 9 /* relays in a row that a transfer can go through, and the destination */

struct candidate {
	int hop[CANDIDATES_HOPS_MAX]; /* as in struct schedule_path */
	size_t nhops;
	bool planned;
	unsigned streams;       /* that the plan counts; 0: none */
	uint64_t held_bytes;    /* that relays are to hold of it while the next hop is shut or narrow for a time */
	char *text;             /* as ptcp_transfer_opts.vias has it: relays in the order in which we connect, from
				   the destination on; or "direct" */
};

struct candidates {
	struct candidate at[PTCP_PATHS_MAX];
	size_t n;
};

/* For a source: the direct path where there is such a link, the planned ones by the bytes they carry, then the
 * widest over one relay. s NULL: nothing is planned. PTCP_ECONFIG: a host on a planned path has no address. */
int candidates_choose(struct candidates *out, const struct ptcp_overlay *o, const struct schedule *s, int source,
    struct ptcp_err *e);
void candidates_fini(struct candidates *v); /* zeroed is fine */

/* The one that goes that way, or -1. */
int candidates_find(const struct candidates *v, const int *hop, size_t nhops);

#endif
