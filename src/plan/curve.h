/* What streams bring and take, of the curves of an overlay file (conf/curve.h), and how many the
 * impact budget allows.
 *
 * Between its points a curve is straight, before the first from 0 at no stream; behind the last no
 * stream is allowed. Impact is straight between the points likewise where it is given; else it is
 * that of the model which fits the points (model/fit.h, as ptcp advise chooses it). */
#ifndef PLAN_CURVE_H
#define PLAN_CURVE_H

#include "conf/overlay.h"

#define CURVE_IMPACT_RATIO 0.10 /* where the file names no budget */
#define CURVE_MIN_GAIN_RATIO 0.01

/* For each curve the most streams that keep the budget, the last of which still brings as much as
 * ptcp advise asks of one; and the rate of its link or bottleneck, which is that of so many.
 * PTCP_ECONFIG with line and column: impact that no model can tell, or one stream takes too much. */
int curve_budgets(struct conf_overlay *o, struct ptcp_err *e);

double curve_rate_bps(const struct conf_curve *c, double streams);

/* What share of the rate of its most streams these bring. */
double curve_part(const struct conf_curve *c, unsigned streams);

#endif
