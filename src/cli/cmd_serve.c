#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/confine.h"
#include "cli/exit.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/serve.h"
#include "core/err.h"

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

static int set_ciphers(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	((struct serve_args *)args)->ciphers = 0;
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

static const struct opt own_options[] = {
	{ "listen", 0, "ADDR:PORT", "where to listen (every address, port 7811)", opt_text,
	    offsetof(struct serve_args, listen) },
	{ "root", 0, "DIR", "the directory to serve; without it, none", opt_text,
	    offsetof(struct serve_args, root) },
	{ "rate", 0, "RATE", "the most to send, and to receive; or by time, 08:00-18:00=200Mbit/s,else=0",
	    opt_rate, offsetof(struct serve_args, rate) },
	{ "cipher", 0, "LIST", "ciphers to accept (all but none)", set_ciphers, 0 },
	{ "max-sessions", 0, "N", "transfers at a time (64)", set_limit,
	    offsetof(struct serve_args, max_sessions) },
	{ "max-client-sessions", 0, "N", "and of one client (16)", set_limit,
	    offsetof(struct serve_args, max_client_sessions) },
	{ "max-streams", 0, "N", "streams that a transfer may have (128)", set_limit,
	    offsetof(struct serve_args, max_streams) },
	{ "max-startups", 0, "N", "connections that have yet to say who they are (512)", set_limit,
	    offsetof(struct serve_args, max_startups) },
	{ "one-time", 0, NULL, "one session for who starts this through ssh (send and recv do)", opt_true,
	    offsetof(struct serve_args, one_time) },
	{ "no-sandbox", 0, NULL, "do not confine the server to what it needs", opt_true,
	    offsetof(struct serve_args, no_sandbox) },
	{ "relay-to", 0, "NEXT[:PORT]", "connect clients to this name, address or range; repeatable", add_relay_to,
	    0 },
	{ "max-relayed", 0, "N", "connections relayed at one time, half for one client (512)", set_limit,
	    offsetof(struct serve_args, max_relayed) },
	{ "config", 0, "FILE", NULL, NULL, 0 },
	{ "metrics", 0, "FILE", NULL, NULL, 0 },
	{ .name = NULL },
};

const struct opt *const serve_options[] = { own_options, talk_options, NULL };

int serve_parse(struct serve_args *a, const struct command *c, int argc, char **argv,
    struct ptcp_err *e)
{
	struct ptcp_server_opts defaults;
	int n, r;

	ptcp_server_opts_init(&defaults);
	memset(a, 0, sizeof *a);
	talk_init(&a->talk);
	a->ciphers = defaults.ciphers;
	a->max_sessions = defaults.max_sessions;
	a->max_client_sessions = defaults.max_client_sessions;
	a->max_streams = defaults.max_streams;
	a->max_startups = defaults.max_startups;
	a->max_relayed = defaults.max_relayed;
	if ((r = options_parse(c, argc, argv, a, &n, e)) != 0)
		return r;
	if (n > 0)
		return err_set(e, PTCP_EUSAGE, "%s: takes no operand (--root DIR names what to serve)",
		    c->name);
	return 0;
}

/* What a client hears from the session need not come to its terminal through ssh as well. */
static int log_level(const struct serve_args *a)
{
	return talk_level(&a->talk, a->one_time ? PTCP_LOG_ERROR : PTCP_LOG_WARN);
}

static int on_confine(void *arg, const struct ptcp_server_needs *n, struct ptcp_err *e)
{
	return confine(n, CONFINE_ABI, log_level(arg), e);
}

static void stop(void *handle)
{
	ptcp_server_stop(handle);
}

static int serve(struct serve_args *a, struct ptcp_err *e)
{
	struct ptcp_server_opts o;
	struct ptcp_server *s = NULL;
	int r;

	ptcp_server_opts_init(&o);
	o.listen = a->listen;
	o.root = a->root;
	o.rate = a->rate;
	o.ciphers = a->ciphers;
	o.max_sessions = a->max_sessions;
	o.max_client_sessions = a->max_client_sessions;
	o.max_streams = a->max_streams;
	o.max_startups = a->max_startups;
	o.one_time = a->one_time;
	o.relay_to = a->relay_to;
	o.n_relay_to = a->n_relay_to;
	o.max_relayed = a->max_relayed;
	o.log = talk_log;
	o.log_level = (enum ptcp_log_level)log_level(a);
	o.arg = a;
	o.confine = a->no_sandbox ? NULL : on_confine;
	process_catch(EXIT_DONE, NULL);
	if ((r = ptcp_server_new(&s, &o, e)) < 0)
		return r;
	process_set_stop(stop, s);
	if (!a->one_time) /* else it says so to its client */
		output_listening(a->talk.json, ptcp_server_address(s), ptcp_server_port(s),
		    ptcp_server_fingerprint(s));
	r = ptcp_server_run(s, e);
	process_set_stop(NULL, NULL);
	ptcp_server_free(s);
	return r;
}

int cmd_serve(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct serve_args a;
	int r;

	if ((r = serve_parse(&a, c, argc, argv, &e)) == OPTIONS_HELP)
		return command_help(c);
	if (r == 0)
		r = serve(&a, &e);
	free(a.relay_to);
	return r < 0 ? (int)exit_fail(&e) : 0;
}
