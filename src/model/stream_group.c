#include "model/stream_group.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/parameters.h"

static void add_kernel(struct evidence_sample *to, const struct evidence_sample *s, double factor)
{
	to->interval_s += factor * s->interval_s;
	to->delivered_bytes += factor * s->delivered_bytes;
	to->sent_segments += factor * s->sent_segments;
	to->lost_segments += factor * s->lost_segments;
	to->loss_events += factor * s->loss_events;
	to->busy_s += factor * s->busy_s;
	to->window_s += factor * s->window_s;
}

void stream_member_add(struct stream_member *m, const struct stream_control_sample *x)
{
	m->unconnected = x->unconnected;
	m->elapsed_s += x->interval_s;
	m->unsteady_s += x->steady ? 0 : x->interval_s;
	m->starved_s += x->starved ? x->interval_s : 0;
	m->host_limited_s += x->host_limited ? x->interval_s : 0;
	m->bits += x->rate_bps * x->interval_s;
	add_kernel(&m->kernel, &x->kernel, 1);
	m->kernel.rtt_s = x->kernel.rtt_s;
	m->kernel.min_rtt_s = x->kernel.min_rtt_s;
}

/* ---- Samples ---- */

/* What the member has published since the last time, as if in one interval of the leader; the same as before if it has
 * published nothing, since intervals of two processes do not begin together. */
static void observe(struct stream_group *g, unsigned i, const struct stream_member *now, double interval_s)
{
	const struct stream_member *last = &g->last[i];
	double elapsed_s = now->elapsed_s - last->elapsed_s;
	struct stream_control_sample *x = &g->sample[i];

	x->unconnected = now->unconnected;
	if (now->id != last->id) {
		*x = (struct stream_control_sample){ .unconnected = now->unconnected };
		g->idle_s[i] = 0;
	} else if (elapsed_s > 0) {
		*x = (struct stream_control_sample){ .interval_s = interval_s,
			.rate_bps = (now->bits - last->bits) / elapsed_s, .unconnected = now->unconnected,
			.steady = !(now->unsteady_s > last->unsteady_s),
			.starved = 2 * (now->starved_s - last->starved_s) > elapsed_s,
			.host_limited = 2 * (now->host_limited_s - last->host_limited_s) > elapsed_s };
		add_kernel(&x->kernel, &now->kernel, interval_s / elapsed_s);
		add_kernel(&x->kernel, &last->kernel, -interval_s / elapsed_s);
		x->kernel.rtt_s = now->kernel.rtt_s;
		x->kernel.min_rtt_s = now->kernel.min_rtt_s;
	}
	g->idle_s[i] += x->starved || !(elapsed_s > 0) ? interval_s : -interval_s;
	g->idle_s[i] = fmin(fmax(g->idle_s[i], 0), 2 * STREAM_CONTROL_STARVED_S);
	g->last[i] = *now;
}

/* The sum of the members that count. */
static struct stream_control_sample sum(const struct stream_group *g, const struct stream_control *s, double interval_s)
{
	struct stream_control_sample all = { .interval_s = interval_s, .steady = true, .starved = g->members == 0 };
	unsigned i, streams = 0, limited = 0;
	double rtts_s = 0, weight = 0;

	for (i = 0; i < STREAM_GROUP_MAX; i++) {
		const struct stream_control_sample *x = &g->sample[i];

		if (!g->counts[i])
			continue;
		streams += g->last[i].streams;
		limited += x->host_limited ? g->last[i].streams : 0;
		all.rate_bps += x->rate_bps;
		all.steady &= x->steady;
		all.starved |= x->starved || !(x->interval_s > 0); /* unknown yet */
		all.unconnected += x->unconnected;
		add_kernel(&all.kernel, &x->kernel, 1);
		if (x->kernel.rtt_s > 0) {
			rtts_s += g->last[i].streams * x->kernel.rtt_s;
			weight += g->last[i].streams;
		}
		if (x->kernel.min_rtt_s > 0 &&
		    (all.kernel.min_rtt_s == 0 || x->kernel.min_rtt_s < all.kernel.min_rtt_s))
			all.kernel.min_rtt_s = x->kernel.min_rtt_s;
	}
	all.kernel.interval_s = interval_s;
	all.kernel.rtt_s = weight > 0 ? rtts_s / weight : 0;
	all.host_limited = 2 * limited > streams;
	all.steady &= streams == s->streams;
	return all;
}

/* ---- Membership ---- */

static bool shares_control(const struct stream_member *m, const struct stream_member *leader)
{
	return m->id != 0 && m->kind == STREAM_MEMBER_SHARES && strcmp(m->congestion, leader->congestion) == 0;
}

/* Members that limit themselves for long count again after half of that time. */
static bool is_idle(const struct stream_group *g, unsigned i)
{
	return g->idle_s[i] > (g->counts[i] ? 1 : 0.5) * STREAM_CONTROL_STARVED_S;
}

bool stream_group_add(struct stream_group *g, struct stream_control *s,
    const struct stream_member now[STREAM_GROUP_MAX], unsigned own, double interval_s)
{
	double budget_ratio = now[own].budget_ratio;
	struct stream_control_sample all;
	unsigned i, members = 0;
	bool other = false, counts, measures = false;

	g->transfers = 0;
	for (i = 0; i < STREAM_GROUP_MAX; i++) {
		other |= now[i].id != g->last[i].id;
		observe(g, i, &now[i], interval_s);
		counts = shares_control(&now[i], &now[own]) && !is_idle(g, i);
		other |= counts != g->counts[i];
		g->counts[i] = counts;
		members += counts;
		g->transfers += now[i].id != 0;
		measures |= now[i].id != 0 && now[i].kind == STREAM_MEMBER_MEASURES;
		if (counts)
			budget_ratio = fmin(budget_ratio, now[i].budget_ratio);
	}
	g->members = members;
	other |= stream_control_members(s, members > 0 ? members : 1, budget_ratio);
	all = sum(g, s, interval_s);
	return (!measures && stream_control_add(s, &all)) || other;
}

/* ---- Shares ---- */

void stream_share_all(struct stream_share *out, const struct stream_control *s)
{
	*out = (struct stream_share){ .streams = s->streams, .settled = s->streams == s->target, .transfers = 1 };
	memcpy(out->reason, s->reason, sizeof out->reason);
}

void stream_group_share(struct stream_share *out, const struct stream_group *g, const struct stream_control *s,
    unsigned place)
{
	unsigned members = g->members > 0 ? g->members : 1, before = 0, i;

	stream_share_all(out, s);
	out->transfers = g->transfers;
	for (i = 0; i < place; i++)
		before += g->counts[i];
	out->streams = s->streams / members + (g->counts[place] && before < s->streams % members);
	out->streams = out->streams > 0 ? out->streams : 1;
	if (members > 1 && s->reason[0] != '\0')
		snprintf(out->reason, sizeof out->reason, "%u transfers together: %.*s", members,
		    (int)(sizeof out->reason - 32), s->reason);
}
