/* Levels of a transfer, and the judgment of the path by these levels. */
#include <math.h>

#include "model/parameters.h"
#include "model/stream_control.h"

/* ---- Stream counts ---- */

static unsigned max_of(unsigned a, unsigned b) { return a > b ? a : b; }
static unsigned min_of(unsigned a, unsigned b) { return a < b ? a : b; }

unsigned stream_levels_round(unsigned streams, unsigned movers, unsigned most)
{
	movers = max_of(movers, 1);
	return min_of((streams + movers - 1) / movers * movers, most);
}

void stream_levels_first(unsigned out[STREAM_LEVELS], unsigned movers, unsigned most, bool bbr)
{
	static const unsigned level[] = ADVICE_LEVELS;
	unsigned first = stream_levels_round(level[0], movers, most), few = max_of(first / 4, 1);
	unsigned second = stream_levels_round(max_of(level[1], STREAM_LEVELS_APART * first), movers, most);

	out[0] = bbr && movers <= 1 ? few : first;
	out[1] = bbr && movers <= 1 ? first : bbr || second == first ? few : second;
}

unsigned stream_path_least(const struct stream_control *s)
{
	return min_of(max_of(s->o.members, 1), s->o.max_streams);
}

/* ---- Levels ---- */

/* Forgets all levels, and the latest answer; s->advice remains until the next judgment. */
static void stream_path_forget(struct stream_control *s)
{
	s->n_next = s->profile.n = 0;
	s->evidence = (struct evidence){ .n = 0 };
	s->answer = 0;
	s->recalled = s->saves = false;
	s->hold_s = STREAM_CONTROL_FIRST_HOLD_S;
	cusum_init(&s->watch, STREAM_CONTROL_DRIFT_RATIO, STREAM_CONTROL_DRIFT_S);
}

void stream_path_change(struct stream_control *s)
{
	double base_rtt_s = s->evidence.base_rtt_s;

	stream_path_forget(s);
	s->evidence.base_rtt_s = base_rtt_s; /* the kernel would tell it again */
	s->kernel.n = 0;                     /* samples of the earlier path */
	stream_path_record(s, s->recent_bps, 1);
}

void stream_path_plan(struct stream_control *s)
{
	unsigned least = stream_path_least(s);

	stream_path_forget(s);
	s->advised = false;
	stream_levels_first(s->next, s->o.movers, s->o.max_streams, s->o.congestion == ADVICE_CC_BBR);
	if (least > 1) {
		s->next[0] = max_of(s->next[0], least);
		s->next[1] = max_of(s->next[1], min_of(STREAM_LEVELS_APART * least, s->o.max_streams));
	}
	s->n_next = STREAM_LEVELS;
}

/* Streams on a part of the hosts may fill the queues of these hosts, which tells nothing about the path. */
static void forget_queue(struct evidence_level *l)
{
	l->rtt_s = l->low_rtt_s = l->loss_ratio = -1;
	l->loss_events = 0;
}

void stream_path_record(struct stream_control *s, double mean_bps, double runs)
{
	unsigned streams = s->streams - (unsigned)(s->unconnected + 0.5);
	struct steady_result r = { 0, mean_bps, 0 };
	size_t i;

	s->recorded++;
	s->recorded_streams = streams;
	profile_add(&s->profile, streams, mean_bps, runs, 2 * s->host_limited_s > s->level_s);
	if (!(s->evidence.base_rtt_s > 0))
		return;
	/* The kernel's view is of the latest run, the rate of all runs. */
	evidence_add_level(&s->evidence, &s->kernel, streams, &r, 0);
	for (i = 0; i < s->evidence.n; i++) {
		struct evidence_level *l = &s->evidence.level[i];
		size_t known = profile_find(&s->profile, l->probe.streams);

		if (known < s->profile.n) {
			l->probe.throughput_bps = s->profile.probe[known].throughput_bps;
			l->lag_ratio = probe_error_ratio(&s->profile.probe[known]);
			l->time_s = PROFILE_RUN_S * s->profile.runs[known];
			l->probe.error_bps = STREAM_PATH_RUN_ERROR *
			    l->probe.throughput_bps / sqrt(s->profile.runs[known]);
		}
		if (l->probe.streams < s->o.movers)
			forget_queue(l);
	}
}

void stream_path_forget_similar(struct stream_control *s)
{
	size_t i;

	for (i = s->profile.n; i-- > 0;) {
		unsigned n = s->profile.probe[i].streams;

		if (n == s->streams || n > STREAM_PATH_SIMILAR * s->streams || s->streams > STREAM_PATH_SIMILAR * n ||
		    s->profile.runs[i] > 1)
			continue;
		evidence_drop_level(&s->evidence, n);
		profile_drop(&s->profile, i);
	}
}

/* ---- Judgment ---- */

/* The largest level with fewer streams than movers, and the smallest of the others; NULL: none. */
static const struct probe *around_movers(const struct stream_control *s, const struct probe **above)
{
	const struct probe *p, *below = NULL;

	*above = NULL;
	for (p = s->profile.probe; p < s->profile.probe + s->profile.n; p++)
		if (p->streams < s->o.movers && (below == NULL || p->streams > below->streams))
			below = p;
		else if (p->streams >= s->o.movers && (*above == NULL || p->streams < (*above)->streams))
			*above = p;
	return below;
}

/* The rate grows with the number of hosts in use. */
static bool is_in_proportion(const struct stream_control *s)
{
	const struct probe *above, *below = around_movers(s, &above);

	return below != NULL && above != NULL &&
	    above->throughput_bps / s->o.movers >= STREAM_PATH_SAME_HOSTS_RATIO *
	    below->throughput_bps / below->streams;
}

static unsigned levels_from(const struct profile *known, unsigned streams)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < known->n; i++)
		n += known->probe[i].streams >= streams;
	return n;
}

/* Levels that show the hosts only, if others show the path. */
static void drop_below(struct evidence *seen, struct profile *known, unsigned movers)
{
	size_t i;

	for (i = levels_from(known, movers) < 2 ? 0 : known->n; i-- > 0;)
		if (known->probe[i].streams < movers) {
			evidence_drop_level(seen, known->probe[i].streams);
			profile_drop(known, i);
		}
}

/* Fair share only: with many levels a rival may fit the noise better, but predicts no better. */
bool stream_path_judge(struct stream_control *s, double prior_others)
{
	struct evidence seen = s->evidence;
	struct profile known = s->profile;
	struct advice_opts o;

	s->spent.recovery_s = evidence_recovery_s(&s->evidence);
	advice_opts_init(&o);
	o.model = FIT_FAIR_SHARE;
	o.prior_others = prior_others;
	o.budget_ratio = s->o.budget_ratio;
	o.max_streams = s->o.max_streams;
	o.congestion = s->o.congestion;
	o.base_streams = stream_path_least(s);
	o.unseen_flow = false; /* a transfer takes what it can while no competing flow is seen, and goes on watching */
	if (is_in_proportion(s))
		drop_below(&seen, &known, s->o.movers);
	s->advised = (seen.base_rtt_s > 0 ? advice_from_evidence(&s->advice, &seen, &o, NULL) :
	    advice_from_probes(&s->advice, known.probe, known.n, &o, NULL)) == 0;
	return s->advised;
}

bool stream_path_sees_others(const struct stream_control *s)
{
	return s->advised && s->advice.n_curve > 0 && s->advice.others == ADVICE_OTHERS_SOME;
}

bool stream_path_sees_nobody(const struct stream_control *s)
{
	return s->advised && s->advice.n_curve > 0 && s->advice.others == ADVICE_OTHERS_NONE;
}

bool stream_path_is_open(const struct stream_control *s)
{
	return s->o.movers <= 1 && s->advice.n_curve > 0 && s->advice.others == ADVICE_OTHERS_UNKNOWN &&
	    profile_find(&s->profile, stream_path_least(s)) == s->profile.n;
}

bool stream_path_tries_one(const struct stream_control *s)
{
	return s->answer == stream_path_least(s) && s->saves && stream_path_is_open(s);
}

bool stream_path_exceeds(const struct stream_control *s, unsigned streams)
{
	struct advice_point p;

	if (!stream_path_sees_others(s))
		return false;
	advice_at(&s->advice, streams, &p);
	return p.impact_low_ratio > s->o.budget_ratio;
}

bool stream_path_is_filled(const struct stream_control *s)
{
	struct advice_point now, most;

	if (!s->advised || s->advice.n_curve == 0 || s->o.movers > 1 || s->advice.fit.most <= s->streams)
		return false;
	advice_at(&s->advice, s->streams, &now);
	advice_at(&s->advice, min_of(s->o.max_streams, s->advice.n_curve), &most);
	return now.mean_bps >= STREAM_PATH_FILLED_RATIO * most.mean_bps;
}

bool stream_path_hosts_limit(const struct stream_control *s)
{
	return s->advised && s->advice.others != ADVICE_OTHERS_SOME && is_in_proportion(s);
}

/* As many for each transfer of a group: more than `streams` where the budget permits, else fewer. */
static unsigned for_each_member(const struct stream_control *s, unsigned streams)
{
	unsigned least = stream_path_least(s), up;
	struct advice_point at;

	up = stream_levels_round(max_of(streams, least), least, s->o.max_streams);
	advice_at(&s->advice, up, &at);
	return at.impact_ratio <= s->o.budget_ratio ? up : max_of(streams - streams % least, least);
}

unsigned stream_path_answer(const struct stream_control *s)
{
	unsigned n = s->advice.streams;

	if (s->o.members > 1)
		n = for_each_member(s, n);
	return stream_path_sees_nobody(s) || stream_path_hosts_limit(s) ?
	    stream_levels_round(n, s->o.movers, s->o.max_streams) : n;
}

unsigned stream_path_below(const struct stream_control *s)
{
	const struct probe *above;

	return stream_path_answer(s) < s->o.movers && s->advice.others != ADVICE_OTHERS_SOME &&
	    around_movers(s, &above) == NULL && above != NULL ? s->o.movers / 2 : 0;
}
