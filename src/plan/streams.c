#include "plan/streams.h"

#include <math.h>
#include <string.h>

#include "plan/curve.h"
#include "plan/limits.h"
#include "plan/streams_impl.h"

static const struct conf_curve *own_curve(const struct graph *n, int arc)
{
	return n->conf->links[n->arc[arc].link].curve;
}

const struct conf_curve *streams_limit(const struct graph *n, int limit)
{
	return limits_curve(n->conf, n->limit[limit].of);
}

int streams_most(const struct graph *n, int arc)
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
		if (streams_most(n, a) > 0)
			return true;
	return false;
}

/* What so many streams get of a rate that the arc's most would have. */
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
static void give(struct graph *own, const struct graph *n, int arc, int streams)
{
	struct graph_arc *a = &own->arc[arc];
	int i;

	a->rate = rate_with(n, arc, n->arc[arc].rate, streams);
	for (i = 0; a->windowed >= 0 && i < n->ntimes; i++)
		own->windowed[a->windowed * n->ntimes + i] =
		    rate_with(n, arc, graph_rate(n, arc, i), streams);
}

struct graph *streams_alone(struct sandbox *run, const struct graph *n)
{
	struct graph *own = copy(run, n);
	int a, most;

	for (a = 0; a < n->narcs; a++)
		if ((most = streams_most(n, a)) > 0)
			give(own, n, a, most);
	return own;
}

struct graph *streams_with(struct sandbox *run, const struct graph *n, const int *streams)
{
	struct graph *own = copy(run, n);
	int a;

	for (a = 0; a < n->narcs; a++)
		if (streams_most(n, a) > 0)
			give(own, n, a, streams[n->arc[a].link]);
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

/* One stream more for an arc, if it and its bottlenecks may have one. */
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

	memset(streams, 0, n->conf->nlinks * sizeof *streams);
	while (more)
		for (more = false, a = 0; a < n->narcs; a++)
			if (in_use[a] && streams_most(n, a) > 0 && add_stream(n, a, streams, used))
				more = true;
	for (a = 0; a < n->narcs; a++)
		if (in_use[a] && streams_most(n, a) > 0 && streams[n->arc[a].link] == 0)
			return NULL;
	return streams_with(run, n, streams);
}
