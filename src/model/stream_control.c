#include "model/stream_control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"
#include "model/parameters.h"

void stream_control_opts_init(struct stream_control_opts *o)
{
	*o = (struct stream_control_opts){ 0.10, 32, ADVICE_CC_UNKNOWN, 1, 1 };
}

/* Requests a stream count and restarts the level; returns whether the count changed. */
static bool request(struct stream_control *s, unsigned streams)
{
	bool other;

	streams = stream_path_least(s) > streams ? stream_path_least(s) : streams;
	other = streams != s->streams;
	s->target = streams;
	s->leave_s = 0;
	if (streams > s->streams)
		s->streams = streams;
	s->settle.n = s->kernel.n = 0;
	s->level_s = s->starved_s = s->starved_bps = s->host_limited_s = s->connecting_s = s->unconnected = 0;
	return other;
}

/* ---- Transitions ---- */

static bool probe_next(struct stream_control *s)
{
	unsigned n = stream_path_least(s) > s->next[0] ? stream_path_least(s) : s->next[0];

	memmove(s->next, s->next + 1, --s->n_next * sizeof *s->next);
	s->phase = STREAM_CONTROL_PROBING;
	snprintf(s->reason, sizeof s->reason, "probing with %u stream%s", n, plural(n));
	return request(s, n);
}

/* Equal for the purpose of hold times. */
static bool is_close(unsigned a, unsigned b)
{
	return 4 * (a > b ? a - b : b - a) <= (a > b ? a : b);
}

static bool is_sure(const struct stream_control *s)
{
	const struct probe *above;

	return s->advised && (s->advice.impact_sd_ratio <= STREAM_CONTROL_SURE_RATIO ||
	    profile_host_limited(&s->profile, &above) != NULL);
}

static bool hold(struct stream_control *s, unsigned streams, double rate_bps, double impact_ratio)
{
	size_t known = profile_find(&s->profile, streams);
	char rate[UNITS_TEXT_BYTES];

	s->phase = STREAM_CONTROL_HOLDING;
	s->expected_bps = s->recent_bps = known < s->profile.n &&
	    s->profile.runs[known] >= STREAM_CONTROL_WELL_KNOWN_RUNS ? s->profile.probe[known].throughput_bps : 0;
	if (s->answer > 0)
		s->hold_s = !is_close(streams, s->answer) ? STREAM_CONTROL_FIRST_HOLD_S :
		    fmin((is_sure(s) ? 2 : STREAM_CONTROL_UNSURE_GROWTH) * s->hold_s, STREAM_CONTROL_HOLD_MAX_S);
	if (streams != s->answer)
		s->observed_bps = s->observed_s = 0;
	s->answer = streams;
	if (!s->advised) {
		snprintf(s->reason, sizeof s->reason, "the probes are inconclusive");
		return request(s, streams);
	}
	s->predicted_bps = rate_bps;
	s->predicted_impact_ratio = impact_ratio;
	snprintf(s->reason, sizeof s->reason, "%s%u stream%s: predicted %s, impact on each competing flow %.0f %% "
	    "(budget %.0f %%)", s->recalled ? "from history, " : "", streams, plural(streams),
	    units_rate_text(rate, s->predicted_bps), s->predicted_impact_ratio * 100, s->o.budget_ratio * 100);
	return request(s, streams);
}

static bool probe_at(struct stream_control *s, unsigned streams)
{
	s->next[s->n_next++] = streams < s->o.max_streams ? streams : s->o.max_streams;
	return probe_next(s);
}

/* Throughput per stream is constant until the path is full: probes upwards in steps, then between the last
 * two levels, then holds the count that fills the path. */
static bool fill_path(struct stream_control *s, const struct probe *room, const struct probe *above)
{
	double each = room->throughput_bps / room->streams;
	unsigned n = room->streams;

	if (above == NULL && n < s->o.max_streams)
		return probe_at(s, STREAM_CONTROL_STRETCH * n);
	if (above != NULL && above->streams > STREAM_CONTROL_STRETCH * n)
		return probe_at(s, (unsigned)(sqrt((double)n * above->streams) + 0.5));
	if (above != NULL)
		n = (unsigned)fmin(fmax(ceil(above->throughput_bps / each * (1 - STREAM_CONTROL_FULL_SLACK)), n),
		    above->streams);
	n = stream_levels_round(n, s->o.movers, s->o.max_streams);
	return hold(s, n, fmin(each * n, above != NULL ? above->throughput_bps : each * n), 0);
}

static bool is_affordable(const struct stream_control *s, unsigned streams)
{
	return !s->advised || impact_budget_affords(&s->spent, &s->advice, s->o.budget_ratio, streams,
	    STREAM_CONTROL_LEVEL_S + STREAM_CONTROL_SKIP_S + evidence_recovery_s(&s->evidence));
}

/* The answer, unless the present one is about as good and keeps the budget: a constant path has one answer. */
static unsigned settle_on(const struct stream_control *s, unsigned answer)
{
	struct advice_point old, new;

	if (s->answer == 0 || s->answer > s->advice.n_curve || s->answer > s->o.max_streams)
		return answer;
	advice_at(&s->advice, s->answer, &old);
	advice_at(&s->advice, answer, &new);
	return old.impact_ratio <= s->o.budget_ratio + STREAM_CONTROL_EXCESS_RATIO &&
	    new.throughput_bps < old.throughput_bps * (1 + STREAM_CONTROL_GAIN_RATIO) ? s->answer : answer;
}

/* The fewest streams have no impact, but show whether there are competing flows. */
static bool try_fewest(struct stream_control *s)
{
	unsigned least = stream_path_least(s);
	struct advice_point at;
	bool other;

	advice_at(&s->advice, least, &at);
	s->saves = s->advice.streams > least;
	other = hold(s, least, at.throughput_bps, 0);
	snprintf(s->reason, sizeof s->reason, "one stream%s, to find competing flows",
	    least > 1 ? " for each transfer" : "");
	return other;
}

/* As fill_path(), where the hosts of the movers are full. */
static bool use_hosts(struct stream_control *s, unsigned streams)
{
	size_t known = profile_find(&s->profile, streams);
	struct advice_point p;

	advice_at(&s->advice, streams, &p);
	s->saves = false;
	return hold(s, streams, known < s->profile.n ? s->profile.probe[known].throughput_bps : p.throughput_bps, 0);
}

/* Holds at the answer, or probes towards an answer far outside the probed range. */
static bool conclude(struct stream_control *s)
{
	const struct probe *room, *above, *fewest;
	struct advice_point at;
	unsigned wanted, n;

	/* The prior keeps the first two short runs from finding 0 or hundreds of competing flows. */
	if (!stream_path_judge(s, s->answer == 0 ? FIT_PRIOR_OTHERS : 0))
		return hold(s, s->streams, 0, 0);
	if ((room = profile_host_limited(&s->profile, &above)) != NULL && s->advice.others != ADVICE_OTHERS_SOME)
		return fill_path(s, room, above);
	if ((n = stream_path_below(s)) > 0)
		return probe_at(s, n);
	wanted = settle_on(s, stream_path_answer(s));
	if (stream_path_hosts_limit(s))
		return use_hosts(s, wanted);
	if (s->answer == 0 && stream_path_is_open(s))
		return try_fewest(s);
	/* What the first levels have taken is saved afterwards; later levels wait until the budget can afford them. */
	n = s->answer > 0 && !s->saves ? wanted :
	    impact_budget_most(&s->spent, &s->advice, s->o.budget_ratio, wanted, STREAM_CONTROL_FIRST_HOLD_S);
	n = n < stream_path_least(s) ? stream_path_least(s) : n;
	s->saves = n < wanted;
	if (n <= s->advice.fit.most || n == s->target) { /* the latter level may have lacked connections */
		advice_at(&s->advice, n, &at);
		return hold(s, n, at.throughput_bps, at.impact_ratio);
	}
	/* Unsteady streams at the first level make the next level look better than it is. */
	fewest = profile_fewest(&s->profile);
	if (s->advice.n_curve == 0 && s->profile.runs[fewest - s->profile.probe] < 2)
		return probe_at(s, fewest->streams);
	return probe_at(s, (unsigned)fmin(n, STREAM_CONTROL_STRETCH * s->advice.fit.most));
}

static bool restart(struct stream_control *s, const char *why)
{
	unsigned now = s->streams;

	stream_path_plan(s);
	probe_next(s);
	snprintf(s->reason, sizeof s->reason, "%s", why);
	return s->streams != now;
}

/* ---- Probing ---- */

/* Pauses of a disk or the application neither count nor end a level. If pauses last, a level above the first ends:
 * with its rate if the rate exceeds that of the first level, otherwise without, as the application limits both. */
static bool add_starved(struct stream_control *s, const struct stream_control_sample *x)
{
	s->starved_s += x->interval_s;
	s->starved_bps += (x->rate_bps - s->starved_bps) * x->interval_s / s->starved_s;
	if (s->profile.n == 0 || s->starved_s < STREAM_CONTROL_STARVED_S || s->starved_s < s->level_s)
		return false;
	if (s->starved_bps < STREAM_CONTROL_MORE_RATIO * s->profile.probe[0].throughput_bps)
		return restart(s, "too little data to send: stream counts cannot be compared");
	stream_path_record(s, s->starved_bps, 1);
	return s->n_next > 0 ? probe_next(s) : conclude(s);
}

/* In the second level, the most expensive one: whether competing flows are seen, and already the first level is
 * above the budget. */
static bool is_decided(const struct stream_control *s, double mean_bps)
{
	struct stream_control now = *s;

	if (s->advised || s->n_next > 0 || s->profile.n == 0 || s->streams <= s->profile.probe[0].streams)
		return false;
	stream_path_record(&now, mean_bps, 1);
	stream_path_judge(&now, FIT_PRIOR_OTHERS);
	return stream_path_exceeds(&now, profile_fewest(&now.profile)->streams);
}

static bool add_probing(struct stream_control *s, const struct stream_control_sample *x)
{
	double was_s = s->level_s;
	struct steady_result r;
	bool full, early;

	s->unconnected += (x->unconnected - s->unconnected) * x->interval_s / (s->level_s +
	    s->starved_s + x->interval_s);
	if (x->starved)
		return add_starved(s, x);
	steady_add(&s->settle, x->rate_bps);
	s->level_s += x->interval_s;
	s->host_limited_s += x->host_limited ? x->interval_s : 0;
	full = s->level_s >= STREAM_CONTROL_LEVEL_S - STREAM_CONTROL_SAMPLE_S / 2;
	early = s->level_s >= fmax(STREAM_CONTROL_EARLY_S, STREAM_CONTROL_EARLY_RTTS * s->evidence.base_rtt_s) &&
	    floor(s->level_s / STREAM_CONTROL_EARLY_STEP_S) > floor(was_s / STREAM_CONTROL_EARLY_STEP_S);
	if ((!full && !early) || steady_result(&r, &s->settle) < 0 || (!full && !is_decided(s, r.mean_bps)))
		return false;
	stream_path_record(s, r.mean_bps, 1); /* not again soon if it ended early */
	return s->n_next > 0 ? probe_next(s) : conclude(s);
}

/* ---- Holding ---- */

/* The path changed: keeps the recent rate as the only level, and probes a second level. */
static bool path_changed(struct stream_control *s, int which)
{
	unsigned n = s->streams, beside = n >= 6 && n / 3 >= s->o.movers ? n / 3 : 3 * n;
	char now[UNITS_TEXT_BYTES], then[UNITS_TEXT_BYTES];
	bool other;

	if (beside > s->o.max_streams)
		beside = n < 2 ? s->o.max_streams : n < 8 ? 1 : n / 4;
	if (beside <= stream_path_least(s))
		beside = n > stream_path_least(s) ? stream_path_least(s) : s->o.max_streams;
	units_rate_text(now, s->recent_bps);
	units_rate_text(then, s->expected_bps);
	stream_path_change(s);
	other = probe_at(s, beside);
	snprintf(s->reason, sizeof s->reason,
	    "the path has changed: %u stream%s deliver%s %s, %s than %s; probing with %u", n,
	    plural(n), singular(n), now, which > 0 ? "more" : "less", then, beside);
	return other;
}

/* The level that has just been recorded goes on. */
static bool wait_for_budget(struct stream_control *s)
{
	if (s->saves)
		return conclude(s);
	s->level_s = fmax(s->hold_s - STREAM_CONTROL_WAIT_S, STREAM_CONTROL_SKIP_S);
	s->observed_s = s->observed_bps = 0;
	return false;
}

/* The largest level to probe again: the answer if it fills the path, or if competing flows are seen and one more stream
 * exceeds the budget. Beside competing flows otherwise the next level above the answer, and LEVER times the answer at
 * least. */
static unsigned probe_up_to(const struct stream_control *s)
{
	unsigned above = s->o.max_streams;
	size_t i;

	if (stream_path_is_filled(s) || stream_path_exceeds(s, s->streams + 1))
		return s->streams;
	if (!stream_path_sees_others(s))
		return s->o.max_streams;
	for (i = 0; i < s->profile.n; i++)
		if (s->profile.probe[i].streams > s->streams && s->profile.probe[i].streams < above)
			above = s->profile.probe[i].streams;
	return above > STREAM_CONTROL_LEVER * s->streams ? above : STREAM_CONTROL_LEVER * s->streams;
}

/* The hold time is over: probes the least known level, or a distant higher level. On a path with room lower levels are
 * useless. */
static bool reprobe(struct stream_control *s)
{
	const struct probe *room, *above, *worst;
	unsigned up = STREAM_CONTROL_LEVER * s->streams;
	bool alone;

	up = up < s->o.max_streams ? up : s->o.max_streams;
	stream_path_record(s, s->observed_bps, s->observed_s / PROFILE_RUN_S);
	s->recalled = false;
	room = profile_host_limited(&s->profile, &above);
	if (room == NULL && s->advised && probe_up_to(s) >= up && 4 * s->advice.fit.most < 3 * up &&
	    is_affordable(s, up))
		return probe_at(s, up);
	alone = stream_path_hosts_limit(s) || (s->advised && s->advice.n_curve > 0 && !stream_path_sees_others(s));
	worst = profile_worst(&s->profile, room != NULL || alone ? s->streams : stream_path_least(s), probe_up_to(s),
	    s->streams, STREAM_CONTROL_BELOW_WORTH);
	if (worst->streams == s->streams)
		return conclude(s);
	if (!is_affordable(s, worst->streams))
		return wait_for_budget(s);
	return probe_at(s, worst->streams);
}

/* Updates the recent rate; 1 or -1 after a lasting deviation from the expected rate. */
static int detect_change(struct stream_control *s, const struct stream_control_sample *x)
{
	double w = 1 - exp(-x->interval_s / STREAM_CONTROL_RECENT_S);

	s->recent_bps += w * (x->rate_bps - s->recent_bps);
	if (s->expected_bps > 0)
		return cusum_add(&s->watch, x->rate_bps, s->expected_bps, x->interval_s);
	if (s->level_s >= STREAM_CONTROL_DWELL_S)
		s->recent_bps = s->expected_bps = s->recalled ? s->predicted_bps : s->observed_bps;
	return 0;
}

/* The first seconds at a count, with few streams beside competing flows, are no measure of what is to be expected. */
static bool is_as_predicted(const struct stream_control *s)
{
	struct advice_point p;

	if (!s->advised || s->recalled || s->advice.n_curve == 0)
		return false;
	advice_at(&s->advice, s->streams, &p);
	return s->recent_bps >= p.throughput_low_bps && s->recent_bps <= p.throughput_high_bps;
}

static bool is_short(const struct stream_control *s)
{
	return s->advised && s->advice.n_curve > 0 && !s->recalled && s->level_s >= STREAM_CONTROL_DWELL_S &&
	    s->observed_bps < STREAM_CONTROL_SHORT_RATIO * s->predicted_bps;
}

/* A new count may show competing flows that fewer streams have not shown; few streams show whether competing flows fill
 * the queue. */
static bool is_unsure(const struct stream_control *s)
{
	return s->level_s >= (stream_path_sees_nobody(s) ? STREAM_CONTROL_DWELL_S : STREAM_CONTROL_UNSURE_S) &&
	    s->advised && s->advice.n_curve > 0 && !s->recalled && s->advice.others != ADVICE_OTHERS_SOME &&
	    profile_find(&s->profile, s->streams) == s->profile.n;
}

static bool add_holding(struct stream_control *s, const struct stream_control_sample *x)
{
	int which;

	if (x->starved)
		return false;
	s->level_s += x->interval_s;
	s->host_limited_s += x->host_limited ? x->interval_s : 0;
	if (s->level_s <= STREAM_CONTROL_SKIP_S)
		return false;
	s->observed_s += x->interval_s;
	s->observed_bps += (x->rate_bps - s->observed_bps) * x->interval_s / s->observed_s;
	which = detect_change(s, x);
	if (which != 0 && is_as_predicted(s)) {
		cusum_init(&s->watch, STREAM_CONTROL_DRIFT_RATIO, STREAM_CONTROL_DRIFT_S);
		s->expected_bps = s->recent_bps;
		which = 0;
	}
	s->contradicted |= which != 0 && s->recalled;
	if (which != 0)
		return s->recalled ? restart(s, "the path differs from an earlier transfer: probing") :
		    path_changed(s, which);
	if (is_short(s) || is_unsure(s)) {
		stream_path_record(s, s->observed_bps, s->observed_s / PROFILE_RUN_S);
		if (is_short(s))
			stream_path_forget_similar(s);
		return conclude(s);
	}
	return s->level_s >= s->hold_s && reprobe(s);
}

/* ---- Interface ---- */

void stream_control_init(struct stream_control *s, const struct stream_control_opts *o)
{
	*s = (struct stream_control){ .o = *o };
	if (o->max_streams <= 1 || o->budget_ratio <= 0) {
		s->phase = STREAM_CONTROL_FIXED;
		s->streams = s->target = 1;
		return;
	}
	stream_path_plan(s);
	probe_next(s);
	s->reason[0] = '\0';
}

void stream_control_recall(struct stream_control *s, const struct probe *p, size_t count, const struct evidence *e)
{
	struct advice_point at;
	unsigned n;

	if (s->phase == STREAM_CONTROL_FIXED || count > PROFILE_MAX)
		return;
	profile_recall(&s->profile, p, count);
	if (e->n == count)
		s->evidence = *e;
	if (!stream_path_judge(s, 0)) {
		s->profile.n = 0;
		s->evidence = (struct evidence){ .n = 0 };
		return;
	}
	s->recalled = true;
	s->hold_s = 2 * STREAM_CONTROL_FIRST_HOLD_S; /* known already, and long enough to be contradicted */
	s->n_next = 0;
	n = s->advice.streams;
	advice_at(&s->advice, n, &at);
	hold(s, n, at.throughput_bps, at.impact_ratio);
	s->streams = s->target; /* none has started */
}

bool stream_control_movers(struct stream_control *s, unsigned movers)
{
	unsigned before = s->o.movers;

	s->o.movers = movers;
	if (movers == before || s->phase == STREAM_CONTROL_FIXED || (s->phase == STREAM_CONTROL_HOLDING && s->advised &&
	    s->advice.others == ADVICE_OTHERS_SOME && s->answer < before && s->answer < movers))
		return false;
	restart(s, "");
	snprintf(s->reason, sizeof s->reason, "%u mover%s: probing with %u streams", movers, plural(movers), s->target);
	return true;
}

bool stream_control_members(struct stream_control *s, unsigned members, double budget_ratio)
{
	unsigned before = s->streams;
	double hold_s = s->hold_s;

	if (s->phase == STREAM_CONTROL_FIXED || (members == s->o.members && !(budget_ratio < s->o.budget_ratio) &&
	    !(budget_ratio > s->o.budget_ratio)))
		return false;
	s->o.members = members;
	s->o.budget_ratio = budget_ratio;
	if (s->phase == STREAM_CONTROL_HOLDING && s->advised)
		conclude(s);
	else
		request(s, s->target);
	if (s->hold_s > hold_s)
		s->hold_s = hold_s;
	return s->streams != before;
}

bool stream_control_most(struct stream_control *s, unsigned max_streams)
{
	unsigned before = s->streams;

	if (max_streams == s->o.max_streams)
		return false;
	s->o.max_streams = max_streams;
	if (s->o.budget_ratio <= 0)
		return false;
	if (s->phase == STREAM_CONTROL_HOLDING && s->advised) {
		conclude(s);
	} else if (max_streams <= 1) {
		s->phase = STREAM_CONTROL_FIXED;
		request(s, 1);
	} else {
		stream_path_plan(s);
		probe_next(s);
	}
	return s->streams != before;
}

/* Streams above the target leave gradually. */
static bool leave(struct stream_control *s, double interval_s)
{
	bool alone = stream_path_sees_nobody(s);
	unsigned surplus = s->streams - s->target;

	s->leave_s += interval_s;
	if (s->leave_s < (alone ? STREAM_CONTROL_LEAVE_ALONE_S : STREAM_CONTROL_LEAVE_S))
		return false;
	s->leave_s = 0;
	s->streams -= alone ? surplus / 8 + (surplus < 8) : (surplus + 1) / 2;
	return true;
}

/* Whether enough streams are connected for a level of its own. With movers all streams must be connected. */
static bool is_complete(struct stream_control *s, const struct stream_control_sample *x)
{
	if (x->unconnected == 0)
		return true;
	s->connecting_s += x->interval_s;
	return s->phase == STREAM_CONTROL_PROBING && s->o.movers <= 1 && s->connecting_s > STREAM_CONTROL_CONNECT_S &&
	    STREAM_CONTROL_UNCONNECTED * x->unconnected <= s->streams &&
	    profile_find(&s->profile, s->streams - x->unconnected) == s->profile.n;
}

/* Samples that deliver nothing become a part of the next one. After an outage the level begins again, with the rate
 * expected before. */
static enum outage_verdict pass_outage(struct stream_control *s, struct stream_control_sample *x)
{
	double interval_s = x->interval_s;
	enum outage_verdict v;

	x->kernel.interval_s = interval_s;
	v = outage_add(&s->outage, &x->kernel, !(x->rate_bps > 0) && !(x->kernel.delivered_bytes > 0) && !x->starved);
	x->interval_s = x->kernel.interval_s;
	x->rate_bps *= interval_s / x->interval_s;
	if (v != OUTAGE_LASTS)
		return v;
	request(s, s->target);
	if (s->expected_bps > 0)
		s->recent_bps = s->expected_bps;
	cusum_init(&s->watch, STREAM_CONTROL_DRIFT_RATIO, STREAM_CONTROL_DRIFT_S);
	return v;
}

bool stream_control_add(struct stream_control *s, const struct stream_control_sample *sample)
{
	struct stream_control_sample joined = *sample, *x = &joined;

	impact_budget_pass(&s->spent, s->streams, x->interval_s);
	if (s->phase == STREAM_CONTROL_PROBING)
		s->probed_s += x->interval_s;
	if (pass_outage(s, x) != OUTAGE_NONE)
		return false;
	if (s->streams > s->target)
		return leave(s, x->interval_s);
	if (!x->steady || !is_complete(s, x))
		return false;
	if (!x->starved)
		evidence_watch_add(&s->kernel, &s->evidence, &x->kernel);
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
