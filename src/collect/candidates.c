#include "collect/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "collect/local_host.h"
#include "core/err.h"
#include "plan/rate_limits.h"

#define SPARE_MAX 3 /* max spare paths over a relay */

void candidates_fini(struct candidates *v)
{
	while (v->n > 0)
		free(v->at[--v->n].text);
}

int candidates_find(const struct candidates *v, const int *hop, size_t nhops)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		if (v->at[i].nhops == nhops && memcmp(v->at[i].hop, hop, nhops * sizeof *hop) == 0)
			return (int)i;
	return -1;
}

/* "B,A" of the hops A, B, destination: connections start at the destination. */
static int text_of(char **out, const struct ptcp_overlay *o, const int *hop, size_t nhops, struct ptcp_err *e)
{
	char address[LOCAL_HOST_ADDRESS_BYTES];
	struct ptcp_overlay_host h;
	char *text = calloc(nhops, LOCAL_HOST_ADDRESS_BYTES + 1);
	size_t i;

	if (text == NULL)
		return err_nomem(e);
	if (nhops == 1)
		strcpy(text, "direct");
	for (i = nhops - 1; i > 0; i--) {
		ptcp_overlay_host(o, (size_t)hop[i - 1], &h);
		if (h.address == NULL) {
			free(text);
			return err_set(e, PTCP_ECONFIG, "host %s: has no address in the overlay, but paths go through "
			    "it (give it one)", h.name);
		}
		strcat(text, local_host_authority(address, h.address));
		if (i > 1)
			strcat(text, ",");
	}
	*out = text;
	return 0;
}

/* With constant rates relays forward while they receive, and spool nothing. */
static bool waits_for_window(const struct ptcp_overlay *o, int source, const int *hop, size_t nhops)
{
	size_t i;
	int link;

	for (i = 0; i < nhops; i++)
		if ((link = limits_link(o, i > 0 ? hop[i - 1] : source, hop[i])) >= 0 && limits_windowed(o, link))
			return true;
	return false;
}

/* p NULL: a spare path. */
static int candidates_add(struct candidates *v, const struct ptcp_overlay *o, const int *hop, size_t nhops,
    const struct schedule_path *p, struct ptcp_err *e)
{
	int i = candidates_find(v, hop, nhops), r;
	struct candidate *new = &v->at[i >= 0 ? (size_t)i : v->n];

	if (i < 0 && (v->n == PTCP_PATHS_MAX || nhops > CANDIDATES_HOPS_MAX))
		return 0;
	if (i < 0)
		*new = (struct candidate){ .nhops = nhops };
	if (p != NULL) {
		new->planned = true;
		new->streams = p->streams;
		new->stored_bytes = waits_for_window(o, p->source, hop, nhops) ? (uint64_t)p->stored_bytes : 0;
	}
	if (i >= 0)
		return 0;
	memcpy(new->hop, hop, nhops * sizeof *hop);
	if ((r = text_of(&new->text, o, hop, nhops, e)) == 0)
		v->n++;
	return r;
}

/* The smaller rate of the two links over a relay; 0: no path. */
static double width(const struct ptcp_overlay *o, int source, int relay)
{
	int dest = ptcp_overlay_destination(o), in = limits_link(o, source, relay), out = limits_link(o, relay, dest);
	struct ptcp_overlay_host h;
	double a, b;

	ptcp_overlay_host(o, (size_t)relay, &h);
	if (!h.relay || h.address == NULL || relay == dest || relay == source || in < 0 || out < 0)
		return 0;
	a = limits_bps(o, (size_t)in);
	b = limits_bps(o, (size_t)out);
	return a < b ? a : b;
}

/* Limits of all links, see limits_index(). */
struct crossings {
	size_t *first, *limit;
};

static bool is_shared(const struct ptcp_overlay *o, size_t limit)
{
	return limit >= o->nlinks && limit < o->nlinks + o->ngroups;
}

/* Whether a shared bottleneck carries both links. */
static bool share(const struct ptcp_overlay *o, const struct crossings *x, int a, int b)
{
	size_t i = x->first[a], k = x->first[b];

	while (i < x->first[a + 1] && k < x->first[b + 1]) {
		if (x->limit[i] == x->limit[k] && is_shared(o, x->limit[i]))
			return true;
		if (x->limit[i] <= x->limit[k])
			i++;
		else
			k++;
	}
	return false;
}

/* The width over a relay, divided among the candidates whose last links share its bottleneck: spare paths past other
 * bottlenecks are worth most. */
static double worth(const struct candidates *v, const struct ptcp_overlay *o, const struct crossings *x, int source,
    int relay)
{
	double all = width(o, source, relay);
	int dest = ptcp_overlay_destination(o), link;
	const struct candidate *c;
	unsigned sharing = 1;

	for (c = v->at; c < v->at + v->n && all > 0; c++) {
		link = limits_link(o, c->nhops > 1 ? c->hop[c->nhops - 2] : source, dest);
		sharing += link >= 0 && share(o, x, link, limits_link(o, relay, dest));
	}
	return all / sharing;
}

static int best_relay(const struct candidates *v, const struct ptcp_overlay *o, const struct crossings *x, int source)
{
	int hop[2] = { 0, ptcp_overlay_destination(o) }, best = -1;
	double most = 0, of;

	for (hop[0] = 0; hop[0] < (int)ptcp_overlay_hosts(o); hop[0]++) {
		if (candidates_find(v, hop, 2) >= 0 || !((of = worth(v, o, x, source, hop[0])) > most))
			continue;
		best = hop[0];
		most = of;
	}
	return best;
}

static int add_spares(struct candidates *v, const struct ptcp_overlay *o, int source, struct ptcp_err *e)
{
	struct crossings x = { calloc(o->nlinks + 1, sizeof *x.first),
		calloc(limits_crossings(o) + 1, sizeof *x.limit) };
	int hop[2] = { 0, ptcp_overlay_destination(o) }, r = 0;
	size_t n;

	if (x.first == NULL || x.limit == NULL)
		r = err_nomem(e);
	else
		limits_index(o, x.first, x.limit);
	for (n = 0; n < SPARE_MAX && r == 0 && (hop[0] = best_relay(v, o, &x, source)) >= 0; n++)
		r = candidates_add(v, o, hop, 2, NULL, e);
	free(x.first);
	free(x.limit);
	return r;
}

int candidates_choose(struct candidates *out, const struct ptcp_overlay *o, const struct schedule *s, int source,
    struct ptcp_err *e)
{
	int dest = ptcp_overlay_destination(o), r = 0;
	struct candidates v = { .n = 0 };
	size_t i;

	if (limits_link(o, source, dest) >= 0)
		r = candidates_add(&v, o, &dest, 1, NULL, e);
	for (i = 0; r == 0 && s != NULL && i < s->n; i++)
		if (s->path[i].source == source)
			r = candidates_add(&v, o, s->path[i].hop, s->path[i].nhops, &s->path[i], e);
	if (r == 0)
		r = add_spares(&v, o, source, e);
	if (r == 0 && v.n == 0) /* no known path: try the direct one */
		r = candidates_add(&v, o, &dest, 1, NULL, e);
	if (r < 0)
		candidates_fini(&v);
	else
		*out = v;
	return r;
}
