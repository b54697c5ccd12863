/* The impact budget: recognizes competing flows at the bottlenecks before the destination (others.h), and limits the
 * bottlenecks, so that all sources keep one budget together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "collect/collect_impl.h"
#include "collect/collect_parameters.h"
#include "core/units.h"
#include "plan/rate_limits.h"

/* The first shared bottleneck of the link, or the link itself. */
static size_t limit_of_link(const struct ptcp_overlay *o, int link)
{
	size_t limit[2] = { 0, 0 };
	int index;

	if (limits_of_link(o, link, limit, 2) == 2 && limits_kind(o, limit[1], &index) == LIMITS_SHARED)
		return limit[1];
	return (size_t)link;
}

/* The bottleneck on the link, or NULL. A link with windows or a curve has its own limits. */
static struct bottleneck *impact_find(struct ptcp_collect *c, int link)
{
	size_t limit = limit_of_link(c->overlay, link), i;

	if (limits_curve(c->overlay, limit) != NULL || limits_curve(c->overlay, (size_t)link) != NULL ||
	    limits_windowed(c->overlay, link))
		return NULL;
	for (i = 0; i < c->n_bottlenecks; i++)
		if (c->bottleneck[i].limit == limit)
			return &c->bottleneck[i];
	if (i == c->max_bottlenecks)
		return NULL;
	c->bottleneck[i].limit = limit;
	return &c->bottleneck[c->n_bottlenecks++];
}

static struct bottleneck *bottleneck_of(struct ptcp_collect *c, const struct route *r)
{
	return r->n_links > 0 ? impact_find(c, r->link[r->n_links - 1]) : NULL;
}

bool impact_is_limited(const struct route *r)
{
	return r->bottleneck != NULL && r->bottleneck->allowed_bps > 0;
}

/* ---- Observation ---- */

/* The senders of direct paths see the bottleneck. */
static void add_kernel(struct others_sample *x, struct route *r)
{
	uint64_t segments = r->segments - r->segments_before, lost = r->lost - r->lost_before;

	r->segments_before = r->segments;
	r->lost_before = r->lost;
	if (r->n_links != 1 || segments == 0 || segments > r->segments || !(r->rtt_s > 0) || !(r->min_rtt_s > 0))
		return;
	x->segments += (double)segments;
	x->lost += (double)lost;
	if (!(x->rtt_s > 0) || r->rtt_s - r->min_rtt_s < x->rtt_s - x->min_rtt_s) {
		x->rtt_s = r->rtt_s;
		x->min_rtt_s = r->min_rtt_s;
	}
}

/* Streams without data are not counted; spare paths have some. */
static void add_route(struct others_sample *x, struct route *r, double now_s, double *free_bps, double *free_streams)
{
	double bps = monitor_route_bps(r, now_s, IMPACT_WINDOW_S);

	add_kernel(x, r);
	if (!(bps > 0))
		return;
	x->rate_bps += monitor_route_bps(r, now_s, TICK_S);
	x->streams += r->streams;
	if (r->streams > 0 && (r->set_bps == 0 || bps < IMPACT_FREE_RATIO * (double)r->set_bps)) {
		*free_bps += bps;
		*free_streams += r->streams;
	}
}

static struct others_sample sample_of(struct ptcp_collect *c, const struct bottleneck *b, double now_s)
{
	struct others_sample x = { .at_s = now_s, .interval_s = TICK_S, .starved = c->starved };
	double free_bps = 0, free_streams = 0;
	struct source_transfer *s;
	struct route *r;

	for (s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->candidates.n; r++)
			if (r->bottleneck == b)
				add_route(&x, r, now_s, &free_bps, &free_streams);
	x.stream_bps = free_streams > 0 ? free_bps / free_streams : 0;
	return x;
}

/* ---- The budget ---- */

/* On the direct path, if the overlay has one. */
static struct bottleneck *baseline(struct ptcp_collect *c, const struct source_transfer *s)
{
	int link = limits_link(c->overlay, s->status->host, ptcp_overlay_destination(c->overlay));

	return link >= 0 ? impact_find(c, link) : s->candidates.n > 0 ? s->route[0].bottleneck : NULL;
}

static double all_bytes(const struct source_transfer *s)
{
	const struct ptcp_progress *p = &s->status->progress;

	return (double)(p->bytes - p->resumed_bytes) + (double)source_left_bytes(s);
}

/* Until the test the collection took more than the budget; afterwards it takes less. */
static double spent_ratio(const struct ptcp_collect *c, double now_s)
{
	double all = 0, left = 0, bps = 0, end_s;
	size_t i;

	for (i = 0; i < c->n; i++) {
		all += 8 * all_bytes(&c->source[i]);
		left += 8 * (double)source_left_bytes(&c->source[i]);
	}
	for (i = 0; i < c->n_bottlenecks; i++)
		bps += c->bottleneck[i].allowed_bps > 0 ? c->bottleneck[i].allowed_bps :
		    c->bottleneck[i].point.capacity_bps;
	end_s = all / bps;
	return end_s > now_s ? fmin(1, fmax(IMPACT_SPENT_MIN_RATIO, left / (end_s - now_s) / bps)) : 1;
}

static void apply_budget(struct ptcp_collect *c, const struct others_point *p, const struct others_source *s, size_t n,
    double now_s)
{
	double direct_s = others_direct_s(p, c->n_bottlenecks, s, n), ratio;
	struct bottleneck *b;
	size_t i;

	for (i = 0; i < c->n_bottlenecks; i++)
		c->bottleneck[i].allowed_bps = p[i].contenders > 0 ?
		    others_allowed_bps(p, i, s, n, direct_s, c->o.impact_percent / 100) : 0;
	ratio = spent_ratio(c, now_s);
	for (b = c->bottleneck; b < c->bottleneck + c->n_bottlenecks; b++) {
		b->allowed_bps *= ratio;
		if (b->allowed_bps > 0)
			limits_set_bps(c->overlay, b->limit, fmin(b->before_bps, b->allowed_bps / PACE));
	}
}

/* False: out of memory. */
static bool set_budget(struct ptcp_collect *c, double now_s)
{
	struct others_point *p = calloc(c->n_bottlenecks, sizeof *p);
	struct others_source *s = calloc(c->n, sizeof *s);
	bool ok = p != NULL && s != NULL;
	struct bottleneck *b;
	size_t i, n = 0;

	for (i = 0; ok && i < c->n_bottlenecks; i++) {
		b = &c->bottleneck[i];
		if (!(b->point.contenders > 0))
			b->point.capacity_bps = limits_bps(c->overlay, b->limit);
		p[i] = b->point;
	}
	for (i = 0; ok && i < c->n; i++)
		if ((b = baseline(c, &c->source[i])) != NULL && b->point.capacity_bps > 0)
			s[n++] = (struct others_source){ (size_t)(b - c->bottleneck), all_bytes(&c->source[i]) };
	if (ok)
		apply_budget(c, p, s, n, now_s);
	free(p);
	free(s);
	return ok;
}

/* ---- Events ---- */

/* A test lowers the rates of all paths, keeps idle paths idle, and ends by restoring them. */
static void set_test(struct ptcp_collect *c, const struct bottleneck *b, bool tests, double now_s)
{
	struct source_transfer *s;
	struct route *r;

	for (s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->candidates.n; r++)
			if (r->bottleneck == b)
				r->test_bps = tests ? fmax(1, OTHERS_TEST_RATIO * monitor_route_bps(r, now_s,
				    IMPACT_WINDOW_S)) : 0;
	drift_changed(&c->drift, now_s);
}

static void set_unfit(struct ptcp_collect *c, const struct bottleneck *b, bool found)
{
	char name[200], most[UNITS_TEXT_BYTES];

	limits_name(c->overlay, b->limit, name, sizeof name);
	if (found)
		snprintf(c->unfit_text, sizeof c->unfit_text, "competing flows use %s: an impact of %.3g %% leaves %s",
		    name, c->o.impact_percent, units_rate_text(most, b->allowed_bps));
	else
		snprintf(c->unfit_text, sizeof c->unfit_text, "the competing flows at %s have gone", name);
	c->unfit = c->unfit_text;
	c->urgent = true;
}

static void on_found(struct ptcp_collect *c, struct bottleneck *b, double now_s)
{
	if (others_judge(&b->point, &b->others) < 0 || !(b->point.capacity_bps > 0))
		return;
	b->before_bps = limits_bps(c->overlay, b->limit);
	if (set_budget(c, now_s))
		set_unfit(c, b, true);
}

static void on_gone(struct ptcp_collect *c, struct bottleneck *b)
{
	limits_set_bps(c->overlay, b->limit, b->before_bps);
	b->point.contenders = b->allowed_bps = 0;
	set_unfit(c, b, false);
}

static bool has_budget(const struct ptcp_collect *c)
{
	return c->o.impact_percent < 100 && !c->o.no_replan;
}

bool impact_comes_first(const struct ptcp_collect *c, double now_s, double left_s)
{
	const struct bottleneck *b;

	if (!has_budget(c) || left_s < IMPACT_LEFT_MIN_S)
		return false;
	for (b = c->bottleneck; b < c->bottleneck + c->n_bottlenecks; b++)
		if (others_are_suspected(&b->others, now_s))
			return true;
	return false;
}

void impact_update(struct ptcp_collect *c, double now_s, double left_s)
{
	struct source_transfer *s;
	struct bottleneck *b;
	struct route *r;
	bool ready;

	if (!has_budget(c))
		return;
	for (s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->candidates.n; r++)
			r->bottleneck = bottleneck_of(c, r);
	ready = !drift_is_probing(&c->drift) && c->unfit == NULL && left_s >= IMPACT_LEFT_MIN_S;
	for (b = c->bottleneck; b < c->bottleneck + c->n_bottlenecks; b++) {
		struct others_sample x = sample_of(c, b, now_s);

		switch (others_add(&b->others, &x, ready)) {
		case OTHERS_BEGIN_TEST:
			set_test(c, b, true, now_s);
			break;
		case OTHERS_FOUND:
			on_found(c, b, now_s);
			set_test(c, b, false, now_s);
			break;
		case OTHERS_NOBODY:
			set_test(c, b, false, now_s);
			break;
		case OTHERS_GONE:
			on_gone(c, b);
			break;
		case OTHERS_NOTHING:
			break;
		}
	}
}

size_t impact_cap_found(const struct ptcp_collect *c, double *found_bps)
{
	const struct bottleneck *b;
	double *bps;
	size_t dropped = 0;

	for (b = c->bottleneck; b < c->bottleneck + c->n_bottlenecks; b++) {
		bps = &found_bps[b->limit];
		if (!(b->allowed_bps > 0) || isnan(*bps) || *bps < IMPACT_SLOWER_RATIO * b->allowed_bps)
			continue;
		*bps = NAN;
		dropped++;
	}
	return dropped;
}

void impact_end(struct ptcp_collect *c)
{
	struct bottleneck *b;

	for (b = c->bottleneck; b < c->bottleneck + c->n_bottlenecks; b++)
		if (b->allowed_bps > 0)
			limits_set_bps(c->overlay, b->limit, b->before_bps);
}

void impact_spare(struct ptcp_collect *c)
{
	const struct source_transfer *s;
	const struct route *r;
	struct bottleneck *b;
	double now_s = collect_now_s(c);

	for (b = c->bottleneck; b < c->bottleneck + c->n_bottlenecks; b++) {
		b->spare_bps = b->allowed_bps;
		b->late = 0;
	}
	for (s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->candidates.n; r++)
			if ((b = r->bottleneck) != NULL) {
				b->spare_bps -= fmin(PACE * r->assigned_bps,
				    monitor_route_bps(r, now_s, IMPACT_WINDOW_S));
				b->late += s->extra_bps > 0;
			}
}
