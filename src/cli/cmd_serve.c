#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/serve.h"
#include "core/err.h"
#include "core/units.h"

static int add_listen(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct serve_args *a = args;

	if (a->n_listen == PTCP_LISTEN_MAX)
		return opt_reject(o, text, e, "one place too many (32 are the most)");
	a->listen[a->n_listen++] = text; /* for the library to judge */
	return 0;
}

static int cipher_one(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct serve_args *a = args;
	enum ptcp_cipher c;

	if (ptcp_cipher_parse(part, &c) < 0)
		return opt_reject(o, part, e,
		    "no such cipher (a list of aes128gcm, aes256gcm, chacha20 and none)");
	a->ciphers |= 1u << c;
	return 0;
}

static int add_ciphers(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return opt_each(args, o, text, e, cipher_one);
}

/* A limit; its option's place says which. */
static int set_limit(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	static const struct { size_t at; unsigned most; } limits[] = {
		{ offsetof(struct serve_args, max_sessions), PTCP_SESSIONS_MAX },
		{ offsetof(struct serve_args, max_client_sessions), PTCP_SESSIONS_MAX },
		{ offsetof(struct serve_args, max_streams), PTCP_STREAMS_MAX },
		{ offsetof(struct serve_args, max_startups), PTCP_STARTUPS_MAX },
		{ offsetof(struct serve_args, max_relayed), 65535 },
	};
	char why[40];
	size_t i;

	for (i = 0; limits[i].at != o->at; i++)
		;
	if (opt_number(text, 1, limits[i].most, (unsigned *)(void *)((char *)args + o->at)) == 0)
		return 0;
	snprintf(why, sizeof why, "not a number from 1 to %u", limits[i].most);
	return opt_reject(o, text, e, why);
}

static int add_relay_to(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct serve_args *a = args;

	(void)o; /* for the library to judge */
	return opt_list_add(&a->relay_to, &a->n_relay_to, text, e);
}

/* SIZE, or SIZE:DIR. */
static int set_storage(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct serve_args *a = args;
	const char *colon = strchr(text, ':');
	char size[40];

	snprintf(size, sizeof size, "%.*s", colon != NULL ? (int)(colon - text) : (int)strlen(text), text);
	if (units_parse_size(size, &a->relay_storage_bytes) < 0)
		return opt_reject(o, text, e, "not a size (such as 100GB), or a size and a directory (100GB:/var/spool/ptcp)");
	if (colon != NULL && colon[1] != '/')
		return opt_reject(o, text, e, "the directory is not absolute (write SIZE:/DIR)");
	a->relay_storage_dir = colon != NULL ? colon + 1 : NULL;
	return 0;
}

static const struct opt own_options[] = {
	{ "listen", 0, "ADDR:PORT", "where to listen (every address, port 7811); repeatable", add_listen, 0 },
	{ "root", 0, "DIR", "the directory to serve; without it, none", opt_text,
	    offsetof(struct serve_args, root) },
	{ "rate", 0, "RATE", "the most to send, and to receive; or by time, 08:00-18:00=200Mbit/s,else=0",
	    opt_rate, offsetof(struct serve_args, rate) },
	{ "cipher", 0, "LIST", "ciphers to accept (all but none)", add_ciphers, 0 },
	{ "max-sessions", 0, "N", "transfers at a time (64)", set_limit,
	    offsetof(struct serve_args, max_sessions) },
	{ "max-client-sessions", 0, "N", "and of one client (16)", set_limit,
	    offsetof(struct serve_args, max_client_sessions) },
	{ "max-streams", 0, "N", "streams that a transfer may have (128)", set_limit,
	    offsetof(struct serve_args, max_streams) },
	{ "max-startups", 0, "N", "connections that have yet to say who they are (512)", set_limit,
	    offsetof(struct serve_args, max_startups) },
	{ "timeout", 0, "TIME", "give a silent client up after this (30s)", opt_patience,
	    offsetof(struct serve_args, timeout_s) },
	{ "config", 0, "FILE", "settings, as in ptcp.yaml(5) (config.yaml beside the identity)", opt_text,
	    offsetof(struct serve_args, config) },
	{ "metrics", 0, "FILE", "write counters there every 5s, as Prometheus reads them", opt_text,
	    offsetof(struct serve_args, metrics) },
	{ "watch", 0, "FILE", "measure this overlay's links from here in the background, and tell who asks",
	    opt_text, offsetof(struct serve_args, watch) },
	{ "watch-as", 0, "HOST", "the host of the overlay that this is (by its address)", opt_text,
	    offsetof(struct serve_args, watch_as) },
	{ "watch-interval", 0, "TIME", "between two links (5m)", opt_patience,
	    offsetof(struct serve_args, watch_interval_s) },
	{ "one-time", 0, NULL, "one session for who starts this through ssh (send and recv do)", opt_true,
	    offsetof(struct serve_args, one_time) },
	{ "no-sandbox", 0, NULL, "do not confine the server to what it needs", opt_true,
	    offsetof(struct serve_args, no_sandbox) },
	{ "relay-to", 0, "NEXT[:PORT]", "connect clients to this name, address or range; repeatable", add_relay_to,
	    0 },
	{ "max-relayed", 0, "N", "connections relayed at one time, half for one client (512)", set_limit,
	    offsetof(struct serve_args, max_relayed) },
	{ "relay-storage", 0, "SIZE[:DIR]", "store so much of what next hops do not take yet, for who asks for it (none)",
	    set_storage, 0 },
	{ .name = NULL },
};

const struct opt *const serve_options[] = { own_options, log_opts_options, NULL };

int serve_parse(struct serve_args *a, const struct command *c, int argc, char **argv,
    struct ptcp_err *e)
{
	struct options_given given;
	int n, r;

	memset(a, 0, sizeof *a);
	log_opts_init(&a->talk);
	if ((r = options_parse_noting(c, argc, argv, a, &n, &given, e)) != 0)
		return r;
	if (n > 0)
		return err_set(e, PTCP_EUSAGE, "%s: takes no operand (--root DIR names what to serve)",
		    c->name);
	return a->one_time ? 0 : serve_configure(a, c, &given, e);
}

void serve_args_fini(struct serve_args *a)
{
	conf_settings_free(a->file);
	a->file = NULL;
	free(a->relay_to);
	a->relay_to = NULL;
}

int cmd_serve(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct serve_args a;
	int r;

	if ((r = serve_parse(&a, c, argc, argv, &e)) == 0)
		r = serve_run(&a, c, argc, argv, &e);
	serve_args_fini(&a);
	return command_end(c, r, &e);
}
