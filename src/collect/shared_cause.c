#include "collect/shared_cause.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect_parameters.h"
#include "core/err.h"
#include "plan/rate_limits.h"

int shared_cause_reserve(struct ptcp_overlay *o, struct ptcp_err *e)
{
	struct conf_group *g = realloc(o->groups, (o->ngroups + SHARED_CAUSE_MAX) * sizeof *g);

	if (g == NULL)
		return err_nomem(e);
	o->groups = g;
	for (g += o->ngroups; g < o->groups + o->ngroups + SHARED_CAUSE_MAX; g++)
		*g = (struct conf_group){ .rate_bps = CONF_UNSET };
	o->ngroups += SHARED_CAUSE_MAX;
	return 0;
}

/* The last link of a flow that was found to be slower, or -1. */
static int slow_link(const struct ptcp_overlay *o, const struct drift_flow *f, const double *found_bps)
{
	size_t i;

	for (i = f->n_limits; i-- > 0;)
		if (f->limit[i] < o->nlinks && !isnan(found_bps[f->limit[i]]))
			return (int)f->limit[i];
	return -1;
}

static bool contains(const int *link, size_t n, int which)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (link[i] == which)
			return true;
	return false;
}

/* Whether one of the known bottlenecks has all the links. */
static bool is_known(const struct ptcp_overlay *o, const int *link, size_t n)
{
	size_t g, i;

	for (g = 0; g < o->ngroups; g++) {
		for (i = 0; i < n && contains(o->groups[g].links, o->groups[g].nlinks, link[i]); i++)
			;
		if (i == n)
			return true;
	}
	return false;
}

/* The slow links to the destination, all of which carry data; `link` has room for n. */
static size_t list_slow(const struct ptcp_overlay *o, const struct drift_flow *f, size_t n, const double *found_bps,
    int *link)
{
	size_t i, count = 0;
	int slow;

	for (i = 0; i < n; i++) {
		if (!(f[i].assigned_bps > 0) || (slow = slow_link(o, &f[i], found_bps)) < 0 ||
		    o->links[slow].to != o->destination)
			continue;
		if (f[i].observed_bps < SHARED_CAUSE_LOST_RATIO * f[i].assigned_bps)
			return 0;
		if (!contains(link, count, slow))
			link[count++] = slow;
	}
	return count;
}

/* Rate of all flows over the links; their links keep their rates. */
static double take_rate(const struct ptcp_overlay *o, const struct drift_flow *f, size_t n, const int *link,
    size_t count, double *found_bps, size_t *n_found)
{
	double sum = 0;
	size_t i, k;
	bool crosses;

	for (i = 0; i < n; i++) {
		for (crosses = false, k = 0; k < f[i].n_limits; k++)
			crosses |= f[i].limit[k] < o->nlinks && contains(link, count, (int)f[i].limit[k]);
		for (k = 0; k < f[i].n_limits && crosses; k++)
			if (f[i].limit[k] < o->nlinks && !isnan(found_bps[f[i].limit[k]])) {
				found_bps[f[i].limit[k]] = NAN;
				--*n_found;
			}
		sum += crosses ? f[i].observed_bps : 0;
	}
	return sum;
}

bool shared_cause_conclude(struct ptcp_overlay *o, const struct drift_flow *f, size_t n, double *found_bps,
    size_t *n_found, size_t *limit)
{
	int *link = calloc(n + 1, sizeof *link);
	size_t g, count;

	for (g = 0; g < o->ngroups && o->groups[g].nlinks > 0; g++)
		;
	count = link != NULL && g < o->ngroups ? list_slow(o, f, n, found_bps, link) : 0;
	if (count < 2 || is_known(o, link, count)) {
		free(link);
		return false;
	}
	*limit = o->nlinks + g;
	found_bps[*limit] = take_rate(o, f, n, link, count, found_bps, n_found);
	++*n_found;
	o->groups[g].links = link;
	o->groups[g].nlinks = count;
	o->groups[g].rate_bps = (uint64_t)found_bps[*limit];
	return true;
}

size_t shared_cause_list(const struct ptcp_overlay *o, struct ptcp_shared_bottleneck *out, size_t *links,
    size_t links_max)
{
	const struct conf_group *g;
	size_t n = 0, k;

	if (o->ngroups < SHARED_CAUSE_MAX)
		return 0;
	for (g = o->groups + o->ngroups - SHARED_CAUSE_MAX; g < o->groups + o->ngroups && g->nlinks <= links_max; g++) {
		if (g->nlinks == 0)
			break;
		out[n++] = (struct ptcp_shared_bottleneck){ (double)g->rate_bps, links, g->nlinks };
		for (k = 0; k < g->nlinks; k++)
			*links++ = (size_t)g->links[k];
		links_max -= g->nlinks;
	}
	return n;
}
