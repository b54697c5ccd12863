/* The verifier's part for streams that curves count. */
#include <math.h>
#include <stdlib.h>

#include "core/err.h"
#include "plan/verify_impl.h"

double *verify_shares(const struct conf_overlay *o)
{
	double *share = calloc(o->nlinks + 1, sizeof *share);
	size_t i, g;

	for (i = 0; i < o->nlinks && share != NULL; i++)
		share[i] = INFINITY;
	for (g = 0; g < o->ngroups && share != NULL; g++)
		for (i = 0; i < o->groups[g].nlinks && o->groups[g].curve != NULL; i++) {
			double *s = &share[o->groups[g].links[i]];

			*s = fmin(*s, (double)o->groups[g].rate_bps / o->groups[g].curve->max_streams);
		}
	return share;
}

static bool is_counted(const struct conf_overlay *o, const double *share_bps, size_t link)
{
	return o->links[link].curve != NULL || isfinite(share_bps[link]);
}

static unsigned streams_of(const struct ptcp_plan *p, const struct conf_overlay *o, size_t link)
{
	return ptcp_plan_streams(p, o->links[link].from, o->links[link].to);
}

int verify_streams(const struct ptcp_plan *p, const struct conf_overlay *o, const double *share_bps,
    struct ptcp_err *e)
{
	const struct conf_group *grp;
	size_t i, g;
	unsigned n;

	for (i = 0; i < o->nlinks; i++) {
		const struct conf_curve *c = o->links[i].curve;

		n = streams_of(p, o, i);
		if (is_counted(o, share_bps, i) ? c != NULL && n > c->max_streams : n > 0)
			return err_set(e, PTCP_EVERIFY, "link %s>%s has %u streams, more than its curve allows",
			    o->hosts[o->links[i].from].name, o->hosts[o->links[i].to].name, n);
	}
	for (g = 0; g < o->ngroups; g++) {
		grp = &o->groups[g];
		for (i = n = 0; i < grp->nlinks && grp->curve != NULL; i++)
			n += streams_of(p, o, (size_t)grp->links[i]);
		if (grp->curve != NULL && n > grp->curve->max_streams)
			return err_set(e, PTCP_EVERIFY, "shared bottleneck %zu has %u streams, more than the %u "
			    "of its budget", g + 1, n, grp->curve->max_streams);
	}
	return 0;
}

/* The rate of so many streams, straight between the points. */
static double read_off(const struct conf_curve *c, double streams)
{
	double before = 0, at = 0;
	size_t i;

	for (i = 0; i < c->n; i++) {
		double next = c->point[i].streams, rate = (double)c->point[i].rate_bps;

		if (next >= streams)
			return at + (rate - at) / (next - before) * (streams - before);
		before = next;
		at = rate;
	}
	return at;
}

double verify_rate_bps(const struct ptcp_plan *p, const struct conf_overlay *o,
    const double *share_bps, size_t link, double bps)
{
	const struct conf_curve *c = o->links[link].curve;
	unsigned n;

	if (!is_counted(o, share_bps, link))
		return bps;
	n = streams_of(p, o, link);
	if (c != NULL)
		bps *= read_off(c, n) / read_off(c, c->max_streams);
	return n == 0 ? 0 : fmin(bps, n * share_bps[link]);
}
