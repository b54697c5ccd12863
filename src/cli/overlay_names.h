/* Names of an overlay's hosts and links, and paths of a transfer through an overlay. */
#ifndef CLI_OVERLAY_NAMES_H
#define CLI_OVERLAY_NAMES_H

#include <ptcp/plan.h>
#include <ptcp/ptcp.h>

#include "cli/options.h"

/* Valid as long as the overlay. */
const char *host_name(const struct ptcp_overlay *o, int host);

/* Writes "A>B" and returns `out`. */
#define LINK_NAME_BYTES 140
const char *link_name(char out[LINK_NAME_BYTES], const struct ptcp_overlay *o, int from, int to);
/* The same by the index of a link. */
const char *link_name_of(char out[LINK_NAME_BYTES], const struct ptcp_overlay *o, size_t link);

struct overlay_paths {
	size_t n;
	char *path[PTCP_PATHS_MAX];   /* texts for ptcp_transfer_opts.paths; owned */
	double share[PTCP_PATHS_MAX]; /* bytes */
};

struct overlay_query {
	const char *file;
	const char *local_host;   /* NULL: by its address */
	const char *const *srcs;  /* local sources if `sends`, else remote */
	size_t n_srcs;
	const char *dest;
	bool sends;
	unsigned n_paths;         /* 0: 2 */
	bool verbose;             /* print the paths on stderr */
};

/* Finds the quickest paths between local host and server; *r is zeroed. PTCP_EUSAGE: an end is not in the
 * overlay, or a relay has no address; PTCP_EINFEASIBLE: no path; PTCP_ECONFIG. Waits for resolver and disk. */
int overlay_paths_find(struct overlay_paths *r, const struct overlay_query *q, struct ptcp_err *e);
/* Bandwidths of n candidates (a relay, or "direct") by the rates of their links, in bit/s; 0: unknown. Else as
 * overlay_paths_find(). */
int overlay_candidates(double *bps, const char *const *candidates, size_t n, const struct overlay_query *q,
    struct ptcp_err *e);
void overlay_paths_fini(struct overlay_paths *r); /* zeroed is fine */

#endif
