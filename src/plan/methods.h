/* The four methods. Each adds its pieces and computes their makespan; each fails the run with
 * PTCP_EINFEASIBLE and the reason if no plan exists. */
#ifndef PLAN_METHODS_H
#define PLAN_METHODS_H

#include <ptcp/plan.h>

#include "plan/infeasible.h"
#include "plan/pieces.h"

/* Parameters for tests and measurements; plan_tuning_init() sets the values for users. */
struct plan_tuning {
	bool all_arcs;     /* no pruning of arcs */
	double small_cols; /* arcs times slots up to which each slot is a stage */
	double streams_s;  /* min time for the choice of streams */
};
void plan_tuning_init(struct plan_tuning *t);

struct method_result {
	double makespan_s, bound_s;
	double relayed_bound_bytes;
	double slot_s;
	const int *streams;        /* of each link of the overlay; NULL: streams are not counted */
	int hops;                  /* max links crossed by a piece */
	char limits[INFEASIBLE_TEXT_BYTES]; /* bottlenecks, for a missed deadline */
};

/* All sources at the same time, each over one path, with max-min fair rates: direct, or the best path with
 * at most one relay. `pieces` NULL records nothing, and an infeasible plan has an INFINITE makespan. */
void method_baselines(struct sandbox *run, const struct graph *n, bool best_path, struct pieces *pieces,
    struct method_result *out);

/* Min makespan with relays that forward while they receive. `pieces` NULL computes only makespan and
 * bound. */
void method_pipelined(struct sandbox *run, const struct graph *n, const struct plan_tuning *tuning,
    struct pieces *pieces, struct method_result *out);

#define SLOTS_MAX 20000

/* Min number of slots with relays that forward in later slots than they receive. */
void method_coordinated(struct sandbox *run, const struct graph *n, double slot_s,
    const struct plan_tuning *tuning, struct pieces *pieces, struct method_result *out);

#endif
