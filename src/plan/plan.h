/* The plan handle, and the methods that make plans. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <ptcp/plan.h>

#include "plan/lp.h"
#include "plan/pieces.h"

struct plan_piece {
	int source;
	uint64_t offset, bytes;
	size_t first_hop, nhops;
};

struct ptcp_plan {
	struct ptcp_plan_info info;
	struct plan_piece *piece;
	struct ptcp_plan_hop *hop;
	struct ptcp_plan_step *step;
	size_t npieces, nhops, nsteps;
	double *storage; /* peak of each host */
	unsigned short *streams; /* [from * nhosts + to]; NULL: not counted */
	int nhosts;
};

/* ---- infeasible.c: explanations of infeasible plans ---- */

/* Fails the run with PTCP_EINFEASIBLE if a source never has a path to the destination; `slots`: relays need
 * storage. */
void infeasible_unreachable(struct sandbox *run, const struct graph *n, bool slots);

/* Fails the run: in unlimited time only `share` of the data arrives. */
_Noreturn void infeasible_always(struct sandbox *run, const struct graph *n, double share, bool slots);

/* "S1>D (60 %), shared bottleneck 1 (40 %)": the bottlenecks of a plan. */
#define INFEASIBLE_TEXT_BYTES 300
void infeasible_limits(char text[INFEASIBLE_TEXT_BYTES], const struct graph *n, const struct time_grid *g,
    const struct lp *lp);

/* ---- Methods: each adds its pieces and computes their makespan; each fails the run with PTCP_EINFEASIBLE
 * and the reason if no plan exists ---- */

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
	const int *streams;        /* streams of each link of the overlay; NULL: streams are not counted */
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

/* ---- Making and verifying ---- */

/* As ptcp_plan_verify(); also fills storage[host] unless NULL. */
int plan_verify(const struct ptcp_plan *p, const struct ptcp_overlay *o, double *storage, struct ptcp_err *e);

/* As ptcp_plan_make(), without checking the options. */
int plan_make(struct ptcp_plan **out, const struct ptcp_overlay *o,
    const struct ptcp_plan_opts *opts, const struct plan_tuning *tuning, struct ptcp_err *e);

#endif
