#include "plan/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"

#define RATE_MOST_BPS 1e18 /* beyond what a link is, and exact in 64 bits */

/* Where each kind begins. */
static size_t groups_at(const struct ptcp_overlay *o) { return o->conf->nlinks; }
static size_t ingress_at(const struct ptcp_overlay *o) { return groups_at(o) + o->conf->ngroups; }
static size_t egress_at(const struct ptcp_overlay *o) { return ingress_at(o) + o->conf->nhosts; }

size_t limits_count(const struct ptcp_overlay *o)
{
	return egress_at(o) + o->conf->nhosts;
}

int limits_link(const struct ptcp_overlay *o, int from, int to)
{
	return o->conf->link_of[(size_t)from * o->conf->nhosts + (size_t)to];
}

bool limits_windowed(const struct ptcp_overlay *o, int link)
{
	size_t i;

	for (i = 0; i < o->conf->nwindows; i++)
		if (o->conf->windows[i].link == link)
			return true;
	return false;
}

bool limits_is_host(const struct ptcp_overlay *o, size_t i)
{
	return i >= ingress_at(o);
}

bool limits_counts_streams(const struct ptcp_overlay *o, size_t i)
{
	if (i >= ingress_at(o))
		return false;
	return (i >= groups_at(o) ? o->conf->groups[i - groups_at(o)].curve : o->conf->links[i].curve) != NULL;
}

static bool contains(const struct conf_group *g, int link)
{
	size_t i;

	for (i = 0; i < g->nlinks; i++)
		if (g->links[i] == link)
			return true;
	return false;
}

size_t limits_most_of_link(const struct ptcp_overlay *o)
{
	return 3 + o->conf->ngroups;
}

size_t limits_of_link(const struct ptcp_overlay *o, int link, size_t *out, size_t most)
{
	const struct conf_link *l = &o->conf->links[link];
	size_t i, n = 0;

	if (n < most)
		out[n++] = (size_t)link;
	for (i = 0; i < o->conf->ngroups && n < most; i++)
		if (contains(&o->conf->groups[i], link))
			out[n++] = groups_at(o) + i;
	if (n < most)
		out[n++] = ingress_at(o) + (size_t)l->to;
	if (n < most)
		out[n++] = egress_at(o) + (size_t)l->from;
	return n;
}

/* The rate that holds now. */
static uint64_t *rate_now(const struct ptcp_overlay *o, size_t i)
{
	struct conf_overlay *c = o->conf;
	size_t w;

	if (i >= egress_at(o))
		return &c->hosts[i - egress_at(o)].egress_bps;
	if (i >= ingress_at(o))
		return &c->hosts[i - ingress_at(o)].ingress_bps;
	if (i >= groups_at(o))
		return &c->groups[i - groups_at(o)].rate_bps;
	for (w = 0; w < c->nwindows; w++)
		if (c->windows[w].link == (int)i && c->windows[w].from_ns == 0)
			return &c->windows[w].rate_bps;
	return &c->links[i].rate_bps;
}

double limits_bps(const struct ptcp_overlay *o, size_t i)
{
	uint64_t bps = *rate_now(o, i);

	return bps == CONF_UNSET ? INFINITY : (double)bps;
}

void limits_set_bps(struct ptcp_overlay *o, size_t i, double bps)
{
	*rate_now(o, i) = (uint64_t)fmin(bps, RATE_MOST_BPS);
}

const char *limits_name(const struct ptcp_overlay *o, size_t i, char *buf, size_t cap)
{
	const struct conf_overlay *c = o->conf;
	const struct conf_group *g = i < c->nlinks || limits_is_host(o, i) ? NULL : &c->groups[i - groups_at(o)];
	size_t k, n = g != NULL ? g->nlinks : 1, at = 0;
	const struct conf_link *l;

	buf[0] = '\0';
	if (limits_is_host(o, i)) {
		snprintf(buf, cap, "all %s %s", i < egress_at(o) ? "to" : "from",
		    c->hosts[i - (i < egress_at(o) ? ingress_at(o) : egress_at(o))].name);
		return buf;
	}
	for (k = 0; k < n && at < cap; k++) {
		l = &c->links[g != NULL ? (size_t)g->links[k] : i];
		at += (size_t)snprintf(buf + at, cap - at, "%s%s>%s", k > 0 ? " + " : "", c->hosts[l->from].name,
		    c->hosts[l->to].name);
	}
	return buf;
}

static void pass(uint64_t *ns, uint64_t by)
{
	if (*ns != CONF_UNSET)
		*ns = *ns > by ? *ns - by : 0;
}

void limits_pass(struct ptcp_overlay *o, double seconds)
{
	struct conf_overlay *c = o->conf;
	uint64_t by = (uint64_t)(seconds * (double)NS_PER_S);
	size_t i, n = 0;

	for (i = 0; i < c->nwindows; i++) {
		pass(&c->windows[i].from_ns, by);
		pass(&c->windows[i].until_ns, by);
		if (c->windows[i].until_ns > 0)
			c->windows[n++] = c->windows[i];
	}
	c->nwindows = n;
}
