/* Parsing of `ptcp serve`, apart from running it. */
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include "cli/log_opts.h"
#include "conf/settings.h"

/* Strings are those of the command line or of `file`. */
struct serve_args {
	struct log_opts_args talk; /* first */
	const char *listen[PTCP_LISTEN_MAX];
	size_t n_listen;       /* 0: every address, PTCP_PORT, or the sockets that are passed */
	const char *root;      /* NULL: no files */
	const char *rate;      /* NULL: no limit */
	bool one_time;         /* started through ssh */
	bool no_sandbox;
	unsigned ciphers;      /* bits 1 << PTCP_CIPHER_*; 0: the default */
	unsigned max_sessions, max_client_sessions, max_streams, max_startups, max_relayed; /* 0: the default */
	double timeout_s;      /* likewise */
	const char **relay_to; /* the list is to be freed */
	size_t n_relay_to;
	uint64_t relay_storage_bytes; /* 0: none */
	const char *relay_storage_dir; /* NULL: the default */
	const char *config, *metrics;
	const char *watch, *watch_as; /* an overlay file, NULL: none; which of its hosts this is, NULL: by its address */
	double watch_interval_s; /* 0: the default */
	struct conf_settings *file; /* NULL: there is none */
};

/* What the command line says, and of what it does not say, the configuration file. 0, OPTIONS_HELP or a
 * negative PTCP_E*; `a` is to be finished in any case. */
int serve_parse(struct serve_args *a, const struct command *c, int argc, char **argv,
    struct ptcp_err *e);
void serve_args_fini(struct serve_args *a);

/* serve_config.c: reads the file that `a` names, or the default one where that exists, and sets what is not
 * given. Errors begin with "FILE:LINE:COLUMN: ". */
int serve_configure(struct serve_args *a, const struct command *c, const struct options_given *given,
    struct ptcp_err *e);

/* serve_run.c: serves until a signal ends it. Reads the same again at SIGHUP. */
int serve_run(struct serve_args *a, const struct command *c, int argc, char **argv, struct ptcp_err *e);

#endif
