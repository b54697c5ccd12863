/* The inside of the verifier, for verify.c (every byte, once, over a path), verify_limits.c (rates, storage) and
 * verify_streams.c (streams that curves count). */
#ifndef PLAN_VERIFY_IMPL_H
#define PLAN_VERIFY_IMPL_H

#include "plan/plan.h"

struct check {
	const struct ptcp_plan *p;
	const struct conf_overlay *o;
	double eps_s; /* differences in time that mean nothing */
	double *share_bps; /* see verify_shares() */
	struct ptcp_err *e;
};

static inline const char *verify_name(const struct check *c, int host)
{
	return c->o->hosts[host].name;
}

static inline int verify_link(const struct check *c, const struct ptcp_plan_hop *h)
{
	return c->o->link_of[(size_t)h->from * c->o->nhosts + (size_t)h->to];
}

/* ---- verify_limits.c ---- */

int verify_rates(const struct check *c);
/* Peaks by host go to `peak`, which is all 0. */
int verify_storage(const struct check *c, double *peak);

/* ---- verify_streams.c ---- */

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
