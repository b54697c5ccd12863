/* Options of send and recv. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "cli/client_opts.h"
#include "cli/overlay_names.h"
#include "cli/read_parts.h"
#include "core/timetable.h"
#include "input/lists.h"

struct transfer_args {
	struct client_opts connect; /* first */
	struct rules rules;          /* borrowed by connect.transfer */
	unsigned n_usual_filters;    /* -F */
	bool cvs_exclude;
	const char *files_from;      /* NULL: none */
	bool from0;
	struct byte_ranges parts;          /* --range; n 0: whole files */
	const char *manifest;        /* --manifest; NULL: none */
	const char *exec;            /* command whose output is sent; NULL: none */
	struct path_list files;      /* borrowed by connect.transfer */
	const char *overlay;         /* NULL: none */
	const char *local_host;      /* name of this host in the overlay; NULL: the overlay has this host's address */
	struct overlay_paths routes;
	double candidate_bps[PTCP_PATHS_MAX]; /* bandwidths that the overlay gives the candidates of --relays */
	const char *const *srcs;     /* borrowed from argv */
	size_t n_srcs;
	const char *dest;
	struct timetable impact;     /* --impact, if timetable_varies() */
	int64_t start_s;             /* --start-at, since 1970; 0: at once */
	const char *name;            /* name that ptcp status and ptcp rate show; NULL: COMMAND-PID */
};

/* Parses options and operands of `c`; 0, OPTIONS_HELP or a negative PTCP_E*. Call transfer_args_fini() after
 * any result. */
int transfer_parse(struct transfer_args *a, const struct command *c, int argc, char **argv, struct ptcp_err *e);
void transfer_args_fini(struct transfer_args *a);

#endif
