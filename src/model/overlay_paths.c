#include "model/overlay_paths.h"

#include <math.h>
#include <string.h>

#include "core/err.h"

static int overlay_paths_check(const struct paths_graph *g, size_t from, size_t to, struct ptcp_err *e)
{
	size_t i;

	if (from >= g->hosts || to >= g->hosts || from == to)
		return err_set(e, PTCP_EUSAGE, "paths: from and to must be two of the hosts");
	for (i = 0; i < g->link_count; i++) {
		const struct paths_link *l = &g->links[i];

		if (l->from >= g->hosts || l->to >= g->hosts)
			return err_set(e, PTCP_EUSAGE, "link %zu: no such host", i + 1);
		if (!(l->rate_bps >= 0 && isfinite(l->rate_bps) && l->delay_s >= 0 &&
		      isfinite(l->delay_s)))
			return err_set(e, PTCP_EUSAGE,
			    "link %zu: %g bit/s and %g s (both must be numbers from 0 on)",
			    i + 1, l->rate_bps, l->delay_s);
	}
	return 0;
}

/* Dijkstra over the links faster than `above_bps`; a link costs its delay plus `bits` over its rate.
 * Returns whether `to` is reachable. */
static bool shortest(const struct paths_graph *g, double above_bps, double bits,
    size_t from, size_t to, struct paths_node *node)
{
	size_t i, at;

	for (i = 0; i < g->hosts; i++)
		node[i] = (struct paths_node){ INFINITY, INFINITY, 0, false };
	node[from].cost = node[from].delay_s = 0;
	for (;;) {
		at = g->hosts;
		for (i = 0; i < g->hosts; i++)
			if (!node[i].done && (at == g->hosts || node[i].cost < node[at].cost))
				at = i;
		if (at == g->hosts || !isfinite(node[at].cost))
			return false;
		if (at == to)
			return true;
		node[at].done = true;
		if (at != from && g->may_relay != NULL && !g->may_relay[at])
			continue;
		for (i = 0; i < g->link_count; i++) {
			const struct paths_link *l = &g->links[i];
			double cost;

			if (l->from != at || !(l->rate_bps > above_bps))
				continue;
			cost = node[at].cost + l->delay_s + bits / l->rate_bps;
			if (cost < node[l->to].cost) {
				node[l->to].cost = cost;
				node[l->to].link = i;
			}
		}
	}
}

/* Reads a path out of the tree made by shortest(). */
static void trace(struct paths_path *p, const struct paths_graph *g, enum paths_kind kind,
    size_t from, size_t to, const struct paths_node *node)
{
	double inverse = 0, slowest = INFINITY;
	size_t at, i;

	p->hops = 0;
	p->delay_s = 0;
	for (at = to; at != from; at = g->links[node[at].link].from)
		p->hops++;
	for (at = to, i = p->hops; i > 0; at = g->links[p->links[i]].from)
		p->links[--i] = node[at].link;
	for (i = 0; i < p->hops; i++) {
		const struct paths_link *l = &g->links[p->links[i]];

		p->delay_s += l->delay_s;
		inverse += 1 / l->rate_bps;
		slowest = fmin(slowest, l->rate_bps);
	}
	p->rate_bps = kind == PATHS_STORED ? 1 / inverse : slowest;
}

double paths_delivery_s(const struct paths_path *p, uint64_t size_bytes)
{
	return 8 * (double)size_bytes / p->rate_bps + p->delay_s;
}

static int unreachable(struct ptcp_err *e)
{
	return err_set(e, PTCP_EINFEASIBLE, "no path between these hosts");
}

int paths_quickest(struct paths_path *out, const struct paths_graph *g, enum paths_kind kind,
    size_t from, size_t to, uint64_t size_bytes, struct paths_node *scratch, struct ptcp_err *e)
{
	double bits = 8 * (double)size_bytes, above = 0, best_above = 0;
	double best = INFINITY;
	struct paths_path p = *out;
	int r;

	if ((r = overlay_paths_check(g, from, to, e)) < 0)
		return r;
	if (kind == PATHS_STORED) {
		if (!shortest(g, 0, bits, from, to, scratch))
			return unreachable(e);
		trace(out, g, kind, from, to, scratch);
		return 0;
	}
	while (shortest(g, above, 0, from, to, scratch)) {
		trace(&p, g, kind, from, to, scratch);
		if (paths_delivery_s(&p, size_bytes) < best) {
			best = paths_delivery_s(&p, size_bytes);
			best_above = above;
		}
		above = p.rate_bps;
	}
	if (!isfinite(best))
		return unreachable(e);
	shortest(g, best_above, 0, from, to, scratch);
	trace(out, g, kind, from, to, scratch);
	return 0;
}
