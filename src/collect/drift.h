/* Drift detection: compares the assumed rates of links with the observed throughput of paths. Pure.
 *
 * A limit is the rate of a link or shared bottleneck; a flow is a path of one source. A flow below its
 * assigned rate for some seconds indicates a slower limit; throughput of flows without an assigned rate
 * (catching up) counts as well. Flows are paced, hence spare capacity is invisible; from time to time a
 * probe raises all rates by half for some seconds, and a limit exceeded by the observed throughput is higher
 * than assumed. The probe continues, with higher rates, while it finds higher limits; without a result it costs
 * almost nothing. A collection begins with a probe: a low estimate costs a short collection most. */
#ifndef COLLECT_DRIFT_H
#define COLLECT_DRIFT_H

#include <stdbool.h>
#include <stddef.h>

#include "collect/collect_parameters.h"

struct drift_flow {
	const size_t *limit;      /* crossed limits */
	size_t n_limits;
	double assigned_bps, observed_bps; /* assigned rate; observed over the last drift_window_s() */
	bool valid;              /* had data to send at the assigned rate during the window */
	bool contended;          /* set by drift_update(): competing flows have its rate */
};

struct drift_limits {
	const double *bps, *first_bps; /* current and initial estimates */
	size_t n;
};

struct drift {
	double quiet_until_s;     /* rates are not steady yet; INFINITY: the first probe has not ended */
	double off_since_s;       /* NAN: no deviation */
	double probe_at_s, probe_every_s;
	double probe_until_s;   /* NAN: no probe; INFINITY: the first, and no data flows yet */
	double ratio;             /* factor of the present or next probe */
};

enum drift_action {
	DRIFT_NONE,
	DRIFT_START_PROBE,  /* start a probe */
	DRIFT_FASTER,   /* `found` has higher limits; the probe continues with a higher ratio */
	DRIFT_END_PROBE, /* end of a probe; `found` has higher limits, if any */
	DRIFT_SLOWER,  /* `found` has lower limits */
};

/* Starts the first probe. */
void drift_init(struct drift *w);

/* Data flows: the first probe ends soon. */
void drift_flows(struct drift *w, double now_s);

bool drift_is_probing(const struct drift *w);
/* Until the end of the first probe. */
bool drift_is_starting(const struct drift *w);
/* Factor of the assigned rates during a probe, else 1. */
double drift_ratio(const struct drift *w);
/* Rate of a path during a probe. recovered_bps: the initial rate of the path after one of its limits was lowered, else
 * 0. A moment without processor or network may have lowered the limit far below its rate; blocks arrive whole, hence
 * raising a low rate by half would show nothing. */
double drift_probe_bps(const struct drift *w, double assigned_bps, double recovered_bps);

/* After new rates were set: ignores the next seconds, and puts off a probe. */
void drift_changed(struct drift *w, double now_s);

/* After a lost path returned: probes as soon as rates are steady. */
void drift_returned(struct drift *w, double now_s);

/* Observation window of a flow. */
double drift_window_s(const struct drift *w, double assigned_bps);

/* `left_s`: estimated time left; near the end replanning is not worthwhile. Sets found_bps to the new rate
 * of each changed limit, else NAN, and *n_found to their number. */
enum drift_action drift_update(struct drift *w, double now_s, double left_s, struct drift_flow *f, size_t n,
    const struct drift_limits *limits, double *found_bps, size_t *n_found);

/* Catching up of a late source. Planned rates alone would keep the delay until the end, and increase it on
 * paths with competing flows. A late source therefore gets extra rate on all its paths, up to the rates of
 * their links, including paths without a planned rate. Pure. */

/* Next extra rate per path; before_bps: the present extra rate. `behind_bytes`: bytes behind the plan; negative:
 * ahead. assigned_bps: total assigned rate; observed_bps: observed part of it. left_s: time left in the plan, within
 * which a delay has to be made up. Starts with a long delay and slow paths, or near the end of the plan, and ends when
 * the source is ahead by the deficit of its own paths. */
double catch_up_bps(double before_bps, double behind_bytes, double assigned_bps, double observed_bps, double left_s);

#endif
