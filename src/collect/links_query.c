/* Queries the servers at the beginning of links for their published estimates, instead of measuring: one
 * query per server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "collect/links_impl.h"
#include "collect/local_host.h"
#include "core/err.h"

/* Takes a published estimate. */
static int links_query_take(struct link_state *l, const char *from, const struct ptcp_published_link *k,
    struct ptcp_err *e)
{
	struct ptcp_link_estimate *m = &l->estimate;

	if (k->messages == 0 && k->why != NULL)
		return err_set(e, PTCP_EPEER, "%s could not measure it: %s", from, k->why);
	if (k->messages == 0)
		return err_set(e, PTCP_EPEER, "%s has not measured it yet (query again later)", from);
	if (k->age_s > LINKS_OLD_S)
		return err_set(e, PTCP_EPEER, "the estimate of %s is %.1f h old%s%s (find out why it does not measure)",
		    from, k->age_s / 3600, k->why != NULL ? ": " : "", k->why != NULL ? k->why : "");
	m->state = PTCP_LINK_MEASURED;
	m->rate_bps = k->rate_bps;
	m->rate_error_bps = k->rate_error_bps;
	m->delay_s = k->delay_s;
	m->delay_error_s = k->delay_error_s;
	m->delay_from_round_trip = k->delay_from_round_trip;
	m->messages = k->messages;
	m->streams = k->streams;
	m->age_s = k->age_s;
	l->measured_at = mono_now();
	return 0;
}

/* Finds the published link with the same address as in our overlay. */
static int links_query_find(struct link_state *l, const char *from, const char *to,
    const struct ptcp_published_link *known, size_t n, struct ptcp_err *e)
{
	char authority[LOCAL_HOST_ADDRESS_BYTES];
	size_t i;

	local_host_authority(authority, to);
	for (i = 0; i < n; i++)
		if (strcasecmp(known[i].to, authority) == 0)
			return links_query_take(l, from, &known[i], e);
	return err_set(e, PTCP_EPEER, "%s does not measure the link to %s (add it to the overlay of its --watch, with "
	    "this address)", from, authority);
}

/* Updates all links from a host; `why` not NULL: the query failed. */
static void take_all(struct ptcp_links *s, int host, const struct ptcp_published_link *known, size_t n,
    const struct ptcp_err *why)
{
	struct ptcp_overlay_host from, to;
	struct ptcp_err own;
	size_t i;

	ptcp_overlay_host(s->overlay, (size_t)host, &from);
	for (i = 0; i < s->n; i++) {
		struct link_state *l = &s->link[i];

		if (l->of.from != host || l->out)
			continue;
		ptcp_overlay_host(s->overlay, (size_t)l->of.to, &to);
		if (why != NULL)
			links_fail(l, why);
		else if (to.address == NULL) {
			err_set(&own, PTCP_ECONFIG,
			    "host %s: has no address in the overlay, which the servers go by (give it one)", to.name);
			links_fail(l, &own);
		} else if (links_query_find(l, from.name, to.address, known, n, &own) < 0)
			links_fail(l, &own);
	}
}

static int update_links(struct ptcp_links *s, int host, const struct ptcp_task *t, struct ptcp_err *e)
{
	size_t n = ptcp_link_query_links(t, NULL, 0);
	struct ptcp_published_link *known = calloc(n + 1, sizeof *known);

	if (known == NULL)
		return err_nomem(e);
	ptcp_link_query_links(t, known, n);
	take_all(s, host, known, n, NULL);
	free(known);
	return 0;
}

static int query(struct ptcp_links *s, int host, struct ptcp_err *e)
{
	struct ptcp_overlay_host h;
	struct ptcp_task *t;
	int r;

	ptcp_overlay_host(s->overlay, (size_t)host, &h);
	if (h.address == NULL)
		return err_set(e, PTCP_ECONFIG, "host %s: has no address in the overlay (give it one)", h.name);
	if ((r = ptcp_link_query_new(&t, &s->connect, h.address, e)) < 0)
		return r;
	if ((r = links_run(s, t, e)) == 0)
		r = update_links(s, host, t, e);
	ptcp_task_free(t);
	return r;
}

/* Whether the link is the first wanted one from its host. */
static bool is_first(const struct ptcp_links *s, size_t link)
{
	size_t i;

	if (s->link[link].out)
		return false;
	for (i = 0; i < link; i++)
		if (!s->link[i].out && s->link[i].of.from == s->link[link].of.from)
			return false;
	return true;
}

int ptcp_links_query(struct ptcp_links *s, struct ptcp_err *e)
{
	struct ptcp_err why;
	size_t i;
	int r;

	for (i = 0; i < s->n; i++) {
		if (!is_first(s, i))
			continue;
		if (s->o.begin != NULL)
			s->o.begin(s->o.arg, i);
		if ((r = query(s, s->link[i].of.from, &why)) == PTCP_ECANCELED || r == PTCP_ENOMEM) {
			if (e != NULL)
				*e = why;
			return r;
		}
		if (r < 0)
			take_all(s, s->link[i].of.from, NULL, 0, &why);
	}
	return links_outcome(s, true, e);
}
