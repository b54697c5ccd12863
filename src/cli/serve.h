/* ptcp serve: options, metrics, and background measurement of links. */
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include <stdio.h>
#include <time.h>

#include "cli/log_opts.h"
#include "conf/settings.h"
#include "core/clock.h"

/* ---- serve_opts.c ---- */

/* Strings are borrowed from the command line or from `settings`. */
struct serve_args {
	struct log_opts log; /* first */
	struct ptcp_server_opts server; /* complete except for confine, arg and sockets; lists of texts are owned */
	const char *listen[PTCP_LISTEN_MAX];
	size_t n_listen;         /* 0: default address, or the sockets of the service manager */
	bool no_sandbox, share_port;
	unsigned ciphers;        /* ciphers of the key server.ciphers; 0: default */
	const char *config, *metrics, *metrics_listen;
	const char *session_log; /* NULL: in the state directory; "none": nowhere */
	uint64_t session_log_bytes; /* max size of the file, and of the one before it */
	const char *watch;       /* overlay file; NULL: no measurement of links */
	const char *watch_as;    /* local host in the overlay; NULL: by its address */
	double watch_interval_s; /* 0: default */
	struct conf_settings *settings; /* configuration file; NULL: none */
};

extern const struct opt_group serve_groups[];

/* Parses the command line, then the configuration file, whose settings apply where the command line has no
 * option. 0, OPTIONS_HELP or a negative PTCP_E*; errors in the file begin with "FILE:LINE:COLUMN: ". Call
 * serve_args_fini() after any result. */
int serve_parse(struct serve_args *a, const struct command *c, int argc, char **argv, struct ptcp_err *e);
void serve_args_fini(struct serve_args *a);

/* Level of the log. */
int serve_log_level(const struct serve_args *a);
/* Logs a message of the server, at any level. */
#define serve_log(level, ...) log_format(PTCP_LOG_DEBUG, (level), "server", __VA_ARGS__)

/* ---- metrics/serve_metrics.c ---- */

enum { METRICS_CLIENTS = 256 };

/* Finished sessions of a client since the start; the last entry is that of all further clients together. */
struct client_metrics {
	char client[64], name[80]; /* fingerprint, and the name that the records have */
	uint64_t sessions, failed, received_bytes, sent_bytes;
};

struct metrics {
	time_t started;                /* time at which the server started */
	struct ptcp_server_stats stats;
	double received_bps, sent_bps; /* rates over the last interval */
	struct mono when;              /* time of the last update */
	struct ptcp_server *server;    /* the server that the last update describes */
	struct client_metrics clients[METRICS_CLIENTS];
	unsigned n_clients;
};

/* Counts a finished session for its client. */
void metrics_add(struct metrics *m, const struct ptcp_server_record *r);

void metrics_update(struct metrics *m, struct ptcp_server *s);

/* Writes the text for Prometheus; `m` is a struct metrics. */
void metrics_print(FILE *f, void *m);

void metrics_log_state(const struct metrics *m);

/* ---- link_monitor.c: measures the links that begin at this host, one by one, in the background; stores the
 * estimates in the state directory, and publishes them through the server ---- */

struct link_monitor;

/* Loads the overlay and makes the state directory, before the process is confined; `a` must outlive the
 * monitor. PTCP_ECONFIG, PTCP_EUSAGE, PTCP_EIO. */
int link_monitor_new(struct link_monitor **out, const struct serve_args *a, struct ptcp_err *e);
/* The state directory. */
const char *link_monitor_dir(const struct link_monitor *w);
/* Publishes stored estimates, and starts the thread. The server must outlive the monitor. */
int link_monitor_start(struct link_monitor *w, struct ptcp_server *s, struct ptcp_err *e);
/* Pauses measurements while the server is busy. Any thread. */
void link_monitor_busy(struct link_monitor *w, bool busy);
/* Stops the thread, without delay unless the resolver is waiting, and withdraws the estimates. NULL is fine. */
void link_monitor_free(struct link_monitor *w);

#endif
