/* Links of an overlay: selection, estimates from messages, and the overall result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect_parameters.h"
#include "collect/links_impl.h"
#include "collect/local_host.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/units.h"
#include "model/regress.h"

void ptcp_links_opts_init(struct ptcp_links_opts *o)
{
	*o = (struct ptcp_links_opts){ .size = sizeof *o, PTCP_OPTIONS_LINKS(PTCP_NO_ROW, OPTS_INITIAL) };
}

/* ---- Estimates ---- */

/* Subtracts half of the RTT, the delay of the acknowledgment, from the intercept. */
static void estimate_delay(struct ptcp_link_estimate *m, const struct regress *r, double round_trip_s)
{
	double half = round_trip_s / 2, delay = r->d_min_s - half;

	m->delay_s = half;
	m->delay_error_s = NAN;
	m->delay_from_round_trip = true;
	/* Delays are timed to a millisecond; an intercept with a larger error than half of the RTT is less
	 * accurate than half of the RTT itself. */
	if (r->result != REGRESS_OK || !(delay > 0) || !(r->d_min_error_s <= fmax(1e-3, 0.1 * half)))
		return;
	m->delay_s = delay;
	m->delay_error_s = r->d_min_error_s;
	m->delay_from_round_trip = false;
}

static int estimate(struct link_state *l, struct ptcp_err *e)
{
	double *bytes = calloc(l->n + 1, sizeof *bytes), *delay = calloc(l->n + 1, sizeof *delay);
	struct ptcp_link_estimate *m = &l->estimate;
	struct regress fit;
	size_t i;
	int r = 0;

	if (bytes == NULL || delay == NULL)
		r = err_nomem(e);
	for (i = 0; r == 0 && i < l->n; i++) {
		bytes[i] = (double)l->message[i].bytes;
		delay[i] = l->message[i].delay_s + l->round_trip_s; /* as if the message had been alone */
	}
	if (r == 0)
		r = regress_delay(&fit, bytes, delay, l->n, e);
	if (r == 0) {
		m->result = regress_result_name(fit.result);
		estimate_delay(m, &fit, l->round_trip_s);
		/* Messages of one flow leave no other intercept than the RTT: the slope through it is more accurate. */
		if (fit.result == REGRESS_OK || fit.result == REGRESS_NO_INTERCEPT)
			r = regress_through(&fit, bytes, delay, l->n, l->round_trip_s, e);
		m->rate_bps = fit.ebw_bps;
		m->rate_error_bps = fit.ebw_error_bps;
		m->r2_ratio = fit.r2_ratio;
		m->messages_bound = regress_messages_bound(&fit, LINKS_SURE_SHARE, LINKS_SURE_RISK);
		m->messages = (unsigned)l->n;
	}
	free(bytes);
	free(delay);
	return r;
}

int links_take(struct link_state *l, const struct ptcp_message *message, size_t n, double round_trip_s,
    struct ptcp_err *e)
{
	struct ptcp_message *more = realloc(l->message, (l->n + n + 1) * sizeof *more);
	int r;

	if (more == NULL)
		return err_nomem(e);
	l->message = more;
	memcpy(more + l->n, message, n * sizeof *message);
	l->n += n;
	if (round_trip_s > 0 && (l->round_trip_s == 0 || round_trip_s < l->round_trip_s))
		l->round_trip_s = round_trip_s;
	if ((r = estimate(l, e)) < 0)
		return r;
	if (isnan(l->estimate.rate_bps))
		return err_set(e, PTCP_ERANGE, "%s: %zu message%s yield%s no rate (try a larger --budget)",
		    l->estimate.result, l->n, plural(l->n), singular(l->n));
	l->estimate.age_s = 0;
	l->measured_at = mono_now();
	return 0;
}

void links_fail(struct link_state *l, const struct ptcp_err *why)
{
	l->code = why->code;
	snprintf(l->why, sizeof l->why, "%.*s", (int)sizeof l->why - 1, why->msg);
}

double links_age_s(const struct link_state *l)
{
	return l->estimate.age_s + (double)mono_diff_ns(mono_now(), l->measured_at) / 1e9;
}

int links_outcome(const struct ptcp_links *s, bool queried, struct ptcp_err *e)
{
	size_t i, measured = 0, failed = 0;
	const struct link_state *first = NULL;

	for (i = 0; i < s->n; i++) {
		measured += s->link[i].estimate.state == PTCP_LINK_MEASURED;
		if (s->link[i].estimate.state == PTCP_LINK_FAILED && failed++ == 0)
			first = &s->link[i];
	}
	if (failed == 0)
		return 0;
	if (measured == 0)
		return err_set(e, first->code, "links: none %s, the first: %s>%s: %s", queried ? "is published" :
		    "could be measured", local_host_name(s->overlay, first->of.from),
		    local_host_name(s->overlay, first->of.to), first->why);
	if (queried)
		return err_set(e, PTCP_EPARTIAL, "links: %zu of %zu are not published (see above; omit --query to "
		    "measure them)", failed, failed + measured);
	return err_set(e, PTCP_EPARTIAL, "links: %zu of %zu could not be measured (see above; run the same command "
	    "again when their hosts can be reached)", failed, failed + measured);
}

void ptcp_links_cancel(struct ptcp_links *s)
{
	atomic_store(&s->canceled, true);
}

/* ---- Selection of links ---- */

bool links_is_local(const struct ptcp_links *s, const struct link_state *l)
{
	return s->local_host >= 0 && (l->of.from == s->local_host || l->of.to == s->local_host);
}

/* Name of an end of the link that has to be connected to, and has no address; or NULL. */
static const char *unaddressed(const struct ptcp_links *s, const struct link_state *l)
{
	int end[] = { l->of.from, l->of.to };
	struct ptcp_overlay_host h;
	size_t i;

	for (i = 0; i < 2; i++) {
		ptcp_overlay_host(s->overlay, (size_t)end[i], &h);
		if (h.address == NULL && end[i] != s->local_host)
			return h.name;
	}
	return NULL;
}

static void judge(struct ptcp_links *s, struct link_state *l)
{
	const char *name = unaddressed(s, l);

	l->out = true;
	l->estimate = (struct ptcp_link_estimate){ .state = PTCP_LINK_FAILED, .streams = s->o.streams,
		.rate_bps = NAN, .rate_error_bps = NAN, .delay_s = NAN, .delay_error_s = NAN, .r2_ratio = NAN,
		.messages_bound = NAN };
	if (l->of.from != s->local_host && s->o.local_only) {
		l->estimate.state = PTCP_LINK_ELSEWHERE;
		snprintf(l->why, sizeof l->why, "begins at %s: run ptcp links there",
		    local_host_name(s->overlay, l->of.from));
	} else if (name != NULL) {
		l->code = PTCP_ECONFIG;
		snprintf(l->why, sizeof l->why, s->local_host < 0 ? "host %.60s: has no address in the overlay (give "
		    "it one, or run with --local-host %.60s if it is this host)" :
		    "host %.60s: has no address in the overlay (give it one)", name, name);
	} else {
		l->out = false;
	}
}

static int take_opts(struct ptcp_links *s, const struct ptcp_transfer_opts *connect,
    const struct ptcp_links_opts *callers, struct ptcp_err *e)
{
	const struct ptcp_links_opts *o = &s->o;
	int r;

	ptcp_links_opts_init(&s->o);
	ptcp_transfer_opts_init(&s->connect);
	if ((r = opts_copy(&s->o, sizeof s->o, callers, "ptcp_links_opts_init", e)) == 0)
		r = opts_copy(&s->connect, sizeof s->connect, connect, "ptcp_transfer_opts_init", e);
	PTCP_OPTIONS_LINKS(PTCP_NO_ROW, OPTS_CHECK)
	if (r < 0)
		return r;
	if (s->o.local_only) /* links of this host, wherever collections run */
		return local_host_find(s->overlay, s->o.local_host, &s->local_host, e);
	return local_host_collecting(s->overlay, s->o.local_host, &s->local_host, e);
}

int ptcp_links_new(struct ptcp_links **out, const struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const struct ptcp_links_opts *opts, struct ptcp_err *e)
{
	struct ptcp_links *s = calloc(1, sizeof *s);
	size_t i, wanted = 0;
	int r;

	if (s == NULL)
		return err_nomem(e);
	atomic_init(&s->canceled, false);
	s->overlay = o;
	s->n = ptcp_overlay_links(o);
	if ((s->link = calloc(s->n + 1, sizeof *s->link)) == NULL)
		r = err_nomem(e);
	else
		r = take_opts(s, connect, opts, e);
	for (i = 0; r == 0 && i < s->n; i++) {
		ptcp_overlay_link(o, i, &s->link[i].of);
		judge(s, &s->link[i]);
		wanted += s->link[i].estimate.state != PTCP_LINK_ELSEWHERE;
	}
	if (r == 0 && wanted == 0)
		r = err_set(e, PTCP_EUSAGE, "links: none begins at this host%s%s (leave out --local-only, or name "
		    "another host with --local-host)", s->local_host >= 0 ? ", " : "",
		    s->local_host >= 0 ? local_host_name(o, s->local_host) : "");
	if (r < 0)
		ptcp_links_free(s);
	else
		*out = s;
	return r;
}

void ptcp_links_free(struct ptcp_links *s)
{
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; s->link != NULL && i < s->n; i++)
		free(s->link[i].message);
	free(s->link);
	free(s);
}

void ptcp_links_get(const struct ptcp_links *s, size_t i, struct ptcp_link_estimate *out)
{
	*out = s->link[i].estimate;
	out->why = s->link[i].why[0] != '\0' ? s->link[i].why : NULL;
	if (out->state == PTCP_LINK_MEASURED)
		out->age_s = links_age_s(&s->link[i]);
}

size_t ptcp_links_shared(const struct ptcp_links *s, struct ptcp_shared_bottleneck *out, size_t most)
{
	if (most > 0)
		memcpy(out, s->shared, (s->n_shared < most ? s->n_shared : most) * sizeof *out);
	return s->n_shared;
}

int ptcp_links_local_host(const struct ptcp_links *s)
{
	return s->local_host;
}
