/* Quickest paths through an overlay, and the bytes for each path. Each path takes its rate from the
 * remaining rates of all limits that it crosses. */
#include <math.h>
#include <ptcp/plan.h>
#include <stdlib.h>
#include <string.h>

#include "conf/overlay.h"
#include "core/err.h"
#include "core/units.h"
#include "model/divide.h"
#include "model/overlay_paths.h"
#include "plan/rate_limits.h"

struct quickest_path {
	struct paths_path path;
	int *relays; /* relays, in order */
	uint64_t bytes;
};

struct ptcp_paths {
	struct quickest_path *found;
	size_t n;
	double finish_s;
};

struct quickest_search {
	const struct ptcp_overlay *overlay;
	struct paths_graph graph;
	bool *relay;
	struct paths_node *scratch;
	double *rest_bps;      /* remaining rate of each limit */
	unsigned *crossed;     /* crossings of each limit by a path; 0 between paths */
	size_t *first, *limit; /* limits_index() */
};

/* ---- The graph ---- */

/* Caps each link's rate by the remaining rates of its limits. */
static void apply_limits(struct quickest_search *s)
{
	size_t i, k;

	for (i = 0; i < s->graph.link_count; i++) {
		struct paths_link *l = &s->graph.links[i];

		l->rate_bps = s->rest_bps[i];
		for (k = s->first[i]; k < s->first[i + 1]; k++)
			l->rate_bps = fmin(l->rate_bps, s->rest_bps[s->limit[k]]);
	}
}

static int search_init(struct quickest_search *s, const struct ptcp_overlay *o, struct ptcp_err *e)
{
	size_t n = limits_count(o), i;

	*s = (struct quickest_search){ .overlay = o };
	s->relay = calloc(o->nhosts, sizeof *s->relay);
	s->scratch = calloc(o->nhosts, sizeof *s->scratch);
	s->rest_bps = calloc(n, sizeof *s->rest_bps);
	s->crossed = calloc(n, sizeof *s->crossed);
	s->first = calloc(o->nlinks + 1, sizeof *s->first);
	s->limit = calloc(limits_crossings(o) + 1, sizeof *s->limit);
	s->graph = (struct paths_graph){ o->nhosts, o->nlinks, s->relay,
	    calloc(o->nlinks + 1, sizeof *s->graph.links) };
	if (s->relay == NULL || s->scratch == NULL || s->rest_bps == NULL || s->crossed == NULL || s->first == NULL ||
	    s->limit == NULL || s->graph.links == NULL)
		return err_nomem(e);
	for (i = 0; i < o->nhosts; i++)
		s->relay[i] = o->hosts[i].relay;
	for (i = 0; i < n; i++)
		s->rest_bps[i] = limits_outside_bps(o, i);
	for (i = 0; i < o->nlinks; i++) {
		const struct conf_link *l = &o->links[i];

		if (l->rate_bps == CONF_UNSET)
			s->rest_bps[i] = 0;
		s->graph.links[i] = (struct paths_link){ (size_t)l->from, (size_t)l->to, 0,
			l->delay_ns == CONF_UNSET ? 0 : (double)l->delay_ns / (double)NS_PER_S };
	}
	limits_index(o, s->first, s->limit);
	apply_limits(s);
	return 0;
}

static void search_fini(struct quickest_search *s)
{
	free(s->relay);
	free(s->scratch);
	free(s->rest_bps);
	free(s->crossed);
	free(s->first);
	free(s->limit);
	free(s->graph.links);
}

/* ---- Paths one after the other ---- */

/* Gives the path the remaining rate of its limits, or half of it for a limit crossed twice. */
static void quickest_take(struct quickest_search *s, struct paths_path *p)
{
	double *rest;
	size_t i, k;

	for (i = 0; i < p->hops; i++)
		for (k = s->first[p->links[i]]; k < s->first[p->links[i] + 1]; k++)
			s->crossed[s->limit[k]]++;
	for (i = 0; i < p->hops; i++)
		for (k = s->first[p->links[i]]; k < s->first[p->links[i] + 1]; k++)
			p->rate_bps = fmin(p->rate_bps, s->rest_bps[s->limit[k]] / s->crossed[s->limit[k]]);
	for (i = 0; i < p->hops; i++)
		for (k = s->first[p->links[i]]; k < s->first[p->links[i] + 1]; k++) {
			rest = &s->rest_bps[s->limit[k]];
			*rest -= s->crossed[s->limit[k]] * p->rate_bps;
			if (*rest < 1e-9 * p->rate_bps)
				*rest = 0;
			s->crossed[s->limit[k]] = 0;
		}
	apply_limits(s);
}

static void found_fini(struct quickest_path *f)
{
	free(f->path.links);
	free(f->relays);
}

static int find_paths(struct ptcp_paths *p, struct quickest_search *s, int from, int to, uint64_t bytes,
    size_t most, struct ptcp_err *e)
{
	const struct conf_host *h = s->overlay->hosts;
	struct quickest_path *f;
	size_t i;
	int r;

	for (p->n = 0; p->n < most; p->n++) {
		f = &p->found[p->n];
		f->path.links = calloc(s->graph.hosts, sizeof *f->path.links);
		f->relays = calloc(s->graph.hosts, sizeof *f->relays);
		if (f->path.links == NULL || f->relays == NULL)
			r = err_nomem(e);
		else
			r = paths_quickest(&f->path, &s->graph, PATHS_PIPELINED, (size_t)from, (size_t)to,
			    bytes, s->scratch, e);
		if (r < 0) {
			found_fini(f);
			if (r == PTCP_EINFEASIBLE && p->n == 0)
				return err_set(e, r, "%s to %s: no path (links need a rate, hosts between them "
				    "'relay: true')", h[from].name, h[to].name);
			return r == PTCP_EINFEASIBLE ? 0 : r;
		}
		quickest_take(s, &f->path);
		for (i = 0; i + 1 < f->path.hops; i++)
			f->relays[i] = (int)s->graph.links[f->path.links[i]].to;
	}
	return 0;
}

/* Removes paths without bytes. */
static void drop_empty(struct ptcp_paths *p)
{
	size_t i, n = 0;

	for (i = 0; i < p->n; i++) {
		if (p->found[i].bytes == 0)
			found_fini(&p->found[i]);
		else
			p->found[n++] = p->found[i];
	}
	p->n = n;
}

static int divide(struct ptcp_paths *p, uint64_t bytes, struct ptcp_err *e)
{
	struct divide_part *parts = calloc(p->n, sizeof *parts);
	size_t *order = calloc(p->n, sizeof *order), i;
	int r;

	if (parts == NULL || order == NULL) {
		r = err_nomem(e);
		goto out;
	}
	for (i = 0; i < p->n; i++)
		parts[i] = (struct divide_part){ p->found[i].path.rate_bps, p->found[i].path.delay_s, 0 };
	if ((r = divide_bytes(parts, order, p->n, bytes, &p->finish_s, e)) < 0)
		goto out;
	for (i = 0; i < p->n; i++)
		p->found[i].bytes = parts[i].bytes;
	drop_empty(p);
out:
	free(parts);
	free(order);
	return r;
}

/* ---- The public functions ---- */

int ptcp_paths_find(struct ptcp_paths **out, const struct ptcp_overlay *o, int from, int to,
    uint64_t bytes, size_t most, struct ptcp_err *e)
{
	int hosts = (int)o->nhosts, r;
	struct ptcp_paths *p;
	struct quickest_search s;

	if (from < 0 || from >= hosts || to < 0 || to >= hosts || from == to)
		return err_set(e, PTCP_EUSAGE, "paths: from and to must be two different hosts of %s", o->file);
	if (bytes == 0 || most == 0 || most > PTCP_QUICKEST_MAX)
		return err_set(e, PTCP_EUSAGE, "paths: the size must be above 0, and the paths 1 to %d",
		    PTCP_QUICKEST_MAX);
	p = calloc(1, sizeof *p);
	if (p == NULL || (p->found = calloc(most, sizeof *p->found)) == NULL) {
		free(p);
		return err_nomem(e);
	}
	if ((r = search_init(&s, o, e)) == 0 && (r = find_paths(p, &s, from, to, bytes, most, e)) == 0)
		r = divide(p, bytes, e);
	search_fini(&s);
	if (r < 0)
		ptcp_paths_free(p);
	else
		*out = p;
	return r;
}

void ptcp_paths_free(struct ptcp_paths *p)
{
	size_t i;

	if (p == NULL)
		return;
	for (i = 0; i < p->n; i++)
		found_fini(&p->found[i]);
	free(p->found);
	free(p);
}

size_t ptcp_paths_count(const struct ptcp_paths *p)
{
	return p->n;
}

double ptcp_paths_finish_s(const struct ptcp_paths *p)
{
	return p->finish_s;
}

void ptcp_paths_get(const struct ptcp_paths *p, size_t i, struct ptcp_quickest *out)
{
	const struct quickest_path *f = &p->found[i];

	*out = (struct ptcp_quickest){ f->relays, f->path.hops - 1, f->path.rate_bps, f->path.delay_s, f->bytes };
}
