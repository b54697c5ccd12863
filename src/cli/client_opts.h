/* Options, the question about unknown servers, and runs of all commands that connect to a server. */
#ifndef CLI_CLIENT_OPTS_H
#define CLI_CLIENT_OPTS_H

#include <ptcp/ptcp.h>

#include "cli/log_opts.h"

/* First member of the args of a command whose tables contain connect_options. */
struct client_opts {
	struct log_opts log;
	struct ptcp_transfer_opts transfer; /* the texts are borrowed from argv, the lists of texts are owned */
};

extern const struct opt connect_options[];
#define GROUP_CONNECTION GROUP_OF("Connection", connect_options)
/* Additional options where the target may be reached through SSH. */
extern const struct opt ssh_options[];
#define GROUP_SSH        GROUP_OF("Through SSH", ssh_options)

/* Sets defaults, parses as options_parse() does into args that begin with `a`, and completes a->transfer: log,
 * and the question about unknown servers if there is a terminal. Call client_opts_fini() after any result. */
int connect_parse(struct client_opts *a, const struct command *c, int argc, char **argv, int *operands,
    struct options_given *given, struct ptcp_err *e);
void client_opts_fini(struct client_opts *a);

/* Status line of a client that waits for a busy server. */
const char *connect_waiting_text(char *buf, size_t cap, const struct ptcp_event *ev);

/* Shows warnings, and on the status line the number of streams of a measurement, the advice so far, or the position in
 * the server's queue. */
void connect_show_streams(struct client_opts *a);

/* Runs the handle to completion; a signal cancels it. Work on files of a server uses the connection of earlier work
 * until connect_end(). */
int connect_run(struct ptcp_task *t, struct ptcp_err *e);
void connect_end(void);

/* Setter of a bool: true for "recv", false for "send". */
int connect_direction(void *args, const struct opt *o, const char *text, struct ptcp_err *e);

/* Parses a list of stream counts that a server can grant; at most `max` counts. */
int connect_stream_counts(const struct opt *o, const char *text, unsigned *count, size_t max, size_t *n,
    struct ptcp_err *e);

/* For a command that repeats what was probed: the option that requests the congestion control of this kernel's name,
 * with a blank in front; "" for an unknown one, NULL or "". */
const char *connect_congestion(const char *name);

/* Mean throughput of `bytes`; 0 if no time has passed. */
double connect_throughput_bps(uint64_t bytes, double seconds);

/* Reads a line of stdin; false at the end of input or after a signal. */
bool connect_read_line(char *line, size_t cap);

enum trust_answer { TRUST_YES, TRUST_NO, TRUST_UNCLEAR };

/* Meaning of an answer: "yes" or the fingerprint, or "no", with surrounding blanks, "yes" and "no" in any
 * case. */
enum trust_answer trust_answer(const char *line, const char *fingerprint);

#endif
