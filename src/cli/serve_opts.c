/* Options of ptcp serve, on the command line and in the configuration file. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/serve.h"
#include "core/err.h"
#include "core/units.h"

/* The library checks the address. */
static int add_listen(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct serve_args *a = args;

	if (a->n_listen == PTCP_LISTEN_MAX)
		return opt_reject(o, text, e, "more than %d addresses (leave some out)", PTCP_LISTEN_MAX);
	a->listen[a->n_listen++] = text;
	return 0;
}

static int add_cipher(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	enum ptcp_cipher c;

	if (!ptcp_cipher_parse(part, &c))
		return opt_reject(o, part, e, "no such cipher (a list of aes128gcm, aes256gcm, chacha20 and none)");
	((struct serve_args *)args)->ciphers |= 1u << c;
	return 0;
}

static int add_ciphers(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return opt_each(args, o, text, e, add_cipher);
}

/* SIZE or SIZE:DIR. */
static int set_storage(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_server_opts *s = &((struct serve_args *)args)->server;
	const char *colon = strchr(text, ':');
	char size[40];

	snprintf(size, sizeof size, "%.*s", colon != NULL ? (int)(colon - text) : (int)strlen(text), text);
	if (units_parse_size(size, &s->relay_storage_bytes) < 0)
		return opt_reject(o, text, e,
		    "not a size (such as 100GB), or a size and a directory (100GB:/var/spool/ptcp)");
	if (colon != NULL && colon[1] != '/')
		return opt_reject(o, text, e, "the directory is not absolute (write SIZE:/DIR)");
	s->relay_storage_dir = colon != NULL ? colon + 1 : NULL;
	return 0;
}

#define AT(member) offsetof(struct serve_args, member)

/* Rows of <ptcp/options.h>. */
#define OPT_AT(member) AT(server.member)
#define SERVER_SWITCH(when, member, name, help) OPT_SWITCH(member, name, 0, help)
#define SERVER_VALUE(TYPE, when, ...) OPT_VALUE(TYPE, __VA_ARGS__)
#define SERVER_TEXTS(TYPE, when, ...) OPT_TEXTS(TYPE, __VA_ARGS__)
#define SERVER_ROWS(LIST) LIST(SERVER_SWITCH, SERVER_VALUE, SERVER_TEXTS)
#define OPT_SET_STORAGE set_storage

static const struct opt service_options[] = {
	SERVER_ROWS(PTCP_SERVER_FILES)
	{ "listen", 0, "ADDR:PORT", "listening address (default: all addresses, port 7811); repeatable", add_listen,
	    0, 0, 0 },
	{ "config", 0, "FILE", "configuration file, see ptcp.yaml(5) (default: config.yaml beside the identity)",
	    opt_text, AT(config), 0, 0 },
	{ "metrics", 0, "FILE", "write Prometheus metrics to FILE every 5s", opt_text, AT(metrics), 0, 0 },
	{ "metrics-listen", 0, "ADDR:PORT", "answer Prometheus at http://ADDR:PORT/metrics, whoever asks", opt_text,
	    AT(metrics_listen), 0, 0 },
	{ "session-log", 0, "FILE", "file of finished sessions, for ptcp log, or none (default: sessions.log in the "
	    "state directory)", opt_text, AT(session_log), 0, 0 },
	{ "session-log-size", 0, "SIZE", "begin a new file at this size, and keep the one before (default: 16MiB)",
	    opt_bytes, AT(session_log_bytes), 4096, PTCP_FILE_SIZE_MAX },
	{ "no-sandbox", 0, NULL, "run without the sandbox", opt_true, AT(no_sandbox), 0, 0 },
	{ .name = NULL },
};

static const struct opt limit_options[] = {
	SERVER_ROWS(PTCP_SERVER_LIMITS)
	{ "cipher", 0, "aes128gcm|aes256gcm|chacha20|none,..", "ciphers to accept (default: all but none)",
	    add_ciphers, 0, 0, 0 },
	{ .name = NULL },
};

static const struct opt relay_options[] = { SERVER_ROWS(PTCP_SERVER_RELAYS) { .name = NULL } };

static const struct opt share_options[] = {
	{ "share-port", 0, NULL, "share the port with sessions that users start through SSH", opt_true, AT(share_port),
	    0, 0 },
	SERVER_ROWS(PTCP_SERVER_SHARE)
	{ .name = NULL },
};

static const struct opt watch_options[] = {
	{ "watch", 0, "FILE", "measure the links of this overlay from this host, and publish the estimates", opt_text,
	    AT(watch), 0, 0 },
	{ "watch-as", 0, "HOST", "name of the local host in the overlay (default: by address)", opt_text, AT(watch_as),
	    0, 0 },
	{ "watch-interval", 0, "TIME", "pause between the measurements of two links (default: 5m)", opt_seconds,
	    AT(watch_interval_s), OPT_PATIENCE },
	{ .name = NULL },
};

static const struct opt mover_options[] = { SERVER_ROWS(PTCP_SERVER_MOVERS) { .name = NULL } };

static const struct opt hints[] = {
	{ "port", 'p', "PORT", "--listen names address and port, such as --listen [::]:7811", NULL, 0, 0, 0 },
	{ .name = NULL },
};

const struct opt_group serve_groups[] = {
	GROUP_OF("Files and addresses", service_options),
	GROUP_OF("Limits", limit_options),
	GROUP_OF("Relays", relay_options),
	GROUP_LOG,
	GROUP_BRIEF("Port shared with sessions through SSH", share_options),
	GROUP_BRIEF("Links of an overlay", watch_options),
	GROUP_BRIEF("Movers", mover_options),
	GROUP_HINTS(hints),
	GROUP_END
};

/* ---- The configuration file: each key is the name of an option ---- */

static bool is_key(const struct opt *o)
{
	return o != NULL && strcmp(o->name, "config") != 0 && strcmp(o->name, "ephemeral") != 0;
}

static int no_such_key(const struct command *c, const struct conf_setting *s, struct ptcp_err *e)
{
	const struct opt_group *g;
	const struct opt *o;
	char list[300] = "", q[CONF_QUOTED_BYTES];
	size_t n = 0;

	for (g = c->options; g->options != NULL; g++)
		for (o = g->options; o->name != NULL; o++)
			if (is_key(o) && n < sizeof list)
				n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n > 0 ? ", " : "", o->name);
	return err_set(e, PTCP_ECONFIG, "expected one of %s, got the unknown key '%s'", list, conf_quoted(q, s->key));
}

static int apply(struct serve_args *a, const struct command *c, const struct conf_setting *s, struct ptcp_err *e)
{
	const struct opt *o = options_find(c, s->key);
	char q[CONF_QUOTED_BYTES];

	if (!is_key(o))
		return no_such_key(c, s, e);
	if (o->value != NULL)
		return o->set(a, o, s->text, e);
	if (strcmp(s->text, "true") != 0 && strcmp(s->text, "false") != 0)
		return err_set(e, PTCP_ECONFIG, "%s: expected true or false, got '%s'", o->name,
		    conf_quoted(q, s->text));
	return s->text[0] == 't' ? o->set(a, o, NULL, e) : 0;
}

static int configure(struct serve_args *a, const struct command *c, const struct options_given *given,
    struct ptcp_err *e)
{
	char path[PTCP_PATH_BYTES];
	size_t i;
	int r;

	if (a->config == NULL && (r = ptcp_config_dir(path, sizeof path - sizeof "/config.yaml", e)) < 0)
		return r;
	r = conf_settings_load(&a->settings, a->config != NULL ? a->config : strcat(path, "/config.yaml"), e);
	if (r == PTCP_EIO && e->sys == ENOENT && a->config == NULL)
		return 0;
	if (r < 0)
		return e->code = PTCP_ECONFIG;
	for (i = 0; i < a->settings->n; i++) {
		const struct conf_setting *s = &a->settings->of[i];
		const struct opt *o = options_find(c, s->key);

		if (is_key(o) && options_is_given(given, o))
			continue;
		if (apply(a, c, s, e) < 0)
			return conf_settings_blame(a->settings, is_key(o) ? s->mark : s->key_mark, e);
	}
	return 0;
}

/* Set for tests, and where /run is not writable; empty: no sharing. */
static const char *share_socket(void)
{
	const char *path = getenv("PTCP_SHARE_SOCKET");

	return path == NULL ? PTCP_SHARE_SOCKET : path[0] != '\0' ? path : NULL;
}

int serve_parse(struct serve_args *a, const struct command *c, int argc, char **argv, struct ptcp_err *e)
{
	struct options_given given;
	int r;

	memset(a, 0, sizeof *a);
	log_opts_init(&a->log);
	ptcp_server_opts_init(&a->server);
	a->session_log_bytes = 16u << 20;
	if ((r = options_parse(c, argc, argv, a, NULL, &given, e)) == 0 && !a->server.ephemeral)
		r = configure(a, c, &given, e);
	options_given_free(&given);
	if (r != 0)
		return r;
	if (a->share_port || a->server.ephemeral)
		a->server.share_socket = share_socket();
	if (a->n_listen > 0) {
		a->server.listen = a->listen[0];
		a->server.also_listen = a->listen + 1;
		a->server.n_also_listen = a->n_listen - 1;
	}
	if (a->ciphers != 0)
		a->server.ciphers = a->ciphers;
	a->server.log = log_print;
	a->server.log_level = (enum ptcp_log_level)serve_log_level(a);
	return 0;
}

#define FREE_TEXTS(TYPE, when, member, count, ...) opt_copies_free(&a->server.member, &a->server.count);

void serve_args_fini(struct serve_args *a)
{
	conf_settings_free(a->settings);
	a->settings = NULL;
	PTCP_SERVER_OPTIONS(PTCP_NO_ROW, PTCP_NO_ROW, FREE_TEXTS)
}

/* An ephemeral server reports warnings to its client through the session, not through SSH as well. */
int serve_log_level(const struct serve_args *a)
{
	return log_opts_level(&a->log, a->server.ephemeral ? PTCP_LOG_ERROR : PTCP_LOG_WARN);
}
