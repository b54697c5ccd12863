#include "plan/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sorted.h"
#include "core/units.h"
#include "model/stats.h"
#include "plan/rate_limits.h"

const char *graph_name(const struct graph *n, int host)
{
	return n->overlay->hosts[host].name;
}

static double bytes_per_s(uint64_t bps)
{
	return bps == CONF_UNSET ? INFINITY : (double)bps / 8;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

double graph_rate(const struct graph *n, int arc, int interval)
{
	const struct graph_arc *a = &n->arc[arc];

	return a->windowed < 0 ? a->rate : n->windowed[a->windowed * n->ntimes + interval];
}

int graph_find(const struct graph *n, int from, int to)
{
	int lo = n->out[from], hi = n->out[from + 1];

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (n->arc[mid].to < to)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n->out[from + 1] && n->arc[lo].to == to ? lo : -1;
}

int graph_interval(const struct graph *n, double t)
{
	int i = 0;

	while (i + 1 < n->ntimes && n->time[i + 1] <= t)
		i++;
	return i;
}

static void read_hosts(struct sandbox *run, struct graph *n)
{
	int i;

	n->host = sandbox_alloc(run, (size_t)n->nhosts, sizeof *n->host);
	for (i = 0; i < n->nhosts; i++) {
		const struct conf_host *h = &n->overlay->hosts[i];
		bool unknown = h->data_bytes == CONF_UNSET;

		if (i == n->dest)
			unknown = false;
		else if (unknown && h->path != NULL)
			sandbox_fail(run, PTCP_ECONFIG, "%s:%d:%d: host %s: expected 'data', the size "
			    "of the files at its path (ptcp collect asks the host; for a plan write the "
			    "output of du -sb)", n->overlay->file, h->mark.line, h->mark.column, h->name);
		else if (!unknown)
			n->host[i].data = (double)h->data_bytes;
		n->host[i].relay = h->relay && i != n->dest;
		n->host[i].storage = h->storage_bytes == CONF_UNSET ? INFINITY : (double)h->storage_bytes;
		n->total += n->host[i].data;
	}
}

static void read_times(struct sandbox *run, struct graph *n)
{
	const struct ptcp_overlay *c = n->overlay;
	size_t i, m = 1;
	int k = 1;

	n->time = sandbox_alloc(run, 2 * c->nwindows + 1, sizeof *n->time);
	for (i = 0; i < c->nwindows; i++) {
		n->time[m++] = seconds(c->windows[i].from_ns);
		if (c->windows[i].until_ns != CONF_UNSET)
			n->time[m++] = seconds(c->windows[i].until_ns);
	}
	stats_sort(n->time, m);
	for (i = 1; i < m; i++)
		if (n->time[i] > n->time[k - 1])
			n->time[k++] = n->time[i];
	n->ntimes = k;
}

/* Fills the row of rates of a link with windows; true if any is above 0. */
static bool windowed_rates(const struct graph *n, int link, double base, double *row)
{
	const struct ptcp_overlay *c = n->overlay;
	bool any = false;
	size_t w;
	int i;

	for (i = 0; i < n->ntimes; i++)
		row[i] = base;
	for (w = 0; w < c->nwindows; w++) {
		double until = c->windows[w].until_ns == CONF_UNSET ? INFINITY :
		    seconds(c->windows[w].until_ns);

		if (c->windows[w].link != link)
			continue;
		for (i = 0; i < n->ntimes; i++)
			if (n->time[i] >= seconds(c->windows[w].from_ns) && n->time[i] < until)
				row[i] = bytes_per_s(c->windows[w].rate_bps);
	}
	for (i = 0; i < n->ntimes; i++)
		any = any || row[i] > 0;
	return any;
}

static int by_ends(const void *a, const void *b)
{
	const struct graph_arc *x = a, *y = b;

	return x->from != y->from ? x->from - y->from : x->to - y->to;
}

/* The links that cross a limit of 0, which no window raises. */
static char *blocked_links(struct sandbox *run, const struct ptcp_overlay *c)
{
	char *blocked = sandbox_alloc(run, c->nlinks, 1);
	size_t i, k;

	for (i = 0; i < c->nlinks; i++)
		blocked[i] = c->hosts[c->links[i].from].egress_bps == 0 || c->hosts[c->links[i].to].ingress_bps == 0;
	for (i = 0; i < c->ngroups; i++)
		for (k = 0; c->groups[i].rate_bps == 0 && k < c->groups[i].nlinks; k++)
			blocked[c->groups[i].links[k]] = 1;
	return blocked;
}

static void read_links(struct sandbox *run, struct graph *n)
{
	const struct ptcp_overlay *c = n->overlay;
	char *has_window = sandbox_alloc(run, c->nlinks, 1), *blocked = blocked_links(run, c);
	size_t i, rows = 0;
	int h, row = 0;

	for (i = 0; i < c->nwindows; i++) {
		rows += !has_window[c->windows[i].link];
		has_window[c->windows[i].link] = 1;
	}
	n->windowed = sandbox_alloc(run, rows * (size_t)n->ntimes, sizeof *n->windowed);
	n->arc = sandbox_alloc(run, c->nlinks, sizeof *n->arc);
	for (i = 0; i < c->nlinks; i++) {
		const struct conf_link *l = &c->links[i];
		const struct graph_host *u = &n->host[l->from];
		struct graph_arc *a = &n->arc[n->narcs];

		if (l->from == n->dest || (!(u->data > 0) && !u->relay) || (l->to != n->dest && !n->host[l->to].relay))
			continue;
		if (l->rate_bps == CONF_UNSET)
			sandbox_fail(run, PTCP_ECONFIG, "%s:%d:%d: link %s>%s: expected 'rate' "
			    "(ptcp links measures it)", c->file, l->mark.line, l->mark.column,
			    graph_name(n, l->from), graph_name(n, l->to));
		if (blocked[i])
			continue;
		*a = (struct graph_arc){ .from = l->from, .to = l->to, .link = (int)i,
			.rate = bytes_per_s(l->rate_bps), .windowed = -1 };
		if (has_window[i]) {
			if (!windowed_rates(n, (int)i, a->rate, n->windowed + row * n->ntimes))
				continue;
			a->windowed = row++;
		} else if (!(a->rate > 0)) {
			continue;
		}
		n->narcs++;
	}
	sort_array(n->arc, (size_t)n->narcs, sizeof *n->arc, by_ends);
	n->out = sandbox_alloc(run, (size_t)n->nhosts + 1, sizeof *n->out);
	for (i = 0, h = 0; h <= n->nhosts; h++) {
		while (i < (size_t)n->narcs && n->arc[i].from < h)
			i++;
		n->out[h] = (int)i;
	}
}

/* Limits with a rate and at least one arc; a single arc may be faster than the limit. */
static void read_limits(struct sandbox *run, struct graph *n)
{
	const struct ptcp_overlay *c = n->overlay;
	size_t *first = sandbox_alloc(run, c->nlinks + 1, sizeof *first), k, i, count = limits_count(c);
	size_t *of_link = sandbox_alloc(run, limits_crossings(c), sizeof *of_link);
	int *number = sandbox_alloc(run, count, sizeof *number), at = 0, a;

	limits_index(c, first, of_link);
	for (a = 0; a < n->narcs; a++) {
		n->arc[a].first_limit = at;
		for (k = first[n->arc[a].link] + 1; k < first[n->arc[a].link + 1]; k++)
			if (isfinite(limits_outside_bps(c, of_link[k]))) {
				number[of_link[k]]++;
				at++;
			}
	}
	n->arc_limit = sandbox_alloc(run, (size_t)at, sizeof *n->arc_limit);
	n->limit_arc = sandbox_alloc(run, (size_t)at, sizeof *n->limit_arc);
	n->limit = sandbox_alloc(run, count - c->nlinks, sizeof *n->limit);
	for (at = 0, i = c->nlinks; i < count; i++) {
		if (number[i] == 0)
			continue;
		n->limit[n->nlimits] = (struct graph_limit){ limits_outside_bps(c, i) / 8, i, at, 0 };
		at += number[i];
		number[i] = n->nlimits++;
	}
	for (a = 0; a < n->narcs; a++)
		for (k = first[n->arc[a].link] + 1; k < first[n->arc[a].link + 1]; k++) {
			struct graph_limit *l = &n->limit[number[of_link[k]]];

			if (!isfinite(limits_outside_bps(c, of_link[k])))
				continue;
			n->arc_limit[n->arc[a].first_limit + n->arc[a].nlimits++] = number[of_link[k]];
			n->limit_arc[l->first_arc + l->narcs++] = a;
		}
}

struct graph *graph_new(struct sandbox *run, const struct ptcp_overlay *o)
{
	struct graph *n = sandbox_alloc(run, 1, sizeof *n);

	n->overlay = o;
	n->nhosts = (int)o->nhosts;
	n->dest = o->destination;
	read_hosts(run, n);
	read_times(run, n);
	read_links(run, n);
	read_limits(run, n);
	return n;
}
