/* Verifies a plan from its pieces and the overlay alone, sharing no code with the planner. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "plan/verify_impl.h"

/* ---- Data and paths ---- */

static int check_path(const struct check *c, const struct plan_piece *piece)
{
	const struct ptcp_plan_hop *h = c->p->hop + piece->first_hop;
	size_t i, n = c->o->nhosts;

	if (piece->nhops == 0 || h[0].from != piece->source || h[piece->nhops - 1].to != c->o->destination)
		return err_set(c->e, PTCP_EVERIFY, "a piece of %s does not lead from there to the "
		    "destination", verify_name(c, piece->source));
	for (i = 0; i < piece->nhops; i++) {
		if ((size_t)h[i].from >= n || (size_t)h[i].to >= n || verify_link(c, &h[i]) < 0)
			return err_set(c->e, PTCP_EVERIFY, "a piece of %s crosses a missing link", verify_name(c, piece->source));
		if (i > 0 && (h[i].from != h[i - 1].to || !c->o->hosts[h[i].from].relay))
			return err_set(c->e, PTCP_EVERIFY, "a piece of %s is forwarded by %s, which "
			    "is no relay", verify_name(c, piece->source), verify_name(c, h[i].from));
		if (!(h[i].start_s >= 0 && h[i].end_s > h[i].start_s &&
		    h[i].end_s <= c->p->info.makespan_s + c->eps_s))
			return err_set(c->e, PTCP_EVERIFY, "a piece of %s crosses %s>%s from %g to "
			    "%g s, which is not within the plan", verify_name(c, piece->source),
			    verify_name(c, h[i].from), verify_name(c, h[i].to), h[i].start_s, h[i].end_s);
	}
	return 0;
}

static int on_slot(const struct check *c, double t)
{
	double k = t / c->p->info.slot_s;

	return fabs(k - floor(k + 0.5)) * c->p->info.slot_s <= c->eps_s;
}

/* Whether data arriving over `in` can leave over `out`. Rates are constant: without slots the two ends
 * suffice; with slots, `out` starts in a later slot than `in` ends, or equals `in` moved by at least one
 * slot. */
static int passes_on(const struct check *c, const struct ptcp_plan_hop *in, const struct ptcp_plan_hop *out)
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

static int check_causes(const struct check *c, const struct plan_piece *piece)
{
	const struct ptcp_plan_hop *h = c->p->hop + piece->first_hop;
	size_t i;

	for (i = 1; i < piece->nhops; i++)
		if (!passes_on(c, &h[i - 1], &h[i]))
			return err_set(c->e, PTCP_EVERIFY, "%s forwards data of %s before receiving it",
			    verify_name(c, h[i].from), verify_name(c, piece->source));
	return 0;
}

/* Pieces are sorted by source and offset, without gaps. */
static int check_data(const struct check *c)
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
			    "%llu", (unsigned long long)want, verify_name(c, (int)h),
			    (unsigned long long)at);
	}
	if (i != c->p->npieces)
		return err_set(c->e, PTCP_EVERIFY, "a piece is out of order");
	return 0;
}

int plan_verify(const struct ptcp_plan *p, const struct conf_overlay *o, double *storage,
    struct ptcp_err *e)
{
	struct check c = { .p = p, .o = o, .eps_s = 1e-9 * p->info.makespan_s, .e = e };
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
		if ((r = check_path(&c, &p->piece[i])) == 0)
			r = check_causes(&c, &p->piece[i]);
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

/* ---- Streams ---- */

double *verify_shares(const struct conf_overlay *o)
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

static bool is_counted(const struct conf_overlay *o, const double *share_bps, size_t link)
{
	return o->links[link].curve != NULL || isfinite(share_bps[link]);
}

static unsigned streams_of(const struct ptcp_plan *p, const struct conf_overlay *o, size_t link)
{
	return p->streams == NULL ? 0 : p->streams[(size_t)o->links[link].from * o->nhosts + (size_t)o->links[link].to];
}

int verify_streams(const struct ptcp_plan *p, const struct conf_overlay *o, const double *share_bps,
    struct ptcp_err *e)
{
	const struct conf_group *grp;
	size_t i, g;
	unsigned n;

	for (i = 0; i < o->nlinks; i++) {
		const struct conf_curve *c = o->links[i].curve;

		n = streams_of(p, o, i);
		if (is_counted(o, share_bps, i) ? c != NULL && n > c->max_streams : n > 0)
			return err_set(e, PTCP_EVERIFY, "link %s>%s has %u streams, more than its curve allows",
			    o->hosts[o->links[i].from].name, o->hosts[o->links[i].to].name, n);
	}
	for (g = 0; g < o->ngroups; g++) {
		grp = &o->groups[g];
		for (i = n = 0; i < grp->nlinks && grp->curve != NULL; i++)
			n += streams_of(p, o, (size_t)grp->links[i]);
		if (grp->curve != NULL && n > grp->curve->max_streams)
			return err_set(e, PTCP_EVERIFY, "shared bottleneck %zu has %u streams, more than the %u "
			    "of its budget", g + 1, n, grp->curve->max_streams);
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

double verify_rate_bps(const struct ptcp_plan *p, const struct conf_overlay *o,
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
