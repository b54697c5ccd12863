#include "plan/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"

const char *graph_name(const struct graph *n, int host)
{
	return n->conf->hosts[host].name;
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
		const struct conf_host *h = &n->conf->hosts[i];
		bool unknown = h->data_bytes == CONF_UNSET;

		if (i == n->dest)
			unknown = false;
		else if (unknown && h->path != NULL)
			run_fail(run, PTCP_ECONFIG, "%s:%d:%d: host %s: expected 'data', the size "
			    "of what is at its path (ptcp collect asks the host; for a plan write what "
			    "du -sb says)", n->conf->file, h->mark.line, h->mark.column, h->name);
		else if (!unknown)
			n->host[i].data = (double)h->data_bytes;
		n->host[i].relay = h->relay && i != n->dest;
		n->host[i].storage = h->storage_bytes == CONF_UNSET ? INFINITY : (double)h->storage_bytes;
		n->total += n->host[i].data;
	}
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void read_times(struct sandbox *run, struct graph *n)
{
	const struct conf_overlay *c = n->conf;
	size_t i, m = 1;
	int k = 1;

	n->time = sandbox_alloc(run, 2 * c->nwindows + 1, sizeof *n->time);
	for (i = 0; i < c->nwindows; i++) {
		n->time[m++] = seconds(c->windows[i].from_ns);
		if (c->windows[i].until_ns != CONF_UNSET)
			n->time[m++] = seconds(c->windows[i].until_ns);
	}
	qsort(n->time, m, sizeof *n->time, by_value);
	for (i = 1; i < m; i++)
		if (n->time[i] > n->time[k - 1])
			n->time[k++] = n->time[i];
	n->ntimes = k;
}

/* Fills the row of rates of one link with windows; true if any is above 0. */
static bool windowed_rates(const struct graph *n, int link, double base, double *row)
{
	const struct conf_overlay *c = n->conf;
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

static bool useful(const struct graph *n, const struct conf_link *l)
{
	const struct graph_host *u = &n->host[l->from], *v = &n->host[l->to];

	return l->from != n->dest && (u->data > 0 || u->relay) && (l->to == n->dest || v->relay);
}

static int by_ends(const void *a, const void *b)
{
	const struct graph_arc *x = a, *y = b;

	return x->from != y->from ? x->from - y->from : x->to - y->to;
}

static void read_links(struct sandbox *run, struct graph *n)
{
	const struct conf_overlay *c = n->conf;
	char *has_window = sandbox_alloc(run, c->nlinks, 1);
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
		struct graph_arc *a = &n->arc[n->narcs];

		if (!useful(n, l))
			continue;
		if (l->rate_bps == CONF_UNSET)
			run_fail(run, PTCP_ECONFIG, "%s:%d:%d: link %s>%s: expected 'rate' "
			    "(ptcp links measures it)", c->file, l->mark.line, l->mark.column,
			    graph_name(n, l->from), graph_name(n, l->to));
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
	qsort(n->arc, (size_t)n->narcs, sizeof *n->arc, by_ends);
	n->out = sandbox_alloc(run, (size_t)n->nhosts + 1, sizeof *n->out);
	for (i = 0, h = 0; h <= n->nhosts; h++) {
		while (i < (size_t)n->narcs && n->arc[i].from < h)
			i++;
		n->out[h] = (int)i;
	}
}

/* Limits of one arc are its own; a limit with a single arc is kept as well, it
 * may be lower than the arc's. */
static void add_res(struct graph *n, double rate, enum graph_limit kind, int index, int first, int end)
{
	if (end == first || isinf(rate))
		return;
	n->res[n->nres++] = (struct graph_capacity){ rate, kind, index, first, end - first };
}

static void read_limits(struct sandbox *run, struct graph *n)
{
	const struct conf_overlay *c = n->conf;
	int *arc_of = sandbox_alloc(run, c->nlinks, sizeof *arc_of), k = 0, first, h, a, r;
	size_t g, i, most = 2 * (size_t)n->narcs;

	for (i = 0; i < c->nlinks; i++)
		arc_of[i] = -1;
	for (a = 0; a < n->narcs; a++)
		arc_of[n->arc[a].link] = a;
	for (g = 0; g < c->ngroups; g++)
		most += c->groups[g].nlinks;
	n->res = sandbox_alloc(run, c->ngroups + 2 * (size_t)n->nhosts, sizeof *n->res);
	n->res_arc = sandbox_alloc(run, most, sizeof *n->res_arc);
	for (g = 0; g < c->ngroups; g++) {
		first = k;
		for (i = 0; i < c->groups[g].nlinks; i++)
			if ((a = arc_of[c->groups[g].links[i]]) >= 0)
				n->res_arc[k++] = a;
		add_res(n, bytes_per_s(c->groups[g].rate_bps), GRAPH_SHARED, (int)g, first, k);
	}
	for (h = 0; h < n->nhosts; h++) {
		if (c->hosts[h].ingress_bps == CONF_UNSET)
			continue;
		for (first = k, a = 0; a < n->narcs; a++)
			if (n->arc[a].to == h)
				n->res_arc[k++] = a;
		add_res(n, bytes_per_s(c->hosts[h].ingress_bps), GRAPH_INGRESS, h, first, k);
	}
	for (h = 0; h < n->nhosts; h++) {
		for (first = k, a = n->out[h]; a < n->out[h + 1]; a++)
			n->res_arc[k++] = a;
		add_res(n, bytes_per_s(c->hosts[h].egress_bps), GRAPH_EGRESS, h, first, k);
	}
	for (r = 0; r < n->nres; r++)
		for (i = 0; i < (size_t)n->res[r].narcs; i++)
			n->arc[n->res_arc[n->res[r].first_arc + (int)i]].nres++;
	n->arc_res = sandbox_alloc(run, (size_t)k, sizeof *n->arc_res);
	for (k = 0, a = 0; a < n->narcs; a++) {
		n->arc[a].first_res = k;
		k += n->arc[a].nres;
		n->arc[a].nres = 0;
	}
	for (r = 0; r < n->nres; r++)
		for (i = 0; i < (size_t)n->res[r].narcs; i++) {
			struct graph_arc *p = &n->arc[n->res_arc[n->res[r].first_arc + (int)i]];

			n->arc_res[p->first_res + p->nres++] = r;
		}
}

struct graph *graph_new(struct sandbox *run, const struct conf_overlay *conf)
{
	struct graph *n = sandbox_alloc(run, 1, sizeof *n);

	n->conf = conf;
	n->nhosts = (int)conf->nhosts;
	n->dest = conf->destination;
	read_hosts(run, n);
	read_times(run, n);
	read_links(run, n);
	read_limits(run, n);
	return n;
}
