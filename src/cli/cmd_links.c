/* ptcp links: measures the links of an overlay, or queries servers for estimates, and writes the results into
 * the overlay file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/overlay_names.h"
#include "cli/process.h"
#include "cli/show/links_output.h"
#include "cli/show/terminal.h"
#include "core/err.h"

struct links_args {
	struct client_opts connect; /* first */
	bool watch, query;
	double interval_s;
	const char *write;
	struct ptcp_links_opts opts;
};

#define AT(member) offsetof(struct links_args, member)

#define OPT_AT(member) AT(opts.member)

static const struct opt links_options[] = {
	OPT_ROWS(PTCP_OPTIONS_LINKS)
	{ "write", 0, "FILE", "write the overlay with the results to FILE, as they are known", opt_text,
	    AT(write), 0, 0 },
	{ "query", 0, NULL, "do not measure; query servers for their estimates", opt_true, AT(query), 0, 0 },
	{ "watch", 0, NULL, "measure continuously until interrupted", opt_true, AT(watch), 0, 0 },
	{ "interval", 0, "TIME", "with --watch: pause before each link (default: 60s)", opt_seconds, AT(interval_s),
	    OPT_PATIENCE },
	{ .name = NULL },
};

/* ---- Results ---- */

/* Results are stored by index of link: the file must still have the same links. */
static int check_same(const char *file, const struct ptcp_overlay *o, struct ptcp_err *e)
{
	char name[LINK_NAME_BYTES], current[LINK_NAME_BYTES];
	struct ptcp_overlay *reloaded;
	bool same;
	size_t i;
	int r;

	if ((r = ptcp_overlay_load(&reloaded, file, e)) < 0)
		return r;
	same = ptcp_overlay_links(reloaded) == ptcp_overlay_links(o);
	for (i = 0; same && i < ptcp_overlay_links(o); i++)
		same = strcmp(link_name_of(name, o, i), link_name_of(current, reloaded, i)) == 0;
	ptcp_overlay_free(reloaded);
	return same ? 0 : err_set(e, PTCP_ECONFIG, "%s: the links have changed during the measurement "
	    "(run the same command again)", file);
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

/* Appends shared bottlenecks to the written file, unless the overlay names its own. */
static int write_shared(const struct links_args *a, const struct ptcp_links *l, struct ptcp_err *e)
{
	struct ptcp_shared_bottleneck *found;
	size_t n = links_shared(&found, l);
	int r = 0;

	if (a->write != NULL && n > 0 && (r = ptcp_overlay_save_shared(a->write, a->write, found, n, e)) > 0) {
		terminal_line("ptcp: warning: %s: has shared bottlenecks already, which were not changed (remove "
		    "'shared' to have the measured ones)", a->write);
		r = 0;
	}
	free(found);
	return r;
}

/* ---- Continuous measurement ---- */

struct links_view {
	const struct links_args *a;
	const char *file;
	struct ptcp_overlay *o;
	struct ptcp_links *l;
	bool *failing; /* already reported, by link */
};

/* Reports failures once, and prints and writes results. */
static int on_measured(void *arg, size_t link, const char *why, struct ptcp_err *e)
{
	struct links_view *w = arg;
	char name[LINK_NAME_BYTES];
	bool was = w->failing[link];
	int r = 0;

	terminal_status("");
	w->failing[link] = why != NULL;
	if (why != NULL) {
		if (!was)
			terminal_line("ptcp: warning: %s: %s", link_name_of(name, w->o, link), why);
		return 0;
	}
	if (w->a->connect.log.json)
		r = json_result(links_one_json(w->o, w->l, link), e);
	else if (!w->a->connect.log.quiet)
		links_print_one(w->o, w->l, link);
	return r < 0 ? r : write_back(w->a, w->file, w->o, w->l, e);
}

/* Runs until interrupted, with 0 as the result. */
static int watch(const struct links_args *a, const char *file, struct ptcp_overlay *o, struct ptcp_links *l,
    struct ptcp_err *e)
{
	struct links_view w = { a, file, o, l, calloc(ptcp_overlay_links(o) + 1, sizeof *w.failing) };
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
	opts.seen = on_measured;
	opts.arg = &w;
	r = ptcp_links_watch(l, &opts, e);
	free(w.failing);
	return r == PTCP_ECANCELED ? 0 : r;
}

/* ---- The command ---- */

static int report_measured(const struct links_args *a, struct ptcp_overlay *o, struct ptcp_links *l,
    struct ptcp_err *e)
{
	if (a->connect.log.json)
		return json_result(links_all_json(o, l), e);
	links_print(o, l, a->query);
	return 0;
}

/* Prints and writes all results, even if some links have failed. */
static int cmd_links_report(const struct links_args *a, const char *file, struct ptcp_overlay *o, struct ptcp_links *l,
    struct ptcp_err *e)
{
	int r;

	links_warn_failed(o, l, false);
	r = report_measured(a, o, l, e);
	if (r < 0 || (r = write_back(a, file, o, l, e)) < 0)
		return r;
	return write_shared(a, l, e);
}

/* ---- Progress ---- */

struct progress {
	const struct links_args *a;
	const char *file;
	struct ptcp_overlay *o;
	struct ptcp_links *l;
	struct ptcp_err failed; /* failure to write; code 0: none */
};

static size_t count(const struct progress *p, enum ptcp_link_state state)
{
	struct ptcp_link_estimate m;
	size_t i, n = 0;

	for (i = 0; i < ptcp_overlay_links(p->o); i++) {
		ptcp_links_get(p->l, i, &m);
		n += m.state == state;
	}
	return n;
}

static void on_begin(void *arg, size_t link)
{
	const struct progress *p = arg;
	char name[LINK_NAME_BYTES], line[LINK_NAME_BYTES + 64];

	if (!log_opts_status(&p->a->connect.log))
		return;
	snprintf(line, sizeof line, "measuring %s (%zu of %zu measured)", link_name_of(name, p->o, link),
	    count(p, PTCP_LINK_MEASURED), ptcp_overlay_links(p->o) - count(p, PTCP_LINK_ELSEWHERE));
	terminal_status(line);
}

static void on_together(void *arg, size_t n_links)
{
	const struct progress *p = arg;
	char line[100];

	if (!log_opts_status(&p->a->connect.log))
		return;
	snprintf(line, sizeof line, "measuring %zu links together, to find shared bottlenecks", n_links);
	terminal_status(line);
}

/* Writes all results so far: an interrupted measurement keeps them. */
static void on_estimate(void *arg, size_t link)
{
	struct progress *p = arg;

	(void)link;
	if (p->failed.code == 0 && write_back(p->a, p->file, p->o, p->l, &p->failed) < 0)
		ptcp_links_cancel(p->l);
}

static void cancel(void *handle)
{
	ptcp_links_cancel(handle);
}

static int measure(const struct links_args *a, const struct progress *p, struct ptcp_err *e)
{
	struct ptcp_overlay *o = p->o;
	struct ptcp_links *l = p->l;
	const char *file = p->file;
	struct ptcp_err later;
	int r, r2;

	process_set_stop(cancel, l);
	r = a->query ? ptcp_links_query(l, e) : ptcp_links_measure(l, e);
	terminal_status("");
	if (p->failed.code != 0) {
		*e = p->failed;
		r = e->code;
	} else if (r == PTCP_ECANCELED && !a->query && count(p, PTCP_LINK_MEASURED) > 0 &&
	    (r2 = report_measured(a, o, l, &later)) < 0) {
		*e = later;
		r = r2;
	}
	if (r < 0 && r != PTCP_EPARTIAL && r != PTCP_ECANCELED && p->failed.code == 0)
		links_warn_failed(o, l, true);
	if (r == 0 || r == PTCP_EPARTIAL) {
		if ((r2 = cmd_links_report(a, file, o, l, &later)) == 0 && a->watch)
			r = r2 = watch(a, file, o, l, &later);
		if (r2 < 0) {
			*e = later;
			r = r2;
		}
	}
	process_set_stop(NULL, NULL);
	return process_result(r, e);
}

static int load_and_measure(struct links_args *a, const char *file, struct ptcp_err *e)
{
	struct progress p = { .a = a, .file = file };
	int r;

	if ((r = ptcp_overlay_load(&p.o, file, e)) < 0)
		return r;
	a->opts.begin = on_begin;
	a->opts.together = on_together;
	a->opts.measured = on_estimate;
	a->opts.arg = &p;
	if ((r = ptcp_links_new(&p.l, p.o, &a->connect.transfer, &a->opts, e)) == 0)
		r = measure(a, &p, e);
	ptcp_links_free(p.l);
	ptcp_overlay_free(p.o);
	return r;
}

static int check(const struct command *c, const struct links_args *a, const struct options_given *given,
    struct ptcp_err *e)
{
	static const char *const measuring[] = { "watch", "budget", "streams", "no-shared", NULL };
	const char *const *name;

	if (a->interval_s > 0 && !a->watch)
		return err_set(e, PTCP_EUSAGE, "--interval: only with --watch (add --watch, or leave --interval out)");
	for (name = measuring; a->query && *name != NULL; name++)
		if (options_is_given(given, options_find(c, *name)))
			return err_set(e, PTCP_EUSAGE,
			    "--%s: not with --query, which does not measure (leave one of them out)", *name);
	return 0;
}

static int run_links(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct options_given given;
	struct links_args a;
	int r;

	process_catch(EXIT_INTERRUPTED, INTERRUPTED_TWICE);
	memset(&a, 0, sizeof a);
	ptcp_links_opts_init(&a.opts);
	if ((r = connect_parse(&a.connect, c, argc, argv, NULL, &given, &e)) == 0 &&
	    (r = check(c, &a, &given, &e)) == 0)
		r = load_and_measure(&a, argv[0], &e);
	options_given_free(&given);
	client_opts_fini(&a.connect);
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(links_options), GROUP_CONNECTION, GROUP_LOG, GROUP_END };

const struct command command_links = { "links", "[options] OVERLAY.yaml",
	"measure the links of an overlay, or query servers for estimates", run_links, tables, 1, 1,
	"needs one overlay file" };
