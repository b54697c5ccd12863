#include "model/congestion_judge.h"

#include <math.h>
#include <stdlib.h>

static void restart_level(struct congestion_judge *j, unsigned streams)
{
	j->streams = streams;
	j->watch.n = j->settle.n = 0;
	j->level_s = 0;
}

void congestion_judge_init(struct congestion_judge *j, enum evidence_growth growth, unsigned max_streams)
{
	j->max_streams = max_streams;
	j->evidence = (struct evidence){ .growth = growth };
	restart_level(j, 0);
}

static const struct evidence_level *largest(const struct evidence *e)
{
	const struct evidence_level *l = &e->level[0];
	size_t i;

	for (i = 1; i < e->n; i++)
		if (e->level[i].probe.streams > l->probe.streams)
			l = &e->level[i];
	return l;
}

static bool has_lever(const struct evidence *e)
{
	unsigned most = e->n > 0 ? largest(e)->probe.streams : 0;
	size_t i;

	for (i = 0; i < e->n; i++)
		if (most >= CONGESTION_LEVER * e->level[i].probe.streams)
			return true;
	return false;
}

bool congestion_is_random_loss(const struct evidence *e, const struct belief *b, unsigned max_streams)
{
	const struct evidence_level *l = largest(e);
	double alone = 0, all = 0;
	size_t i;

	if (!has_lever(e) || l->loss_ratio < CONGESTION_LOSS_RATIO || l->window_ratio > CONGESTION_WINDOW_RATIO)
		return false;
	for (i = 0; i < b->n; i++) {
		if (b->point[i].kind == EVIDENCE_NOBODY_LIMITED)
			alone += b->point[i].weight;
		if (b->point[i].kind == EVIDENCE_ALL_LIMITED)
			all += b->point[i].weight;
	}
	return b->nobody_ratio >= CONGESTION_NOBODY_RATIO && alone > all && alone + all >= CONGESTION_LIMITED_RATIO &&
	    (belief_full_ratio(b) >= CONGESTION_FULL_RATIO || l->probe.streams >= ADVICE_RESOLUTION * max_streams);
}

/* One BBR stream sends as much as the link carries, and keeps the queue short, unless competing flows fill it. */
static bool has_queue_of_others(const struct evidence *e)
{
	size_t i;

	for (i = 0; i < e->n && e->level[i].probe.streams != 1; i++)
		;
	return i < e->n && e->base_rtt_s > 0 &&
	    e->level[i].low_rtt_s - e->base_rtt_s > fmax(CONGESTION_QUEUE_S, CONGESTION_QUEUE_RATIO * e->base_rtt_s);
}

static enum congestion_verdict judge(const struct congestion_judge *j)
{
	const struct evidence *e = &j->evidence;
	enum congestion_verdict v = CONGESTION_KEEP;
	struct belief *b;

	if (e->growth == EVIDENCE_MODEL && has_queue_of_others(e))
		return CONGESTION_FROM_BBR;
	if (!has_lever(e) || (b = malloc(sizeof *b)) == NULL)
		return CONGESTION_KEEP;
	if (belief_of(b, e) < 0)
		v = CONGESTION_KEEP;
	else if (e->growth == EVIDENCE_MODEL)
		v = b->nobody_ratio <= CONGESTION_OTHERS_RATIO ? CONGESTION_FROM_BBR : CONGESTION_KEEP;
	else if (congestion_is_random_loss(e, b, j->max_streams))
		v = CONGESTION_TO_BBR;
	free(b);
	return v;
}

enum congestion_verdict congestion_judge_add(struct congestion_judge *j, unsigned streams,
    const struct evidence_sample *sample, bool usable)
{
	struct evidence_sample s = *sample;
	bool silent = usable && !(s.delivered_bytes > 0);
	enum outage_verdict v = s.interval_s > 0 ? outage_add(&j->outage, &s, silent) : OUTAGE_HELD;
	struct steady_result r;

	if (streams != j->streams || v == OUTAGE_LASTS)
		restart_level(j, streams);
	if (!usable || streams == 0 || v != OUTAGE_NONE)
		return CONGESTION_KEEP;
	evidence_watch_add(&j->watch, &j->evidence, &s);
	steady_add(&j->settle, 8 * s.delivered_bytes / s.interval_s);
	j->level_s += s.interval_s;
	if (j->level_s < CONGESTION_LEVEL_S || steady_result(&r, &j->settle) < 0)
		return CONGESTION_KEEP;
	evidence_add_level(&j->evidence, &j->watch, streams, &r, 0);
	restart_level(j, streams);
	return judge(j);
}
