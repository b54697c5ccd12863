/* Probes several levels (numbers of streams), each until its rate is steady, then advises; probes further levels
 * while they improve the fit and time remains. Each level keeps the streams of the level before and adds streams,
 * because slow start dominates the first seconds of a fresh group; tests/bench/advice/README.md compares the
 * predictions. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/opts.h"
#include "core/units.h"
#include "measure/prober.h"
#include "model/advice.h"
#include "model/probe.h"
#include "model/recalled.h"
#include "net/sock.h"

#define SAMPLE_NS (100 * NS_PER_MS)
#define MAX_BYTES (UINT64_C(16) << 30) /* limit of a level */

/* Acknowledged bytes of the streams from earlier levels, and of the streams that this level added. */
struct share {
	uint64_t older, younger;
};

/* What the levels so far have shown. */
struct shown {
	struct evidence evidence;
	struct ptcp_probe probes[PTCP_PROBES_MAX];
	size_t n_probes;
	enum limit limit;       /* limit of the largest level */
	unsigned limit_streams; /* streams of the largest level */
	bool partly_limited;    /* a host, or limit_is_partial(), at a level */
};

struct advise {
	struct prober base;
	struct ptcp_advice_opts o;
	struct mono started;
	struct mono tells; /* when the answer so far is due */
	unsigned level[PTCP_PROBES_MAX];
	size_t n_levels, at;
	bool recalled;     /* the probes are from the history, */
	double age_s;      /* their age */
	bool checks;       /* the present level checks the recalled answer */
	bool contradicted; /* a check did not agree */
	/* the present level: */
	struct mono begun, sampled;
	double longest_s;
	uint64_t acked, acked_first;
	struct tcpinfo first[PTCP_STREAMS_MAX];
	bool seen[PTCP_STREAMS_MAX];
	unsigned older;      /* streams from earlier levels; 0: a fresh group */
	struct steady settle;
	struct limit_times times;
	struct evidence_sample total; /* counters of the level so far */
	struct loss_events events[PTCP_STREAMS_MAX];
	double lost[PTCP_STREAMS_MAX]; /* segments so far */
	struct evidence_watch watch;
	struct share at_half, at_end; /* shares at half of the level's max duration, and at the last sample */
	/* results */
	struct shown shown;
	struct ptcp_advice advice;
	bool advised;
};

static struct advise *of(struct prober *b)
{
	return CONTAINER_OF(b, struct advise, base);
}

/* ---- One level ---- */

/* Max duration of a level, if time is not short. */
static double max_s(const struct advise *a, unsigned streams)
{
	return a->checks ? HISTORY_CHECK_S : a->o.probe_s > 0 ? a->o.probe_s : probe_max_s(streams);
}

/* Time left for probing; INFINITY: the options set no limit. */
static double left_s(const struct advise *a)
{
	return a->o.time_s > 0 ? a->o.time_s - (double)mono_diff_ns(mono_now(), a->started) / 1e9 : INFINITY;
}

static double share_s(const struct advise *a)
{
	double longest_s[PTCP_PROBES_MAX];
	size_t i;

	for (i = a->at; i < a->n_levels; i++)
		longest_s[i - a->at] = max_s(a, a->level[i]);
	return probe_share_s(longest_s, a->n_levels - a->at, left_s(a));
}

static void start_level(struct advise *a, unsigned older)
{
	a->older = older;
	a->at_half = (struct share){ 0 };
	a->settle.n = 0;
	a->times = (struct limit_times){ 0 };
	a->total = (struct evidence_sample){ 0 };
	memset(a->events, 0, sizeof a->events);
	memset(a->lost, 0, sizeof a->lost);
	a->watch.n = 0;
	probe_session_level(a->base.session, a->level[a->at], UINT64_MAX);
}

/* Before the streams send, their handshakes see the queue of competing flows. */
static void observe_idle(struct advise *a)
{
	struct tcpinfo now;
	double sum_s = 0;
	unsigned i, n = 0;

	if (a->base.receives || a->shown.evidence.n > 0)
		return;
	for (i = 0; i < a->level[a->at] && i < PTCP_STREAMS_MAX; i++)
		if (probe_session_tcpinfo(a->base.session, i, &now) && now.min_rtt_s > 0) {
			sum_s += now.min_rtt_s;
			n++;
		}
	if (n > 0)
		a->shown.evidence.idle_rtt_s = sum_s / n;
	if (tcpinfo_read(&now, session_control_fd(a->base.session)) == 0 && now.min_rtt_s > 0)
		a->shown.evidence.base_rtt_s = now.min_rtt_s;
}

static void add_stream(struct advise *a, struct evidence_sample *t, unsigned i, const struct tcpinfo *now,
    double interval_s)
{
	const struct tcpinfo *first = &a->first[i];
	double lost = (double)(now->retransmits - first->retransmits);

	if (now->min_rtt_s > 0 && (t->min_rtt_s == 0 || now->min_rtt_s < t->min_rtt_s))
		t->min_rtt_s = now->min_rtt_s;
	t->delivered_bytes += (double)(now->delivered_bytes - first->delivered_bytes);
	t->sent_segments += (double)(now->sent_segments - first->sent_segments);
	t->lost_segments += lost;
	t->loss_events += loss_events_of(&a->events[i], lost - a->lost[i], now->rtt_s, interval_s);
	a->lost[i] = lost;
	t->busy_s += now->busy_s - first->busy_s;
	t->window_s += now->window_s - first->window_s + now->buffer_s - first->buffer_s;
}

/* Adds the interval between two totals; rtt_s is a sum over n streams. */
static void watch(struct advise *a, const struct evidence_sample *t, double rtt_s, unsigned n, double interval_s)
{
	const struct evidence_sample *was = &a->total;

	if (interval_s > 0 && n > 0)
		evidence_watch_add(&a->watch, &a->shown.evidence, &(struct evidence_sample){ .interval_s = interval_s,
		    .delivered_bytes = t->delivered_bytes - was->delivered_bytes,
		    .sent_segments = t->sent_segments - was->sent_segments,
		    .lost_segments = t->lost_segments - was->lost_segments, .rtt_s = rtt_s / n,
		    .min_rtt_s = t->min_rtt_s, .busy_s = t->busy_s - was->busy_s,
		    .window_s = t->window_s - was->window_s, .loss_events = t->loss_events });
	a->total = *t;
}

/* Samples all streams of the level; returns the sum of acknowledged bytes. */
static uint64_t sample(struct advise *a, double elapsed_s, double interval_s)
{
	uint64_t acked = 0, unused;
	struct evidence_sample t = { 0 };
	struct tcpinfo now;
	double rtt_s = 0;
	unsigned i, n = 0;

	a->times = (struct limit_times){ 0 };
	a->at_end = (struct share){ 0 };
	for (i = 0; i < a->level[a->at] && i < PTCP_STREAMS_MAX; i++) {
		if (!probe_session_tcpinfo(a->base.session, i, &now))
			continue;
		if (!a->seen[i]) {
			a->first[i] = now;
			a->seen[i] = true;
			strcpy(a->advice.congestion, now.congestion);
		}
		acked += now.acked_bytes;
		add_stream(a, &t, i, &now, interval_s);
		rtt_s += now.rtt_s;
		n++;
		*(i < a->older ? &a->at_end.older : &a->at_end.younger) += now.acked_bytes;
		a->times.elapsed_s += elapsed_s;
		a->times.busy_s += now.busy_s - a->first[i].busy_s;
		a->times.window_s += now.window_s - a->first[i].window_s;
		a->times.buffer_s += now.buffer_s - a->first[i].buffer_s;
	}
	if (a->base.receives)
		probe_session_reported(a->base.session, &a->times, &unused);
	else
		watch(a, &t, rtt_s, n, interval_s);
	return acked;
}

static void on_begun(void *arg)
{
	struct advise *a = arg;

	memset(a->seen, 0, sizeof a->seen);
	a->begun = a->sampled = mono_now();
	a->longest_s = a->checks ? max_s(a, a->level[a->at]) : share_s(a);
	observe_idle(a);
	a->acked = a->acked_first = sample(a, 0, 0);
	timer_set(a->base.timer, mono_add_ns(a->begun, SAMPLE_NS));
}

/* ---- From level to level ---- */

/* The answer to what was shown. */
static int answer(struct ptcp_advice *out, const struct advise *a, const struct shown *s, struct ptcp_err *e)
{
	struct ptcp_advice_opts o = a->o;
	int r;

	o.congestion = a->advice.congestion;
	if ((r = advice_of_probes(out, s->probes, s->n_probes, &s->evidence, &o, e)) < 0)
		return r;
	out->yields = a->base.session != NULL && session_lacks_congestion(a->base.session);
	if (out->yields || (!a->base.receives && out->congestion_advice != NULL &&
	    !sock_permits_congestion(out->congestion_advice)))
		out->congestion_advice = NULL;
	out->limit = (enum ptcp_limit)s->limit;
	out->limit_advice = limit_advice(s->limit);
	if (out->limit_advice != NULL)
		advice_of_hosts(out);
	else if (s->partly_limited)
		out->warnings |= ADVICE_WARN_HOST_LIMITED;
	out->confident &= !s->partly_limited;
	return 0;
}

static int advise(struct advise *a, struct ptcp_err *e)
{
	struct ptcp_advice found;
	int r;

	ptcp_advice_init(&found);
	if ((r = answer(&found, a, &a->shown, e)) == 0) {
		a->advice = found;
		a->advised = true;
	}
	return r;
}

/* Adds the level that the fit needs most, while time remains. */
static void add_level(struct advise *a)
{
	unsigned granted = probe_session_granted(a->base.session), n = a->advice.next_probe;

	if (n > 0 && a->n_levels < PTCP_PROBES_MAX &&
	    (double)mono_diff_ns(mono_now(), a->started) < 1e9 * PROBE_LAST_START * max_s(a, 1) &&
	    left_s(a) >= PROBE_MIN_S)
		a->level[a->n_levels++] = n < granted ? n : granted;
}

static void next_level(struct advise *a)
{
	struct ptcp_err why;

	if (++a->at == a->n_levels) {
		if (advise(a, &why) < 0) {
			prober_fail(&a->base, &why);
			return;
		}
		add_level(a);
	}
	if (a->at < a->n_levels && a->level[a->at] > a->level[a->at - 1])
		start_level(a, a->level[a->at - 1]);
	else
		probe_session_clear(a->base.session);
}

/* Throughput per older stream over throughput per added stream, in the second half of the level; 1 for a shorter
 * level. */
static double older_ratio(const struct advise *a)
{
	double older = (double)(a->at_end.older - a->at_half.older) / a->older;
	double younger = (double)(a->at_end.younger - a->at_half.younger) / (a->level[a->at] - a->older);

	return a->at_half.older > 0 && younger > 0 ? older / younger : 1;
}

/* Adds the steady rate of the present level. */
static void add_level_to(struct shown *out, const struct advise *a, const struct steady_result *s)
{
	struct ptcp_probe *last = &out->probes[out->n_probes];
	enum limit l = limit_of(&a->times);
	struct probe p, before;

	if (a->level[a->at] >= out->limit_streams) {
		out->limit = l;
		out->limit_streams = a->level[a->at];
	}
	out->partly_limited |= limit_advice(l) != NULL || limit_is_partial(&a->times);
	evidence_add_level(&out->evidence, &a->watch, a->level[a->at], s, a->older > 0 ? older_ratio(a) : 0);
	probe_of_steady(&p, a->level[a->at], s);
	if (a->older > 0) {
		before = probe_of_public(&last[-1]);
		probe_grew(&before, &p, older_ratio(a));
		last[-1].error_bps = before.error_bps;
	}
	*last = probe_to_public(&p);
	out->n_probes++;
}

/* Tells the answer to the levels so far and to the present one, which goes on. */
static void tell_so_far(struct advise *a)
{
	struct shown so_far = a->shown;
	struct ptcp_advice found;
	struct steady_result s;

	ptcp_advice_init(&found);
	if (a->checks || a->base.told == NULL || steady_result(&s, &a->settle) < 0)
		return;
	add_level_to(&so_far, a, &s);
	if (answer(&found, a, &so_far, NULL) < 0)
		return;
	log_at(a->base.log, LOG_INFO, "advice", "so_far=1 streams=%u throughput_bps=%.0f low_bps=%.0f high_bps=%.0f",
	    found.streams, found.throughput_bps, found.throughput_low_bps, found.throughput_high_bps);
	a->base.told(a->base.told_arg, &found);
}

/* The levels of the options, or the default. */
static int take_levels(struct advise *a, struct ptcp_err *e)
{
	static const unsigned defaults[] = ADVICE_PROBES;
	const unsigned *level = a->o.n_levels > 0 ? a->o.levels : defaults;
	double least_s;
	size_t i;

	a->n_levels = a->o.n_levels > 0 ? a->o.n_levels : sizeof defaults / sizeof *defaults;
	if (a->o.probe_s != 0 && !(a->o.probe_s >= PROBE_MIN_S && a->o.probe_s <= PROBE_LONGEST_S))
		return err_set(e, PTCP_EUSAGE,
		    "duration of a probe: must be %g to %g s (give another, or 0 for the default)",
		    PROBE_MIN_S, PROBE_LONGEST_S);
	least_s = PROBE_MIN_S * (double)a->n_levels + (a->o.history ? HISTORY_CHECK_S : 0);
	if (a->o.time_s != 0 && !(a->o.time_s >= least_s))
		return err_set(e, PTCP_EUSAGE, "time of probing: %zu numbers of streams take %g s at least (give more "
		    "time, or fewer numbers)", a->n_levels, least_s);
	if (a->n_levels > PTCP_PROBES_MAX)
		return err_set(e, PTCP_EUSAGE, "probes: more than %d (leave some out)", PTCP_PROBES_MAX);
	for (i = 0; i < a->n_levels; i++) {
		if (level[i] < 1 || level[i] > PTCP_STREAMS_MAX)
			return err_set(e, PTCP_EUSAGE, "probe with %u streams: must be 1 to %d", level[i],
			    PTCP_STREAMS_MAX);
		a->level[i] = level[i];
		if (level[i] > a->base.max_streams)
			a->base.max_streams = level[i];
	}
	return 0;
}

/* ---- Answers from the history ---- */

static struct advice_point point_of_public(const struct ptcp_advice_point *p)
{
	return (struct advice_point){ p->throughput_bps, p->throughput_low_bps, p->throughput_high_bps,
		p->impact_percent / 100, p->impact_low_percent / 100, p->impact_high_percent / 100,
		p->impact_total_percent / 100, p->throughput_bps };
}

static void recall_point(const struct recalled *r, struct ptcp_advice_point *p, unsigned streams)
{
	struct advice_point now = point_of_public(p);

	recalled_point(r, &now, streams);
	p->throughput_bps = now.throughput_bps;
	p->throughput_low_bps = now.throughput_low_bps;
	p->throughput_high_bps = now.throughput_high_bps;
	p->impact_low_percent = now.impact_low_ratio * 100;
	p->impact_high_percent = now.impact_high_ratio * 100;
}

static void take_history(struct ptcp_advice *a, const struct recalled *r, const struct probe *check, double age_s)
{
	struct ptcp_advice_point answer;
	unsigned n, most = a->n_curve > 0 ? a->n_curve : PTCP_ADVICE_CURVE;
	size_t i;

	for (n = 1; n <= most; n++) {
		struct ptcp_advice_point p;

		ptcp_advice_at(a, n, &p);
		recall_point(r, &p, n);
		a->curve[n - 1] = p;
	}
	a->n_curve = most;
	ptcp_advice_at(a, a->streams, &answer);
	a->throughput_bps = answer.throughput_bps;
	a->throughput_low_bps = answer.throughput_low_bps;
	a->throughput_high_bps = answer.throughput_high_bps;
	a->impact_low_percent = answer.impact_low_percent;
	a->impact_high_percent = answer.impact_high_percent;
	for (i = 0; i < PTCP_CHOICES; i++)
		a->choices[i].throughput_bps *= r->factor;
	a->others = PTCP_OTHERS_UNKNOWN;
	a->warnings |= ADVICE_WARN_HISTORY;
	a->confident = false;
	a->next_probe = 0; /* probing tells more */
	a->from_history = true;
	a->age_s = age_s;
	a->check_bps = check->throughput_bps;
}

/* Forgets the probes, and begins with the first level. */
static void forget(struct advise *a)
{
	struct ptcp_err unused;

	a->recalled = a->advised = false;
	a->shown = (struct shown){ 0 };
	a->at = 0;
	if (a->o.n_levels == 0)
		take_levels(a, &unused); /* as in advise_new() */
}

/* The check of a changed path is no evidence, as its streams have not settled: all levels follow. */
static void end_check(struct advise *a, const struct steady_result *s)
{
	struct ptcp_advice_point point;
	struct advice_point told;
	struct recalled r;
	struct probe check;

	a->checks = false;
	probe_of_steady(&check, a->level[a->at], s);
	ptcp_advice_at(&a->advice, check.streams, &point);
	told = point_of_public(&point);
	if (recalled_agrees(&told, &check)) {
		recalled_of(&r, &told, &check, a->age_s);
		take_history(&a->advice, &r, &check, a->age_s);
		a->advised = true;
		a->at = a->n_levels;
	} else {
		log_at(a->base.log, LOG_INFO, "history", "streams=%u told_bps=%.0f now_bps=%.0f age_s=%.0f "
		    "why=\"the path has changed since\"", check.streams, told.throughput_bps, check.throughput_bps,
		    a->age_s);
		forget(a);
		a->contradicted = true;
	}
	probe_session_clear(a->base.session);
}

/* Levels or durations in the options are always probed. */
static void recall(struct prober *b, const struct history_entry *h, double age_s)
{
	struct advise *a = of(b);
	size_t i;

	if (!a->o.history || a->o.n_levels > 0 || a->o.probe_s > 0)
		return;
	for (i = 0; i < h->n_probes; i++)
		a->shown.probes[i] = probe_to_public(&h->probe[i]);
	a->shown.n_probes = h->n_probes;
	a->shown.evidence = h->evidence;
	a->shown.limit = h->limit;
	a->shown.partly_limited = h->partly_limited;
	strcpy(a->advice.congestion, h->key.congestion);
	a->age_s = age_s;
	a->recalled = true;
}

/* False: the history has no answer, or one that this session cannot check. */
static bool start_check(struct advise *a)
{
	a->checks = a->recalled && advise(a, NULL) == 0 && a->advice.limit_advice == NULL &&
	    a->advice.streams <= probe_session_granted(a->base.session);
	if (!a->checks) {
		forget(a);
		return false;
	}
	a->advised = false; /* not yet */
	a->level[0] = a->advice.streams;
	a->n_levels = 1;
	start_level(a, 0);
	return true;
}

static void end_level(struct advise *a)
{
	char text[EVIDENCE_TEXT_BYTES];
	struct steady_result s;
	struct ptcp_err why;

	timer_set(a->base.timer, MONO_NEVER);
	if (steady_result(&s, &a->settle) < 0) {
		err_set(&why, PTCP_ETIMEOUT, "probe with %u streams: no data arrived (check the connection to the "
		    "other host with ptcp send)", a->level[a->at]);
		prober_fail(&a->base, &why);
		return;
	}
	if (a->checks) {
		end_check(a, &s);
		return;
	}
	add_level_to(&a->shown, a, &s);
	log_at(a->base.log, LOG_DEBUG, "evidence", "%s", evidence_text(text, &a->shown.evidence, a->level[a->at]));
	next_level(a);
}

static void on_advise_timer(void *arg)
{
	struct advise *a = arg;
	struct mono now = mono_now();
	uint64_t elapsed = mono_diff_ns(now, a->begun), step = mono_diff_ns(now, a->sampled);
	uint64_t acked = sample(a, (double)elapsed / 1e9, (double)step / 1e9);

	steady_add(&a->settle, 8e9 * (double)(acked - a->acked) / (double)step);
	log_at(a->base.log, LOG_DEBUG, "probe", "streams=%u elapsed_s=%.3f rate_bps=%.0f",
	    a->level[a->at], (double)elapsed / 1e9, 8e9 * (double)(acked - a->acked) / (double)step);
	a->acked = acked;
	a->sampled = now;
	if ((double)elapsed >= 1e9 * a->longest_s / 2 && a->at_half.younger == 0)
		a->at_half = a->at_end;
	if (probe_is_done(&a->settle, (double)elapsed / 1e9, evidence_watch_cycle_s(&a->watch,
	    &a->shown.evidence, a->level[a->at]), a->longest_s) || a->acked - a->acked_first >= MAX_BYTES) {
		end_level(a);
		return;
	}
	timer_set(a->base.timer, mono_add_ns(now, SAMPLE_NS));
	if (now.ns >= a->tells.ns) {
		a->tells = mono_add_ns(now, (uint64_t)(1e9 * ADVICE_AGAIN_S));
		tell_so_far(a);
	}
}

static void on_clear(void *arg)
{
	struct advise *a = arg;

	if (a->at < a->n_levels)
		start_level(a, 0);
	else
		probe_session_finish(a->base.session);
}

static const struct probe_session_ops probe_session_ops = { on_begun, prober_ended, on_clear };

static void running(struct prober *b, struct session *sess)
{
	struct advise *a = of(b);
	unsigned max = 0;
	size_t i;

	a->started = mono_now();
	a->tells = mono_add_ns(a->started, (uint64_t)(1e9 * ADVICE_FIRST_S));
	for (i = 0; i < a->n_levels; i++)
		max = a->level[i] > max ? a->level[i] : max;
	if (prober_begin(b, sess, &probe_session_ops, on_advise_timer, max) && !start_check(a))
		start_level(a, 0);
}

static const struct prober_ops ops = { .running = running, .free = prober_free, .recall = recall };

/* Finds options that cannot be answered before probing, with made-up probes. */
static int try_advice(const struct advise *a, struct ptcp_err *e)
{
	struct ptcp_probe made_up[PTCP_PROBES_MAX];
	struct ptcp_advice unused;
	size_t i;

	for (i = 0; i < a->n_levels; i++)
		made_up[i] = (struct ptcp_probe){ a->level[i], a->level[i], NAN };
	ptcp_advice_init(&unused);
	return ptcp_advice_from_probes(&unused, made_up, a->n_levels, &a->o, e);
}

int advise_new(struct prober **out, const struct ptcp_advice_opts *o, struct ptcp_err *e)
{
	struct advise *a = calloc(1, sizeof *a);
	int r;

	if (a == NULL)
		return err_nomem(e);
	a->base.ops = &ops;
	ptcp_advice_init(&a->advice);
	ptcp_advice_opts_init(&a->o);
	if ((r = opts_copy(&a->o, sizeof a->o, o, "ptcp_advice_opts_init", e)) == 0) {
		/* The fit may add a level. */
		a->base.max_streams = a->o.max_streams < PTCP_STREAMS_MAX ? a->o.max_streams : PTCP_STREAMS_MAX;
		if ((r = take_levels(a, e)) == 0)
			r = try_advice(a, e);
	}
	a->o.levels = NULL;
	a->base.judges_streams = true;
	a->base.receives = a->o.receive;
	if (r < 0) {
		free(a);
		return r;
	}
	*out = &a->base;
	return 0;
}

const struct ptcp_advice *advise_advice(const struct prober *b)
{
	const struct advise *a = of((struct prober *)(uintptr_t)b);

	return b != NULL && b->ops == &ops && a->advised ? &a->advice : NULL;
}

bool advise_remember(const struct prober *b, struct history_entry *h)
{
	const struct advise *a = of((struct prober *)(uintptr_t)b);
	size_t i;

	if (advise_advice(b) == NULL || a->advice.from_history)
		return false;
	strcpy(h->key.congestion, a->advice.congestion);
	if (a->shown.limit != LIMIT_NETWORK)
		return a->contradicted;
	h->evidence = a->shown.evidence;
	h->limit = a->shown.limit;
	h->partly_limited = a->shown.partly_limited;
	for (i = 0; i < a->shown.n_probes && h->n_probes < HISTORY_PROBES_MAX; i++)
		h->probe[h->n_probes++] = probe_of_public(&a->shown.probes[i]);
	return true;
}
