#include "plan/rate_limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"

#define RATE_MAX_BPS 1e18 /* above any link, and within 64 bits */

static size_t ingress_at(const struct ptcp_overlay *o)
{
	return o->nlinks + o->ngroups;
}

static size_t egress_at(const struct ptcp_overlay *o)
{
	return ingress_at(o) + o->nhosts;
}

size_t limits_count(const struct ptcp_overlay *o)
{
	return egress_at(o) + o->nhosts;
}

enum limits_kind limits_kind(const struct ptcp_overlay *o, size_t i, int *index)
{
	const size_t start[] = { 0, o->nlinks, ingress_at(o), egress_at(o) };
	int k = LIMITS_EGRESS;

	while (i < start[k])
		k--;
	*index = (int)(i - start[k]);
	return (enum limits_kind)k;
}

bool limits_is_host(const struct ptcp_overlay *o, size_t i)
{
	return i >= ingress_at(o);
}

const struct conf_curve *limits_curve(const struct ptcp_overlay *o, size_t i)
{
	if (i >= ingress_at(o))
		return NULL;
	return i < o->nlinks ? o->links[i].curve : o->groups[i - o->nlinks].curve;
}

size_t limits_crossings(const struct ptcp_overlay *o)
{
	size_t g, n = 3 * o->nlinks;

	for (g = 0; g < o->ngroups; g++)
		n += o->groups[g].nlinks;
	return n;
}

void limits_index(const struct ptcp_overlay *o, size_t *first, size_t *limit)
{
	size_t i, g, k;

	/* first[link + 1] counts the limits of a link, then points to the next one to write, finally past
	 * the last. */
	first[0] = 0;
	for (i = 0; i < o->nlinks; i++)
		first[i + 1] = 3;
	for (g = 0; g < o->ngroups; g++)
		for (k = 0; k < o->groups[g].nlinks; k++)
			first[o->groups[g].links[k] + 1]++;
	for (i = 0, k = 0; i < o->nlinks; i++) {
		size_t n = first[i + 1];

		first[i + 1] = k;
		k += n;
	}
	for (i = 0; i < o->nlinks; i++)
		limit[first[i + 1]++] = i;
	for (g = 0; g < o->ngroups; g++)
		for (k = 0; k < o->groups[g].nlinks; k++)
			limit[first[o->groups[g].links[k] + 1]++] = o->nlinks + g;
	for (i = 0; i < o->nlinks; i++) {
		limit[first[i + 1]++] = ingress_at(o) + (size_t)o->links[i].to;
		limit[first[i + 1]++] = egress_at(o) + (size_t)o->links[i].from;
	}
}

static bool contains(const struct conf_group *g, int link)
{
	size_t i;

	for (i = 0; i < g->nlinks; i++)
		if (g->links[i] == link)
			return true;
	return false;
}

size_t limits_max_of_link(const struct ptcp_overlay *o)
{
	return 3 + o->ngroups;
}

size_t limits_of_link(const struct ptcp_overlay *o, int link, size_t *out, size_t max)
{
	size_t i, n = 0;

	if (n < max)
		out[n++] = (size_t)link;
	for (i = 0; i < o->ngroups && n < max; i++)
		if (contains(&o->groups[i], link))
			out[n++] = o->nlinks + i;
	if (n < max)
		out[n++] = ingress_at(o) + (size_t)o->links[link].to;
	if (n < max)
		out[n++] = egress_at(o) + (size_t)o->links[link].from;
	return n;
}

int limits_link(const struct ptcp_overlay *o, int from, int to)
{
	return o->link_of[(size_t)from * o->nhosts + (size_t)to];
}

bool limits_windowed(const struct ptcp_overlay *o, int link)
{
	size_t i;

	for (i = 0; i < o->nwindows; i++)
		if (o->windows[i].link == link)
			return true;
	return false;
}

static uint64_t *rate_outside(const struct ptcp_overlay *o, size_t i)
{
	int k;

	switch (limits_kind(o, i, &k)) {
	case LIMITS_LINK: return &o->links[k].rate_bps;
	case LIMITS_SHARED: return &o->groups[k].rate_bps;
	case LIMITS_INGRESS: return &o->hosts[k].ingress_bps;
	case LIMITS_EGRESS: break;
	}
	return &o->hosts[k].egress_bps;
}

static uint64_t *rate_now(const struct ptcp_overlay *o, size_t i)
{
	size_t w;

	for (w = 0; i < o->nlinks && w < o->nwindows; w++)
		if (o->windows[w].link == (int)i && o->windows[w].from_ns == 0)
			return &o->windows[w].rate_bps;
	return rate_outside(o, i);
}

static double number(uint64_t bps)
{
	return bps == CONF_UNSET ? INFINITY : (double)bps;
}

double limits_outside_bps(const struct ptcp_overlay *o, size_t i)
{
	return number(*rate_outside(o, i));
}

double limits_bps(const struct ptcp_overlay *o, size_t i)
{
	return number(*rate_now(o, i));
}

void limits_set_bps(struct ptcp_overlay *o, size_t i, double bps)
{
	*rate_now(o, i) = (uint64_t)fmin(bps, RATE_MAX_BPS);
}

const char *limits_name(const struct ptcp_overlay *o, size_t i, char *buf, size_t cap)
{
	const struct conf_group *g = NULL;
	size_t k, n = 1, at = 0;
	const struct conf_link *l;
	int index;

	buf[0] = '\0';
	switch (limits_kind(o, i, &index)) {
	case LIMITS_INGRESS:
	case LIMITS_EGRESS:
		snprintf(buf, cap, "all %s %s", i < egress_at(o) ? "to" : "from", o->hosts[index].name);
		return buf;
	case LIMITS_SHARED:
		g = &o->groups[index];
		n = g->nlinks;
		break;
	case LIMITS_LINK:
		break;
	}
	for (k = 0; k < n && at < cap; k++) {
		l = &o->links[g != NULL ? (size_t)g->links[k] : i];
		at += (size_t)snprintf(buf + at, cap - at, "%s%s>%s", k > 0 ? " + " : "", o->hosts[l->from].name,
		    o->hosts[l->to].name);
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
	uint64_t by = (uint64_t)(seconds * (double)NS_PER_S);
	size_t i, n = 0;

	for (i = 0; i < o->nwindows; i++) {
		pass(&o->windows[i].from_ns, by);
		pass(&o->windows[i].until_ns, by);
		if (o->windows[i].until_ns > 0)
			o->windows[n++] = o->windows[i];
	}
	o->nwindows = n;
}
