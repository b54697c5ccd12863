#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"
#include "plan/rate_limits.h"

#define LIMITS_SHOWN 4

/* Hosts with a path to the destination over arcs with a rate in the interval (-1: in any). */
static char *reachable(struct sandbox *run, const struct graph *n, int interval, bool slots)
{
	char *can = sandbox_alloc(run, (size_t)n->nhosts, 1);
	bool more = true;
	int a;

	can[n->dest] = 1;
	while (more) {
		more = false;
		for (a = 0; a < n->narcs; a++) {
			int u = n->arc[a].from, v = n->arc[a].to;

			if (can[u] || !can[v] || (interval >= 0 && !(graph_rate(n, a, interval) > 0)) ||
			    (v != n->dest && slots && !(n->host[v].storage > 0)))
				continue;
			can[u] = 1;
			more = true;
		}
	}
	return can;
}

static void name_overlay_limit(const struct graph *n, size_t i, char *buf, size_t size)
{
	int index;
	enum limits_kind kind = limits_kind(n->overlay, i, &index);

	if (kind == LIMITS_SHARED)
		snprintf(buf, size, "shared bottleneck %d", index + 1);
	else
		snprintf(buf, size, "%s of %s", kind == LIMITS_INGRESS ? "ingress" : "egress",
		    graph_name(n, index));
}

/* Why the graph has no arc for a link. */
static void explain_left_out(struct sandbox *run, const struct graph *n, int link, char *buf, size_t size)
{
	const struct ptcp_overlay *c = n->overlay;
	size_t max = limits_max_of_link(c), *of = sandbox_alloc(run, max, sizeof *of), i;
	char name[CONF_NAME_MAX_BYTES + 40];
	const char *to = graph_name(n, c->links[link].to);
	size_t count = limits_of_link(c, link, of, max);

	snprintf(buf, size, "its link to %s never has a rate above 0", to);
	for (i = 1; i < count; i++)
		if (limits_outside_bps(c, of[i]) == 0) {
			name_overlay_limit(n, of[i], name, sizeof name);
			snprintf(buf, size, "its link to %s crosses the %s, which has a rate of 0", to, name);
		}
}

static const char *explain_unreachable(struct sandbox *run, const struct graph *n, int h, bool slots, char *buf,
    size_t size)
{
	const struct ptcp_overlay *c = n->overlay;
	size_t i;
	int links = 0;

	for (i = 0; i < c->nlinks; i++) {
		const struct conf_link *l = &c->links[i];

		if (l->from != h)
			continue;
		links++;
		if (l->to != n->dest && !c->hosts[l->to].relay)
			snprintf(buf, size, "its link to %s does not help, %s is no relay",
			    c->hosts[l->to].name, c->hosts[l->to].name);
		else if (l->to != n->dest && slots && c->hosts[l->to].storage_bytes == 0)
			snprintf(buf, size, "relay %s has no storage for a slot's data",
			    c->hosts[l->to].name);
		else if (graph_find(n, h, l->to) < 0)
			explain_left_out(run, n, (int)i, buf, size);
		else
			snprintf(buf, size, "none of its relays can reach %s", graph_name(n, n->dest));
	}
	if (links == 0)
		snprintf(buf, size, "it has no link to any host");
	return buf;
}

void infeasible_unreachable(struct sandbox *run, const struct graph *n, bool slots)
{
	char *can = reachable(run, n, -1, slots), why[200];
	int h;

	for (h = 0; h < n->nhosts; h++)
		if (n->host[h].data > 0 && !can[h])
			sandbox_fail(run, PTCP_EINFEASIBLE,
			    "source %s cannot reach %s: %s (add a link, raise a rate of 0, or "
			    "'relay: true' for hosts that may forward)", graph_name(n, h),
			    graph_name(n, n->dest), explain_unreachable(run, n, h, slots, why, sizeof why));
}

static void name_link(const struct graph *n, int link, char *buf, size_t size)
{
	const struct conf_link *l = &n->overlay->links[link];

	snprintf(buf, size, "%s>%s", graph_name(n, l->from), graph_name(n, l->to));
}

/* The window that lowers a link's rate at a time, or NULL. */
static const struct conf_window *window_at(const struct graph *n, int link, double t)
{
	const struct ptcp_overlay *c = n->overlay;
	size_t i;

	for (i = 0; i < c->nwindows; i++) {
		const struct conf_window *w = &c->windows[i];

		if (w->link == link && (double)w->from_ns <= t * 1e9 + 1 &&
		    (w->until_ns == CONF_UNSET || (double)w->until_ns > t * 1e9 + 1) &&
		    w->rate_bps < c->links[link].rate_bps)
			return w;
	}
	return NULL;
}

static void name_window(const struct conf_window *w, char *buf, size_t size)
{
	char from[UNITS_TEXT_BYTES], until[UNITS_TEXT_BYTES];

	units_time_text(from, (double)w->from_ns / 1e9);
	if (w->until_ns == CONF_UNSET)
		snprintf(buf, size, "window from %s on", from);
	else
		snprintf(buf, size, "window %s to %s", from,
		    units_time_text(until, (double)w->until_ns / 1e9));
}

void infeasible_always(struct sandbox *run, const struct graph *n, double share, bool slots)
{
	int last = n->ntimes - 1, h, a;
	char *can = reachable(run, n, last, slots), *ever = reachable(run, n, -1, slots);
	char link[2 * CONF_NAME_MAX_BYTES + 2] = "", window[100] = "";
	const struct conf_window *w;

	for (h = 0; h < n->nhosts && !(n->host[h].data > 0 && !can[h] && ever[h]); h++)
		;
	if (h == n->nhosts)
		sandbox_fail(run, PTCP_EINFEASIBLE, "only %.4g %% of the data can ever arrive at %s",
		    share * 100, graph_name(n, n->dest));
	/* A link out of the unreachable part that is closed by a window. */
	for (a = 0; a < n->narcs; a++)
		if (!can[n->arc[a].from] && (can[n->arc[a].to] || window[0] == '\0') &&
		    (w = window_at(n, n->arc[a].link, n->time[last])) != NULL) {
			name_link(n, n->arc[a].link, link, sizeof link);
			name_window(w, window, sizeof window);
		}
	sandbox_fail(run, PTCP_EINFEASIBLE, "source %s cannot reach %s any more after %g s (%s: %s), and "
	    "by then only %.4g %% of the data can arrive", graph_name(n, h), graph_name(n, n->dest),
	    n->time[last], link, window, share * 100);
}

static void name_limit(const struct graph *n, const struct time_grid *g, const struct lp_limit *l,
    char *buf, size_t size)
{
	const struct conf_window *w;
	size_t k;

	if (l->arc >= 0) {
		int link = n->arc[l->arc].link;

		name_link(n, link, buf, size);
		w = window_at(n, link, g->period[l->period].start_s);
		k = strlen(buf);
		if (w != NULL) {
			snprintf(buf + k, size - k, ", ");
			name_window(w, buf + k + 2, size - k - 2);
		}
	} else if (l->limit >= 0) {
		name_overlay_limit(n, n->limit[l->limit].of, buf, size);
	} else {
		snprintf(buf, size, "storage of %s", graph_name(n, l->host));
	}
}

void infeasible_limits(char text[INFEASIBLE_TEXT_BYTES], const struct graph *n, const struct time_grid *g,
    const struct lp *lp)
{
	struct lp_limit limit[LIMITS_SHOWN];
	int k = lp_limits(lp, limit, LIMITS_SHOWN), i;
	char name[2 * CONF_NAME_MAX_BYTES + 100];
	double all = 0;
	size_t at = 0;

	text[0] = '\0';
	for (i = 0; i < k; i++)
		all += limit[i].part;
	for (i = 0; i < k && at < INFEASIBLE_TEXT_BYTES; i++) {
		name_limit(n, g, &limit[i], name, sizeof name);
		at += (size_t)snprintf(text + at, INFEASIBLE_TEXT_BYTES - at, "%s%s (%.0f %%)",
		    i == 0 ? "" : ", ", name, limit[i].part / lp_share(lp) * 100);
	}
	if (all < 0.99 * lp_share(lp) && at < INFEASIBLE_TEXT_BYTES)
		snprintf(text + at, INFEASIBLE_TEXT_BYTES - at, "%sothers", k > 0 ? ", " : "");
}
