#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/divide.h"
#include "plan/plan.h"
#include "plan/streams.h"

#define BETTER 1.05 /* min gain by a relay */

struct flow {
	int source, nhops, arc[2];
	double left;
	double since, since_bytes; /* time and bytes at the start of the current piece */
};

struct baseline {
	struct sandbox *run;
	const struct graph *n;
	struct flow *flow;
	struct divide_flow *share; /* share of each flow */
	int nflows;
	double t;
	int interval;
	/* Arcs and limits in use: an arc, or narcs + limit; with rates and scratch */
	int *used;
	size_t nused;
	double *limit, *rest, *load;
};

static double path_rate(const struct graph *n, const int *arc, int nhops, int interval)
{
	double rate = INFINITY;
	int h, i;

	for (h = 0; h < nhops; h++) {
		const struct graph_arc *a = &n->arc[arc[h]];

		rate = fmin(rate, interval < 0 ? a->rate : graph_rate(n, arc[h], interval));
		for (i = 0; i < a->nlimits; i++)
			rate = fmin(rate, n->limit[n->arc_limit[a->first_limit + i]].rate);
	}
	return rate;
}

/* Tries the direct path, then the relays in the order of the file. */
static double choose(const struct graph *n, struct flow *f, bool best_path, int interval)
{
	int direct = graph_find(n, f->source, n->dest), k, arc[2];
	double have = 0, rate;

	f->nhops = 0;
	if (direct >= 0) {
		f->arc[0] = direct;
		f->nhops = 1;
		have = path_rate(n, f->arc, 1, interval);
	}
	for (k = 0; best_path && k < n->nhosts; k++) {
		if (k == f->source || !n->host[k].relay)
			continue;
		arc[0] = graph_find(n, f->source, k);
		arc[1] = graph_find(n, k, n->dest);
		if (arc[0] < 0 || arc[1] < 0)
			continue;
		rate = path_rate(n, arc, 2, interval);
		if (rate > have * BETTER) {
			have = rate;
			memcpy(f->arc, arc, sizeof arc);
			f->nhops = 2;
		}
	}
	return have;
}

/* Sources choose by the rates at the start; sources without any, by the rates outside windows. 0 if a
 * source has no path. */
static int choose_all(struct baseline *s, bool best_path, int *without)
{
	const struct graph *n = s->n;
	int h;

	s->flow = sandbox_alloc(s->run, (size_t)n->nhosts, sizeof *s->flow);
	for (h = 0; h < n->nhosts; h++) {
		struct flow *f = &s->flow[s->nflows];

		if (!(n->host[h].data > 0))
			continue;
		*f = (struct flow){ .source = h, .left = n->host[h].data };
		if (!(choose(n, f, best_path, 0) > 0))
			choose(n, f, best_path, -1);
		if (f->nhops == 0) {
			*without = h;
			return 0;
		}
		s->nflows++;
	}
	return 1;
}

/* Lists the limits of each flow, numbered by use. */
static void list_limits(struct baseline *s)
{
	const struct graph *n = s->n;
	size_t *number = sandbox_alloc(s->run, (size_t)n->narcs + (size_t)n->nlimits, sizeof *number), total = 0, *list;
	int k, h, i, at;

	for (k = 0; k < s->nflows; k++)
		for (h = 0; h < s->flow[k].nhops; h++)
			total += 1 + (size_t)n->arc[s->flow[k].arc[h]].nlimits;
	list = sandbox_alloc(s->run, total, sizeof *list);
	s->used = sandbox_alloc(s->run, total, sizeof *s->used);
	s->limit = sandbox_alloc(s->run, total, sizeof *s->limit);
	s->rest = sandbox_alloc(s->run, total, sizeof *s->rest);
	s->load = sandbox_alloc(s->run, total, sizeof *s->load);
	s->share = sandbox_alloc(s->run, (size_t)s->nflows, sizeof *s->share);
	for (k = 0; k < s->nflows; k++) {
		s->share[k].limit = list;
		for (h = 0; h < s->flow[k].nhops; h++) {
			const struct graph_arc *a = &n->arc[s->flow[k].arc[h]];

			for (i = -1; i < a->nlimits; i++) {
				at = i < 0 ? s->flow[k].arc[h] : n->narcs + n->arc_limit[a->first_limit + i];
				if (number[at] == 0) {
					s->used[s->nused] = at;
					number[at] = ++s->nused;
				}
				*list++ = number[at] - 1;
			}
		}
		s->share[k].n_limits = (size_t)(list - s->share[k].limit);
	}
}

static void set_rates(struct baseline *s)
{
	const struct graph *n = s->n;
	size_t i;
	int k;

	for (i = 0; i < s->nused; i++)
		s->limit[i] = s->used[i] < n->narcs ? graph_rate(n, s->used[i], s->interval) :
		    n->limit[s->used[i] - n->narcs].rate;
	for (k = 0; k < s->nflows; k++)
		s->share[k].weight = s->flow[k].left > 0;
	divide_fairly(s->share, (size_t)s->nflows, s->limit, s->nused, 0, INFINITY, s->rest, s->load);
}

/* Divides the streams of counted bottlenecks among the links in use. 0 if a link gets none. */
static int share_streams(struct baseline *s, const struct graph *n, struct method_result *out)
{
	char *in_use = sandbox_alloc(s->run, (size_t)n->narcs, sizeof *in_use);
	int *streams = sandbox_alloc(s->run, n->overlay->nlinks, sizeof *streams), k, h;

	for (k = 0; k < s->nflows; k++)
		for (h = 0; h < s->flow[k].nhops; h++)
			in_use[s->flow[k].arc[h]] = 1;
	s->n = streams_even(s->run, n, in_use, streams);
	out->streams = streams;
	return s->n != NULL;
}

static void close_piece(struct baseline *s, struct flow *f, struct pieces *out)
{
	struct ptcp_plan_hop hop[2];
	int h;

	if (out != NULL && f->since_bytes > 0) {
		for (h = 0; h < f->nhops; h++) {
			const struct graph_arc *a = &s->n->arc[f->arc[h]];

			hop[h] = (struct ptcp_plan_hop){ a->from, a->to, f->since, s->t };
		}
		pieces_add(out, f->source, f->since_bytes, hop, (size_t)f->nhops);
	}
	f->since = s->t;
	f->since_bytes = 0;
}

/* Advances to the next end of a flow or rate change; 0 if all flows are stuck. */
static int advance(struct baseline *s)
{
	double dt = INFINITY;
	int k;

	for (k = 0; k < s->nflows; k++)
		if (s->flow[k].left > 0 && s->share[k].rate > 0)
			dt = fmin(dt, s->flow[k].left / s->share[k].rate);
	if (s->interval + 1 < s->n->ntimes && s->n->time[s->interval + 1] - s->t <= dt * (1 + 1e-12))
		dt = s->n->time[++s->interval] - s->t;
	if (isinf(dt))
		return 0;
	for (k = 0; k < s->nflows; k++) {
		struct flow *f = &s->flow[k];
		double sent = fmin(f->left, s->share[k].rate * dt);

		/* Flows that differ by rounding end at the same time. */
		if (f->left - sent <= 1e-12 * s->n->host[f->source].data)
			sent = f->left;
		f->left -= sent;
		f->since_bytes += sent;
	}
	s->t += dt;
	return 1;
}

static int simulate(struct baseline *s, struct pieces *out, int *stuck)
{
	double *before = sandbox_alloc(s->run, (size_t)s->nflows, sizeof *before);
	int k, open = s->nflows;

	while (open > 0) {
		set_rates(s);
		for (k = 0; k < s->nflows; k++) {
			if (!(fabs(s->share[k].rate - before[k]) <= 1e-12 * before[k]))
				close_piece(s, &s->flow[k], out);
			before[k] = s->share[k].rate;
		}
		if (!advance(s)) {
			for (*stuck = 0; !(s->flow[*stuck].left > 0); ++*stuck)
				;
			return 0;
		}
		for (open = k = 0; k < s->nflows; k++)
			if (s->flow[k].left > 0)
				open++;
			else
				close_piece(s, &s->flow[k], out);
	}
	return 1;
}

void method_baselines(struct sandbox *run, const struct graph *n, bool best_path, struct pieces *pieces,
    struct method_result *out)
{
	bool counted = streams_counted(n);
	struct baseline s = { .run = run, .n = counted ? streams_with(run, n, NULL) : n };
	const char *name = best_path ? "path of at most one relay" : "direct link";
	int bad = 0;

	*out = (struct method_result){ .makespan_s = INFINITY, .bound_s = INFINITY };
	if (!choose_all(&s, best_path, &bad)) {
		if (pieces == NULL)
			return;
		infeasible_unreachable(run, n, false);
		sandbox_fail(run, PTCP_EINFEASIBLE, "source %s has no %s to %s with a rate above 0",
		    graph_name(n, bad), name, graph_name(n, n->dest));
	}
	if (counted && !share_streams(&s, n, out)) {
		if (pieces == NULL)
			return;
		sandbox_fail(run, PTCP_EINFEASIBLE, "the impact budget leaves too few streams for all "
		    "sources at once (raise 'impact', or take another method)");
	}
	list_limits(&s);
	if (!simulate(&s, pieces, &bad)) {
		if (pieces == NULL)
			return;
		sandbox_fail(run, PTCP_EINFEASIBLE, "source %s cannot send over its %s to %s "
		    "after %g s, with %.4g %% of its data left", graph_name(n, s.flow[bad].source),
		    name, graph_name(n, n->dest), s.t, 100 * s.flow[bad].left /
		    n->host[s.flow[bad].source].data);
	}
	out->makespan_s = out->bound_s = s.t;
	snprintf(out->limits, sizeof out->limits, "the %ss of the sources, shared fairly", name);
}
