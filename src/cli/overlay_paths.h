/* The paths of a transfer as an overlay has them: the quickest from here to there, and what each should carry. */
#ifndef CLI_OVERLAY_PATHS_H
#define CLI_OVERLAY_PATHS_H

#include <ptcp/ptcp.h>

struct transfer_args;

struct overlay_paths {
	size_t n;                     /* 0: none were looked for */
	char *candidate[PTCP_PATHS_MAX];    /* as ptcp_transfer_opts has them */
	double share[PTCP_PATHS_MAX]; /* bytes */
};

/* For what `a` says, into zeroed memory; says on standard error with -v what it has found. 0; PTCP_EUSAGE: an end
 * is none of the overlay's hosts, or a relay has no address there; PTCP_EINFEASIBLE: no path; PTCP_ECONFIG.. Waits for the
 * resolver, and for the disk. */
int overlay_paths_find(struct overlay_paths *r, const struct transfer_args *a, bool sends, struct ptcp_err *e);
void overlay_paths_fini(struct overlay_paths *r); /* zeroed is fine */

#endif
