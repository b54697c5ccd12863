#include "model/outage.h"

#include <math.h>

/* Two successive intervals as one. */
static void join(struct evidence_sample *s, const struct evidence_sample *before)
{
	s->interval_s += before->interval_s;
	s->delivered_bytes += before->delivered_bytes;
	s->sent_segments += before->sent_segments;
	s->lost_segments += before->lost_segments;
	s->loss_events += before->loss_events;
	s->busy_s += before->busy_s;
	s->window_s += before->window_s;
}

enum outage_verdict outage_add(struct outage *o, struct evidence_sample *s, bool silent)
{
	double rtts_s = OUTAGE_RTTS * s->rtt_s;

	if (silent) {
		join(&o->held, s);
		if (o->held.interval_s > fmax(OUTAGE_SILENT_S, rtts_s))
			o->recovery_s = fmax(o->recovery_s, o->held.interval_s + rtts_s);
		return o->recovery_s > 0 ? OUTAGE_LASTS : OUTAGE_HELD;
	}
	if (o->recovery_s > 0)
		o->recovery_s = fmax(o->recovery_s - s->interval_s, 0);
	else
		join(s, &o->held);
	o->held = (struct evidence_sample){ 0 };
	return o->recovery_s > 0 ? OUTAGE_LASTS : OUTAGE_NONE;
}
