/* Measures links continuously, a few messages at a time, noisy links more often, and lets old estimates fade. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collect_parameters.h"
#include "collect/links_impl.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/units.h"
#include "model/rng.h"
#include "model/turns.h"

#define VALUES 4         /* estimates that determine a deviation */

void ptcp_links_watch_init(struct ptcp_links_watch *w)
{
	*w = (struct ptcp_links_watch){ .size = sizeof *w, .pause_s = 60 };
}

static int canceled(const struct ptcp_links *s, struct ptcp_err *e)
{
	return atomic_load(&s->canceled) ? links_canceled(e) : 0;
}

static int rest(const struct ptcp_links *s, double seconds, struct ptcp_err *e)
{
	struct mono until = mono_add_ns(mono_now(), (uint64_t)(seconds * 1e9));
	int r;

	while ((r = canceled(s, e)) == 0 && mono_now().ns < until.ns)
		poll(NULL, 0, LINKS_CANCEL_MS);
	return r;
}

static int wait_turn(const struct ptcp_links *s, const struct ptcp_links_watch *o, const struct link_state *l,
    struct rng *rng, struct ptcp_err *e)
{
	/* Random jitter, so that hosts started together do not measure in lockstep. */
	double pause_s = o->pause_s * (1 + o->jitter_ratio * (2 * rng_uniform(rng) - 1));
	bool new = l->estimate.state != PTCP_LINK_MEASURED && l->why[0] == '\0';
	struct mono until;
	int r = rest(s, new ? pause_s / 10 : pause_s, e);

	until = mono_add_ns(mono_now(), LINKS_WATCH_BUSY_MAX_S * NS_PER_S);
	while (r == 0 && o->busy != NULL && mono_now().ns < until.ns && o->busy(o->arg))
		r = rest(s, LINKS_CANCEL_MS / 1e3, e);
	return r;
}

/* Starts with the known value. */
static void links_watch_add(struct ewma *s, double known, double found, double weight)
{
	if (s->n == 0 && isfinite(known))
		ewma_add(s, known, weight);
	ewma_add(s, found, weight);
}

/* Measures with new messages only; the previous estimate stands if the measurement fails. */
static int measure(struct ptcp_links *s, struct link_state *l, double weight, struct ptcp_err *e)
{
	struct ptcp_link_estimate last = l->estimate, known = last, *m = &l->estimate;
	int r;

	if (known.state != PTCP_LINK_MEASURED || links_age_s(l) > LINKS_WATCH_CONSTANT_S) {
		l->rate = l->delay = (struct ewma){ 0 };
		known.rate_bps = known.delay_s = NAN;
		known.messages = 0;
	}
	l->n = 0;
	l->round_trip_s = 0;
	if ((r = links_measure_link(s, l, LINKS_WATCH_MESSAGES, e)) < 0) {
		l->estimate = last;
		return r;
	}
	links_watch_add(&l->rate, known.rate_bps, m->rate_bps, weight);
	links_watch_add(&l->delay, known.delay_s, m->delay_s, weight);
	m->state = PTCP_LINK_MEASURED;
	m->rate_bps = l->rate.mean;
	m->delay_s = l->delay.mean;
	if (l->rate.n > 1) {
		m->rate_error_bps = ewma_error(&l->rate);
		m->delay_error_s = ewma_error(&l->delay);
	}
	m->messages += known.messages;
	l->why[0] = '\0';
	return 0;
}

static int check_any(const struct ptcp_links *s, struct ptcp_err *e)
{
	const struct link_state *first = NULL;
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (!s->link[i].out)
			return 0;
		if (first == NULL && s->link[i].estimate.state == PTCP_LINK_FAILED)
			first = &s->link[i];
	}
	return err_set(e, PTCP_EUSAGE, "links: none can be measured, the first: %s",
	    first != NULL ? first->why : "there is none");
}

/* Deviations are relative, so that slow links count as much as fast ones. A link that failed, or whose estimates are
 * few or too old, has none. */
static size_t next_link(const struct ptcp_links *s, struct turn *turn, unsigned *waited)
{
	const struct link_state *l;
	size_t i;

	for (i = 0; i < s->n; i++) {
		l = &s->link[i];
		turn[i].sd = l->rate.n >= VALUES && l->why[0] == '\0' && links_age_s(l) <= LINKS_WATCH_CONSTANT_S ?
		    ewma_sd(&l->rate) / l->rate.mean : NAN;
	}
	return turns_next(turn, s->n, waited);
}

static int watch(struct ptcp_links *s, const struct ptcp_links_watch *o, struct turn *turn, struct ptcp_err *e)
{
	struct rng rng = { mono_now().ns ^ (uint64_t)getpid() << 32 };
	struct ptcp_err why;
	size_t i, in = 0;
	unsigned waited;
	int r = 0;

	for (i = 0; i < s->n; i++)
		in += !(turn[i].out = s->link[i].out);
	while (r == 0) {
		i = next_link(s, turn, &waited);
		if ((r = wait_turn(s, o, &s->link[i], &rng, e)) < 0)
			return r;
		r = measure(s, &s->link[i], turns_weight(LINKS_WATCH_WEIGHT, waited, in), &why);
		if (r == PTCP_ENOMEM || canceled(s, e) < 0)
			return r == PTCP_ENOMEM ? err_nomem(e) : PTCP_ECANCELED;
		if (r < 0)
			links_fail(&s->link[i], &why);
		r = o->seen != NULL ? o->seen(o->arg, i, r < 0 ? why.msg : NULL, e) : 0;
	}
	return r;
}

int ptcp_links_watch(struct ptcp_links *s, const struct ptcp_links_watch *w, struct ptcp_err *e)
{
	struct ptcp_links_watch o;
	struct turn *turn;
	int r;

	ptcp_links_watch_init(&o);
	if ((r = opts_copy(&o, sizeof o, w, "ptcp_links_watch_init", e)) < 0)
		return r;
	if (!(o.pause_s >= 0) || !(o.jitter_ratio >= 0 && o.jitter_ratio < 1))
		return err_set(e, PTCP_EUSAGE,
		    "watching: the pause must be at least 0, the jitter at least 0 and below 1");
	if ((r = check_any(s, e)) < 0)
		return r;
	if ((turn = calloc(s->n, sizeof *turn)) == NULL)
		return err_nomem(e);
	r = watch(s, &o, turn, e);
	free(turn);
	return r;
}
