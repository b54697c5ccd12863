/* Verifier of limits: sweeps rates and storage in order of time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/units.h"
#include "plan/verify_impl.h"

#define SPARE 1e-6 /* tolerance, relative to a limit */

static double seconds(uint64_t ns)
{
	return ns == CONF_UNSET ? INFINITY : (double)ns / (double)NS_PER_S;
}

/* ---- Rates ---- */

/* A change of the load of one limit: links first, then groups, then ingress, then egress of each host. */
struct change {
	size_t limit;
	double t, rate;
	int pieces;
};

static int by_limit(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->limit != y->limit)
		return x->limit < y->limit ? -1 : 1;
	return x->t < y->t ? -1 : x->t > y->t;
}

static int over_limit(const struct check *c, size_t limit, double from, double until,
    double load, double rate)
{
	size_t l = c->o->nlinks, g = c->o->ngroups, n = c->o->nhosts;
	char what[2 * CONF_NAME_MAX_BYTES + 40];

	if (limit < l)
		snprintf(what, sizeof what, "link %s>%s", verify_name(c, c->o->links[limit].from),
		    verify_name(c, c->o->links[limit].to));
	else if (limit < l + g)
		snprintf(what, sizeof what, "shared bottleneck %zu", limit - l + 1);
	else
		snprintf(what, sizeof what, "%s of %s", limit < l + g + n ? "ingress" : "egress",
		    verify_name(c, (int)((limit - l - g) % n)));
	return err_set(c->e, PTCP_EVERIFY, "%s carries %.9g bit/s from %.9g to %.9g s, more than "
	    "its %.9g", what, load * 8, from, until, rate * 8);
}

static int check_span(const struct check *c, size_t limit, double from, double until,
    double load, double rate, int pieces)
{
	double bytes = load * (until - from), most = rate * (until - from);

	/* Rounding to whole bytes may add a byte per piece, and rounding of times the data meanwhile. */
	if (until - from <= c->eps_s || bytes <= most * (1 + SPARE) + pieces)
		return 0;
	return over_limit(c, limit, from, until, load, rate);
}

/* Rate of a limit, for a link with its current streams. */
static double bytes_per_s(const struct check *c, size_t limit, uint64_t bps)
{
	if (limit >= c->o->nlinks || bps == CONF_UNSET)
		return (double)bps / 8;
	return verify_rate_bps(c->p, c->o, c->share_bps, limit, (double)bps) / 8;
}

static int check_load(const struct check *c, size_t limit, double from, double until,
    double load, int pieces)
{
	size_t l = c->o->nlinks, g = c->o->ngroups, n = c->o->nhosts, w;
	uint64_t bps;
	double end;
	int r;

	if (limit < l)
		bps = c->o->links[limit].rate_bps;
	else if (limit < l + g)
		bps = c->o->groups[limit - l].rate_bps;
	else if (limit < l + g + n)
		bps = c->o->hosts[limit - l - g].ingress_bps;
	else
		bps = c->o->hosts[limit - l - g - n].egress_bps;
	/* Windows are sorted by link and time. */
	for (w = 0; limit < l && w < c->o->nwindows && from < until; w++) {
		const struct conf_window *win = &c->o->windows[w];

		if ((size_t)win->link != limit || seconds(win->until_ns) <= from)
			continue;
		end = fmin(until, seconds(win->from_ns));
		if (end > from && (r = check_span(c, limit, from, end, load, bytes_per_s(c, limit, bps),
		    pieces)) < 0)
			return r;
		from = fmax(from, end);
		end = fmin(until, seconds(win->until_ns));
		if (end > from && (r = check_span(c, limit, from, end, load,
		    bytes_per_s(c, limit, win->rate_bps), pieces)) < 0)
			return r;
		from = fmax(from, end);
	}
	if (from >= until || bps == CONF_UNSET)
		return 0;
	return check_span(c, limit, from, until, load, bytes_per_s(c, limit, bps), pieces);
}

static int sweep_loads(const struct check *c, struct change *ch, size_t n)
{
	double load = 0;
	int pieces = 0, r;
	size_t i;

	qsort(ch, n, sizeof *ch, by_limit);
	for (i = 0; i < n; i++) {
		if (i == 0 || ch[i].limit != ch[i - 1].limit) {
			load = 0;
			pieces = 0;
		}
		load += ch[i].rate;
		pieces += ch[i].pieces;
		if (pieces == 0)
			load = 0; /* avoids a sum of rounding errors */
		else if (i + 1 < n && ch[i + 1].limit == ch[i].limit &&
		    (r = check_load(c, ch[i].limit, ch[i].t, ch[i + 1].t, load, pieces)) < 0)
			return r;
	}
	return 0;
}

static void add_change(struct change *ch, size_t *n, size_t limit,
    const struct ptcp_plan_hop *h, double rate)
{
	ch[(*n)++] = (struct change){ limit, h->start_s, rate, 1 };
	ch[(*n)++] = (struct change){ limit, h->end_s, -rate, -1 };
}

/* Groups of a link: list[first[link]] to list[first[link + 1] - 1]. */
static int groups_by_link(const struct conf_overlay *o, size_t **first, size_t **list)
{
	size_t g, i, total = 0;

	for (g = 0; g < o->ngroups; g++)
		total += o->groups[g].nlinks;
	*first = calloc(o->nlinks + 2, sizeof **first);
	*list = calloc(total + 1, sizeof **list);
	if (*first == NULL || *list == NULL)
		return -1;
	for (g = 0; g < o->ngroups; g++)
		for (i = 0; i < o->groups[g].nlinks; i++)
			(*first)[o->groups[g].links[i] + 2]++;
	for (i = 2; i < o->nlinks + 2; i++)
		(*first)[i] += (*first)[i - 1];
	for (g = 0; g < o->ngroups; g++)
		for (i = 0; i < o->groups[g].nlinks; i++)
			(*list)[(*first)[o->groups[g].links[i] + 1]++] = g;
	return 0;
}

int verify_rates(const struct check *c)
{
	const struct ptcp_plan *p = c->p;
	size_t l = c->o->nlinks, g = c->o->ngroups, n = c->o->nhosts, i, h, k, total = 0, m = 0;
	size_t *first = NULL, *list = NULL;
	struct change *ch = NULL;
	int r = -1;

	if (groups_by_link(c->o, &first, &list) < 0)
		goto out;
	for (i = 0; i < p->npieces; i++)
		for (h = 0; h < p->piece[i].nhops; h++) {
			k = (size_t)verify_link(c, &p->hop[p->piece[i].first_hop + h]);
			total += 2 * (3 + first[k + 1] - first[k]);
		}
	if ((ch = calloc(total + 1, sizeof *ch)) == NULL)
		goto out;
	for (i = 0; i < p->npieces; i++)
		for (h = 0; h < p->piece[i].nhops; h++) {
			const struct ptcp_plan_hop *hop = &p->hop[p->piece[i].first_hop + h];
			double rate = (double)p->piece[i].bytes / (hop->end_s - hop->start_s);
			size_t link = (size_t)verify_link(c, hop);

			add_change(ch, &m, link, hop, rate);
			for (k = first[link]; k < first[link + 1]; k++)
				add_change(ch, &m, l + list[k], hop, rate);
			add_change(ch, &m, l + g + (size_t)hop->to, hop, rate);
			add_change(ch, &m, l + g + n + (size_t)hop->from, hop, rate);
		}
	r = sweep_loads(c, ch, m);
out:
	free(first);
	free(list);
	free(ch);
	return r == -1 ? err_nomem(c->e) : r;
}

/* ---- Storage of relays ---- */

/* Peak between two changes; with slots, at the ends of slots only. */
static double most_between(const struct check *c, double t0, double stored, double t1, double slope)
{
	double slot = c->p->info.slot_s, first, last;

	if (slot == 0)
		return fmax(stored, stored + slope * (t1 - t0));
	first = ceil((t0 - c->eps_s) / slot) * slot;
	last = floor((t1 + c->eps_s) / slot) * slot;
	if (first > last)
		return 0;
	return fmax(stored + slope * (first - t0), stored + slope * (last - t0));
}

static int sweep_storage(const struct check *c, struct change *ch, size_t n, double *peak)
{
	double stored = 0, slope = 0, limit;
	int pieces = 0;
	size_t i, h;

	qsort(ch, n, sizeof *ch, by_limit);
	for (i = 0; i < n; i++) {
		h = ch[i].limit;
		if (i == 0 || ch[i - 1].limit != h) {
			stored = slope = 0;
			pieces = 0;
		}
		slope += ch[i].rate;
		pieces += ch[i].pieces > 0;
		if (i + 1 == n || ch[i + 1].limit != h)
			continue;
		peak[h] = fmax(peak[h], most_between(c, ch[i].t, stored, ch[i + 1].t, slope));
		stored += slope * (ch[i + 1].t - ch[i].t);
		limit = c->o->hosts[h].storage_bytes == CONF_UNSET ? INFINITY :
		    (double)c->o->hosts[h].storage_bytes;
		if (peak[h] > limit * (1 + SPARE) + pieces)
			return err_set(c->e, PTCP_EVERIFY, "%s stores %.9g bytes for other hosts at %.9g s, "
			    "more than its %.9g", verify_name(c, (int)h), peak[h], ch[i + 1].t, limit);
	}
	return 0;
}

int verify_storage(const struct check *c, double *peak)
{
	const struct ptcp_plan *p = c->p;
	struct change *ch = calloc(4 * p->nhops + 1, sizeof *ch);
	size_t i, k, m = 0;
	int r;

	if (ch == NULL)
		return err_nomem(c->e);
	for (i = 0; i < p->npieces; i++)
		for (k = 1; k < p->piece[i].nhops; k++) {
			const struct ptcp_plan_hop *in = &p->hop[p->piece[i].first_hop + k - 1];
			const struct ptcp_plan_hop *out = in + 1;
			double b = (double)p->piece[i].bytes;

			add_change(ch, &m, (size_t)in->to, in, b / (in->end_s - in->start_s));
			add_change(ch, &m, (size_t)in->to, out, -b / (out->end_s - out->start_s));
		}
	r = sweep_storage(c, ch, m, peak);
	free(ch);
	return r;
}
