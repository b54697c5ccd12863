/* The verifier's part for streams that curves count; see verify.c. */
#ifndef PLAN_VERIFY_STREAMS_H
#define PLAN_VERIFY_STREAMS_H

#include "plan/plan.h"

/* Of each link: the bit/s that a stream gets in the tightest bottleneck with a curve that it
 * crosses; INFINITY where there is none. Freed by the caller; NULL: no memory. */
double *verify_shares(const struct conf_overlay *o);

/* Whether links have streams where they are counted, and only there; no more than their curve and
 * the bottlenecks that they cross allow. */
int verify_streams(const struct ptcp_plan *p, const struct conf_overlay *o, const double *share_bps,
    struct ptcp_err *e);

/* What of a rate, that all its streams would have, those that it has can carry. */
double verify_rate_bps(const struct ptcp_plan *p, const struct conf_overlay *o,
    const double *share_bps, size_t link, double bps);

#endif
