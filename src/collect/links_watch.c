/* Goes on measuring links, a few messages each in turn, and lets old estimates fade. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/err.h"
#include "collect/links_impl.h"

#define MESSAGES 4       /* of each size one */
#define WEIGHT 0.25      /* of the newest estimate: about the last seven count */

void ptcp_links_watch_init(struct ptcp_links_watch *w)
{
	*w = (struct ptcp_links_watch){ .size = sizeof *w, .pause_s = 60 };
}

static int cancelled(const struct ptcp_links *s, struct ptcp_err *e)
{
	return !atomic_load(&s->cancelled) ? 0 : err_set(e, PTCP_ECANCELED, "links: interrupted (run it again)");
}

static int rest(const struct ptcp_links *s, double seconds, struct ptcp_err *e)
{
	struct mono until = mono_add_ns(mono_now(), (uint64_t)(seconds * 1e9));
	int r;

	while ((r = cancelled(s, e)) == 0 && mono_now().ns < until.ns)
		poll(NULL, 0, LINKS_CANCEL_MS);
	return r;
}

/* The first value is what is known already. */
static void add(struct smooth *s, double known, double found)
{
	if (s->n == 0 && isfinite(known))
		smooth_add(s, known, WEIGHT);
	smooth_add(s, found, WEIGHT);
}

/* From messages of this round alone; what is known stands where they fail. */
static int look(struct ptcp_links *s, struct link *l, struct ptcp_err *e)
{
	struct ptcp_link_estimate known = l->estimate, *m = &l->estimate;
	int r;

	l->n = 0;
	l->round_trip_s = 0;
	if ((r = links_measure_link(s, l, MESSAGES, e)) < 0) {
		l->estimate = known;
		return r;
	}
	add(&l->rate, known.rate_bps, m->rate_bps);
	add(&l->delay, known.delay_s, m->delay_s);
	m->state = PTCP_LINK_MEASURED;
	m->rate_bps = l->rate.mean;
	m->delay_s = l->delay.mean;
	if (l->rate.n > 1) {
		m->rate_error_bps = smooth_error(&l->rate);
		m->delay_error_s = smooth_error(&l->delay);
	}
	m->messages += known.messages;
	l->why[0] = '\0';
	return 0;
}

int ptcp_links_watch(struct ptcp_links *s, const struct ptcp_links_watch *w, struct ptcp_err *e)
{
	struct ptcp_links_watch o;
	struct ptcp_err why;
	size_t i;
	int r;

	ptcp_links_watch_init(&o);
	if (w->size == 0 || w->size > sizeof o || !(w->pause_s >= 0))
		return err_set(e, PTCP_EUSAGE, "options that ptcp_links_watch_init() has not filled in, or a negative pause");
	memcpy(&o, w, w->size);
	for (i = 0, r = 0; r == 0; i = (i + 1) % s->n) {
		if (s->link[i].out)
			continue;
		if ((r = rest(s, o.pause_s, e)) < 0)
			return r;
		r = look(s, &s->link[i], &why);
		if (r == PTCP_ENOMEM || cancelled(s, e) < 0)
			return r == PTCP_ENOMEM ? err_nomem(e) : PTCP_ECANCELED;
		r = o.seen != NULL ? o.seen(o.arg, i, r < 0 ? why.msg : NULL, e) : 0;
	}
	return r;
}
