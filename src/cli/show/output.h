/* Output of a transfer.
 *
 * Text: on stderr a status line, if a terminal, and a summary; on stdout the paths of a dry run, one per line,
 * and the name of a detached transfer. JSON: objects on stdout, one per line. In both forms, warnings and
 * failed files are lines on stderr, and an exit status other than 0 comes with a line "ptcp: what: why (what
 * to do)". */
#ifndef CLI_SHOW_OUTPUT_H
#define CLI_SHOW_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <ptcp/ptcp.h>

#include "cli/log_opts.h"
#include "core/clock.h"

/* An outage, until data moves again. */
struct output_reconnect {
	unsigned attempt;         /* 0: none */
	struct mono at;           /* its start */
	uint64_t bytes;           /* transferred before */
};

/* Lines to be printed sorted, at the end. */
struct listing_line {
	const char *action; /* static */
	uint64_t bytes;
	char *path;
};

struct listing {
	struct listing_line *line;
	size_t n, room;
};

struct output {
	const char *command;      /* "send" or "recv" */
	bool json, quiet;
	bool list;                /* print each file that is done */
	bool status;              /* draw the status line */
	bool detached;
	bool dry_run;
	bool keeps;               /* a rule keeps files at the destination that differ */
	char peer[256];           /* host of the other end; "": unknown */
	struct output_reconnect reconnect;
	char congestion[16], congestion_why[128]; /* the senders' congestion control; "": unknown */
	bool changed_congestion;
	char failed[sizeof ((struct ptcp_err *)0)->msg]; /* latest line about a file */
	uint64_t below;           /* number of entries below directories that have failed */
	const char *cipher;
	const char *on_end;       /* hook.h: command, sources and destination; NULL: none */
	const char *const *sources;
	size_t n_sources;
	const char *dest;
	const char *const *routes;              /* requested paths, borrowed; NULL: the direct path */
	struct ptcp_path paths[PTCP_PATHS_MAX]; /* paths of the last event, without `candidate` */
	size_t n_paths;
	struct listing listing;   /* entries that a dry run lists */
};

void output_init(struct output *o, const char *command, const struct log_opts *log);

/* A ptcp_event_fn; `arg` is the struct output. */
void output_event(void *arg, const struct ptcp_event *ev);

/* Prints the end of a transfer that returned `code`; returns the exit status. */
int output_end(struct output *o, int code, const struct ptcp_result *r, const struct ptcp_err *e);

/* Writes the status line for an event, with as many parts as fit in `width` columns, and returns `buf`. */
const char *output_status_text(char *buf, size_t cap, unsigned width, const struct ptcp_event *ev);

#endif
