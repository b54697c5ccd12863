/* Stream counts of the links of an overlay with curves.
 *
 * The streams of a link are counted if the link, or one of its bottlenecks, has a curve. A counted link has
 * a constant whole number of streams. The streams of all sources over a bottleneck with a curve stay within
 * its impact budget, and share the bottleneck's rate equally. Rate of a link with n streams: the minimum of
 * its own rate with n streams and, for each such bottleneck, n shares.
 *
 * Curves are linear between their points, and from 0 at no stream to the first point; the last point is the
 * maximum stream count. Impact is interpolated linearly if given; otherwise the model fitted to the points
 * predicts it (model/fit.h, chosen as by ptcp advise). */
#ifndef PLAN_STREAMS_H
#define PLAN_STREAMS_H

#include "conf/overlay.h"
#include "plan/plan.h"

#define CURVE_IMPACT_RATIO 0.10 /* default budget */
#define CURVE_MIN_GAIN_RATIO 0.01

/* Sets max_streams of each curve: the largest count within the budget whose last stream adds the minimum
 * gain of ptcp advise; and the rate of the link or bottleneck with max_streams. PTCP_ECONFIG with line and
 * column: impact unknown, or one stream exceeds the budget. */
int curve_budgets(struct ptcp_overlay *o, struct ptcp_err *e);

double curve_rate_bps(const struct conf_curve *c, double streams);

/* Whether the streams of any link are counted; all other functions require counted streams. */
bool streams_counted(const struct graph *n);

/* The graph with streams[link]; NULL: each link with its maximum, as if no other link had any. */
struct graph *streams_with(struct sandbox *run, const struct graph *n, const int *streams);

/* The graph with the streams divided evenly among the arcs with in_use[arc]; NULL if an arc in use gets
 * none. Fills streams[link]. */
struct graph *streams_even(struct sandbox *run, const struct graph *n, const char *in_use, int *streams);

/* The graph with the streams that maximize throughput, with relays forwarding as they receive and each link
 * at its highest rate. Fills streams[link], and a lower bound of the makespan for any choice of streams.
 * Fails the run with PTCP_EINFEASIBLE if the budget has too few streams for all sources. */
struct graph *streams_best(struct sandbox *run, const struct graph *n, const struct plan_tuning *tuning,
    int *streams, double *bound_s);

/* ---- For streams_best.c ---- */

/* The curve of a limit, or NULL. */
const struct conf_curve *streams_limit(const struct graph *n, int limit);

/* Max streams of an arc, as if no other had any; 0: not counted. */
int streams_max(const struct graph *n, int arc);

/* The graph without windows, each arc at its highest rate. */
struct graph *streams_steady(struct sandbox *run, const struct graph *n);

#endif
