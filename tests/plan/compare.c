#include "compare.h"

#include <math.h>
#include <ptcp/plan.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"
#include "plan/plan.h"

#define METHODS 4

/* Slots of the pipelined makespan. */
static const int slots_of[] = { [COMPARE_SINGLE] = 9, [COMPARE_STAGES] = 25, [COMPARE_MANY] = 9000 };

struct result {
	int code;
	char msg[512];
	struct ptcp_plan_info info;
	double storage;
};

struct task {
	const struct inst *in;
	struct ptcp_overlay *o;
	struct plan_tuning tuning;
	double slot_s;
	struct result r[METHODS];
	char *what; /* COMPARE_WHAT_BYTES */
};

static int wrong(struct task *t, int method, const char *text, double got, double want)
{
	snprintf(t->what, COMPARE_WHAT_BYTES, "%s: %s: got %.12g, expected %.12g (slot %g)",
	    ptcp_plan_method_name((enum ptcp_plan_method)method), text, got, want, t->slot_s);
	return -1;
}

static int run(struct task *t, int method)
{
	struct result *r = &t->r[method];
	struct ptcp_plan_opts opts;
	struct ptcp_plan *p;
	struct ptcp_err e = { 0 };
	size_t i;

	ptcp_plan_opts_init(&opts);
	opts.method = (enum ptcp_plan_method)method;
	opts.slot_s = t->slot_s;
	r->code = plan_make(&p, t->o, &opts, &t->tuning, &e);
	if (r->code == PTCP_EINFEASIBLE)
		return 0;
	if (r->code == PTCP_ERANGE && strstr(e.msg, "take a longer slot") != NULL) {
		r->code = PTCP_EINFEASIBLE;
		return 0;
	}
	if (r->code < 0) {
		snprintf(t->what, COMPARE_WHAT_BYTES, "%s: %s (slot %g)", ptcp_plan_method_name(opts.method),
		    e.msg, t->slot_s);
		return -1;
	}
	ptcp_plan_info(p, &r->info);
	for (i = 0; i < ptcp_overlay_hosts(t->o); i++)
		r->storage += ptcp_plan_storage_bytes(p, (int)i);
	r->code = ptcp_plan_verify(p, t->o, &e);
	if (r->code < 0)
		snprintf(t->what, COMPARE_WHAT_BYTES, "%s: %s", ptcp_plan_method_name(opts.method), e.msg);
	ptcp_plan_free(p);
	return r->code;
}

/* A method that may do more is never slower. */
static int check_order(struct task *t)
{
	static const int pairs[][2] = {
		{ PTCP_PLAN_DIRECT, PTCP_PLAN_PIPELINED },
		{ PTCP_PLAN_BEST_PATH, PTCP_PLAN_PIPELINED },
		{ PTCP_PLAN_COORDINATED, PTCP_PLAN_PIPELINED },
	};
	size_t i;

	for (i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		const struct result *a = &t->r[pairs[i][0]], *b = &t->r[pairs[i][1]];

		if (a->code == 0 && b->code != 0)
			return wrong(t, pairs[i][1], "impossible where another method is not",
			    b->code, 0);
		if (a->code == 0 && b->info.bound_s > a->info.makespan_s * (1 + 1e-6))
			return wrong(t, pairs[i][1], "slower than a lesser method",
			    b->info.makespan_s, a->info.makespan_s);
	}
	return 0;
}

static bool near(double a, double b, double rel, double scale)
{
	return fabs(a - b) <= rel * fmax(scale, fmax(fabs(a), fabs(b)));
}

static int check_fluid(struct task *t, enum compare_depth depth, const char *solver,
    struct compare_count *count)
{
	const struct result *r = &t->r[PTCP_PLAN_PIPELINED];
	double mb = r->info.data_bytes / 1e6;
	struct plain want;

	plain_fluid(t->in, depth == COMPARE_ALL ? 3 : 1, solver, &want);
	count->compared++;
	if (want.feasible != (r->code == 0))
		return wrong(t, PTCP_PLAN_PIPELINED, "feasible", r->code == 0, want.feasible);
	if (!want.feasible)
		return 0;
	if (!near(r->info.makespan_s, want.makespan_s, 1e-6, 0))
		return wrong(t, PTCP_PLAN_PIPELINED, "makespan", r->info.makespan_s,
		    want.makespan_s);
	if (depth == COMPARE_ALL && !near(r->info.relayed_bytes / 1e6, want.relayed_mb, 1e-6, mb))
		return wrong(t, PTCP_PLAN_PIPELINED, "relayed MB", r->info.relayed_bytes / 1e6,
		    want.relayed_mb);
	if (depth == COMPARE_ALL && !near(r->storage / 1e6, want.storage_mb, 1e-5, mb))
		return wrong(t, PTCP_PLAN_PIPELINED, "storage MB", r->storage / 1e6,
		    want.storage_mb);
	return 0;
}

static int check_slots(struct task *t, enum compare_depth depth, const char *solver,
    struct compare_count *count)
{
	const struct result *r = &t->r[PTCP_PLAN_COORDINATED];
	double fluid = t->r[PTCP_PLAN_PIPELINED].info.makespan_s, mb = r->info.data_bytes / 1e6;
	int least = (int)floor(fluid / t->slot_s * (1 - 1e-6)), most = 40;
	struct plain want;

	if (r->code == 0)
		most = (int)(r->info.makespan_s / t->slot_s + 0.5);
	if (most > 60)
		return 0;
	plain_slots(t->in, t->slot_s, least > 1 ? least : 1, most, depth == COMPARE_ALL ? 3 : 1,
	    solver, &want);
	count->compared++;
	if (r->code == 0 && r->info.bound_s < r->info.makespan_s * (1 - 1e-9))
		count->unproven++;
	if (r->code == 0 && r->info.relayed_bytes > r->info.relayed_bound_bytes +
	    1e-6 * r->info.data_bytes)
		count->relayed_unproven++;
	if (want.feasible != (r->code == 0))
		return wrong(t, PTCP_PLAN_COORDINATED, "feasible", r->code == 0, want.feasible);
	if (!want.feasible)
		return 0;
	if (r->info.bound_s > want.makespan_s * (1 + 1e-6))
		return wrong(t, PTCP_PLAN_COORDINATED, "bound", r->info.bound_s, want.makespan_s);
	if (!near(r->info.makespan_s, want.makespan_s, 1e-6, 0))
		return wrong(t, PTCP_PLAN_COORDINATED, "makespan", r->info.makespan_s,
		    want.makespan_s);
	if (depth == COMPARE_ALL &&
	    r->info.relayed_bound_bytes / 1e6 > want.relayed_mb + 1e-6 * mb)
		return wrong(t, PTCP_PLAN_COORDINATED, "relayed bound MB",
		    r->info.relayed_bound_bytes / 1e6, want.relayed_mb);
	if (depth == COMPARE_ALL && t->tuning.small_cols > 0 &&
	    !near(r->info.relayed_bytes / 1e6, want.relayed_mb, 1e-6, mb))
		return wrong(t, PTCP_PLAN_COORDINATED, "relayed MB", r->info.relayed_bytes / 1e6,
		    want.relayed_mb);
	if (depth == COMPARE_ALL && t->tuning.small_cols > 0 &&
	    !near(r->storage / 1e6, want.storage_mb, 1e-5, mb))
		return wrong(t, PTCP_PLAN_COORDINATED, "storage MB", r->storage / 1e6,
		    want.storage_mb);
	return 0;
}

int compare(const struct inst *in, enum compare_depth depth, enum compare_slots slots, const char *solver,
    struct compare_count *count, char what[COMPARE_WHAT_BYTES])
{
	struct task t = { .in = in, .slot_s = 1, .what = what };
	char *text = inst_text(in);
	struct ptcp_err e;
	int m, r;

	plan_tuning_init(&t.tuning);
	if (slots == COMPARE_STAGES)
		t.tuning.small_cols = 0;
	r = ptcp_overlay_parse(&t.o, text, strlen(text), "random", &e);
	free(text);
	if (r < 0) {
		snprintf(what, COMPARE_WHAT_BYTES, "%s", e.msg);
		return r;
	}
	r = run(&t, PTCP_PLAN_PIPELINED);
	if (r == 0 && t.r[PTCP_PLAN_PIPELINED].code == 0)
		t.slot_s = t.r[PTCP_PLAN_PIPELINED].info.makespan_s /
		    (slots_of[slots] - 0.37);
	for (m = 0; m < PTCP_PLAN_PIPELINED && r == 0; m++)
		r = run(&t, m);
	for (m = 0; m < METHODS && r == 0; m++) {
		count->planned += t.r[m].code == 0;
		count->infeasible += t.r[m].code != 0;
	}
	if (r == 0)
		r = check_order(&t);
	if (r == 0 && depth > COMPARE_VERIFY && (r = check_fluid(&t, depth, solver, count)) == 0)
		r = check_slots(&t, depth, solver, count);
	ptcp_overlay_free(t.o);
	return r;
}
