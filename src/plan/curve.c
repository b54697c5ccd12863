#include "plan/curve.h"

#include <math.h>
#include <stdbool.h>

#include "core/err.h"
#include "model/fit.h"

_Static_assert(CONF_POINTS_MAX <= FIT_PROBES_MAX, "a curve is fitted as a whole");

/* The line through the points, and 0 at no stream, at so many. */
static double between(const struct conf_curve *c, double streams,
    double (*value)(const struct conf_point *))
{
	double x0 = 0, y0 = 0;
	size_t i;

	for (i = 0; i + 1 < c->n && c->point[i].streams < streams; i++) {
		x0 = c->point[i].streams;
		y0 = value(&c->point[i]);
	}
	return y0 + (value(&c->point[i]) - y0) * (streams - x0) / (c->point[i].streams - x0);
}

static double rate_of(const struct conf_point *p)
{
	return (double)p->rate_bps;
}

static double impact_of(const struct conf_point *p)
{
	return p->impact_ratio;
}

double curve_rate_bps(const struct conf_curve *c, double streams)
{
	return between(c, streams, rate_of);
}

double curve_part(const struct conf_curve *c, unsigned streams)
{
	return curve_rate_bps(c, streams) / curve_rate_bps(c, c->max_streams);
}

/* One stream alone takes nothing by definition, so a curve of no more needs no model. */
static int fit_curve(struct fit *fit, const struct conf_curve *c, const char *file, struct ptcp_err *e)
{
	struct probe p[CONF_POINTS_MAX];
	struct ptcp_err why = { .code = 0 };
	size_t i;

	for (i = 0; i < c->n; i++)
		p[i] = (struct probe){ .streams = c->point[i].streams,
			.throughput_bps = rate_of(&c->point[i]) };
	if (fit_probes(fit, FIT_AUTO, p, c->n, &why) < 0)
		return err_set(e, PTCP_ECONFIG, "%s:%d:%d: curve: expected rates at two numbers of "
		    "streams or more, or an impact at each (the impact is not known otherwise)", file,
		    c->mark.line, c->mark.column);
	return 0;
}

static int set_most(struct conf_curve *c, double budget, const char *file, struct ptcp_err *e)
{
	bool given = !isnan(c->point[0].impact_ratio), alone = c->point[c->n - 1].streams == 1;
	unsigned n, last = c->point[c->n - 1].streams;
	struct fit fit;
	int r;

	if (!given && !alone && (r = fit_curve(&fit, c, file, e)) < 0)
		return r;
	for (n = 1, c->max_streams = 0; n <= last; n++, c->max_streams++) {
		double impact = given ? between(c, n, impact_of) : alone ? 0 : fit_impact_ratio(&fit, n);

		if (impact > budget * (1 + 1e-9) || (n > 1 && curve_rate_bps(c, n) <
		    curve_rate_bps(c, n - 1) * (1 + CURVE_MIN_GAIN_RATIO)))
			break;
	}
	if (c->max_streams == 0)
		return err_set(e, PTCP_ECONFIG, "%s:%d:%d: curve: one stream takes %.3g %%, more than the "
		    "budget of %.3g %% (raise 'impact')", file, c->mark.line, c->mark.column,
		    100 * between(c, 1, impact_of), 100 * budget);
	return 0;
}

int curve_budgets(struct conf_overlay *o, struct ptcp_err *e)
{
	double budget = isnan(o->impact_ratio) ? CURVE_IMPACT_RATIO : o->impact_ratio;
	struct conf_curve *c;
	size_t i;
	int r;

	for (i = 0; i < o->nlinks; i++) {
		if ((c = o->links[i].curve) == NULL)
			continue;
		if ((r = set_most(c, budget, o->file, e)) < 0)
			return r;
		o->links[i].rate_bps = (uint64_t)curve_rate_bps(c, c->max_streams);
	}
	for (i = 0; i < o->ngroups; i++) {
		if ((c = o->groups[i].curve) == NULL)
			continue;
		if ((r = set_most(c, budget, o->file, e)) < 0)
			return r;
		o->groups[i].rate_bps = (uint64_t)curve_rate_bps(c, c->max_streams);
	}
	return 0;
}
