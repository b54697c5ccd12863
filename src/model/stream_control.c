#include "model/stream_control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"

#define RECENT_S 5.0      /* memory of what it brought lately */
#define MORE_RATIO 1.1    /* a starved level still shows that more streams bring more */
#define FULL_SLACK 0.01   /* one stream more is not worth it for less */
#define WELL_KNOWN_RUNS 2 /* what a level brought is known well enough to be watched */

void stream_control_opts_init(struct stream_control_opts *o)
{
	*o = (struct stream_control_opts){ 0.10, 32, ADVICE_CC_UNKNOWN };
}

static const char *plural(unsigned n)
{
	return n == 1 ? "" : "s";
}

/* From now on so many streams; false: as before. */
static bool want(struct stream_control *s, unsigned streams)
{
	bool other = streams != s->streams;

	s->streams = streams;
	s->settle.n = 0;
	s->level_s = s->starved_s = s->roomy_s = 0;
	return other;
}

/* ---- What is known ---- */

/* All of it is void. */
static void forget(struct stream_control *s)
{
	s->n_next = s->learnt.n = 0;
	s->recalled = false;
	s->hold_s = STREAM_CONTROL_FIRST_HOLD_S;
	cusum_init(&s->watch, STREAM_CONTROL_DRIFT_RATIO, STREAM_CONTROL_DRIFT_S);
}

/* From the first level on. */
static void plan_levels(struct stream_control *s)
{
	static const unsigned level[] = ADVICE_LEVELS;
	unsigned most = s->o.max_streams, n;
	size_t i;

	forget(s);
	s->advised = false;
	for (i = 0; i < sizeof level / sizeof *level; i++) {
		n = level[i] < most ? level[i] : most;
		if (i > 0 && n == s->next[s->n_next - 1])
			n = 1; /* few are allowed: downwards, then */
		s->next[s->n_next++] = n;
	}
}

/* By fair share: of many levels a rival may fit their noise better, but predicts no better. */
static bool fit(struct stream_control *s, double usual_others)
{
	struct advice_opts o;

	advice_opts_init(&o);
	o.model = FIT_FAIR_SHARE;
	o.usual_others = usual_others;
	o.budget_ratio = s->o.budget_ratio;
	o.max_streams = s->o.max_streams;
	o.congestion = s->o.congestion;
	s->advised = advice_from_probes(&s->advice, s->learnt.probe, s->learnt.n, &o, NULL) == 0;
	return s->advised;
}

/* This level's streams brought that. */
static void record(struct stream_control *s, double mean_bps, double runs)
{
	profile_add(&s->learnt, s->streams, mean_bps, runs, 2 * s->roomy_s > s->level_s);
}

/* ---- From level to level ---- */

static bool probe_next(struct stream_control *s)
{
	unsigned n = s->next[0];

	memmove(s->next, s->next + 1, --s->n_next * sizeof *s->next);
	s->phase = STREAM_CONTROL_PROBING;
	snprintf(s->reason, sizeof s->reason, "probing with %u stream%s", n, plural(n));
	return want(s, n);
}

/* As good as the same answer. */
static bool near(unsigned a, unsigned b)
{
	return 4 * (a > b ? a - b : b - a) <= (a > b ? a : b);
}

static bool is_sure(const struct stream_control *s)
{
	const struct probe *above;

	return s->advised && (s->advice.impact_sd_ratio <= STREAM_CONTROL_SURE_RATIO || profile_room(&s->learnt, &above) != NULL);
}

static bool hold(struct stream_control *s, unsigned streams, double rate_bps, double impact_ratio)
{
	size_t known = profile_find(&s->learnt, streams);
	char rate[UNITS_TEXT_BYTES];

	s->phase = STREAM_CONTROL_HOLDING;
	s->expected_bps = s->recent_bps = known < s->learnt.n && s->learnt.runs[known] >= WELL_KNOWN_RUNS ?
	    s->learnt.probe[known].throughput_bps : 0;
	if (s->held > 0)
		s->hold_s = near(streams, s->held) && is_sure(s) ? fmin(2 * s->hold_s, STREAM_CONTROL_HOLD_MOST_S) :
		    STREAM_CONTROL_FIRST_HOLD_S;
	if (streams != s->held)
		s->seen_bps = s->seen_s = 0;
	s->held = streams;
	if (!s->advised) {
		snprintf(s->reason, sizeof s->reason, "the probes tell nothing");
		return want(s, streams);
	}
	s->predicted_bps = rate_bps;
	s->predicted_impact_ratio = impact_ratio;
	snprintf(s->reason, sizeof s->reason, "%s%u stream%s should bring %s and take %.0f %% from each other flow "
	    "(budget %.0f %%)", s->recalled ? "from history, " : "", streams, plural(streams),
	    units_rate_text(rate, s->predicted_bps), s->predicted_impact_ratio * 100, s->o.budget_ratio * 100);
	return want(s, streams);
}

static bool probe_at(struct stream_control *s, unsigned streams)
{
	s->next[s->n_next++] = streams < s->o.max_streams ? streams : s->o.max_streams;
	return probe_next(s);
}

/* Each stream brings the same, until the path is full: upwards by steps, and between the last two, then as many as
 * fill it. */
static bool fill_room(struct stream_control *s, const struct probe *room, const struct probe *above)
{
	double each = room->throughput_bps / room->streams;
	unsigned n = room->streams;

	if (above == NULL && n < s->o.max_streams)
		return probe_at(s, STREAM_CONTROL_STRETCH * n);
	if (above != NULL && above->streams > STREAM_CONTROL_STRETCH * n)
		return probe_at(s, (unsigned)(sqrt((double)n * above->streams) + 0.5));
	if (above != NULL)
		n = (unsigned)fmin(fmax(ceil(above->throughput_bps / each * (1 - FULL_SLACK)), n), above->streams);
	return hold(s, n, fmin(each * n, above != NULL ? above->throughput_bps : each * n), 0);
}

/* To the answer; far outside of what was probed by steps, each of them a probe. */
static bool conclude(struct stream_control *s)
{
	const struct probe *room, *above, *fewest;
	unsigned n;

	/* What is usual keeps the first two short runs from finding no others, or hundreds. */
	if (!fit(s, s->held == 0 ? FIT_USUAL_OTHERS : 0))
		return hold(s, s->streams, 0, 0);
	if ((room = profile_room(&s->learnt, &above)) != NULL)
		return fill_room(s, room, above);
	n = s->advice.streams;
	if (n <= s->advice.fit.most)
		return hold(s, n, fit_throughput_bps(&s->advice.fit, n), fit_impact_ratio(&s->advice.fit, n));
	/* Streams that had not come to their rates make the next level look better than it is. */
	fewest = profile_fewest(&s->learnt);
	if (s->learnt.runs[fewest - s->learnt.probe] < 2)
		return probe_at(s, fewest->streams);
	return probe_at(s, n < STREAM_CONTROL_STRETCH * s->advice.fit.most ? n : STREAM_CONTROL_STRETCH * s->advice.fit.most);
}

static bool start_again(struct stream_control *s, const char *why)
{
	unsigned now = s->streams;

	plan_levels(s);
	probe_next(s);
	snprintf(s->reason, sizeof s->reason, "%s", why);
	return s->streams != now;
}

/* ---- Probing ---- */

/* Whether the level has told what it can. */
static bool told(const struct stream_control *s, struct steady_result *out)
{
	return s->level_s >= STREAM_CONTROL_LEVEL_S - STREAM_CONTROL_SAMPLE_S / 2 && steady_result(out, &s->settle) == 0;
}

static bool add_probing(struct stream_control *s, const struct stream_control_sample *x)
{
	struct steady_result r;

	if (x->starved && s->learnt.n == 0) {
		want(s, s->streams); /* the first level waits for enough to send */
		return false;
	}
	steady_add(&s->settle, x->rate_bps);
	s->level_s += x->interval_s;
	s->starved_s += x->starved ? x->interval_s : 0;
	s->roomy_s += x->roomy ? x->interval_s : 0;
	if (!told(s, &r))
		return false;
	if (2 * s->starved_s > s->level_s && r.mean_bps < MORE_RATIO * s->learnt.probe[0].throughput_bps)
		return start_again(s, "too little to send: it cannot be told what more streams bring");
	record(s, r.mean_bps, 1);
	return s->n_next > 0 ? probe_next(s) : conclude(s);
}

/* ---- Holding ---- */

/* The path has changed: what is known is what it brings now, and a second level beside it tells the rest. */
static bool changed(struct stream_control *s, int which)
{
	unsigned n = s->streams, beside = n >= 6 ? n / 3 : 3 * n;
	char now[UNITS_TEXT_BYTES], then[UNITS_TEXT_BYTES];
	bool other;

	if (beside > s->o.max_streams)
		beside = n > 1 ? 1 : s->o.max_streams;
	units_rate_text(now, s->recent_bps);
	units_rate_text(then, s->expected_bps);
	forget(s);
	s->held = 0; /* what it brought before is of another path */
	record(s, s->recent_bps, 1);
	other = probe_at(s, beside);
	snprintf(s->reason, sizeof s->reason, "the path has changed: %u stream%s brought %s, %s than %s; probing with %u", n,
	    plural(n), now, which > 0 ? "more" : "less", then, beside);
	return other;
}

/* Its time is over: the level that is known worst is probed again, or one far enough above. Where there is room those
 * below tell nothing. */
static bool look_again(struct stream_control *s)
{
	const struct probe *room, *above;
	unsigned up = STREAM_CONTROL_LEVER * s->streams < s->o.max_streams ? STREAM_CONTROL_LEVER * s->streams : s->o.max_streams;
	const struct probe *worst;

	record(s, s->seen_bps, (s->level_s - STREAM_CONTROL_SKIP_S) / PROFILE_RUN_S);
	s->recalled = false;
	room = profile_room(&s->learnt, &above);
	if (room == NULL && s->advised && 4 * s->advice.fit.most < 3 * up)
		return probe_at(s, up);
	worst = profile_worst(&s->learnt, room != NULL ? s->streams : 1, s->streams, STREAM_CONTROL_BELOW_WORTH);
	if (worst->streams == s->streams)
		return conclude(s);
	return probe_at(s, worst->streams);
}

/* What it has brought lately; 1, -1: no longer what is known of it. */
static int compare(struct stream_control *s, const struct stream_control_sample *x)
{
	double w = 1 - exp(-x->interval_s / RECENT_S);

	s->recent_bps += w * (x->rate_bps - s->recent_bps);
	if (s->expected_bps > 0)
		return cusum_add(&s->watch, x->rate_bps, s->expected_bps, x->interval_s);
	if (s->level_s >= STREAM_CONTROL_DWELL_S)
		s->recent_bps = s->expected_bps = s->recalled ? s->predicted_bps : s->seen_bps;
	return 0;
}

static bool add_holding(struct stream_control *s, const struct stream_control_sample *x)
{
	int which;

	if (x->starved)
		return false;
	s->level_s += x->interval_s;
	s->roomy_s += x->roomy ? x->interval_s : 0;
	if (s->level_s <= STREAM_CONTROL_SKIP_S)
		return false;
	s->seen_s += x->interval_s;
	s->seen_bps += (x->rate_bps - s->seen_bps) * x->interval_s / s->seen_s;
	which = compare(s, x);
	s->contradicted |= which != 0 && s->recalled;
	if (which != 0)
		return s->recalled ? start_again(s, "the path is not what it was in an earlier transfer: probing") :
		    changed(s, which);
	return s->level_s >= s->hold_s && look_again(s);
}

/* ---- From outside ---- */

void stream_control_init(struct stream_control *s, const struct stream_control_opts *o)
{
	*s = (struct stream_control){ .o = *o };
	if (o->max_streams <= 1 || o->budget_ratio <= 0) {
		s->phase = STREAM_CONTROL_FIXED;
		s->streams = 1;
		return;
	}
	plan_levels(s);
	probe_next(s);
	s->reason[0] = '\0';
}

void stream_control_recall(struct stream_control *s, const struct probe *p, size_t count)
{
	unsigned n;

	if (s->phase == STREAM_CONTROL_FIXED || count > PROFILE_MAX)
		return;
	profile_recall(&s->learnt, p, count);
	if (!fit(s, 0)) {
		s->learnt.n = 0;
		return;
	}
	s->recalled = true;
	s->hold_s = 2 * STREAM_CONTROL_FIRST_HOLD_S; /* known already; and long enough to be contradicted */
	s->n_next = 0;
	n = s->advice.streams;
	hold(s, n, fit_throughput_bps(&s->advice.fit, n), fit_impact_ratio(&s->advice.fit, n));
}

bool stream_control_add(struct stream_control *s, const struct stream_control_sample *x)
{
	if (!x->steady)
		return false;
	switch (s->phase) {
	case STREAM_CONTROL_PROBING:
		return add_probing(s, x);
	case STREAM_CONTROL_HOLDING:
		return add_holding(s, x);
	case STREAM_CONTROL_FIXED:
		break;
	}
	return false;
}
