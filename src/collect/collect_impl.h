/* The inside of a collection, for collect.c (what was asked for, what came of it), source.c (the transfer from one
 * host), allocate.c (plans, and what they make of the transfers), monitor.c (what flows, and whether the plan still
 * fits) and run.c (the loop). One thread, but for cancelling and what planner_thread.h has. */
#ifndef COLLECT_COLLECT_IMPL_H
#define COLLECT_COLLECT_IMPL_H

#include <stdatomic.h>

#include <ptcp/plan.h>
#include <ptcp/ptcp.h>

#include "collect/candidates.h"
#include "collect/drift.h"
#include "collect/planner_thread.h"
#include "collect/schedule.h"
#include "core/clock.h"
#include "model/divide.h"
#include "plan/overlay.h"

#define TICK_S 0.25
#define PACE 0.95     /* of what a path is given, lest queues grow where it fills a link */
#define DATA_MOST_BYTES (UINT64_C(1) << 56) /* that any source is believed to have: sums of them do not wrap */
#define ROUTE_SEEN 64 /* samples, one a tick: as long as anybody looks back, and more */

/* What goes over one path of a transfer. */
struct route {
	int link[CANDIDATES_HOPS_MAX];
	size_t n_links;
	size_t *limit;         /* of the overlay, see plan/limits.h; of its links */
	size_t n_limits;
	bool bound;            /* it goes through a host with limits of its own: never let loose */
	bool counted;          /* its streams are: it helps nobody who is late */
	double planned_bps;    /* by the plan, now */
	double given_bps;      /* with what the plan leaves free */
	uint64_t set_bps;      /* what the transfer was told last; 0, no limit, to begin with */
	uint64_t due_bps;      /* of it, what is not there to make up for what is late */
	double since_s;        /* when that was set */
	uint64_t bytes;
	unsigned streams;
	struct { double at_s; uint64_t bytes; } seen[ROUTE_SEEN];
	unsigned n_seen;
};

struct source {
	struct ptcp_collect *c;
	struct ptcp_collect_source *told;
	const char *name, *address, *path; /* the overlay's */
	struct ptcp_transfer *t;           /* at work; or NULL */
	struct candidates vias;                  /* of the one at work */
	struct route route[PTCP_PATHS_MAX];
	bool sizing;                       /* it only looks how much there is */
	bool again;                        /* ended by us, to go on over other paths */
	bool planned;                      /* the plan counts on it, */
	bool beyond;                       /* but not on all that it says it has: there is no room for that */
	double more_bps;                   /* each of its paths may have, as it is late */
	bool busy;                         /* moving data: neither only verifying nor syncing */
	uint64_t data_bytes;               /* what there is to fetch, as known beforehand; PTCP_UNKNOWN */
	uint64_t listed_bytes;             /* that the rehearsal has found so far */
	uint64_t most_bytes, most_files;   /* that any transfer has come to */
	uint64_t wire_before;              /* sent by transfers that are over */
	double flows_since_s;              /* data, over any path of it; INFINITY: none yet */
	double came_at_s;                  /* when anything last came of it */
	double retry_at_s;
	unsigned tries;                    /* in vain, in a row */
	unsigned broken;                   /* that began, and came no further than those before, in a row */
	char why[sizeof ((struct ptcp_err *)0)->msg];
};

struct ptcp_collect {
	struct ptcp_overlay *overlay;      /* as it is now; its time 0 is overlay_s */
	double overlay_s;
	struct ptcp_collect_opts o;
	struct ptcp_transfer_opts connect; /* what the pointers in it lead to is the caller's */
	char *dest;
	struct source *source;
	struct ptcp_collect_source *told;  /* of each */
	size_t n;
	struct ptcp_collect_link *link;
	size_t n_links, n_limits;
	double *limit_first_bps;           /* what limits were taken for to begin with */
	double *limit_bps, *found_bps, *load_bps; /* scratch, of each limit */
	struct divide_flow *divided;        /* room for all routes of all sources */
	struct drift_flow *flow;         /* room for all routes of all sources */
	atomic_bool cancelled;
	bool ran;
	struct mono start;
	/* the plan in force */
	struct ptcp_plan *plan;            /* or NULL */
	struct schedule *schedule;
	double plan_start_s;
	struct drift drift;
	bool probing;
	double sizing_until_s;             /* rehearsals take no longer */
	const char *unfit;                 /* why another plan is wanted; NULL: it is not */
	char unfit_text[320];
	/* the next one */
	struct planner_thread_thread *planner;           /* at work on it; or NULL */
	char planner_thread_why[320];
	double planner_thread_start_s;            /* the plan's */
	double planned_s;                  /* of the first plan */
	double tried_at_s;                 /* to plan */
	double end_s;                      /* once it is over */
	unsigned replans;
	struct ptcp_err stop;              /* the whole has to end: code not 0 */
};

static inline double collect_now_s(const struct ptcp_collect *c)
{
	return (double)mono_diff_ns(mono_now(), c->start) / 1e9;
}

/* ---- collect.c ---- */

void collect_tell(struct ptcp_collect *c, enum ptcp_collect_event_type type, const struct source *s,
    const char *path, const char *text, int code);

/* ---- source.c ---- */

/* Begins its transfer over the paths that suit the plan, or the look at how much there is. What fails is told, and
 * tried again later unless that is in vain. */
void source_begin(struct source *s);
/* When its transfer has something to do. */
void source_step(struct source *s);
/* What its rehearsal has found by now has to do. */
void source_end_sizing(struct source *s);
/* It is to be ended, and begun again over other paths. */
void source_begin_again(struct source *s);
bool source_is_over(const struct source *s);
/* What has yet to come. */
uint64_t source_left_bytes(const struct source *s);
void source_forget(struct source *s); /* frees its transfer and paths */

/* ---- allocate.c ---- */

/* Makes the first plan, and waits for it. */
int allocate_first(struct ptcp_collect *c, struct ptcp_err *e);
/* Once a tick: begins to plan what is left when the plan does not fit any more, and takes that plan when it is made.
 * Where there is none, or it came too late, the last one stays; why is told. */
void allocate_again(struct ptcp_collect *c);
/* Tells the transfers what each path is to carry now. */
void allocate_apply(struct ptcp_collect *c);

/* ---- monitor.c ---- */

/* Once a tick: sees what has come, and says so; and whether another plan is wanted, in c->unfit, and what links have
 * turned out to be, in the overlay. */
void monitor_see(struct ptcp_collect *c);
double monitor_route_bps(const struct route *r, double now_s, double window_s);
/* How long the rest will take as it goes; negative: not known. */
double monitor_eta_s(const struct ptcp_collect *c);

#endif
