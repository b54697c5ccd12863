/* Coordinated plans. The time-expanded graph has a copy of every arc for every slot. Where the graph is
 * large, runs of equal slots form one stage (time_grid.h) in two programs: the solutions of the exact one
 * are plans, and the loose one bounds all plans (lp.h). If both agree on the number of slots, it is
 * minimal. Otherwise the stages become finer, down to single slots, where both equal the time-expanded
 * graph. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "plan/plan.h"

#define ALL (1 - 1e-9)      /* part of the data */
#define LARGE_ROWS 30000    /* not attempted */
#define LEVELS 4

struct slots {
	struct sandbox *run;
	const struct graph *n;
	double slot_s;
	const struct plan_tuning *tuning;
	int fringe;
};

struct coordinated_attempt {
	size_t mark;
	struct time_grid *g;
	struct lp *lp;
	int nslots;
	bool full; /* single-slot stages: exact and loose are the same */
	double relayed_bound_bytes; /* bound of any plan with nslots */
};

static _Noreturn void too_many(struct slots *s)
{
	sandbox_fail(s->run, PTCP_ERANGE, "planning: more than %d slots of %g s are needed (take a longer slot)",
	    SLOTS_MAX, s->slot_s);
}

static void attempt_free(struct slots *s, struct coordinated_attempt *a)
{
	if (a->lp == NULL)
		return;
	lp_free(a->lp);
	sandbox_release(s->run, a->mark);
	a->lp = NULL;
}

/* Level 0 has the fewest stages, level LEVELS - 1 a stage per slot. */
static struct time_grid *grid_at(struct slots *s, int nslots, int level)
{
	static const int parts[LEVELS] = { 1, 12, 48, 0 };
	int longest = parts[level] == 0 ? 1 : nslots / parts[level];

	return time_grid_coordinated(s->run, s->n, s->slot_s, nslots, s->fringe << level,
	    longest > 1 ? longest : 1);
}

/* Solves the loose program; false if too large. */
static bool attempt(struct slots *s, struct coordinated_attempt *a, int nslots, int level)
{
	double rows = 0;
	int h;

	a->mark = sandbox_mark(s->run);
	a->g = grid_at(s, nslots, level);
	a->full = a->g->nstages == nslots;
	a->nslots = nslots;
	a->relayed_bound_bytes = 0;
	for (h = 0; h < s->n->nhosts; h++)
		rows += s->n->host[h].relay ? 2 : 0;
	rows = rows * a->g->nstages + (double)s->n->nlimits * a->g->nperiods;
	if (level > 0 && rows > LARGE_ROWS) {
		sandbox_release(s->run, a->mark);
		return false;
	}
	a->lp = lp_new(s->run, s->n, a->g, LP_SLOTS_LOOSE, 1, s->tuning->all_arcs ? LP_ARCS_ALL : LP_ARCS_PROMISING);
	lp_solve(a->lp, LP_MAX_DATA);
	return true;
}

/* The minimum number of slots, at least `from`, allowed by the bound at level 0. If its program was solved
 * last, `a` keeps it. */
static int min_allowed(struct slots *s, int from, struct coordinated_attempt *a)
{
	int few = from - 1, enough = from, step = 1;

	while (attempt(s, a, enough, 0) && lp_bound(a->lp) < ALL) {
		attempt_free(s, a);
		few = enough;
		if (enough >= SLOTS_MAX)
			too_many(s);
		enough = enough + step < SLOTS_MAX ? enough + step : SLOTS_MAX;
		step *= 2;
	}
	if (enough - few > 1)
		attempt_free(s, a);
	while (enough - few > 1) {
		int mid = few + (enough - few) / 2;

		if (attempt(s, a, mid, 0) && lp_bound(a->lp) < ALL)
			few = mid;
		else
			enough = mid;
		attempt_free(s, a);
	}
	return enough;
}

enum verdict { FOUND, TOO_FEW, UNKNOWN };

/* Turns the loose program in `a`, in which all data arrives, into an exact one. */
static bool exact(struct coordinated_attempt *a, double total)
{
	lp_solve(a->lp, LP_MIN_RELAYED);
	a->relayed_bound_bytes = fmax(0, lp_bound(a->lp) - total);
	if (a->full || lp_tighten(a->lp))
		return true;
	if (lp_share(a->lp) < ALL)
		return false;
	lp_solve(a->lp, LP_MIN_RELAYED);
	return true;
}

/* Finds a plan of nslots slots with minimum relayed data in `a`, or a proof that none exists, or neither.
 * `a` may contain the loose program of level 0. */
static enum verdict try(struct slots *s, struct coordinated_attempt *a, int nslots)
{
	bool small = (double)s->n->narcs * nslots <= s->tuning->small_cols;
	int level;

	if (a->lp != NULL && (small || a->nslots != nslots))
		attempt_free(s, a);
	for (level = small ? LEVELS - 1 : 0; level < LEVELS; level++) {
		if (level > 0 && !small && sandbox_hurry(s->run))
			return UNKNOWN;
		if (a->lp == NULL && !attempt(s, a, nslots, level))
			return UNKNOWN;
		if (lp_bound(a->lp) < ALL) {
			attempt_free(s, a);
			return TOO_FEW;
		}
		if (lp_share(a->lp) >= ALL && exact(a, s->n->total))
			return FOUND;
		attempt_free(s, a);
	}
	return UNKNOWN;
}

void method_coordinated(struct sandbox *run, const struct graph *n, double slot_s,
    const struct plan_tuning *tuning, struct pieces *pieces, struct method_result *out)
{
	struct slots s = { .run = run, .n = n, .slot_s = slot_s, .tuning = tuning };
	struct coordinated_attempt a = { 0 };
	struct method_result fluid;
	int nslots, proven;
	double guess;
	enum verdict v;

	infeasible_unreachable(run, n, true);
	method_pipelined(run, n, tuning, pieces_new(run), &fluid);
	s.fringe = fluid.hops > 2 ? fluid.hops - 1 : 1;
	guess = ceil(fluid.bound_s / slot_s * (1 - 1e-9));
	if (guess > SLOTS_MAX)
		too_many(&s);
	proven = nslots = min_allowed(&s, guess > 1 ? (int)guess : 1, &a);
	while ((v = try(&s, &a, nslots)) != FOUND) {
		if (v == TOO_FEW && proven == nslots)
			proven++;
		if (++nslots > SLOTS_MAX)
			too_many(&s);
	}
	*out = fluid;
	out->slot_s = slot_s;
	out->makespan_s = nslots * slot_s;
	out->bound_s = proven * slot_s;
	out->relayed_bound_bytes = a.relayed_bound_bytes;
	lp_solve(a.lp, LP_MIN_STORAGE);
	pieces_trace(pieces, a.lp, n, a.g);
	lp_free(a.lp); /* later than the pieces in the run's memory */
}
