/* The four methods. Each adds its pieces and says how long they take; each fails
 * the run with PTCP_EINFEASIBLE and why when there is no plan. */
#ifndef PLAN_METHODS_H
#define PLAN_METHODS_H

#include <ptcp/plan.h>

#include "plan/infeasible.h"
#include "plan/pieces.h"

/* What tests and measurements turn; plan_tuning_init() gives what users get. */
struct plan_tuning {
	bool all_arcs;     /* no pruning of arcs */
	double small_cols; /* arcs times slots up to which slots are not put together */
	double streams_s;  /* that choosing streams may take, however little effort there is */
};
void plan_tuning_init(struct plan_tuning *t);

struct method_result {
	double makespan_s, bound_s;
	double relayed_bound_bytes;
	double slot_s;
	const int *streams;        /* of each link of the overlay; NULL: they are not counted */
	int hops;                  /* most links that a piece crosses */
	char limits[INFEASIBLE_TEXT_BYTES]; /* what holds the data back, for a missed deadline */
};

/* Sources at the same time, each over one path, sharing max-min fairly what they
 * share. Direct, or the best path of at most one relay. With `pieces` NULL
 * nothing is recorded and a plan that is impossible takes INFINITY. */
void method_baselines(struct sandbox *run, const struct graph *n, bool best_path, struct pieces *pieces,
    struct method_result *out);

/* Least makespan with relays that pass on as they receive. `pieces` may be NULL,
 * then only makespan and bound are computed. */
void method_pipelined(struct sandbox *run, const struct graph *n, const struct plan_tuning *tuning,
    struct pieces *pieces, struct method_result *out);

#define SLOTS_MAX 20000

/* Least number of slots with relays that pass on in later slots than they
 * receive in. */
void method_coordinated(struct sandbox *run, const struct graph *n, double slot_s,
    const struct plan_tuning *tuning, struct pieces *pieces, struct method_result *out);

#endif
