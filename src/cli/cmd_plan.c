/* ptcp plan OVERLAY.yaml: the plan of a collection, beside all methods. */
#include "cli/cmd_plan.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan_show.h"
#include "core/err.h"
#include "core/units.h"

#define WHAT_IF_MAX 100

struct plan_args {
	const char *overlay, *plot;
	int method, json, help;
	double deadline_s; /* 0: the overlay's */
	const char *what_if[WHAT_IF_MAX];
	int nwhat_if;
};

static const char usage[] =
    "usage: ptcp plan [options] OVERLAY.yaml\n"
    "Plans which piece of the data of many hosts goes over which path, when.\n\n"
    "  --method NAME      direct, best-path, coordinated or pipelined (default)\n"
    "  --deadline T       fail when the data cannot arrive by then (30m, 2h)\n"
    "  --what-if A>B=RATE plan as if that link had that rate; repeatable\n"
    "  --json             one JSON object on stdout\n"
    "  --plot FILE.svg    a picture of links over time and of storage, by gnuplot\n";

static int set_option(struct plan_args *a, int opt, char *text, struct ptcp_err *e)
{
	uint64_t ns;

	switch (opt) {
	case 'h': a->help = 1; return 0;
	case 'j': a->json = 1; return 0;
	case 'p': a->plot = text; return 0;
	case 'm':
		if ((a->method = ptcp_plan_method_find(text)) < 0)
			return err_set(e, PTCP_EUSAGE, "--method %.100s: expected direct, best-path, "
			    "coordinated or pipelined", text);
		return 0;
	case 'd':
		if (units_parse_time(text, &ns) < 0 || ns == 0)
			return err_set(e, PTCP_EUSAGE, "--deadline %.100s: expected a time above 0 such "
			    "as 30m or 2h", text);
		a->deadline_s = (double)ns / (double)NS_PER_S;
		return 0;
	case 'w':
		if (a->nwhat_if == WHAT_IF_MAX)
			return err_set(e, PTCP_EUSAGE, "--what-if %.100s: more than %d of them", text,
			    WHAT_IF_MAX);
		a->what_if[a->nwhat_if++] = text;
		return 0;
	default:
		return err_set(e, PTCP_EUSAGE, "plan: an option that is unknown or lacks its value "
		    "(ptcp plan --help)");
	}
}

static int parse_args(struct plan_args *a, int argc, char **argv, struct ptcp_err *e)
{
	static const struct option options[] = {
		{ "method", required_argument, NULL, 'm' },
		{ "deadline", required_argument, NULL, 'd' },
		{ "what-if", required_argument, NULL, 'w' },
		{ "json", no_argument, NULL, 'j' },
		{ "plot", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	int opt, r;

	*a = (struct plan_args){ .method = PTCP_PLAN_PIPELINED };
	opterr = 0;
	optind = 0; /* glibc: begin anew */
	while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1)
		if ((r = set_option(a, opt, optarg, e)) < 0)
			return r;
	if (a->help)
		return 0;
	if (optind + 1 != argc)
		return err_set(e, PTCP_EUSAGE, "plan: expected one overlay file (ptcp plan --help)");
	a->overlay = argv[optind];
	return 0;
}

static int apply_what_if(struct ptcp_overlay *o, const char *text, struct ptcp_err *e)
{
	const char *eq = strchr(text, '=');
	uint64_t bps;
	char *link;
	int r;

	if (eq == NULL || units_parse_rate(eq + 1, &bps) < 0 || bps == PTCP_UNKNOWN)
		return err_set(e, PTCP_EUSAGE, "--what-if %.100s: expected A>B=RATE, such as "
		    "K>D=400Mbit/s", text);
	if ((link = strndup(text, (size_t)(eq - text))) == NULL)
		return err_nomem(e);
	r = ptcp_overlay_set_rate(o, link, bps, e);
	free(link);
	return r < 0 ? err_while(e, r, "--what-if %.100s", text) : 0;
}

/* The methods that were not asked for, for comparison; without a deadline. */
static int plan_baselines(const struct plan_args *a, struct plan_shown *s, struct ptcp_err *e)
{
	struct ptcp_plan_opts opts;
	struct ptcp_plan *p;
	int m, r;

	ptcp_plan_opts_init(&opts);
	opts.deadline_s = INFINITY;
	for (m = 0; m < PLAN_METHODS; m++) {
		if (m == a->method) {
			ptcp_plan_info(s->plan, &s->baseline[m]);
			continue;
		}
		opts.method = (enum ptcp_plan_method)m;
		r = ptcp_plan_make(&p, s->overlay, &opts, e);
		s->baseline[m] = (struct ptcp_plan_info){ .makespan_s = NAN };
		if (r == 0) {
			ptcp_plan_info(p, &s->baseline[m]);
			ptcp_plan_free(p);
		} else if (r == PTCP_ERANGE) {
			fprintf(stderr, "ptcp: warning: %s: %s\n", ptcp_plan_method_name(opts.method),
			    e->msg);
		} else if (r != PTCP_EINFEASIBLE) {
			return r;
		}
	}
	return 0;
}

static int run(const struct plan_args *a, struct ptcp_err *e)
{
	struct ptcp_overlay *o = NULL;
	struct ptcp_plan *plan = NULL;
	struct plan_shown s = { 0 };
	struct ptcp_plan_opts opts;
	int i, r;

	if ((r = ptcp_overlay_load(&o, a->overlay, e)) < 0)
		goto out;
	for (i = 0; i < a->nwhat_if; i++)
		if ((r = apply_what_if(o, a->what_if[i], e)) < 0)
			goto out;
	ptcp_plan_opts_init(&opts);
	opts.method = (enum ptcp_plan_method)a->method;
	opts.deadline_s = a->deadline_s;
	if ((r = ptcp_plan_make(&plan, o, &opts, e)) < 0)
		goto out;
	s.overlay = o;
	s.plan = plan;
	if ((r = plan_baselines(a, &s, e)) < 0)
		goto out;
	if (a->json)
		r = plan_json(stdout, &s, e);
	else
		plan_text(stdout, &s);
	if (r == 0 && a->plot != NULL)
		r = plan_plot(a->plot, &s, e);
out:
	ptcp_plan_free(plan);
	ptcp_overlay_free(o);
	return r;
}

static int exit_code(int code)
{
	switch (code) {
	case 0: return 0;
	case PTCP_EUSAGE:
	case PTCP_ECONFIG:
	case PTCP_ERANGE: return 2;
	case PTCP_EINFEASIBLE: return 7;
	default: return 1;
	}
}

int cmd_plan(int argc, char **argv)
{
	struct plan_args a;
	struct ptcp_err e = { 0 };
	int r = parse_args(&a, argc, argv, &e);

	if (r == 0 && a.help) {
		fputs(usage, stdout);
		return 0;
	}
	if (r == 0)
		r = run(&a, &e);
	if (r < 0)
		fprintf(stderr, "ptcp: %s\n", e.msg);
	return exit_code(r);
}
