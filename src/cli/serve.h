/* Parsing of `ptcp serve`, apart from running it. */
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include "cli/talk.h"

struct serve_args {
	struct talk_args talk; /* first */
	const char *listen;    /* NULL: every address, PTCP_PORT */
	const char *root;      /* NULL: no files */
	const char *rate;      /* NULL: no limit */
	bool one_time;         /* started through ssh */
	bool no_sandbox;
	unsigned max_sessions, max_client_sessions, max_streams, max_startups, max_relayed;
	unsigned ciphers;      /* bits 1 << PTCP_CIPHER_* */
	const char **relay_to; /* texts borrowed from argv; to be freed */
	size_t n_relay_to;
};

/* 0, OPTIONS_HELP or a negative PTCP_E*. */
int serve_parse(struct serve_args *a, const struct command *c, int argc, char **argv,
    struct ptcp_err *e);

#endif
