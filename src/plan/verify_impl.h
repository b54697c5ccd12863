/* Internals of the verifier: verify.c (data, paths, streams) and verify_limits.c (rates, storage). */
#ifndef PLAN_VERIFY_IMPL_H
#define PLAN_VERIFY_IMPL_H

#include "plan/plan.h"

struct check {
	const struct ptcp_plan *p;
	const struct conf_overlay *o;
	double eps_s; /* tolerance of times */
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
/* Writes the peak of each host to `peak`, initially all 0. */
int verify_storage(const struct check *c, double *peak);

/* ---- verify.c ---- */

double *verify_shares(const struct conf_overlay *o);

int verify_streams(const struct ptcp_plan *p, const struct conf_overlay *o, const double *share_bps,
    struct ptcp_err *e);

/* Rate available to the link's current streams, given `bps` for its full number of streams. */
double verify_rate_bps(const struct ptcp_plan *p, const struct conf_overlay *o,
    const double *share_bps, size_t link, double bps);

#endif
