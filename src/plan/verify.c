/* Verifies a plan from its pieces and the overlay alone, sharing no code with the planner. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/sorted.h"
#include "core/units.h"
#include "plan/plan.h"

struct verification {
	const struct ptcp_plan *p;
	const struct ptcp_overlay *o;
	double eps_s; /* tolerance of times */
	double *share_bps; /* rate per stream in the tightest bottleneck with a curve, by link; INFINITY: none */
	struct ptcp_err *e;
};

static const char *verify_name(const struct verification *c, int host)
{
	return c->o->hosts[host].name;
}

static int verify_link(const struct verification *c, const struct ptcp_plan_hop *h)
{
	return c->o->link_of[(size_t)h->from * c->o->nhosts + (size_t)h->to];
}

/* ---- Data and paths ---- */

static int on_slot(const struct verification *c, double t)
{
	double k = t / c->p->info.slot_s;

	return fabs(k - floor(k + 0.5)) * c->p->info.slot_s <= c->eps_s;
}

/* Whether data arriving over `in` can leave over `out`. Rates are constant: without slots the two ends
 * suffice; with slots, `out` starts in a later slot than `in` ends, or equals `in` moved by at least one
 * slot. */
static int passes_on(const struct verification *c, const struct ptcp_plan_hop *in, const struct ptcp_plan_hop *out)
{
	double slot = c->p->info.slot_s, first;

	if (slot == 0)
		return out->start_s >= in->start_s - c->eps_s && out->end_s >= in->end_s - c->eps_s;
	first = ceil((in->end_s - c->eps_s) / slot) * slot;
	if (out->start_s >= first - c->eps_s)
		return 1;
	return on_slot(c, in->start_s) && on_slot(c, in->end_s) && on_slot(c, out->start_s) &&
	    on_slot(c, out->end_s) && out->start_s >= in->start_s + slot - c->eps_s &&
	    out->end_s >= in->end_s + slot - c->eps_s;
}

static int check_path(const struct verification *c, const struct plan_piece *piece)
{
	const struct ptcp_plan_hop *h = c->p->hop + piece->first_hop;
	size_t i, n = c->o->nhosts;

	if (piece->nhops == 0 || h[0].from != piece->source || h[piece->nhops - 1].to != c->o->destination)
		return err_set(c->e, PTCP_EVERIFY, "a piece of %s does not lead from there to the "
		    "destination", verify_name(c, piece->source));
	for (i = 0; i < piece->nhops; i++) {
		if ((size_t)h[i].from >= n || (size_t)h[i].to >= n || verify_link(c, &h[i]) < 0)
			return err_set(c->e, PTCP_EVERIFY, "a piece of %s crosses a missing link",
			    verify_name(c, piece->source));
		if (i > 0 && (h[i].from != h[i - 1].to || !c->o->hosts[h[i].from].relay))
			return err_set(c->e, PTCP_EVERIFY, "a piece of %s is forwarded by %s, which "
			    "is no relay", verify_name(c, piece->source), verify_name(c, h[i].from));
		if (!(h[i].start_s >= 0 && h[i].end_s > h[i].start_s &&
		    h[i].end_s <= c->p->info.makespan_s + c->eps_s))
			return err_set(c->e, PTCP_EVERIFY, "a piece of %s crosses %s>%s from %g to "
			    "%g s, which is not within the plan", verify_name(c, piece->source),
			    verify_name(c, h[i].from), verify_name(c, h[i].to), h[i].start_s, h[i].end_s);
	}
	for (i = 1; i < piece->nhops; i++)
		if (!passes_on(c, &h[i - 1], &h[i]))
			return err_set(c->e, PTCP_EVERIFY, "%s forwards data of %s before receiving it",
			    verify_name(c, h[i].from), verify_name(c, piece->source));
	return 0;
}

/* Pieces are sorted by source and offset, without gaps. */
static int check_data(const struct verification *c)
{
	size_t i = 0, h;
	uint64_t want, at;

	for (h = 0; h < c->o->nhosts; h++) {
		want = c->o->hosts[h].data_bytes;
		if (want == CONF_UNSET || (int)h == c->o->destination)
			want = 0;
		for (at = 0; i < c->p->npieces && (size_t)c->p->piece[i].source == h; i++) {
			if (c->p->piece[i].offset != at)
				break;
			at += c->p->piece[i].bytes;
		}
		if (at != want)
			return err_set(c->e, PTCP_EVERIFY, "of the %llu bytes of %s, the plan delivers "
			    "%llu", (unsigned long long)want, verify_name(c, (int)h), (unsigned long long)at);
	}
	if (i != c->p->npieces)
		return err_set(c->e, PTCP_EVERIFY, "a piece is out of order");
	return 0;
}

/* ---- Streams ---- */

static double *verify_shares(const struct ptcp_overlay *o)
{
	double *share = calloc(o->nlinks + 1, sizeof *share);
	size_t i, g;

	for (i = 0; i < o->nlinks && share != NULL; i++)
		share[i] = INFINITY;
	for (g = 0; g < o->ngroups && share != NULL; g++)
		for (i = 0; i < o->groups[g].nlinks && o->groups[g].curve != NULL; i++) {
			double *s = &share[o->groups[g].links[i]];

			*s = fmin(*s, (double)o->groups[g].rate_bps / o->groups[g].curve->max_streams);
		}
	return share;
}

static bool is_counted(const struct ptcp_overlay *o, const double *share_bps, size_t link)
{
	return o->links[link].curve != NULL || isfinite(share_bps[link]);
}

static unsigned streams_of(const struct ptcp_plan *p, const struct ptcp_overlay *o, size_t link)
{
	return p->streams == NULL ? 0 : p->streams[(size_t)o->links[link].from * o->nhosts + (size_t)o->links[link].to];
}

static int verify_streams(const struct ptcp_plan *p, const struct ptcp_overlay *o, const double *share_bps,
    struct ptcp_err *e)
{
	const struct conf_group *grp;
	size_t i, g;
	unsigned n;

	for (i = 0; i < o->nlinks; i++) {
		const struct conf_curve *c = o->links[i].curve;

		n = streams_of(p, o, i);
		if (is_counted(o, share_bps, i) ? c != NULL && n > c->max_streams : n > 0)
			return err_set(e, PTCP_EVERIFY, "link %s>%s has %u stream%s, more than its curve allows",
			    o->hosts[o->links[i].from].name, o->hosts[o->links[i].to].name, n, plural(n));
	}
	for (g = 0; g < o->ngroups; g++) {
		grp = &o->groups[g];
		for (i = n = 0; i < grp->nlinks && grp->curve != NULL; i++)
			n += streams_of(p, o, (size_t)grp->links[i]);
		if (grp->curve != NULL && n > grp->curve->max_streams)
			return err_set(e, PTCP_EVERIFY, "shared bottleneck %zu has %u stream%s, more than the %u "
			    "of its budget", g + 1, n, plural(n), grp->curve->max_streams);
	}
	return 0;
}

/* Linear interpolation between the points. */
static double read_off(const struct conf_curve *c, double streams)
{
	double before = 0, at = 0;
	size_t i;

	for (i = 0; i < c->n; i++) {
		double next = c->point[i].streams, rate = (double)c->point[i].rate_bps;

		if (next >= streams)
			return at + (rate - at) / (next - before) * (streams - before);
		before = next;
		at = rate;
	}
	return at;
}

static double verify_rate_bps(const struct ptcp_plan *p, const struct ptcp_overlay *o,
    const double *share_bps, size_t link, double bps)
{
	const struct conf_curve *c = o->links[link].curve;
	unsigned n;

	if (!is_counted(o, share_bps, link))
		return bps;
	n = streams_of(p, o, link);
	if (c != NULL)
		bps *= read_off(c, n) / read_off(c, c->max_streams);
	return n == 0 ? 0 : fmin(bps, n * share_bps[link]);
}

#define SPARE 1e-6 /* tolerance, relative to a limit */

static double seconds(uint64_t ns)
{
	return ns == CONF_UNSET ? INFINITY : (double)ns / (double)NS_PER_S;
}

/* ---- Rates ---- */

/* A change of the load of one limit: links first, then groups, then ingress, then egress of each host. */
struct verify_change {
	size_t limit;
	double t, rate;
	int pieces;
};

static int by_limit(const void *a, const void *b)
{
	const struct verify_change *x = a, *y = b;

	if (x->limit != y->limit)
		return x->limit < y->limit ? -1 : 1;
	return x->t < y->t ? -1 : x->t > y->t;
}

static int over_limit(const struct verification *c, size_t limit, double from, double until,
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

static int check_span(const struct verification *c, size_t limit, double from, double until,
    double load, double rate, int pieces)
{
	double bytes = load * (until - from), most = rate * (until - from);

	/* Rounding to whole bytes may add a byte per piece, and rounding of times the data meanwhile. */
	if (until - from <= c->eps_s || bytes <= most * (1 + SPARE) + pieces)
		return 0;
	return over_limit(c, limit, from, until, load, rate);
}

/* Rate of a limit, for a link with its current streams. */
static double bytes_per_s(const struct verification *c, size_t limit, uint64_t bps)
{
	if (limit >= c->o->nlinks || bps == CONF_UNSET)
		return (double)bps / 8;
	return verify_rate_bps(c->p, c->o, c->share_bps, limit, (double)bps) / 8;
}

static int check_load(const struct verification *c, size_t limit, double from, double until, double load, int pieces)
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

static int sweep_loads(const struct verification *c, struct verify_change *ch, size_t n)
{
	double load = 0;
	int pieces = 0, r;
	size_t i;

	sort_array(ch, n, sizeof *ch, by_limit);
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

static void add_change(struct verify_change *ch, size_t *n, size_t limit, const struct ptcp_plan_hop *h, double rate)
{
	ch[(*n)++] = (struct verify_change){ limit, h->start_s, rate, 1 };
	ch[(*n)++] = (struct verify_change){ limit, h->end_s, -rate, -1 };
}

/* Groups of a link: list[first[link]] to list[first[link + 1] - 1]. */
static int groups_by_link(const struct ptcp_overlay *o, size_t **first, size_t **list)
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

static int verify_rates(const struct verification *c)
{
	const struct ptcp_plan *p = c->p;
	size_t l = c->o->nlinks, g = c->o->ngroups, n = c->o->nhosts, i, h, k, total = 0, m = 0;
	size_t *first = NULL, *list = NULL;
	struct verify_change *ch = NULL;
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
static double max_between(const struct verification *c, double t0, double stored, double t1, double slope)
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

static int sweep_storage(const struct verification *c, struct verify_change *ch, size_t n, double *peak)
{
	double stored = 0, slope = 0, limit;
	int pieces = 0;
	size_t i, h;

	sort_array(ch, n, sizeof *ch, by_limit);
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
		peak[h] = fmax(peak[h], max_between(c, ch[i].t, stored, ch[i + 1].t, slope));
		stored += slope * (ch[i + 1].t - ch[i].t);
		limit = c->o->hosts[h].storage_bytes == CONF_UNSET ? INFINITY :
		    (double)c->o->hosts[h].storage_bytes;
		if (peak[h] > limit * (1 + SPARE) + pieces)
			return err_set(c->e, PTCP_EVERIFY, "%s stores %.9g bytes for other hosts at %.9g s, "
			    "more than its %.9g", verify_name(c, (int)h), peak[h], ch[i + 1].t, limit);
	}
	return 0;
}

static int verify_storage(const struct verification *c, double *peak)
{
	const struct ptcp_plan *p = c->p;
	struct verify_change *ch = calloc(4 * p->nhops + 1, sizeof *ch);
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

/* ---- All of it ---- */

int plan_verify(const struct ptcp_plan *p, const struct ptcp_overlay *o, double *storage, struct ptcp_err *e)
{
	struct verification c = { .p = p, .o = o, .eps_s = 1e-9 * p->info.makespan_s, .e = e };
	double *peak;
	size_t i;
	int r;

	if ((size_t)p->nhosts != o->nhosts)
		return err_set(e, PTCP_EVERIFY, "the plan is for %d hosts, the overlay has %zu",
		    p->nhosts, o->nhosts);
	peak = calloc(o->nhosts + 1, sizeof *peak);
	c.share_bps = verify_shares(o);
	if (peak == NULL || c.share_bps == NULL) {
		free(peak);
		free(c.share_bps);
		return err_nomem(e);
	}
	if ((r = check_data(&c)) == 0)
		r = verify_streams(p, o, c.share_bps, e);
	for (i = 0; i < p->npieces && r == 0; i++)
		r = check_path(&c, &p->piece[i]);
	if (r == 0)
		r = verify_rates(&c);
	if (r == 0)
		r = verify_storage(&c, peak);
	if (r == 0 && storage != NULL)
		memcpy(storage, peak, o->nhosts * sizeof *peak);
	free(peak);
	free(c.share_bps);
	return r;
}
