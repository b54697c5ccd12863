#include "model/bound.h"

#include <math.h>

void paths_take(struct paths_graph *g, const struct paths_path *p)
{
	size_t i;

	for (i = 0; i < p->hops; i++) {
		struct paths_link *l = &g->links[p->links[i]];

		l->rate_bps -= p->rate_bps;
		if (l->rate_bps < 1e-9 * p->rate_bps)
			l->rate_bps = 0;
	}
}

int bound_greedy(struct paths_path *out, size_t want, size_t *found, struct paths_graph *g,
    size_t from, size_t to, uint64_t size_bytes, struct paths_node *scratch, struct ptcp_err *e)
{
	size_t i;
	int r;

	for (i = 0; i < want; i++) {
		r = paths_quickest(&out[i], g, PATHS_PIPELINED, from, to, size_bytes, scratch,
		    i == 0 ? e : NULL);
		if (r < 0 && i == 0)
			return r;
		if (r < 0)
			break;
		paths_take(g, &out[i]);
	}
	*found = i;
	return 0;
}

/* Differences below this share of the numbers they come from are rounding: no
 * room on a link, no shorter way. */
#define ROUNDING 1e-12

/* Bellman-Ford on what the flow leaves: links with room, and backwards, at
 * negative delay, links with flow (via >= link_count). Returns whether `to` is
 * reached; its delay is then in node[to].cost. */
static bool augmenting(const struct paths_graph *g, const double *flow, size_t from, size_t to,
    struct paths_node *node)
{
	bool changed = true;
	double slack = 0;
	size_t i, round;

	for (i = 0; i < g->link_count; i++)
		slack = fmax(slack, ROUNDING * g->links[i].delay_s);
	for (i = 0; i < g->hosts; i++)
		node[i] = (struct paths_node){ INFINITY, INFINITY, 0, false };
	node[from].cost = 0;
	for (round = 0; changed && round < g->hosts; round++) {
		changed = false;
		for (i = 0; i < g->link_count; i++) {
			const struct paths_link *l = &g->links[i];

			if (flow[i] < l->rate_bps * (1 - ROUNDING) &&
			    (l->from == from || g->may_relay == NULL || g->may_relay[l->from]) &&
			    node[l->from].cost + l->delay_s < node[l->to].cost - slack) {
				node[l->to].cost = node[l->from].cost + l->delay_s;
				node[l->to].link = i;
				changed = true;
			}
			if (flow[i] > l->rate_bps * ROUNDING &&
			    node[l->to].cost - l->delay_s < node[l->from].cost - slack) {
				node[l->from].cost = node[l->to].cost - l->delay_s;
				node[l->from].link = g->link_count + i;
				changed = true;
			}
		}
	}
	return isfinite(node[to].cost);
}

/* Sends what fits along the path found; returns how much. */
static double augment(const struct paths_graph *g, double *flow, size_t from, size_t to,
    const struct paths_node *node)
{
	double room = INFINITY;
	size_t at, i;
	int pass;

	for (pass = 0; pass < 2; pass++)
		for (at = to; at != from;) {
			bool back = node[at].link >= g->link_count;

			i = node[at].link - (back ? g->link_count : 0);
			if (pass == 0)
				room = fmin(room, back ? flow[i] : g->links[i].rate_bps - flow[i]);
			else
				flow[i] += back ? -room : room;
			at = back ? g->links[i].to : g->links[i].from;
		}
	return room;
}

double bound_s(const struct paths_graph *g, size_t from, size_t to, uint64_t size_bytes, double *flow_bps,
    struct paths_node *scratch)
{
	double finish = INFINITY, rate = 0, delayed = 0, more = INFINITY;
	size_t i;

	for (i = 0; i < g->link_count; i++)
		flow_bps[i] = 0;
	while (more > ROUNDING * rate && augmenting(g, flow_bps, from, to, scratch) && scratch[to].cost < finish) {
		more = augment(g, flow_bps, from, to, scratch);
		rate += more;
		delayed += more * scratch[to].cost;
		finish = (8 * (double)size_bytes + delayed) / rate;
	}
	return finish;
}
