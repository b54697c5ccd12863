#include "plan/streams.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/err.h"
#include "model/fit.h"
#include "plan/rate_limits.h"

_Static_assert(CONF_POINTS_MAX <= FIT_PROBES_MAX, "a curve is fitted as a whole");

/* Linear interpolation between the points, and 0 at no stream. */
static double interpolate(const struct conf_curve *c, double streams,
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
	return interpolate(c, streams, rate_of);
}

/* Rate of `streams` streams over the rate of max_streams. */
static double curve_part(const struct conf_curve *c, unsigned streams)
{
	return curve_rate_bps(c, streams) / curve_rate_bps(c, c->max_streams);
}

/* A curve of one stream needs no model: its impact is 0 by definition. */
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

static int set_max(struct conf_curve *c, double budget, const char *file, struct ptcp_err *e)
{
	bool given = !isnan(c->point[0].impact_ratio), alone = c->point[c->n - 1].streams == 1;
	unsigned n, last = c->point[c->n - 1].streams;
	struct fit fit;
	int r;

	if (!given && !alone && (r = fit_curve(&fit, c, file, e)) < 0)
		return r;
	for (n = 1, c->max_streams = 0; n <= last; n++, c->max_streams++) {
		double impact = given ? interpolate(c, n, impact_of) : alone ? 0 : fit_impact_ratio(&fit, n);

		if (impact > budget * (1 + 1e-9) || (n > 1 && curve_rate_bps(c, n) <
		    curve_rate_bps(c, n - 1) * (1 + CURVE_MIN_GAIN_RATIO)))
			break;
	}
	if (c->max_streams == 0)
		return err_set(e, PTCP_ECONFIG, "%s:%d:%d: curve: one stream has an impact of %.3g %%, above "
		    "the budget of %.3g %% (raise 'impact')", file, c->mark.line, c->mark.column,
		    100 * interpolate(c, 1, impact_of), 100 * budget);
	return 0;
}

int curve_budgets(struct ptcp_overlay *o, struct ptcp_err *e)
{
	double budget = isnan(o->impact_ratio) ? CURVE_IMPACT_RATIO : o->impact_ratio;
	struct conf_curve *c;
	size_t i;
	int r;

	for (i = 0; i < o->nlinks; i++) {
		if ((c = o->links[i].curve) == NULL)
			continue;
		if ((r = set_max(c, budget, o->file, e)) < 0)
			return r;
		o->links[i].rate_bps = (uint64_t)curve_rate_bps(c, c->max_streams);
	}
	for (i = 0; i < o->ngroups; i++) {
		if ((c = o->groups[i].curve) == NULL)
			continue;
		if ((r = set_max(c, budget, o->file, e)) < 0)
			return r;
		o->groups[i].rate_bps = (uint64_t)curve_rate_bps(c, c->max_streams);
	}
	return 0;
}

/* ---- Stream counts of a graph ---- */

static const struct conf_curve *own_curve(const struct graph *n, int arc)
{
	return n->overlay->links[n->arc[arc].link].curve;
}

const struct conf_curve *streams_limit(const struct graph *n, int limit)
{
	return limits_curve(n->overlay, n->limit[limit].of);
}

int streams_max(const struct graph *n, int arc)
{
	const struct graph_arc *a = &n->arc[arc];
	const struct conf_curve *c = own_curve(n, arc);
	int most = c != NULL ? (int)c->max_streams : 0, i;

	for (i = 0; i < a->nlimits; i++)
		if ((c = streams_limit(n, n->arc_limit[a->first_limit + i])) != NULL &&
		    (most == 0 || (int)c->max_streams < most))
			most = (int)c->max_streams;
	return most;
}

bool streams_counted(const struct graph *n)
{
	int a;

	for (a = 0; a < n->narcs; a++)
		if (streams_max(n, a) > 0)
			return true;
	return false;
}

/* Throughput of `streams` streams on an arc whose maximum number of streams gets `rate`. */
static double rate_with(const struct graph *n, int arc, double rate, int streams)
{
	const struct graph_arc *a = &n->arc[arc];
	const struct conf_curve *c = own_curve(n, arc);
	int i, r;

	if (c != NULL)
		rate *= curve_part(c, (unsigned)streams);
	for (i = 0; i < a->nlimits; i++) {
		r = n->arc_limit[a->first_limit + i];
		if ((c = streams_limit(n, r)) != NULL)
			rate = fmin(rate, n->limit[r].rate / c->max_streams * streams);
	}
	return rate;
}

static struct graph *copy(struct sandbox *run, const struct graph *n)
{
	struct graph *own = sandbox_alloc(run, 1, sizeof *own);
	size_t rows = 0;
	int a;

	*own = *n;
	for (a = 0; a < n->narcs; a++)
		rows += n->arc[a].windowed >= 0;
	own->arc = sandbox_alloc(run, (size_t)n->narcs, sizeof *own->arc);
	own->windowed = sandbox_alloc(run, rows * (size_t)n->ntimes, sizeof *own->windowed);
	memcpy(own->arc, n->arc, (size_t)n->narcs * sizeof *own->arc);
	memcpy(own->windowed, n->windowed, rows * (size_t)n->ntimes * sizeof *own->windowed);
	return own;
}

/* Changes the rates of a copy. */
static void apply_streams(struct graph *own, const struct graph *n, int arc, int streams)
{
	struct graph_arc *a = &own->arc[arc];
	int i;

	a->rate = rate_with(n, arc, n->arc[arc].rate, streams);
	for (i = 0; a->windowed >= 0 && i < n->ntimes; i++)
		own->windowed[a->windowed * n->ntimes + i] =
		    rate_with(n, arc, graph_rate(n, arc, i), streams);
}

struct graph *streams_with(struct sandbox *run, const struct graph *n, const int *streams)
{
	struct graph *own = copy(run, n);
	int a, most;

	for (a = 0; a < n->narcs; a++)
		if ((most = streams_max(n, a)) > 0)
			apply_streams(own, n, a, streams != NULL ? streams[n->arc[a].link] : most);
	return own;
}

struct graph *streams_steady(struct sandbox *run, const struct graph *n)
{
	struct graph *own = copy(run, n);
	int a, i;

	for (a = 0; a < n->narcs; a++) {
		if (n->arc[a].windowed < 0)
			continue;
		for (i = 0, own->arc[a].rate = 0; i < n->ntimes; i++)
			own->arc[a].rate = fmax(own->arc[a].rate, graph_rate(n, a, i));
		own->arc[a].windowed = -1;
	}
	own->ntimes = 1;
	return own;
}

/* Adds one stream to an arc, within the maxima of the arc and its bottlenecks. */
static bool add_stream(const struct graph *n, int arc, int *streams, int *used)
{
	const struct graph_arc *a = &n->arc[arc];
	const struct conf_curve *c = own_curve(n, arc);
	int i, r;

	if (c != NULL && streams[a->link] == (int)c->max_streams)
		return false;
	for (i = 0; i < a->nlimits; i++) {
		r = n->arc_limit[a->first_limit + i];
		if ((c = streams_limit(n, r)) != NULL && used[r] == (int)c->max_streams)
			return false;
	}
	for (i = 0; i < a->nlimits; i++)
		used[n->arc_limit[a->first_limit + i]]++;
	streams[a->link]++;
	return true;
}

struct graph *streams_even(struct sandbox *run, const struct graph *n, const char *in_use, int *streams)
{
	int *used = sandbox_alloc(run, (size_t)n->nlimits, sizeof *used), a;
	bool more = true;

	memset(streams, 0, n->overlay->nlinks * sizeof *streams);
	while (more)
		for (more = false, a = 0; a < n->narcs; a++)
			if (in_use[a] && streams_max(n, a) > 0 && add_stream(n, a, streams, used))
				more = true;
	for (a = 0; a < n->narcs; a++)
		if (in_use[a] && streams_max(n, a) > 0 && streams[n->arc[a].link] == 0)
			return NULL;
	return streams_with(run, n, streams);
}
