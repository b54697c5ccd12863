/* ptcp plan: the plan of a collection, compared with all methods. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/process.h"
#include "cli/show/plan_output.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct plan_args {
	bool json;
	const char *plot;
	struct ptcp_plan_opts opts;
	const char *const *what_if;
	size_t n_what_if;
};

static int parse_what_if(const char *text, const char **eq, uint64_t *bps)
{
	*eq = strchr(text, '=');
	return *eq == NULL || units_parse_rate(*eq + 1, bps) < 0 || *bps == PTCP_UNKNOWN ? -1 : 0;
}

static int add_what_if(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct plan_args *a = args;
	const char *eq;
	uint64_t bps;

	if (parse_what_if(text, &eq, &bps) < 0)
		return opt_reject(o, text, e, "not a link and a rate (such as K>D=400Mbit/s)");
	return opt_append(&a->what_if, &a->n_what_if, text, e);
}

#define AT(member) offsetof(struct plan_args, member)

#define OPT_AT(member) AT(opts.member)

static const struct opt plan_options[] = {
	OPT_ROWS(PTCP_OPTIONS_PLAN)
	{ "what-if", 0, "A>B=RATE", "plan with this rate for a link; repeatable", add_what_if, 0, 0, 0 },
	{ "json", 0, NULL, "print a JSON object on standard output", opt_true, AT(json), 0, 0 },
	{ "plot", 0, "FILE.svg", "plot links and storage over time with gnuplot", opt_text, AT(plot), 0, 0 },
	{ .name = NULL },
};

static int apply_what_if(struct ptcp_overlay *o, const char *text, struct ptcp_err *e)
{
	const char *eq;
	char shown[TEXT_NAME_BYTES], *link;
	uint64_t bps;
	int r;

	if (parse_what_if(text, &eq, &bps) < 0 || (link = strndup(text, (size_t)(eq - text))) == NULL)
		return err_nomem(e);
	r = ptcp_overlay_set_rate(o, link, bps, e);
	free(link);
	return r < 0 ? err_while(e, r, "--what-if '%s'", text_escape(shown, sizeof shown, text)) : 0;
}

#define COMPARE_S 2.0  /* CPU time of each method that was not requested */
#define PROGRESS_S 1.0 /* time before progress is shown */

static bool show_progress(void *arg, double cpu_s)
{
	const struct ptcp_plan_opts *o = arg;
	char line[80];

	if (cpu_s >= PROGRESS_S && terminal_is(STDERR_FILENO)) {
		snprintf(line, sizeof line, "planning: %s, %.0f s", ptcp_plan_method_name(o->method), cpu_s);
		terminal_status(line);
	}
	return true;
}

static bool compare_briefly(void *arg, double cpu_s)
{
	return show_progress(arg, cpu_s) && cpu_s < COMPARE_S;
}

/* Plans by the remaining methods, for comparison, without a deadline. */
static int plan_baselines(enum ptcp_plan_method chosen, struct plan_shown *s, struct ptcp_err *e)
{
	struct ptcp_plan_opts opts;
	struct ptcp_plan *p;
	int m, r;

	ptcp_plan_opts_init(&opts);
	opts.deadline_s = INFINITY;
	opts.effort_s = COMPARE_S / 2;
	opts.go_on = compare_briefly;
	opts.arg = &opts;
	for (m = 0; m < PLAN_METHODS; m++) {
		opts.method = (enum ptcp_plan_method)m;
		if (opts.method == chosen) {
			ptcp_plan_info(s->plan, &s->baseline[m]);
			continue;
		}
		s->baseline[m] = (struct ptcp_plan_info){ .makespan_s = NAN };
		r = ptcp_plan_make(&p, s->overlay, &opts, e);
		if (r == 0) {
			ptcp_plan_info(p, &s->baseline[m]);
			ptcp_plan_free(p);
		} else if (r == PTCP_ECANCELED) {
			s->baseline[m].makespan_s = INFINITY;
		} else if (r == PTCP_ERANGE) {
			terminal_line("ptcp: warning: %s: %s", ptcp_plan_method_name(opts.method), e->msg);
		} else if (r != PTCP_EINFEASIBLE) {
			return r;
		}
	}
	return 0;
}

static int make(const struct plan_args *a, struct ptcp_overlay *o, struct plan_shown *s, struct ptcp_plan **plan,
    struct ptcp_err *e)
{
	struct ptcp_plan_opts opts = a->opts;
	size_t i;
	int r;

	for (i = 0; i < a->n_what_if; i++)
		if ((r = apply_what_if(o, a->what_if[i], e)) < 0)
			return r;
	opts.go_on = show_progress;
	opts.arg = &opts;
	r = ptcp_plan_make(plan, o, &opts, e);
	if (r == 0) {
		s->overlay = o;
		s->plan = *plan;
		r = plan_baselines(a->opts.method, s, e);
	}
	if (terminal_is(STDERR_FILENO))
		terminal_status("");
	return r;
}

static int make_and_print(const struct plan_args *a, const char *file, struct ptcp_err *e)
{
	struct ptcp_overlay *o = NULL;
	struct ptcp_plan *plan = NULL;
	struct plan_shown s = { .overlay = NULL };
	int r;

	if ((r = ptcp_overlay_load(&o, file, e)) == 0)
		r = make(a, o, &s, &plan, e);
	process_set_stop(NULL, NULL);
	if (r == 0 && a->json)
		r = plan_json(&s, e);
	else if (r == 0)
		plan_text(stdout, &s);
	if (r == 0 && a->plot != NULL)
		r = plan_plot(a->plot, &s, e);
	ptcp_plan_free(plan);
	ptcp_overlay_free(o);
	return r;
}

static int run_plan(const struct command *c, int argc, char **argv)
{
	static char line[] = "ptcp: plan: interrupted (run the same command again)\n";
	struct ptcp_err e = { .code = 0 };
	struct plan_args a;
	int r;

	process_catch(EXIT_INTERRUPTED, line);
	process_set_stop(process_end, line); /* planning leaves no files or processes behind */
	memset(&a, 0, sizeof a);
	ptcp_plan_opts_init(&a.opts);
	if ((r = options_parse(c, argc, argv, &a, NULL, NULL, &e)) == 0)
		r = make_and_print(&a, argv[0], &e);
	opt_list_free(&a.what_if, &a.n_what_if);
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(plan_options), GROUP_END };

const struct command command_plan = { "plan", "[options] OVERLAY.yaml", "plan how to collect data from many hosts",
	run_plan, tables, 1, 1, "needs one overlay file" };
