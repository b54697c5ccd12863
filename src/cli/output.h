/* What a transfer shows: a struct of functions with a text and a JSON implementation.
 *
 * Text: a status line while stderr is a terminal, a line at the end, both on stderr; of a dry run, what would
 * be transferred on stdout, a path a line; of a transfer that goes on without us, its name there.
 * JSON: one object a line on stdout. In both, warnings and failed files are lines on stderr,
 * and a status other than 0 goes with one line "ptcp: what: why (what to do)" there. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <ptcp/ptcp.h>

struct output;

struct output_ops {
	void (*start)(struct output *o, const struct ptcp_event *ev);
	void (*progress)(struct output *o, const struct ptcp_event *ev);
	void (*streams)(struct output *o, const struct ptcp_event *ev);
	void (*paths)(struct output *o, const struct ptcp_event *ev);
	void (*file)(struct output *o, const struct ptcp_event *ev);
	void (*detached)(struct output *o, const struct ptcp_event *ev);
	/* Always last, once. `failure` is the sentence, NULL when all is well. */
	void (*end)(struct output *o, const struct ptcp_result *r, int status, const char *failure);
};

extern const struct output_ops output_text;
extern const struct output_ops output_json;

struct output {
	const struct output_ops *ops;
	const char *command; /* "send" or "recv" */
	bool quiet;
	bool status;     /* draw the status line */
	bool started;    /* START was seen */
	bool detached;   /* it goes on without us */
	bool dry_run;    /* what would be transferred is listed */
	const char *cipher;
	const char *const *vias; /* what paths were asked for, borrowed; none: the direct one */
	struct ptcp_path paths[PTCP_PATHS_MAX]; /* as last told; but for `via`, which is gone */
	size_t n_paths;
};

/* What the i-th path was asked for as; NULL: the direct one. */
const char *output_via(const struct output *o, size_t i);

void output_init(struct output *o, const char *command, bool json, bool quiet);

/* A ptcp_event_fn; `arg` is the struct output. */
void output_event(void *arg, const struct ptcp_event *ev);

/* Shows the end of a transfer that returned `code` and returns the exit status. */
int output_end(struct output *o, int code, const struct ptcp_result *r, const struct ptcp_err *e);

/* The status line for an event: as many of its parts, the most important first, as fit in
 * `width` columns. Returns buf. */
const char *output_status_text(char *buf, size_t cap, unsigned width, const struct ptcp_event *ev);

/* File data moved in this run over the time it took; 0 for no time. */
double output_throughput_bps(const struct ptcp_result *r);

/* The line or object that says that a server is ready. */
void output_listening(bool json, const char *address, unsigned port, const char *fingerprint);

#endif
