/* Internals of a collection: collect.c (options, events, the loop), source_transfer.c (the transfer from one host),
 * allocate.c (planning, and rates of the transfers), monitor.c (observed rates, and whether the plan still fits) and
 * impact.c (competing flows at the bottlenecks). Single-threaded except for canceling and planner_thread.h. */
#ifndef COLLECT_COLLECT_IMPL_H
#define COLLECT_COLLECT_IMPL_H

#include <ptcp/plan.h>
#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "collect/candidates.h"
#include "collect/collect_parameters.h"
#include "collect/drift.h"
#include "collect/others.h"
#include "collect/planner_thread.h"
#include "collect/schedule.h"
#include "core/clock.h"
#include "core/processor.h"
#include "model/divide.h"

#define DATA_MAX_BYTES (UINT64_C(1) << 56) /* max believed data of a source; sums do not overflow */
#define ROUTE_SAMPLES 64 /* samples, one per tick: more than any window */

/* A link or shared bottleneck before the destination, see impact.c. */
struct bottleneck {
	size_t limit;
	struct others others;
	struct others_point point;  /* contenders: 0 unless competing flows were seen */
	double allowed_bps;         /* rate that the impact budget allows; 0: not limited */
	double before_bps;          /* rate of the limit without the budget */
	double spare_bps;           /* part of allowed_bps that planned rates do not use */
	size_t late;                /* paths that catch up */
};

/* One path of a transfer. */
struct route {
	int link[CANDIDATES_HOPS_MAX];
	size_t n_links;
	size_t *limit;         /* limits of its links, see plan/rate_limits.h */
	size_t n_limits;
	size_t last_limit;     /* the first limit of the last link */
	bool bound;            /* crosses a limited host: rate always enforced */
	bool counted;          /* the plan counts the streams of this path: no catching up without a planned rate */
	double planned_bps;    /* rate that the plan assigns now */
	double assigned_bps;      /* planned rate and a share of the spare capacity */
	uint64_t set_bps;      /* latest rate limit; initially 0: none */
	uint64_t regular_bps;      /* part of it not for catching up */
	double since_s, grown_s; /* time of that limit; of the latest higher one */
	uint64_t bytes;
	unsigned streams;
	struct bottleneck *bottleneck; /* bottleneck of the last link, or NULL */
	double test_bps;       /* max rate during a test for competing flows; 0: no test */
	double rtt_s, min_rtt_s;
	uint64_t segments, lost, segments_before, lost_before; /* totals now and at the latest tick */
	struct { double at_s; uint64_t bytes; } sample[ROUTE_SAMPLES];
	unsigned n_samples;
};

struct source_transfer {
	struct ptcp_collect *c;
	struct ptcp_collect_source *status;
	const char *name, *address, *path; /* the overlay's */
	struct ptcp_task *t;           /* current transfer, or NULL */
	struct candidates candidates;                  /* candidates of the current transfer */
	bool *warned;                       /* by link: this source has reported a failure on it */
	struct route route[PTCP_PATHS_MAX];
	bool sizing;                       /* dry run that lists the data */
	bool restart;                        /* canceled by us, to restart over other paths */
	bool ending;                         /* canceled for good */
	bool planned;                      /* the current plan has the source */
	bool truncated;                       /* the plan has less than the data of the source, for lack of space */
	double extra_bps;                   /* extra rate per path, for catching up */
	bool busy;                         /* transferring data, not only verifying or syncing */
	uint64_t data_bytes;               /* data to fetch, as known before; PTCP_UNKNOWN */
	uint64_t listed_bytes;             /* found by the dry run so far */
	uint64_t most_bytes, max_files;   /* max progress of any transfer */
	uint64_t wire_before;              /* sent by earlier transfers */
	double flows_since_s;              /* start of data on any path; INFINITY: none yet */
	double progress_at_s;                  /* latest progress */
	double retry_at_s;
	unsigned failures;                    /* consecutive failures */
	unsigned stalled;                   /* consecutive transfers without further progress */
	char why[sizeof ((struct ptcp_err *)0)->msg];
};

struct ptcp_collect {
	struct ptcp_overlay *overlay;      /* current rates and data; time 0 is overlay_s */
	double overlay_s;
	struct ptcp_collect_opts o;
	struct ptcp_transfer_opts connect; /* pointers in it are the caller's */
	char *dest;
	struct source_transfer *source;
	struct ptcp_collect_source *status;  /* public state of each source */
	size_t n;
	struct ptcp_collect_link *link;
	bool *failed_link;                 /* has no connection: rate 0 in the overlay */
	size_t n_links, n_limits;
	struct bottleneck *bottleneck;
	size_t n_bottlenecks, max_bottlenecks;
	struct processor processor;
	bool starved;                      /* this host has lacked processor time since the tick
	                                      before the latest one */
	double starved_at_s;               /* latest tick without processor time; -INFINITY: none */
	double *limit_first_bps;           /* initial rates of the limits */
	bool *limit_doubted;               /* judged slower while this host lacked processor time */
	double *limit_bps, *found_bps, *load_bps; /* scratch, one per limit */
	struct divide_flow *divided;        /* room for all routes of all sources */
	struct drift_flow *flow;         /* room for all routes of all sources */
	atomic_bool canceled;
	bool ran;
	struct mono start;
	/* current plan */
	struct ptcp_plan *plan;            /* the current plan, or NULL */
	struct schedule *schedule;
	double plan_start_s;
	struct drift drift;
	double ticked_at_s;                /* latest monitor_update() */
	double sizing_until_s;             /* deadline of dry runs */
	const char *unfit;                 /* reason to replan, or NULL */
	bool urgent;                       /* the next plan does not wait for PLAN_AGAIN_S */
	char unfit_text[320];
	/* next plan */
	struct planner_thread *planner;           /* the planner at work, or NULL */
	char replan_reason[320];
	double next_start_s;            /* time 0 of the next plan */
	double planned_s;                  /* makespan of the first plan */
	double planning_at_s;                 /* start of the latest planning */
	double end_s;                      /* end of the collection */
	unsigned replans;
	struct ptcp_err fatal;             /* fatal error, if code is not 0 */
};

static inline double collect_now_s(const struct ptcp_collect *c)
{
	return (double)mono_diff_ns(mono_now(), c->start) / 1e9;
}

/* Any thread. */
static inline bool collect_is_canceled(const struct ptcp_collect *c) { return atomic_load(&c->canceled); }
/* Canceled or failed: no source is tried again. */
static inline bool collect_is_ending(const struct ptcp_collect *c)
{
	return collect_is_canceled(c) || c->fatal.code != 0;
}

/* ---- source_transfer.c ---- */

/* Starts the transfer over the paths of the plan, or the dry run. Reports failures, and schedules a retry
 * for temporary ones. */
void source_start(struct source_transfer *s);
/* Steps the transfer. */
void source_step(struct source_transfer *s);
/* Of a collection that is ending: cancels the transfer, and any retry. Idempotent. */
void source_end(struct source_transfer *s);
/* Cancels the transfer, to restart it over other paths. */
void source_restart(struct source_transfer *s);
bool source_is_over(const struct source_transfer *s);
/* Bytes left to transfer. */
uint64_t source_left_bytes(const struct source_transfer *s);
void source_reset(struct source_transfer *s); /* frees its transfer and paths */

/* ---- allocate.c ---- */

/* Makes the first plan; blocks. */
int allocate_first(struct ptcp_collect *c, struct ptcp_err *e);
/* Each tick: starts replanning if the plan does not fit, and adopts a finished plan. Without a plan in time
 * the previous plan stays, and a warning is reported. */
void allocate_replan(struct ptcp_collect *c);
/* Sets the rate limits of all transfers' paths. */
void allocate_rates(struct ptcp_collect *c);

/* ---- monitor.c ---- */

/* Each tick: samples and reports rates; sets c->unfit if the plan does not fit, and updates the overlay's
 * rates. */
void monitor_update(struct ptcp_collect *c);
double monitor_route_bps(const struct route *r, double now_s, double window_s);
/* Calls the user's function for events; s, path and text may be NULL. */
void monitor_report(struct ptcp_collect *c, enum ptcp_collect_event_type type, const struct source_transfer *s,
    const char *path, const char *text, int code, int sys);

/* ---- impact.c ---- */

/* Each tick: looks for competing flows, tests, and sets c->unfit if a budget begins or ends. left_s: estimated time
 * left. */
void impact_update(struct ptcp_collect *c, double now_s, double left_s);
/* Whether a probe has to end for a test: queue and losses show at a bottleneck that was not tested. */
bool impact_comes_first(const struct ptcp_collect *c, double now_s, double left_s);
/* Drops found rates of limits that have a budget, unless they are far below. Returns the number of dropped rates. */
size_t impact_cap_found(const struct ptcp_collect *c, double *found_bps);
/* Whether the budget limits the path: no probes, and catching up with spare rate only. */
bool impact_is_limited(const struct route *r);
/* Before rates are set: updates the spare rates. */
void impact_spare(struct ptcp_collect *c);
/* Restores the rates without budgets. */
void impact_end(struct ptcp_collect *c);

#endif
