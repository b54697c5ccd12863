/* ptcp plan OVERLAY.yaml: the plan of a collection, beside all methods. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exit.h"
#include "cli/options.h"
#include "cli/plan_output.h"
#include "cli/process.h"
#include "cli/terminal.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct plan_args {
	bool json;
	const char *plot;
	int method;
	double deadline_s;    /* 0: the overlay's */
	const char **what_if; /* has room for every argument */
	int n_what_if;
};

static int set_method(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	int m = ptcp_plan_method_find(text);

	if (m < 0)
		return opt_reject(o, text, e, "no such method (direct, best-path, coordinated or pipelined)");
	((struct plan_args *)args)->method = m;
	return 0;
}

static int set_deadline(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	uint64_t ns;

	if (units_parse_time(text, &ns) < 0 || ns == 0)
		return opt_reject(o, text, e, "not a time above 0 (such as 30m or 2h)");
	((struct plan_args *)args)->deadline_s = (double)ns / (double)NS_PER_S;
	return 0;
}

static int parse_what_if(const char *text, const char **eq, uint64_t *bps)
{
	*eq = strchr(text, '=');
	return *eq == NULL || units_parse_rate(*eq + 1, bps) < 0 || *bps == PTCP_UNKNOWN ? -1 : 0;
}

static int set_what_if(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct plan_args *a = args;
	const char *eq;
	uint64_t bps;

	if (parse_what_if(text, &eq, &bps) < 0)
		return opt_reject(o, text, e, "not a link and a rate (such as K>D=400Mbit/s)");
	a->what_if[a->n_what_if++] = text;
	return 0;
}

static const struct opt own_options[] = {
	{ "method", 0, "NAME", "direct, best-path, coordinated or pipelined (pipelined)",
	    set_method, 0 },
	{ "deadline", 0, "T", "fail when the data cannot arrive by then", set_deadline, 0 },
	{ "what-if", 0, "A>B=RATE", "plan as if that link had that rate; repeatable", set_what_if, 0 },
	{ "json", 0, NULL, "one JSON object on stdout", opt_true, offsetof(struct plan_args, json) },
	{ "plot", 0, "FILE.svg", "a picture of links over time and of storage, by gnuplot", opt_text,
	    offsetof(struct plan_args, plot) },
	{ .name = NULL },
};

const struct opt *const plan_options[] = { own_options, NULL };

static int apply_what_if(struct ptcp_overlay *o, const char *text, struct ptcp_err *e)
{
	const char *eq;
	char shown[TEXT_NAME_BYTES], *link;
	uint64_t bps;
	int r;

	if (parse_what_if(text, &eq, &bps) < 0 ||
	    (link = strndup(text, (size_t)(eq - text))) == NULL)
		return err_nomem(e);
	r = ptcp_overlay_set_rate(o, link, bps, e);
	free(link);
	return r < 0 ? err_while(e, r, "--what-if '%s'", text_escape(shown, sizeof shown, text)) : 0;
}

/* The methods that were not asked for, for comparison; without a deadline. */
static int plan_baselines(enum ptcp_plan_method chosen, struct plan_shown *s, struct ptcp_err *e)
{
	struct ptcp_plan_opts opts;
	struct ptcp_plan *p;
	int m, r;

	ptcp_plan_opts_init(&opts);
	opts.deadline_s = INFINITY;
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
		} else if (r == PTCP_ERANGE) {
			terminal_line("ptcp: warning: %s: %s", ptcp_plan_method_name(opts.method), e->msg);
		} else if (r != PTCP_EINFEASIBLE) {
			return r;
		}
	}
	return 0;
}

static int make(const struct plan_args *a, struct ptcp_overlay *o, struct plan_shown *s,
    struct ptcp_plan **plan, struct ptcp_err *e)
{
	struct ptcp_plan_opts opts;
	int i, r;

	for (i = 0; i < a->n_what_if; i++)
		if ((r = apply_what_if(o, a->what_if[i], e)) < 0)
			return r;
	ptcp_plan_opts_init(&opts);
	opts.method = (enum ptcp_plan_method)a->method;
	opts.deadline_s = a->deadline_s;
	if ((r = ptcp_plan_make(plan, o, &opts, e)) < 0)
		return r;
	s->overlay = o;
	s->plan = *plan;
	return plan_baselines(opts.method, s, e);
}

/* Planning leaves nothing behind, so a signal may end it wherever it is. */
static void interrupted(void *line)
{
	ssize_t r = write(STDERR_FILENO, line, strlen(line));

	(void)r;
	_exit(EXIT_INTERRUPTED);
}

static int run(const struct plan_args *a, const char *file, struct ptcp_err *e)
{
	static char line[] = "ptcp: plan: interrupted before it was done (run it again)\n";
	struct ptcp_overlay *o = NULL;
	struct ptcp_plan *plan = NULL;
	struct plan_shown s = { .overlay = NULL };
	int r;

	process_catch(EXIT_INTERRUPTED, line);
	process_set_stop(interrupted, line);
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

int cmd_plan(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct plan_args a = { .method = PTCP_PLAN_PIPELINED };
	int n = 0, r;

	if ((a.what_if = calloc((size_t)argc + 1, sizeof *a.what_if)) == NULL)
		r = err_nomem(&e);
	else
		r = options_parse(c, argc, argv, &a, &n, &e);
	if (r == 0 && n != 1)
		r = err_set(&e, PTCP_EUSAGE, "%s: needs one overlay file (ptcp %s --help)", c->name, c->name);
	if (r == 0)
		r = run(&a, argv[0], &e);
	free(a.what_if);
	return command_end(c, r, &e);
}
