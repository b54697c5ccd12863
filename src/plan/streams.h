/* How many streams each link gets, where an overlay has curves (curve.h).
 *
 * The streams of a link are counted if it has a curve or shares a bottleneck that has one. It gets
 * a whole number of them, from beginning to end. Those that cross a bottleneck with a curve, of all
 * sources together, are at most as many as its budget allows; each of them gets an equal share of
 * what so many bring. So a link with n of them has the least of its own rate with n and, in each
 * such bottleneck, n such shares. */
#ifndef PLAN_STREAMS_H
#define PLAN_STREAMS_H

#include "conf/overlay.h"
#include "plan/methods.h"

/* What streams bring and take, of the curves of an overlay file (conf/curve.h), and how many the
 * impact budget allows.
 *
 * Between its points a curve is straight, before the first from 0 at no stream; behind the last no
 * stream is allowed. Impact is straight between the points likewise where it is given; else it is
 * that of the model which fits the points (model/fit.h, as ptcp advise chooses it). */

#define CURVE_IMPACT_RATIO 0.10 /* where the file names no budget */
#define CURVE_MIN_GAIN_RATIO 0.01

/* For each curve the most streams that keep the budget, the last of which still brings as much as
 * ptcp advise asks of one; and the rate of its link or bottleneck, which is that of so many.
 * PTCP_ECONFIG with line and column: impact that no model can tell, or one stream takes too much. */
int curve_budgets(struct conf_overlay *o, struct ptcp_err *e);

double curve_rate_bps(const struct conf_curve *c, double streams);

/* What share of the rate of its most streams these bring. */
double curve_part(const struct conf_curve *c, unsigned streams);

/* Whether any link's streams are counted; if not, nothing else here is to be called. */
bool streams_counted(const struct graph *n);

/* The net, each link with as many streams as it may have when no other has any. */
struct graph *streams_alone(struct sandbox *run, const struct graph *n);

/* The net when the streams are divided evenly among the arcs with in_use[arc], and others have
 * none; NULL when some would get none. Fills streams[link]. */
struct graph *streams_even(struct sandbox *run, const struct graph *n, const char *in_use, int *streams);

/* The net with the streams by which most data arrives a second, if relays pass on as they receive
 * and every link is as it is at its best time. Fills streams[link], and the makespan below which
 * none comes by any choice. Fails the run with PTCP_EINFEASIBLE if the budget leaves too few for all
 * sources. */
struct graph *streams_best(struct sandbox *run, const struct graph *n, const struct plan_tuning *tuning,
    int *streams, double *bound_s);

/* Inside of streams.h, for streams.c (what streams make of a net) and streams_best.c. */

/* The curve of a limit, or NULL. */
const struct conf_curve *streams_limit(const struct graph *n, int limit);

/* The most streams that an arc may have when no other has any; 0: they are not counted. */
int streams_most(const struct graph *n, int arc);

/* The net with these streams of each link. */
struct graph *streams_with(struct sandbox *run, const struct graph *n, const int *streams);

/* The net without windows, each arc with the highest rate it ever has. */
struct graph *streams_steady(struct sandbox *run, const struct graph *n);

#endif
