#include "cli/connect.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask_trust.h"
#include "cli/terminal.h"
#include "core/err.h"

static int add_fingerprint(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct connect_args *a = args;
	const char *fp = strstr(text, "SHA256:");

	/* the rest of its form is the library's to check */
	if (fp == NULL || (fp != text && fp[-1] != '=') ||
	    strlen(fp) != PTCP_FINGERPRINT_BYTES - 1)
		return opt_reject(o, text, e,
		    "not a fingerprint (SHA256: and 43 characters, or HOST=SHA256:..; "
		    "ptcp key show prints it on the server)");
	return opt_list_add(&a->fingerprints, &a->n_fingerprints, text, e);
}

static int set_ipv4(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	(void)text;
	(void)e;
	((struct connect_args *)args)->family = 4;
	return 0;
}

static int set_ipv6(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	(void)text;
	(void)e;
	((struct connect_args *)args)->family = 6;
	return 0;
}

static int set_congestion(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	static const char *const known[] = { "cubic", "bbr", "reno" };
	struct connect_args *a = args;
	size_t i;

	if (strcmp(text, "auto") == 0) {
		a->congestion = NULL;
		return 0;
	}
	for (i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(text, known[i]) == 0) {
			a->congestion = known[i];
			return 0;
		}
	return opt_reject(o, text, e, "no such congestion control (auto, cubic, bbr or reno)");
}

static int set_remote_port(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct connect_args *a = args;
	size_t n = strlen(text);
	unsigned long port = n > 0 && n <= 5 && strspn(text, "0123456789") == n ? strtoul(text, NULL, 10) : 0;

	if (port < 1 || port > 65535)
		return opt_reject(o, text, e, "not a port from 1 to 65535 (leave it out for any)");
	a->remote_port = (unsigned)port;
	return 0;
}

const struct opt connect_options[] = {
	{ "fingerprint", 0, "[HOST[:PORT]=]FP", "trust this server identity in this run; repeatable",
	    add_fingerprint, 0 },
	{ "timeout", 0, "TIME", "give a silent peer up after this (30s)", opt_patience,
	    offsetof(struct connect_args, timeout_s) },
	{ "ipv4", '4', NULL, "use IPv4 only", set_ipv4, 0 },
	{ "ipv6", '6', NULL, "use IPv6 only", set_ipv6, 0 },
	{ "congestion", 0, "NAME", "auto, cubic, bbr or reno (auto: the system's)", set_congestion,
	    0 },
	{ .name = NULL },
};

const struct opt ssh_options[] = {
	{ "ssh", 0, "CMD", "the ssh to use, with its options (ssh)", opt_text,
	    offsetof(struct connect_args, ssh) },
	{ "remote-ptcp", 0, "CMD", "the ptcp to start through ssh (ptcp)", opt_text,
	    offsetof(struct connect_args, remote_ptcp) },
	{ "remote-port", 0, "PORT", "the port it listens on (any)", set_remote_port, 0 },
	{ .name = NULL },
};

void connect_init(struct connect_args *a)
{
	memset(a, 0, sizeof *a);
	log_opts_init(&a->talk);
	a->timeout_s = 30;
}

void connect_fini(struct connect_args *a)
{
	free(a->fingerprints);
	a->fingerprints = NULL;
	a->n_fingerprints = 0;
}

void connect_apply(const struct connect_args *a, struct ptcp_transfer_opts *o)
{
	int level = log_opts_level(&a->talk, LOG_OPTS_NO_LOG);

	o->fingerprints = a->fingerprints;
	o->n_fingerprints = a->n_fingerprints;
	o->timeout_s = a->timeout_s;
	o->family = a->family;
	o->congestion = a->congestion;
	o->ssh = a->ssh;
	o->remote_ptcp = a->remote_ptcp;
	o->remote_port = a->remote_port;
	if (terminal_is(STDIN_FILENO) && terminal_is(STDERR_FILENO))
		o->trust = trust_ask;
	if (level != LOG_OPTS_NO_LOG) {
		o->log = log_opts_log;
		o->log_level = (enum ptcp_log_level)level;
	}
}
