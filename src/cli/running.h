/* Running commands that other processes of the same user find by name, for ptcp status and ptcp rate: each listens on
 * the socket NAME.sock in a runtime directory of the user (userdir_runtime()). A request is a message, "status",
 * "cancel" or "rate RATE"; the answer is a JSON object, the status or {"error": .., "code": PTCP_E*}. */
#ifndef CLI_RUNNING_H
#define CLI_RUNNING_H

#include <jansson.h>
#include <ptcp/err.h>
#include <ptcp/progress.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct opt;

#define RUNNING_NAME_BYTES 65
#define RUNNING_ANSWER_BYTES (128u << 10) /* size of the longest answer */

/* Letters, digits, '.', '_' and '-', the first a letter or a digit; at most 64. */
bool running_name_ok(const char *name);
/* Setter of --name. */
int running_set_name(void *args, const struct opt *o, const char *text, struct ptcp_err *e);

/* ---- show/running_text.c: what they say; no sockets ---- */

enum running_request { RUNNING_UNKNOWN, RUNNING_STATUS, RUNNING_CANCEL, RUNNING_RATE };

/* *rate, within the text, is set for RUNNING_RATE only. */
enum running_request running_request_parse(const char *text, const char **rate);
/* The status that command `name` answers, or the error, with control bytes escaped. PTCP_EPEER: `text` is no JSON
 * object, or an error without a sentence. */
int running_answer_parse(json_t **out, const char *name, const char *text, struct ptcp_err *e);
/* Writes a status as one line, with control bytes escaped; fields may lack, or have other types. */
void running_write(FILE *f, const json_t *status);

/* ---- running.c: the running command ---- */

struct running;

struct running_opts {
	const char *command; /* "send" */
	const char *name;    /* --name; NULL: COMMAND-PID */
	const char *limit;   /* --rate; NULL: none; borrowed, as is command */
	bool quiet;          /* print no line when the limit changes */
	/* Changes the rate limit; `rate` NULL: none. On the thread of the struct running. NULL: the command has no
	 * limit that can change. */
	int (*set_rate)(void *arg, const char *rate, struct ptcp_err *e);
	void *arg;
};

/* Opens the socket. Where no directory permits a socket, the command runs all the same, after a warning. PTCP_ECONFIG:
 * the requested name is that of a running command. */
int running_new(struct running **out, const struct running_opts *o, struct ptcp_err *e);
/* Names the command of this process, unless --name does, or a running command has the name; borrowed. */
void running_prefer(const char *name);
/* Starts the thread that answers requests, and obeys SIGUSR2. Needs process_catch(). */
int running_start(struct running *r, struct ptcp_err *e);
/* Replaces the fields of the status; takes them; NULL, and `r` NULL, are fine. Any thread. */
void running_report(struct running *r, json_t *fields);

struct running_transfer {
	const char *state, *source, *destination;
	size_t sources;
	struct ptcp_progress progress;
	double rate_bps, eta_s; /* eta_s < 0: not known */
	const struct ptcp_mover_stats *movers; /* movers of a striped transfer */
	size_t n_movers;
};
/* The same with the fields of a transfer. */
void running_report_transfer(struct running *r, const struct running_transfer *t);
/* Removes the socket. NULL is fine. */
void running_free(struct running *r);

/* ---- running_find.c: other processes ---- */

/* "state" of a process that does not answer, of which only the name is known. */
#define RUNNING_SILENT "silent"

/* The status objects of all running commands of this user, sorted by name; NULL: out of memory. Removes sockets of
 * ended processes. */
json_t *running_list(void);
/* Sends a request. PTCP_EPEER: no running command has this name, or no answer; or the answer's error. */
int running_request(json_t **answer, const char *name, const char *request, struct ptcp_err *e);
/* Whether a running command has this name. */
bool running_exists(const char *name);

#endif
