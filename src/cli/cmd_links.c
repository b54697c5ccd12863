/* ptcp links OVERLAY.yaml: measures the links of an overlay, or asks for what daemons know of them, and writes them into
 * the file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/exit.h"
#include "cli/links_output.h"
#include "cli/measure_opts.h"
#include "cli/process.h"
#include "cli/terminal.h"
#include "core/err.h"

struct links_args {
	struct connect_args connect; /* first */
	bool local_only, watch, query;
	double interval_s;
	const char *write;
	struct ptcp_links_opts opts;
};

static int set_budget(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	if (opt_number(text, 1, PTCP_LINKS_BUDGET_MAX, &((struct links_args *)args)->opts.budget) < 0)
		return opt_reject(o, text, e, "not a number of messages from 1 to 1000000");
	return 0;
}

static int set_streams(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	if (opt_number(text, 1, PTCP_STREAMS_MAX, &((struct links_args *)args)->opts.streams) < 0)
		return opt_reject(o, text, e, "not a number from 1 to 128");
	return 0;
}

static const struct opt own_options[] = {
	{ "local-host", 0, "HOST", "the host of the overlay that this is (by its address)", opt_text,
	    offsetof(struct links_args, opts.local_host) },
	{ "local-only", 0, NULL, "leave out links that begin at other hosts", opt_true,
	    offsetof(struct links_args, local_only) },
	{ "budget", 0, "N", "messages to send in all (16 a link)", set_budget, 0 },
	{ "streams", 0, "N", "streams to measure with (4)", set_streams, 0 },
	{ "write", 0, "FILE", "write the overlay there, with what was measured", opt_text,
	    offsetof(struct links_args, write) },
	{ "query", 0, NULL, "measure nothing: ask the daemons what they have learnt", opt_true,
	    offsetof(struct links_args, query) },
	{ "watch", 0, NULL, "go on, link after link, until interrupted", opt_true, offsetof(struct links_args, watch) },
	{ "interval", 0, "TIME", "with --watch: between two links (60s)", opt_patience,
	    offsetof(struct links_args, interval_s) },
	{ .name = NULL },
};

const struct opt *const links_options[] = { own_options, connect_options, log_opts_options, NULL };

static void show_link(void *arg, size_t link)
{
	char name[LINK_NAME_BYTES], line[LINK_NAME_BYTES + 16];

	snprintf(line, sizeof line, "looking at %s", links_name(name, arg, link));
	terminal_status(line);
}

static void cancel(void *handle)
{
	ptcp_links_cancel(handle);
}

static void tell_failed(const struct ptcp_overlay *o, const struct ptcp_links *l)
{
	char name[LINK_NAME_BYTES];
	struct ptcp_link_estimate m;
	size_t i;

	for (i = 0; i < ptcp_overlay_links(o); i++) {
		ptcp_links_get(l, i, &m);
		if (m.state == PTCP_LINK_FAILED)
			terminal_line("ptcp: warning: %s: %s", links_name(name, o, i), m.why);
	}
}

/* What is known goes by the number of the link: that must not be another's by now. */
static int check_same(const char *file, const struct ptcp_overlay *o, struct ptcp_err *e)
{
	char name[LINK_NAME_BYTES], now[LINK_NAME_BYTES];
	struct ptcp_overlay *again;
	bool same;
	size_t i;
	int r;

	if ((r = ptcp_overlay_load(&again, file, e)) < 0)
		return r;
	same = ptcp_overlay_links(again) == ptcp_overlay_links(o);
	for (i = 0; same && i < ptcp_overlay_links(o); i++)
		same = strcmp(links_name(name, o, i), links_name(now, again, i)) == 0;
	ptcp_overlay_free(again);
	return same ? 0 : err_set(e, PTCP_ECONFIG, "%s: its links have changed since they are being measured (run it "
	    "again)", file);
}

static int write_back(const struct links_args *a, const char *file, const struct ptcp_overlay *o,
    const struct ptcp_links *l, struct ptcp_err *e)
{
	struct ptcp_overlay_found *found;
	struct ptcp_link_estimate m;
	size_t i, n = 0;
	int r;

	if (a->write == NULL)
		return 0;
	if ((r = check_same(file, o, e)) < 0)
		return r;
	if ((found = calloc(ptcp_overlay_links(o) + 1, sizeof *found)) == NULL)
		return err_nomem(e);
	for (i = 0; i < ptcp_overlay_links(o); i++) {
		ptcp_links_get(l, i, &m);
		if (m.state == PTCP_LINK_MEASURED && isfinite(m.rate_bps))
			found[n++] = (struct ptcp_overlay_found){ i, (uint64_t)(m.rate_bps + 0.5),
				(uint64_t)(m.delay_s * 1e9 + 0.5) };
	}
	r = ptcp_overlay_save(file, a->write, found, n, e);
	free(found);
	return r;
}

/* ---- Watching ---- */

struct watching {
	const struct links_args *a;
	const char *file;
	struct ptcp_overlay *o;
	struct ptcp_links *l;
	bool *failing;   /* of each link, and told */
};

static int on_seen(void *arg, size_t link, const char *why, struct ptcp_err *e)
{
	struct watching *w = arg;
	char name[LINK_NAME_BYTES];
	bool was = w->failing[link];
	int r = 0;

	terminal_status("");
	w->failing[link] = why != NULL;
	if (why != NULL) {
		if (!was)
			terminal_line("ptcp: warning: %s: %s", links_name(name, w->o, link), why);
		return 0;
	}
	if (w->a->connect.talk.json)
		r = links_json_link(w->o, w->l, link, e);
	else if (!w->a->connect.talk.quiet)
		links_text_link(w->o, w->l, link);
	return r < 0 ? r : write_back(w->a, w->file, w->o, w->l, e);
}

/* Being interrupted is its end. */
static int watch(const struct links_args *a, const char *file, struct ptcp_overlay *o, struct ptcp_links *l,
    struct ptcp_err *e)
{
	struct watching w = { a, file, o, l, calloc(ptcp_overlay_links(o) + 1, sizeof *w.failing) };
	struct ptcp_links_watch opts;
	struct ptcp_link_estimate m;
	size_t i;
	int r;

	if (w.failing == NULL)
		return err_nomem(e);
	for (i = 0; i < ptcp_overlay_links(o); i++) {
		ptcp_links_get(l, i, &m);
		w.failing[i] = m.state == PTCP_LINK_FAILED;
	}
	ptcp_links_watch_init(&opts);
	if (a->interval_s > 0)
		opts.pause_s = a->interval_s;
	opts.seen = on_seen;
	opts.arg = &w;
	r = ptcp_links_watch(l, &opts, e);
	free(w.failing);
	return r == PTCP_ECANCELED ? 0 : r;
}

/* ---- Once ---- */

/* What has been measured is shown and written, also when the rest could not be. */
static int show(const struct links_args *a, const char *file, struct ptcp_overlay *o, struct ptcp_links *l,
    struct ptcp_err *e)
{
	int r = 0;

	tell_failed(o, l);
	if (a->connect.talk.json)
		r = links_json(o, l, e);
	else
		links_text(o, l, a->query);
	return r < 0 ? r : write_back(a, file, o, l, e);
}

static int measure(const struct links_args *a, const char *file, struct ptcp_overlay *o, struct ptcp_links *l,
    struct ptcp_err *e)
{
	struct ptcp_err later;
	int r, r2;

	process_catch(EXIT_INTERRUPTED, "\nptcp: interrupted twice: ended at once (run it again)\n");
	process_set_stop(cancel, l);
	r = a->query ? ptcp_links_ask(l, e) : ptcp_links_measure(l, e);
	terminal_status("");
	if (a->query && r < 0 && r != PTCP_EPARTIAL && r != PTCP_ECANCELED)
		tell_failed(o, l); /* each host has its own reason */
	if (r == 0 || r == PTCP_EPARTIAL) {
		if ((r2 = show(a, file, o, l, &later)) == 0 && a->watch)
			r = r2 = watch(a, file, o, l, &later);
		if (r2 < 0) {
			*e = later;
			r = r2;
		}
	}
	process_set_stop(NULL, NULL);
	return r;
}

static int run(struct links_args *a, const char *file, struct ptcp_err *e)
{
	struct ptcp_overlay *o = NULL;
	struct ptcp_links *l = NULL;
	struct ptcp_transfer_opts connect;
	int r;

	if ((r = ptcp_overlay_load(&o, file, e)) < 0)
		return r;
	ptcp_transfer_opts_init(&connect);
	connect_apply(&a->connect, &connect);
	if (!a->connect.talk.quiet && !a->connect.talk.json && terminal_is(2))
		a->opts.begin = show_link;
	a->opts.arg = o;
	a->opts.local_only = a->local_only;
	if ((r = ptcp_links_new(&l, o, &connect, &a->opts, e)) == 0)
		r = measure(a, file, o, l, e);
	ptcp_links_free(l);
	ptcp_overlay_free(o);
	return r;
}

/* What is about measuring does not go with asking. */
static int check(const struct command *c, const struct links_args *a, const struct options_given *given,
    struct ptcp_err *e)
{
	static const char *const measuring[] = { "watch", "budget", "streams", NULL };
	const char *const *name;

	if (a->interval_s > 0 && !a->watch)
		return err_set(e, PTCP_EUSAGE, "--interval: only with --watch (add it, or leave this out)");
	for (name = measuring; a->query && *name != NULL; name++)
		if (options_is_given(given, options_find(c, *name)))
			return err_set(e, PTCP_EUSAGE, "--%s: not with --query, which measures nothing (leave one of them out)", *name);
	return 0;
}

int cmd_links(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct options_given given;
	struct links_args a;
	int n = 0, r;

	memset(&a, 0, sizeof a);
	connect_init(&a.connect);
	ptcp_links_opts_init(&a.opts);
	r = options_parse_noting(c, argc, argv, &a, &n, &given, &e);
	if (r == 0)
		r = check(c, &a, &given, &e);
	if (r == 0 && n != 1)
		r = err_set(&e, PTCP_EUSAGE, "%s: needs one overlay file (ptcp %s --help)", c->name, c->name);
	if (r == 0)
		r = run(&a, argv[0], &e);
	connect_fini(&a.connect);
	return command_end(c, r, &e);
}
