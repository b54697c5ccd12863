#include "model/settle.h"

#include <math.h>
#include <string.h>

#include "model/parameters.h"

static double window_s(const struct settle_flow *f)
{
	return fmax(SETTLE_WINDOW_S, SETTLE_WINDOW_RTTS * f->min_rtt_s);
}

static bool is_full(const struct settle *s, const struct settle_flow *f)
{
	double busy_s = f->busy_s - s->began.busy_s;

	return f->retransmits > s->began.retransmits || busy_s < SETTLE_BUSY * (f->known_s - s->began.known_s) ||
	    f->window_s - s->began.window_s > SETTLE_LIMITED * busy_s ||
	    f->rtt_s - f->min_rtt_s > fmax(SETTLE_QUEUE_RATIO * f->min_rtt_s, SETTLE_QUEUE_S);
}

bool settle_add(struct settle *s, const struct settle_flow *f, double at_s)
{
	double took_s = at_s - s->began_s, *r = s->rate_bps;

	s->at_s = at_s;
	if (took_s < window_s(f))
		return false;
	memmove(r + 1, r, (SETTLE_WINDOWS - 1) * sizeof *r);
	r[0] = 8 * (double)(f->delivered_bytes - s->began.delivered_bytes) / took_s;
	if (is_full(s, f))
		s->full_at_s = at_s;
	s->windows++;
	s->began = *f;
	s->began_s = at_s;
	if (at_s >= SETTLE_MAX_S)
		return true;
	return s->windows >= SETTLE_WINDOWS && s->full_at_s > 0 && s->full_at_s >= at_s - SETTLE_WINDOWS * took_s &&
	    r[0] + r[1] > 0 && r[0] + r[1] <= SETTLE_GROWTH * (r[2] + r[3]);
}

double settle_rate_bps(const struct settle *s)
{
	return s->windows < 2 ? s->rate_bps[0] : (s->rate_bps[0] + s->rate_bps[1]) / 2;
}

double settle_took_s(const struct settle *s)
{
	return s->at_s;
}
