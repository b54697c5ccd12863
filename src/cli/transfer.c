/* ptcp send and ptcp recv. */
#include "cli/transfer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/exec.h"
#include "cli/habit/habit.h"
#include "cli/hook.h"
#include "cli/process.h"
#include "cli/running.h"
#include "cli/show/json.h"
#include "cli/show/output.h"
#include "cli/show/terminal.h"
#include "core/atomic_file.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "input/manifest.h"

static struct ptcp_transfer_opts *opts(void *args)
{
	return &((struct transfer_args *)args)->connect.transfer;
}

/* As of -a: without setid, which is dropped unless requested. */
static void preserve_archive(struct ptcp_transfer_opts *t)
{
	t->preserve.times = t->preserve.mode = t->preserve.links = t->preserve.owner = t->preserve.xattr =
	    t->preserve.acl = true;
}

static int preserve_part(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct ptcp_transfer_opts *t = opts(args);
	const struct { const char *word; bool *preserve; } known[] = {
		{ "times", &t->preserve.times }, { "mode", &t->preserve.mode }, { "owner", &t->preserve.owner },
		{ "xattr", &t->preserve.xattr }, { "acl", &t->preserve.acl }, { "links", &t->preserve.links },
		{ "setid", &t->preserve.setid },
	};
	size_t i;

	if (strcmp(part, "all") == 0) {
		preserve_archive(t);
		t->preserve.setid = true;
		return 0;
	}
	for (i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(part, known[i].word) == 0) {
			*known[i].preserve = true;
			return 0;
		}
	return opt_reject(o, part, e,
	    "cannot be preserved (times, mode, owner, xattr, acl, links and setid can, or all, or none)");
}

static int set_archive(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	(void)text;
	(void)e;
	preserve_archive(opts(args));
	return 0;
}

static int set_preserve(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_transfer_opts *t = opts(args);
	int r;

	t->preserve.times = t->preserve.mode = t->preserve.links = false;
	t->preserve.owner = t->preserve.xattr = t->preserve.acl = t->preserve.setid = false;
	if (strcmp(text, "none") == 0)
		return 0;
	if ((r = opt_each(args, o, text, e, preserve_part)) == 0 && t->preserve.setid && !t->preserve.mode)
		r = opt_reject(o, text, e, "setid without mode (write mode,setid)");
	if (r == 0 && t->preserve.acl && !t->preserve.mode)
		r = opt_reject(o, text, e, "acl without mode (write mode,acl)");
	return r;
}

/* Users of rsync request --delta off, or on, by these names. */
static int set_whole_file(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	opts(args)->wire.delta = strcmp(o->name, "whole-file") == 0 ? PTCP_DELTA_OFF : PTCP_DELTA_ON;
	return 0;
}

static int set_range(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_err why;

	return parts_parse(&((struct transfer_args *)args)->parts, text, &why) < 0 ?
	    opt_reject(o, text, e, "%s", why.msg) : 0;
}

/* A percentage, or a timetable, of which the library gets the present value. */
static int set_impact(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;
	struct ptcp_err why;

	a->impact = (struct timetable){ .n = 0 };
	if (strpbrk(text, "=,") == NULL)
		return opt_percent(args, o, text, e);
	if (timetable_parse_percent(&a->impact, text, &why) < 0)
		return opt_reject(o, text, e, "%s", why.msg);
	opts(a)->impact_percent = timetable_percent(&a->impact, timetable_second(time(NULL)));
	return 0;
}
#define OPT_SET_BUDGET set_impact

static int set_start(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	if (units_parse_next(text, (int64_t)time(NULL), &((struct transfer_args *)args)->start_s) == 0)
		return 0;
	return opt_reject(o, text, e, "not a time to come (such as 22:00 or 2027-01-31T22:00)");
}

/* --exclude and --include; the library checks the pattern. */
static int add_rule(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return rules_add(&((struct transfer_args *)args)->rules, strcmp(o->name, "include") == 0, text, e);
}

static int read_rules(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_err why;

	return rules_read(&((struct transfer_args *)args)->rules, text, &why) == 0 ? 0 :
	    opt_reject(o, text, e, "%s", why.msg);
}

static int add_filter(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_err why;

	return rules_add_filter(&((struct transfer_args *)args)->rules, text, &why) == 0 ? 0 :
	    opt_reject(o, text, e, "%s", why.msg);
}

/* As rsync: the second one leaves out the files themselves. */
static int add_usual_filter(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct transfer_args *a = args;

	(void)o;
	(void)text;
	return rules_add_filter(&a->rules, a->n_usual_filters++ == 0 ? ": /.rsync-filter" : "- .rsync-filter", e);
}

#define AT(member) offsetof(struct transfer_args, member)

#define OPT_AT(member) offsetof(struct client_opts, transfer.member)

static const struct opt files_options[] = {
	{ "exclude", 0, "GLOB", "leave out matching files; repeatable, the first match decides", add_rule, 0, 0, 0 },
	{ "include", 0, "GLOB", "transfer matching files despite a later --exclude", add_rule, 0, 0, 0 },
	{ "exclude-from", 0, "FILE", "leave out files that match a pattern in FILE, one per line (-: standard input)",
	    read_rules, 0, 0, 0 },
	{ "files-from", 0, "FILE",
	    "transfer only the paths below SRC that FILE lists, one per line (-: standard input)",
	    opt_text, AT(files_from), 0, 0 },
	{ .name = NULL },
};

static const struct opt selection_options[] = {
	{ "filter", 0, "RULE", "a rule as in rsync, such as '- *.o', or ': NAME': those in files NAME everywhere",
	    add_filter, 0, 0, 0 },
	{ "", 'F', NULL, "--filter ': /.rsync-filter'; again: --exclude .rsync-filter", add_usual_filter, 0, 0, 0 },
	{ "cvs-exclude", 0, NULL, "leave out files as CVS does, and the patterns in files .cvsignore", opt_true,
	    AT(cvs_exclude), 0, 0 },
	{ "from0", '0', NULL, "with --files-from: a NUL byte ends each path, as find -print0 writes them", opt_true,
	    AT(from0), 0, 0 },
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_SELECTION)
	{ .name = NULL },
};

static const struct opt existing_options[] = { OPT_TRANSFER_ROWS(PTCP_OPTIONS_EXISTING) { .name = NULL } };
static const struct opt older_options[] = { OPT_TRANSFER_ROWS(PTCP_OPTIONS_OLDER) { .name = NULL } };

#define COPYING_OPTIONS \
	{ "archive", 'a', NULL, "preserve times, mode, links, owner, xattr and acl", \
	    set_archive, 0, 0, 0 }, \
	{ "preserve", 0, "times|mode|links|owner|xattr|acl|setid|all|none,..", \
	    "what to preserve (default: times,mode,links)", set_preserve, 0, 0, 0 }, \
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_COPYING)

static const struct opt send_options[] = {
	COPYING_OPTIONS
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_BETWEEN_SERVERS)
	{ .name = NULL },
};
static const struct opt recv_options[] = {
	COPYING_OPTIONS
	{ .name = NULL },
};

static const struct opt digest_options[] = {
	{ "exec", 0, "COMMAND", "send the output of COMMAND as DEST, if it exits with status 0", opt_text,
	    AT(exec), 0, 0 },
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_SEND_DIGESTS)
	{ "manifest", 0, "FILE", "write the digests (default: sha256) to FILE, as sha256sum does", opt_text,
	    AT(manifest), 0, 0 },
	{ .name = NULL },
};
static const struct opt part_options[] = {
	{ "range", 0, "FIRST-LAST|-NUMBER",
	    "receive only these bytes of a file, the first one is 0; or its last NUMBER", set_range, 0, 0, 0 },
	{ .name = NULL },
};

static const struct opt attribute_options[] = {
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_SYMLINKS)
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_ATTRIBUTES)
	{ .name = NULL },
};

static const struct opt writing_options[] = {
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_WRITING)
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_WIRE)
	{ "start-at", 0, "TIME", "begin at TIME, such as 22:00", set_start, 0, 0, 0 },
	HOOK_OPTION,
	/* Defaults that users of scp and rsync request. */
	{ "mkpath", 0, NULL, NULL, opt_false, OPT_AT(no_mkpath), 0, 0 },
	{ "recursive", 'r', NULL, NULL, opt_ignore, 0, 0, 0 },
	{ "progress", 'P', NULL, NULL, opt_ignore, 0, 0, 0 },
	{ "hard-links", 'H', NULL, NULL, opt_true, OPT_AT(preserve.links), 0, 0 },
	{ "sparse", 'S', NULL, NULL, opt_ignore, 0, 0, 0 },
	{ "xattrs", 'X', NULL, NULL, opt_true, OPT_AT(preserve.xattr), 0, 0 },
	{ "acls", 'A', NULL, NULL, opt_true, OPT_AT(preserve.acl), 0, 0 },
	{ "partial", 0, NULL, NULL, opt_true, OPT_AT(partial), 0, 0 },
	{ "", 'R', NULL, NULL, opt_ignore, 0, 0, 0 },
	{ "whole-file", 'W', NULL, NULL, set_whole_file, 0, 0, 0 },
	{ "no-whole-file", 0, NULL, NULL, set_whole_file, 0, 0, 0 },
	{ .name = NULL },
};

static const struct opt speed_options[] = {
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_SPEED)
	{ "", 'z', NULL, NULL, opt_ignore, 0, 0, 0 }, /* the default of --compress */
	{ "name", 0, "NAME", "name of this transfer for ptcp status and ptcp rate (default: such as send-4711)",
	    running_set_name, AT(name), 0, 0 },
	{ .name = NULL },
};

static const struct opt paths_options[] = {
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_PATHS)
	{ "overlay", 0, "FILE", "overlay file: of the quickest paths (--via auto), or of bandwidths (--relays)",
	    opt_text, AT(overlay), 0, 0 },
	{ "local-host", 0, "HOST", "with --overlay: name of the local host in the overlay (default: by address)",
	    opt_text, AT(local_host), 0, 0 },
	{ .name = NULL },
};

static const struct opt retry_options[] = { OPT_TRANSFER_ROWS(PTCP_OPTIONS_RETRIES) { .name = NULL } };
static const struct opt mover_options[] = { OPT_TRANSFER_ROWS(PTCP_OPTIONS_MOVERS) { .name = NULL } };

/* Standard input or output as an operand. Its data takes the place of other lines there. */
static int take_pipe(struct transfer_args *a, bool sends, struct ptcp_err *e)
{
	static const char *const input = "-";
	size_t i;

	if (a->exec != NULL && a->n_srcs > 0)
		return err_set(e, PTCP_EUSAGE, "--exec: takes the place of the sources (name only the destination)");
	if (a->exec != NULL && a->exec[0] == '\0')
		return err_set(e, PTCP_EUSAGE, "--exec: the command is empty (its output would be an empty file)");
	if (a->exec != NULL) {
		a->srcs = &input;
		a->n_srcs = 1;
	}
	if (a->n_srcs == 0)
		return err_set(e, PTCP_EUSAGE, "%s: needs a source and a destination (ptcp %s --help)",
		    sends ? "send" : "recv", sends ? "send" : "recv");
	for (i = 0; i < a->n_srcs && sends; i++)
		if (text_is_stdio(a->srcs[i]))
			opts(a)->pipe.fd = STDIN_FILENO;
	if (opts(a)->pipe.fd >= 0 && a->exec == NULL && a->files_from != NULL && text_is_stdio(a->files_from))
		return err_set(e, PTCP_EUSAGE, "--files-from -: standard input is the source already (name a file)");
	if (sends || !text_is_stdio(a->dest))
		return 0;
	if (a->connect.log.json)
		return err_set(e, PTCP_EUSAGE,
		    "--json: not with -, as the file goes to standard output (leave one out)");
	a->connect.log.list = false;
	opts(a)->pipe.fd = STDOUT_FILENO;
	return 0;
}

/* The library counts from the start of the transfer. */
static int check_deadline(const struct transfer_args *a, struct ptcp_err *e)
{
	const char *text = a->connect.transfer.limits.deadline;
	char shown[TEXT_NAME_BYTES];
	int64_t at_s;

	if (text == NULL || a->start_s == 0 || units_parse_deadline(text, a->start_s, &at_s) == 0 ||
	    units_parse_deadline(text, time(NULL), &at_s) < 0)
		return 0;
	return err_set(e, PTCP_EUSAGE, "--deadline %s: before the time of --start-at (name a later time)",
	    text_escape(shown, sizeof shown, text));
}

int transfer_parse(struct transfer_args *a, const struct command *c, int argc, char **argv, struct ptcp_err *e)
{
	bool receives = strcmp(c->name, "recv") == 0;
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;
	int n, r;

	memset(a, 0, sizeof *a);
	if ((r = connect_parse(&a->connect, c, argc, argv, &n, NULL, e)) != 0)
		return r;
	a->srcs = (const char *const *)argv;
	a->n_srcs = n == 1 && receives ? 1 : (size_t)n - 1;
	a->dest = n == 1 && receives ? "." : argv[n - 1];
	if ((r = check_deadline(a, e)) < 0 || (r = take_pipe(a, !receives, e)) < 0)
		return r;
	if (a->files_from != NULL && path_list_read(&a->files, a->files_from, a->from0, &why) < 0)
		return err_set(e, PTCP_EUSAGE, "--files-from '%s': %s", text_escape(shown, sizeof shown, a->files_from),
		    why.msg);
	opts(a)->files = (const char *const *)a->files.path;
	opts(a)->n_files = a->files.n;
	if (a->cvs_exclude && (r = rules_add_cvs(&a->rules, e)) < 0) /* behind all other rules, as rsync */
		return r;
	opts(a)->rules = a->rules.rule;
	opts(a)->n_rules = a->rules.n;
	if (a->manifest != NULL && opts(a)->wire.digest == NULL)
		opts(a)->wire.digest = "sha256";
	opts(a)->file_events = a->connect.log.json || a->connect.log.list || opts(a)->dry_run ||
	    opts(a)->wire.digest != NULL;
	return 0;
}

void transfer_args_fini(struct transfer_args *a)
{
	if (a->routes.n > 0)
		opts(a)->paths = NULL, opts(a)->n_paths = 0;
	overlay_paths_fini(&a->routes);
	rules_fini(&a->rules);
	parts_fini(&a->parts);
	path_list_fini(&a->files);
	client_opts_fini(&a->connect);
}

/* --via auto: takes the paths of the overlay; --relays: their bandwidths. */
static int find_routes(struct transfer_args *a, bool sends, struct ptcp_err *e)
{
	struct ptcp_transfer_opts *t = opts(a);
	bool automatic = t->n_paths == 1 && strcmp(t->paths[0], "auto") == 0;
	const struct overlay_query q = { a->overlay, a->local_host, a->srcs, a->n_srcs, a->dest, sends,
		t->path.n_selected,
		a->connect.log.list };
	int r;

	if (a->overlay == NULL && automatic)
		return err_set(e, PTCP_EUSAGE, "--via auto: needs the overlay to take paths from (--overlay FILE)");
	if (a->overlay != NULL && !automatic && (t->n_paths > 0 || t->n_candidates == 0))
		return err_set(e, PTCP_EUSAGE, "--overlay: needs --via auto, without a further --via, or --relays (add "
		    "--via auto)");
	if (a->overlay == NULL && a->local_host != NULL)
		return err_set(e, PTCP_EUSAGE, "--local-host: only with --overlay (leave it out)");
	if (a->overlay == NULL && t->n_candidates == 0 && t->path.n_selected > 0)
		return err_set(e, PTCP_EUSAGE, "--paths: only with --overlay or --relays (leave it out)");
	if (a->overlay == NULL)
		return 0;
	if (!automatic) {
		t->path.candidate_bps = a->candidate_bps;
		return overlay_candidates(a->candidate_bps, t->candidates,
		    t->n_candidates < PTCP_PATHS_MAX ? t->n_candidates : PTCP_PATHS_MAX, &q, e);
	}
	if ((r = overlay_paths_find(&a->routes, &q, e)) < 0)
		return r;
	opt_copies_free(&t->paths, &t->n_paths);
	t->paths = (const char *const *)a->routes.path;
	t->n_paths = a->routes.n;
	t->path.shares = a->routes.share;
	t->path.n_selected = 0;
	return 0;
}

/* ptcp_send_new or ptcp_recv_new */
typedef int transfer_new_fn(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e);

/* A transfer that other processes can observe. */
struct observed {
	const struct transfer_args *a;
	struct ptcp_task *task;
	double impact_percent; /* budget of the present */
	bool ignores_timetable;
	struct output *out;
	struct running *running;
	struct exec exec;
	struct atomic_file list; /* --manifest; f NULL: not open */
	struct manifest listed;  /* lines that it has already */
	uint64_t n_new;          /* files with a new line */
	uint64_t unlisted;       /* files that were there already, without one */
};

/* Each sent file, in the list of --manifest, else on standard output. */
static void list_digests(struct observed *o, const struct ptcp_event *ev)
{
	if (ev->status == PTCP_FILE_SKIPPED && !ev->is_link && !manifest_has(&o->listed, ev->path, false))
		o->unlisted++;
	if (ev->n_digests == 0 || (o->list.f == NULL && o->out->json))
		return;
	if (o->list.f == NULL)
		terminal_status("");
	else
		manifest_has(&o->listed, ev->path, true);
	o->n_new++;
	manifest_print_digests(o->list.f != NULL ? o->list.f : stdout, ev->path, ev->digest, ev->n_digests);
}

static int open_list(struct observed *o, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int r;

	if (o->a->manifest == NULL || o->out->dry_run)
		return 0;
	if ((r = manifest_present(&o->listed, o->a->manifest, e)) < 0)
		return r;
	if (atomic_file_begin(&o->list, o->a->manifest))
		return 0;
	return err_because(e, PTCP_EIO, errno, "--manifest %s: %s (name another file)",
	    text_escape(shown, sizeof shown, o->a->manifest), strerror(errno));
}

/* Of a transfer that failed the list has the files that are complete. Lines of other files remain, and without a new
 * line the list is left alone. */
static int close_list(struct observed *o, int r, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (o->unlisted > 0 && o->a->connect.transfer.wire.digest != NULL && !o->out->dry_run)
		terminal_line("ptcp: warning: %llu file%s there already, without a digest (ptcp sum prints it)",
		    (unsigned long long)o->unlisted, o->unlisted == 1 ? " was" : "s were");
	if (o->list.f != NULL && o->n_new > 0)
		manifest_print(o->list.f, &o->listed);
	manifest_fini(&o->listed);
	if (o->list.f == NULL || atomic_file_end(&o->list, o->n_new > 0, false) || r < 0)
		return r;
	return err_because(e, PTCP_EIO, errno, "--manifest %s: %s (name another file)",
	    text_escape(shown, sizeof shown, o->a->manifest), strerror(errno));
}

static void transfer_report(const struct observed *o, const char *state, const struct ptcp_event *ev)
{
	const struct running_transfer t = { .state = state, .source = o->a->srcs[0], .sources = o->a->n_srcs,
		.destination = o->a->dest, .progress = ev->progress, .rate_bps = ev->rate_bps, .eta_s = ev->eta_s,
		.movers = ev->movers, .n_movers = ev->n_movers };

	running_report_transfer(o->running, &t);
}

/* --impact with a timetable. */
static void follow_timetable(struct observed *o)
{
	const struct timetable *t = &o->a->impact;
	double percent;
	struct ptcp_err why;

	if (!timetable_varies(t) || o->ignores_timetable)
		return;
	percent = timetable_percent(t, timetable_second(time(NULL)));
	if (!(percent < o->impact_percent) && !(percent > o->impact_percent))
		return;
	o->impact_percent = percent;
	if (ptcp_transfer_set_impact(o->task, percent, &why) < 0) {
		o->ignores_timetable = true;
		terminal_line("ptcp: warning: the timetable of --impact is ignored: %s", why.msg);
	}
}

static void on_event(void *arg, const struct ptcp_event *ev)
{
	struct observed *o = arg;

	if (ev->type == PTCP_EVENT_PROGRESS)
		follow_timetable(o);
	if (ev->type == PTCP_EVENT_START)
		exec_start(&o->exec);
	output_event(o->out, ev);
	if (ev->type == PTCP_EVENT_FILE)
		list_digests(o, ev);
	if (ev->type == PTCP_EVENT_WAITING)
		transfer_report(o, "waiting", ev);
	else if (ev->type == PTCP_EVENT_PROGRESS || ev->type == PTCP_EVENT_START)
		transfer_report(o, o->out->reconnect.attempt > 0 ? "reconnecting" : "running", ev);
}

static int set_rate(void *task, const char *rate, struct ptcp_err *e)
{
	return ptcp_transfer_set_rate(task, rate, e);
}

static int run_observed(struct observed *o, struct ptcp_task *t, struct ptcp_err *e)
{
	const struct ptcp_event none = { .eta_s = -1 };
	const struct running_opts opts = { .command = o->out->command, .name = o->a->name,
		.limit = o->a->connect.transfer.rate, .quiet = o->out->quiet || o->out->json,
		.set_rate = set_rate, .arg = t };
	int r;

	if ((r = running_new(&o->running, &opts, e)) < 0)
		return r;
	transfer_report(o, "connecting", &none);
	if ((r = running_start(o->running, e)) == 0)
		r = connect_run(t, e);
	running_free(o->running);
	return r;
}

static int on_input_ended(void *arg, struct ptcp_err *e) { return exec_ended(&((struct observed *)arg)->exec, e); }

static int open_exec(struct ptcp_transfer_opts *o, struct exec *x, const char *command, struct ptcp_err *e)
{
	int r;

	if (command == NULL)
		return 0;
	if ((r = exec_open(x, command, e)) < 0)
		return r;
	o->pipe.fd = x->fd;
	o->pipe.ended = on_input_ended;
	return 0;
}

/* --start-at. The clock may be set meanwhile. */
static int wait_for_start(const struct transfer_args *a, struct ptcp_err *e)
{
	const struct timespec look = { .tv_nsec = 200 * (long)NS_PER_MS };
	const time_t at = (time_t)a->start_s;
	char text[32];
	struct tm tm;

	if (a->start_s == 0)
		return 0;
	if (a->connect.log.json)
		json_line(json_pack("{s:s, s:I}", "event", "start_at", "at", (json_int_t)a->start_s));
	else if (!a->connect.log.quiet && localtime_r(&at, &tm) != NULL &&
	    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) > 0)
		terminal_line("begins at %s", text);
	while ((int64_t)time(NULL) < a->start_s && !process_stopping())
		nanosleep(&look, NULL);
	return process_stopping() ? err_set(e, PTCP_ECANCELED, "%s", ptcp_err_text(PTCP_ECANCELED)) : 0;
}

static int run_transfer(struct transfer_args *a, struct output *out, transfer_new_fn *new_transfer,
    struct ptcp_result *result, struct ptcp_err *e)
{
	struct observed observed = { .a = a, .out = out, .exec = { .fd = -1, .write_fd = -1 } };
	struct ptcp_transfer_opts *o = opts(a);
	struct ptcp_task *t = NULL;
	char own[PATH_MAX];
	int r;

	if ((r = wait_for_start(a, e)) < 0 || (r = find_routes(a, new_transfer == ptcp_send_new, e)) < 0)
		return r;
	if (timetable_varies(&a->impact))
		o->impact_percent = timetable_percent(&a->impact, timetable_second(time(NULL)));
	observed.impact_percent = o->impact_percent;
	if ((r = open_list(&observed, e)) < 0)
		return r;
	if ((r = open_exec(o, &observed.exec, a->exec, e)) < 0)
		return close_list(&observed, PTCP_EUSAGE, e) < 0 ? r : 0;
	if (o->mover.ptcp == NULL && o->mover.command != NULL)
		o->mover.ptcp = process_own_path(own, sizeof own);
	o->event = on_event;
	o->arg = &observed;
	out->cipher = ptcp_cipher_name(o->cipher);
	out->routes = o->n_paths > 0 ? o->paths : o->n_candidates > 0 ? o->candidates : NULL;
	if ((r = new_transfer(&t, o, a->srcs, a->n_srcs, a->dest, e)) == 0) {
		observed.task = t;
		r = run_observed(&observed, t, e);
		ptcp_transfer_result(t, result);
	}
	exec_give_up(&observed.exec);
	ptcp_task_free(t);
	r = close_list(&observed, r, e);
	exec_fini(&observed.exec);
	return r;
}

/* Options about the choice of received files, and the fate of existing files. */
static bool has_rules(const struct ptcp_transfer_opts *o)
{
#define IS_ON(member, ...) || o->member
#define IS_GIVEN(type, member, initial, ...) || o->member != (initial)
	return o->wire.inplace PTCP_OPTIONS_SELECTION(IS_ON, IS_ON, IS_GIVEN, PTCP_NO_ROW)
	    PTCP_OPTIONS_EXISTING(IS_ON, IS_ON, IS_GIVEN, PTCP_NO_ROW)
	    PTCP_OPTIONS_OLDER(IS_ON, IS_ON, IS_GIVEN, PTCP_NO_ROW)
	    PTCP_OPTIONS_COPYING(IS_ON, IS_ON, IS_GIVEN, PTCP_NO_ROW);
#undef IS_ON
#undef IS_GIVEN
}

/* recv --range: no transfer, but a request for these bytes. */
static int run_parts(struct transfer_args *a, struct ptcp_result *result, struct ptcp_err *e)
{
	struct ptcp_progress *p = &result->progress;
	struct mono begun = mono_now();
	int r;

	if (a->n_srcs != 1 || a->files_from != NULL || a->rules.n > 0 || has_rules(opts(a)))
		return err_set(e, PTCP_EUSAGE, "--range: for one file, without a dry run, and without rules about "
		    "files and existing ones (leave these out)");
	if ((r = parts_read_to(opts(a), a->srcs[0], &a->parts, a->dest, &p->bytes, e)) == 0)
		p->files = 1;
	p->total_files = 1;
	p->total_bytes = p->wire_bytes = p->file_bytes = p->bytes;
	p->max_streams = 1;
	result->seconds = (double)mono_diff_ns(mono_now(), begun) / 1e9;
	return r;
}

static int run(const struct command *c, int argc, char **argv, transfer_new_fn *new_transfer)
{
	struct ptcp_err e = { .code = 0 };
	struct ptcp_result result;
	struct transfer_args a;
	struct output out;
	int r;

	process_catch(EXIT_INTERRUPTED, INTERRUPTED_TWICE);
	ptcp_result_init(&result);
	r = transfer_parse(&a, c, argc, argv, &e);
	output_init(&out, c->name, &a.connect.log);
	out.dry_run = opts(&a)->dry_run;
	out.keeps = opts(&a)->update || opts(&a)->ignore_existing;
	if (r == 0) {
		out.on_end = a.connect.log.on_end;
		out.sources = a.srcs;
		out.n_sources = a.n_srcs;
		out.dest = a.dest;
	}
	if (r == 0 && a.parts.n > 0)
		r = run_parts(&a, &result, &e);
	else if (r == 0)
		r = run_transfer(&a, &out, new_transfer, &result, &e);
	r = r == OPTIONS_HELP ? command_help(c) : output_end(&out, r, &result, &e);
	transfer_args_fini(&a);
	return r;
}

static int run_send(const struct command *c, int argc, char **argv)
{
	return run(c, argc, argv, ptcp_send_new);
}

static int run_recv(const struct command *c, int argc, char **argv)
{
	return run(c, argc, argv, ptcp_recv_new);
}

#define TRANSFER_GROUPS(copying, digests) { \
	GROUP_OF("Files to transfer", files_options), \
	GROUP_OF("Copies, and files that exist at the destination", copying), GROUP_OF("", existing_options), \
	GROUP_OF("Speed, and impact on competing flows", speed_options), GROUP_LIST, \
	GROUP_BRIEF("Files, attributes, SSH", selection_options), \
	GROUP_BRIEF("", writing_options), \
	GROUP_BRIEF("", attribute_options), GROUP_BRIEF("", older_options), GROUP_BRIEF("", digests), \
	GROUP_BRIEF("", ssh_options), GROUP_BRIEF("Connection, movers", connect_options), \
	GROUP_BRIEF("", retry_options), GROUP_BRIEF("", paths_options), GROUP_BRIEF("", mover_options), \
	GROUPS_OF_HINTS, GROUP_END }
static const struct opt_group send_groups[] = TRANSFER_GROUPS(send_options, digest_options);
static const struct opt_group recv_groups[] = TRANSFER_GROUPS(recv_options, part_options);

const struct command command_send = { "send", "[options] SRC... DEST", "send files and directories to a remote host",
	run_send, send_groups, 1, INT_MAX, "needs a source and a destination" };
const struct command command_recv = { "recv", "[options] SRC... [DEST]",
	"receive files and directories from a remote host", run_recv, recv_groups, 1, INT_MAX, "needs a source" };
