#include "cli/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "cli/exit.h"
#include "cli/process.h"
#include "core/err.h"

static int set_streams(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;

	if (strcmp(text, "auto") == 0)
		a->streams = 0;
	else if (opt_number(text, 1, PTCP_STREAMS_MAX, &a->streams) < 0)
		return opt_reject(o, text, e, "not a number from 1 to 128 (or auto)");
	return 0;
}

static int set_impact(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;

	if (opt_decimal(text, 100, &a->impact_percent) < 0)
		return opt_reject(o, text, e, "not a percentage from 0 to 100");
	return 0;
}

static int set_max_streams(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;

	if (opt_number(text, 1, PTCP_STREAMS_MAX, &a->max_streams) < 0)
		return opt_reject(o, text, e, "not a number from 1 to 128");
	return 0;
}

static int set_cipher(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;

	if (ptcp_cipher_parse(text, &a->cipher) < 0)
		return opt_reject(o, text, e,
		    "no such cipher (aes128gcm, aes256gcm, chacha20 or none)");
	return 0;
}

static int preserve_one(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct transfer_args *a = args;
	const struct { const char *word; bool *kept; } known[] = {
		{ "times", &a->times }, { "mode", &a->mode }, { "owner", &a->owner },
		{ "xattr", &a->xattr }, { "links", &a->links }, { "setid", &a->setid },
	};
	size_t i;

	for (i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(part, known[i].word) == 0) {
			*known[i].kept = true;
			return 0;
		}
	return opt_reject(o, part, e,
	    "cannot be preserved (times, mode, owner, xattr, links and setid can, or none)");
}

static int set_preserve(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;
	int r;

	a->times = a->mode = a->links = a->owner = a->xattr = a->setid = false;
	if (strcmp(text, "none") == 0)
		return 0;
	if ((r = opt_each(args, o, text, e, preserve_one)) == 0 && a->setid && !a->mode)
		r = opt_reject(o, text, e, "setid without mode, of which it is a part (write mode,setid)");
	return r;
}

static int add_rule(struct transfer_args *a, bool include, const char *text, struct ptcp_err *e)
{
	struct ptcp_rule *more = realloc(a->rules, (a->n_rules + 1) * sizeof *more);

	if (more == NULL)
		return err_nomem(e);
	a->rules = more;
	a->rules[a->n_rules++] = (struct ptcp_rule){ include, text }; /* for the library to judge */
	return 0;
}

static int add_exclude(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	return add_rule(args, false, text, e);
}

static int add_include(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	return add_rule(args, true, text, e);
}

static int set_fsync(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;

	if (strcmp(text, "none") == 0)
		a->fsync = PTCP_FSYNC_NONE;
	else if (strcmp(text, "group") == 0)
		a->fsync = PTCP_FSYNC_GROUP;
	else if (strcmp(text, "file") == 0)
		a->fsync = PTCP_FSYNC_FILE;
	else
		return opt_reject(o, text, e, "no such way to sync (none, group or file)");
	return 0;
}

static int add_via(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;

	(void)o; /* for the library to judge */
	return opt_list_add(&a->vias, &a->n_vias, text, e);
}

static int add_relay(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct transfer_args *a = args;
	char *copy;
	int r;

	(void)o; /* for the library to judge */
	if ((copy = strdup(part)) == NULL)
		return err_nomem(e);
	if ((r = opt_list_add(&a->relays, &a->n_relays, copy, e)) < 0)
		free(copy);
	return r;
}

static int set_relays(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return opt_each(args, o, text, e, add_relay);
}

static int set_paths(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;

	if (opt_number(text, 1, PTCP_PATHS_MAX, &a->n_paths) < 0)
		return opt_reject(o, text, e, "not a number of paths from 1 to 16");
	return 0;
}

static const struct opt own_options[] = {
	{ "streams", 0, "N|auto", "parallel streams, 1 to 128, or what suits the path (auto)", set_streams, 0 },
	{ "impact", 0, "PCT", "with auto, the most to take from each other flow (10)", set_impact, 0 },
	{ "max-streams", 0, "N", "with auto, the most streams, 1 to 128 (32)", set_max_streams, 0 },
	{ "no-history", 0, NULL, "with auto, neither use nor keep what is known of the path", opt_true,
	    offsetof(struct transfer_args, no_history) },
	{ "rate", 0, "RATE", "the most to send or receive; or by time, 08:00-18:00=200Mbit/s,else=0",
	    opt_rate, offsetof(struct transfer_args, rate) },
	{ "cipher", 0, "NAME", "aes128gcm, aes256gcm, chacha20 or none", set_cipher, 0 },
	{ "exclude", 0, "GLOB", "leave out what matches; repeatable, the first match decides",
	    add_exclude, 0 },
	{ "include", 0, "GLOB", "transfer what matches and a later --exclude would leave out",
	    add_include, 0 },
	{ "preserve", 0, "LIST", "of times,mode,links (these), owner,xattr,setid; or none", set_preserve,
	    0 },
	{ "no-verify", 0, NULL, "do not hash blocks and files", opt_true,
	    offsetof(struct transfer_args, no_verify) },
	{ "via", 0, "RELAY[,RELAY..]", "a path through relays, or direct; repeatable: side by side", add_via, 0 },
	{ "no-resume", 0, NULL, "begin every file anew", opt_true,
	    offsetof(struct transfer_args, no_resume) },
	{ "fsync", 0, "none|group|file", "how received files are synced to the disk (group)", set_fsync,
	    0 },
	{ "dry-run", 'n', NULL, "tell what would be transferred, change nothing", opt_true,
	    offsetof(struct transfer_args, dry_run) },
	{ "overlay", 0, "FILE", "with --via auto: the overlay that has the quickest paths", opt_text,
	    offsetof(struct transfer_args, overlay) },
	{ "local-host", 0, "HOST", "with --overlay: the host of it that this is (by its address)", opt_text,
	    offsetof(struct transfer_args, local_host) },
	{ "relays", 0, "A,B,..", "relays to choose from; direct is the path without one", set_relays, 0 },
	{ "paths", 0, "K", "with --overlay or --relays: so many paths (2)", set_paths, 0 },
	{ .name = NULL },
};

/* Of transfers between two other hosts. */
static const struct opt remote_job_options[] = {
	{ "detach", 0, NULL, "between two other hosts: leave once it has begun; prints a name for ptcp status", opt_true,
	    offsetof(struct transfer_args, detach) },
	{ .name = NULL },
};

const struct opt *const send_options[] = { own_options, remote_job_options, connect_options, ssh_options, log_opts_options,
	NULL };
const struct opt *const recv_options[] = { own_options, connect_options, ssh_options, log_opts_options, NULL };

int transfer_parse(struct transfer_args *a, const struct command *c, int argc, char **argv,
    struct ptcp_err *e)
{
	int n, r;

	memset(a, 0, sizeof *a);
	connect_init(&a->connect);
	a->cipher = PTCP_CIPHER_AES128GCM;
	a->impact_percent = 10;
	a->max_streams = 32;
	a->times = a->mode = a->links = true;
	if ((r = options_parse(c, argc, argv, a, &n, e)) != 0)
		return r;
	if (n < 2)
		return err_set(e, PTCP_EUSAGE, "%s: needs a source and a destination (ptcp %s %s)",
		    c->name, c->name, c->operands);
	a->srcs = (const char *const *)argv;
	a->n_srcs = (size_t)n - 1;
	a->dest = argv[n - 1];
	return 0;
}

void transfer_args_fini(struct transfer_args *a)
{
	connect_fini(&a->connect);
	free(a->rules);
	free(a->vias);
	overlay_paths_fini(&a->routes);
	while (a->n_relays > 0)
		free((char *)(uintptr_t)a->relays[--a->n_relays]);
	free(a->relays);
	a->relays = NULL;
	a->rules = NULL;
	a->vias = NULL;
	a->n_rules = a->n_vias = 0;
}

void transfer_opts(const struct transfer_args *a, struct ptcp_transfer_opts *o)
{
	ptcp_transfer_opts_init(o);
	connect_apply(&a->connect, o);
	o->streams = a->streams;
	o->impact_percent = a->impact_percent;
	o->max_streams = a->max_streams;
	o->no_history = a->no_history;
	o->cipher = a->cipher;
	o->no_verify = a->no_verify;
	o->preserve_times = a->times;
	o->preserve_mode = a->mode;
	o->preserve_links = a->links;
	o->rate = a->rate;
	o->preserve_owner = a->owner;
	o->preserve_xattr = a->xattr;
	o->preserve_setid = a->setid;
	o->rules = a->rules;
	o->n_rules = a->n_rules;
	o->vias = a->vias;
	o->n_vias = a->n_vias;
	o->relays = a->relays;
	o->n_relays = a->n_relays;
	o->n_paths = a->routes.n == 0 ? a->n_paths : 0;
	if (a->routes.n > 0) {
		o->vias = (const char *const *)a->routes.candidate;
		o->n_vias = a->routes.n;
		o->via_shares = a->routes.share;
	}
	o->no_resume = a->no_resume;
	o->fsync = a->fsync;
	o->dry_run = a->dry_run;
	o->detach = a->detach;
	o->file_events = a->connect.talk.json || a->dry_run;
}

static void cancel(void *handle)
{
	ptcp_transfer_cancel(handle);
}

/* --via auto: the paths of the overlay. */
static int find_routes(struct transfer_args *a, bool sends, struct ptcp_err *e)
{
	bool automatic = a->n_vias == 1 && strcmp(a->vias[0], "auto") == 0;

	if (a->overlay == NULL && automatic)
		return err_set(e, PTCP_EUSAGE, "--via auto: needs the overlay to take paths from (--overlay FILE)");
	if (a->overlay != NULL && !automatic)
		return err_set(e, PTCP_EUSAGE, "--overlay: paths are taken from it with --via auto, and no other --via (add that)");
	if (a->overlay == NULL && a->local_host != NULL)
		return err_set(e, PTCP_EUSAGE, "--local-host: only with --overlay (leave it out)");
	if (a->overlay == NULL && a->n_relays == 0 && a->n_paths > 0)
		return err_set(e, PTCP_EUSAGE, "--paths: only with --overlay or --relays (leave it out)");
	return a->overlay == NULL ? 0 : overlay_paths_find(&a->routes, a, sends, e);
}

static int run(struct transfer_args *a, struct output *out, transfer_new_fn *make,
    struct ptcp_result *result, struct ptcp_err *e)
{
	struct ptcp_transfer_opts o;
	struct ptcp_transfer *t = NULL;
	int r;

	if ((r = find_routes(a, make == ptcp_send_new, e)) < 0)
		return r;
	transfer_opts(a, &o);
	o.event = output_event;
	o.arg = out;
	out->cipher = ptcp_cipher_name(a->cipher);
	out->vias = o.n_vias > 0 ? o.vias : o.n_relays > 0 ? o.relays : NULL;
	process_catch(EXIT_INTERRUPTED,
	    "\nptcp: interrupted twice: ended at once (run the same command again)\n");
	if ((r = make(&t, &o, a->srcs, a->n_srcs, a->dest, e)) < 0)
		return r;
	process_set_stop(cancel, t);
	r = ptcp_transfer_run(t, e);
	process_set_stop(NULL, NULL);
	ptcp_result_init(result);
	ptcp_transfer_result(t, result);
	ptcp_transfer_free(t);
	return r;
}

int transfer_command(const struct command *c, int argc, char **argv, transfer_new_fn *make)
{
	struct ptcp_err e = { .code = 0 };
	struct ptcp_result result;
	struct transfer_args a;
	struct output out;
	bool json = options_has_flag(argc, argv, "--json"); /* parsing may reorder and fail */
	int r;

	memset(&result, 0, sizeof result);
	result.size = sizeof result;
	r = transfer_parse(&a, c, argc, argv, &e);
	output_init(&out, c->name, json, a.connect.talk.quiet);
	out.dry_run = a.dry_run;
	if (r == 0)
		r = run(&a, &out, make, &result, &e);
	r = r == OPTIONS_HELP ? command_help(c) : output_end(&out, r, &result, &e);
	transfer_args_fini(&a);
	return r;
}
