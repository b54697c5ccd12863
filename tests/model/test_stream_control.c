/* The controller on paths that are formulas: shares of a link, with noise, slow start, streams that drain,
 * and changes. What it loses against the best fixed number of streams that keeps the budget is printed. */
#include "model/near.h"

#include <stdio.h>
#include <string.h>

#include "model/rng.h"
#include "model/stream_control.h"

#define RUN_S 600.0
#define MBIT 1e6

/* What n streams bring once all has settled, from a moment on. */
struct path {
	double from_s;
	double capacity_bps;
	double others;        /* flows that share it equally */
	double window_bps;    /* of one stream at most; 0: no such limit */
	double falls_ratio;   /* lost with each stream beyond the first */
	double enough_bps;    /* the application has no more; 0: it has */
};

struct world {
	const char *name;
	struct path path[4];
	double budget_ratio;
	double over_most;
	double period_s;      /* then the first path again; 0: never */
	double noise;         /* times as much of it; 0: 1 */
};

static double brings(const struct path *p, double n)
{
	double rate = p->capacity_bps * n / (n + p->others) * fmax(0.1, 1 - p->falls_ratio * (n - 1));

	if (p->window_bps > 0)
		rate = fmin(rate, n * p->window_bps);
	return p->enough_bps > 0 ? fmin(rate, p->enough_bps) : rate;
}

/* The share that `n` streams take from each other flow, compared with one stream; 0 without other flows, and when our
 * streams have too little to send. A window limits all flows. */
static double takes(const struct path *p, double n)
{
	double one = p->capacity_bps / (1 + p->others), fair = p->capacity_bps / (n + p->others);

	if (p->others == 0 || (p->enough_bps > 0 && p->capacity_bps * n / (n + p->others) > p->enough_bps))
		return 0;
	if (p->window_bps > 0) {
		one = fmin(one, p->window_bps);
		fair = fmin(fair, p->window_bps);
	}
	return 1 - fair / one;
}

static const struct path *at(const struct world *w, double t)
{
	size_t i = 0;

	if (w->period_s > 0)
		t = fmod(t, w->period_s);
	while (i + 1 < 4 && w->path[i + 1].capacity_bps > 0 && t >= w->path[i + 1].from_s)
		i++;
	return &w->path[i];
}

/* Bits of the best fixed number of streams; 0 if it breaks the budget. */
static double fixed_bits(const struct world *w, unsigned n)
{
	double bits = 0, t;

	for (t = 0; t < RUN_S; t += STREAM_CONTROL_SAMPLE_S) {
		if (takes(at(w, t), n) > w->budget_ratio + 1e-9)
			return 0;
		bits += brings(at(w, t), n) * STREAM_CONTROL_SAMPLE_S;
	}
	return bits;
}

struct line {
	struct rng rng;
	double rate_bps, noise, unsteady_s;
};

/* One interval: slow start and draining take their time, and few streams scatter more than many. */
static struct stream_control_sample step(struct line *l, const struct path *p, unsigned n, double noise)
{
	bool shared = takes(p, n + 1) > 0;
	double sd = !shared ? 0.03 : n >= 8 ? 0.1 : 0.1 * pow(8.0 / n, 0.6), keep = exp(-STREAM_CONTROL_SAMPLE_S / 2),
	    share;
	double kick = (rng_uniform(&l->rng) - 0.5) * sqrt(12);

	sd *= noise > 0 ? noise : 1;
	l->noise = keep * l->noise + sqrt(1 - keep * keep) * kick;
	l->rate_bps += (brings(p, n) - l->rate_bps) * (1 - exp(-STREAM_CONTROL_SAMPLE_S / 0.5));
	l->unsteady_s = fmax(0, l->unsteady_s - STREAM_CONTROL_SAMPLE_S);
	share = l->rate_bps * exp(sd * l->noise - sd * sd / 2);
	return (struct stream_control_sample){ .interval_s = STREAM_CONTROL_SAMPLE_S,
		.rate_bps = p->enough_bps > 0 ? fmin(share, p->enough_bps) : share,
		.steady = l->unsteady_s == 0, .starved = p->enough_bps > 0 && p->enough_bps < brings(&(struct path){ 0,
		p->capacity_bps, p->others, p->window_bps, p->falls_ratio, 0 }, n),
		.host_limited = p->window_bps > 0 && p->capacity_bps > p->window_bps * (n + p->others) };
}

/* honest: lost, where time above the budget earns no more than the best fixed number would have. */
struct outcome { double lost, honest, over; unsigned changes, streams, best; };

static struct outcome run(const struct world *w, uint64_t seed)
{
	struct line l = { .rng = { seed } };
	struct outcome o = { .best = 1 };
	struct stream_control_opts opts;
	struct stream_control_sample x;
	struct stream_control s;
	double t, bits = 0, honest_bits = 0, rate_bps;
	unsigned n;

	stream_control_opts_init(&opts);
	opts.budget_ratio = w->budget_ratio;
	stream_control_init(&s, &opts);
	for (n = 1; n <= opts.max_streams; n++)
		if (fixed_bits(w, n) > fixed_bits(w, o.best) * (1 + 1e-9))
			o.best = n;
	for (t = 0; t < RUN_S; t += STREAM_CONTROL_SAMPLE_S) {
		n = s.streams;
		assert_in_range(n, 1, opts.max_streams);
		x = step(&l, at(w, t), n, w->noise);
		bits += x.rate_bps * STREAM_CONTROL_SAMPLE_S;
		rate_bps = takes(at(w, t), n) <= w->budget_ratio + 1e-9 ? x.rate_bps :
		    fmin(x.rate_bps, brings(at(w, t), o.best));
		honest_bits += rate_bps * STREAM_CONTROL_SAMPLE_S;
		if (takes(at(w, t), n) > w->budget_ratio + 0.05)
			o.over += STREAM_CONTROL_SAMPLE_S / RUN_S;
		if (stream_control_add(&s, &x)) {
			o.changes++;
			l.unsteady_s = s.streams > n ? 0.3 : 0.6;
		}
	}
	o.lost = fixed_bits(w, o.best) / bits - 1;
	o.honest = fixed_bits(w, o.best) / honest_bits - 1;
	o.streams = s.streams;
	return o;
}

/* The column after the budget: time with an impact more than 5 points above it, at the most. */
static const struct world worlds[] = {
	{ "5 others, 10 %", { { 0, 100 * MBIT, 5, 0, 0, 0 } }, 0.10, 0.08, 0, 0 },
	{ "5 others, 30 %", { { 0, 100 * MBIT, 5, 0, 0, 0 } }, 0.30, 0.12, 0, 0 },
	{ "20 others, 10 %", { { 0, 1000 * MBIT, 20, 0, 0, 0 } }, 0.10, 0.10, 0, 0 },
	{ "20 others, 30 %", { { 0, 1000 * MBIT, 20, 0, 0, 0 } }, 0.30, 0.10, 0, 0 },
	{ "60 others, 10 %", { { 0, 1000 * MBIT, 60, 0, 0, 0 } }, 0.10, 0.13, 0, 0 },
	{ "60 others, 20 %", { { 0, 1000 * MBIT, 60, 0, 0, 0 } }, 0.20, 0.15, 0, 0 },
	{ "idle path", { { 0, 100 * MBIT, 0, 0, 0, 0 } }, 0.10, 0, 0, 0 },
	{ "windows", { { 0, 100 * MBIT, 0, 8 * MBIT, 0, 0 } }, 0.10, 0, 0, 0 },
	{ "windows, room", { { 0, 1000 * MBIT, 5, 8 * MBIT, 0, 0 } }, 0.10, 0, 0, 0 },
	{ "windows, full", { { 0, 100 * MBIT, 5, 8 * MBIT, 0, 0 } }, 0.10, 0.08, 0, 0 },
	{ "windows, no room", { { 0, 100 * MBIT, 15, 8 * MBIT, 0, 0 } }, 0.20, 0.10, 0, 0 },
	{ "falling", { { 0, 100 * MBIT, 0, 0, 0.03, 0 } }, 0.10, 0, 0, 0 },
	{ "others leave", { { 0, 100 * MBIT, 20, 0, 0, 0 }, { 200, 100 * MBIT, 2, 0, 0, 0 } }, 0.30, 0.18, 0, 0 },
	{ "others come", { { 0, 100 * MBIT, 2, 0, 0, 0 }, { 200, 100 * MBIT, 20, 0, 0, 0 } }, 0.30, 0.12, 0, 0 },
	{ "capacity halves", { { 0, 100 * MBIT, 10, 0, 0, 0 }, { 300, 50 * MBIT, 10, 0, 0, 0 } }, 0.20, 0.15, 0, 0 },
	{ "slow disk", { { 0, 1000 * MBIT, 5, 0, 0, 100 * MBIT } }, 0.10, 0, 0, 0 },
	{ "disk in between", { { 0, 100 * MBIT, 20, 0, 0, 0 }, { 200, 100 * MBIT, 20, 0, 0, 5 * MBIT },
	    { 300, 100 * MBIT, 20, 0, 0, 0 } }, 0.20, 0.10, 0, 0 },
	{ "disk every 20 s", { { 0, 100 * MBIT, 5, 0, 0, 0 }, { 20, 100 * MBIT, 5, 0, 0, 5 * MBIT } },
	    0.30, 0.15, 40, 0 },
	{ "halves, 60 s", { { 0, 100 * MBIT, 5, 0, 0, 0 }, { 60, 50 * MBIT, 5, 0, 0, 0 } }, 0.30, 0.36, 120, 0 },
	{ "come and go, 20 s", { { 0, 100 * MBIT, 5, 0, 0, 0 }, { 20, 100 * MBIT, 15, 0, 0, 0 } }, 0.30, 0.40, 40, 0 },
	{ "policer", { { 0, 200 * MBIT, 0, 0, 0, 0 }, { 3, 40 * MBIT, 0, 0, 0, 0 } }, 0.10, 0, 0, 0 },
	{ "noise of 30 %", { { 0, 100 * MBIT, 10, 0, 0, 0 } }, 0.30, 0.55, 0, 3 },
	{ "noise, idle path", { { 0, 100 * MBIT, 0, 0, 0, 0 } }, 0.30, 0, 0, 10 },
};

#define LOST_MOST 0.10     /* on each path, the mean over all SEEDS */
#define LOST_MEAN_MOST 0.02
#define HONEST_MOST 0.18
#define CALM_MOST 0.06     /* the same with a tenth of the scatter */
#define CALM_SEEDS 10
#define SEEDS 40           /* constants of stream_control.h were chosen on others, from 1001 on */
#define N_WORLDS (sizeof worlds / sizeof *worlds)

static void time_lost(void **state)
{
	double all = 0;
	size_t i;
	unsigned k;

	(void)state;
	printf("#> %-18s %8s %8s %8s %8s %8s %5s %5s\n", "600 s on a path", "lost %", "most %", "honest %", "over %",
	    "changes", "best", "ends");
	for (i = 0; i < N_WORLDS; i++) {
		struct outcome sum = { 0 }, o = { 0 };
		double most = -1;

		for (k = 0; k < SEEDS; k++) {
			o = run(&worlds[i], k + 1);
			sum.lost += o.lost / SEEDS;
			sum.honest += o.honest / SEEDS;
			sum.over += o.over / SEEDS;
			sum.changes += o.changes;
			most = fmax(most, o.lost);
		}
		printf("#> %-18s %8.1f %8.1f %8.1f %8.1f %8.1f %5u %5u\n", worlds[i].name, sum.lost * 100, most * 100,
		    sum.honest * 100, sum.over * 100, (double)sum.changes / SEEDS, o.best, o.streams);
		assert_true(sum.lost <= LOST_MOST);
		assert_true(sum.honest <= HONEST_MOST);
		assert_true(sum.over <= worlds[i].over_most);
		all += fmax(0, sum.lost) / N_WORLDS;
	}
	printf("#> lost on average, where nothing was won: %.1f %%\n", all * 100);
	assert_true(all <= LOST_MEAN_MOST);
}

/* What is left where hardly anything scatters is the controller's own. The budget is a point larger, for of 20 % and 15
 * others, or 30 % and 20, the best number uses up all to the last digit, and half of all guesses are below. */
static void time_lost_where_it_is_calm(void **state)
{
	double honest;
	size_t i;
	unsigned k;

	(void)state;
	for (i = 0; i < N_WORLDS; i++) {
		struct world calm = worlds[i];

		calm.noise = 0.1;
		calm.budget_ratio += 0.01;
		for (honest = 0, k = 0; k < CALM_SEEDS; k++)
			honest += run(&calm, k + 1).honest / CALM_SEEDS;
		printf("#> %-18s %8.1f honest %%, with a tenth of the scatter\n", calm.name, honest * 100);
		assert_true(honest <= CALM_MOST);
	}
}

/* So long at this rate, not counting the time in which streams leave; the number of decisions. */
static unsigned feed(struct stream_control *s, double seconds, double rate_bps, bool starved)
{
	struct stream_control_sample x = { .interval_s = STREAM_CONTROL_SAMPLE_S, .rate_bps = rate_bps, .steady = true,
		.starved = starved };
	unsigned changes = 0, target;
	double t;

	for (t = 0; t < seconds - STREAM_CONTROL_SAMPLE_S / 2; t += STREAM_CONTROL_SAMPLE_S) {
		while (s->streams != s->target)
			stream_control_add(s, &x); /* streams leave */
		target = s->target;
		stream_control_add(s, &x);
		changes += s->target != target;
	}
	return changes;
}

static struct stream_control begun(double budget_ratio, unsigned max_streams)
{
	struct stream_control_opts o = { budget_ratio, max_streams, ADVICE_CC_CUBIC, 1, 1 };
	struct stream_control s;

	stream_control_init(&s, &o);
	return s;
}

static void without_a_choice(void **state)
{
	struct stream_control s = begun(0, 32);

	(void)state;
	assert_int_equal(s.target, 1);
	assert_int_equal(feed(&s, 1000, 5e6, false), 0);
	assert_false(s.advised);
	s = begun(0.1, 1);
	assert_int_equal(s.target, 1);
	assert_int_equal(feed(&s, 1000, 5e6, false), 0);
}

/* 4 of 9 shares of 90 Mbit/s, then 15 of 20: 5 others, of which a second stream would take a seventh. */
static void probes_then_holds(void **state)
{
	struct stream_control s = begun(0.1, 32);
	double waited_s = 0;

	(void)state;
	assert_int_equal(s.target, ADVICE_START);
	assert_string_equal(s.reason, "");
	assert_int_equal(feed(&s, STREAM_CONTROL_LEVEL_S - 1, 90e6 * 4 / 9, false), 0); /* too short to tell */
	assert_false(s.advised);
	assert_int_equal(feed(&s, 1, 90e6 * 4 / 9, false), 1);
	assert_int_equal(s.target, 15);
	assert_string_equal(s.reason, "probing with 15 streams");
	assert_int_equal(feed(&s, STREAM_CONTROL_LEVEL_S, 90e6 * 15 / 20, false), 1);
	assert_int_equal(s.target, 1);
	assert_true(s.advised && s.answer == 1);
	assert_near(s.probed_s, 2 * STREAM_CONTROL_LEVEL_S, STREAM_CONTROL_SAMPLE_S);
	assert_near(s.predicted_bps, 15e6, 1e-6);
	assert_near(s.predicted_impact_ratio, 0, 0);
	assert_int_equal(feed(&s, STREAM_CONTROL_FIRST_HOLD_S - 1, 15e6, false), 0);
	assert_near(s.observed_bps, 15e6, 1e-9);
	/* its time is over: what is known worst once more, when the budget has room for it */
	assert_int_equal(feed(&s, 2, 15e6, false), 0);
	for (; s.phase == STREAM_CONTROL_HOLDING; waited_s += STREAM_CONTROL_SAMPLE_S)
		feed(&s, STREAM_CONTROL_SAMPLE_S, 15e6, false);
	assert_in_range((unsigned)waited_s, 1, IMPACT_BUDGET_S);
}

/* Seconds until the level ends, if so many of its streams do not connect; at most 60. */
static double level_s(struct stream_control *s, unsigned unconnected)
{
	struct stream_control_sample x = { .interval_s = STREAM_CONTROL_SAMPLE_S, .rate_bps = 30e6, .steady = true,
		.unconnected = unconnected };
	unsigned recorded = s->recorded;
	double t;

	for (t = 0; s->recorded == recorded && t < 60; t += STREAM_CONTROL_SAMPLE_S)
		stream_control_add(s, &x);
	return t;
}

/* On a full link a connection took ten seconds, and fourteen others slowed others down for as long. */
static void a_connection_takes_long(void **state)
{
	struct stream_control s = begun(0.1, 32);

	(void)state;
	assert_near(level_s(&s, 0), STREAM_CONTROL_LEVEL_S, 0.05);
	assert_int_equal(s.recorded_streams, ADVICE_START);
	assert_near(level_s(&s, 5), STREAM_CONTROL_CONNECT_S + STREAM_CONTROL_LEVEL_S, 0.05);
	assert_int_equal(s.recorded_streams, 10);
	s = begun(0.1, 32);
	assert_near(level_s(&s, 1), STREAM_CONTROL_CONNECT_S + STREAM_CONTROL_LEVEL_S, 0.05);
	assert_int_equal(s.recorded_streams, ADVICE_START - 1);
	assert_int_equal(profile_find(&s.profile, ADVICE_START - 1), 0);
	assert_near(level_s(&s, 0), STREAM_CONTROL_LEVEL_S, 0.05);
	assert_int_equal(s.recorded_streams, 15);
	s = begun(0.1, 32);
	assert_true(level_s(&s, 2) >= 60); /* too few of four */
	s = begun(0.1, 32);
	s.o.movers = 2;
	assert_true(level_s(&s, 1) >= 60); /* a host may be missing */
}

static void few_allowed(void **state)
{
	struct stream_control s = begun(0.5, 3);

	(void)state;
	assert_int_equal(s.target, 3);
	feed(&s, STREAM_CONTROL_LEVEL_S, 30e6, false);
	assert_int_equal(s.target, 1);
	feed(&s, STREAM_CONTROL_LEVEL_S, 10e6, false);
	assert_int_equal(s.target, 3); /* three times as much: no congestion */
	assert_true(s.advised);
}

/* Nothing that the application or a disk does says anything about the path. */
static void too_little_to_send(void **state)
{
	struct stream_control_sample other = { .interval_s = STREAM_CONTROL_SAMPLE_S, .rate_bps = 9e6 };
	struct stream_control s = begun(0.1, 32);
	unsigned i;

	(void)state;
	assert_int_equal(feed(&s, 1000, 1e6, true), 0);
	assert_int_equal(s.target, ADVICE_START);
	for (i = 0; i < 1000; i++)
		assert_false(stream_control_add(&s, &other)); /* streams that come and go */
	feed(&s, STREAM_CONTROL_LEVEL_S, 40e6, false);
	assert_int_equal(s.target, 15);
	feed(&s, 60, 40e6, true); /* no more of them: back, and wait */
	assert_int_equal(s.target, ADVICE_START);
	assert_false(s.advised);
	feed(&s, STREAM_CONTROL_LEVEL_S, 40e6, false);
	feed(&s, STREAM_CONTROL_LEVEL_S, 60e6, false);
	assert_true(s.advised);
	i = s.target;
	assert_int_equal(feed(&s, 1000, 1e6, true), 0);
	assert_int_equal(s.target, i);
}

/* Streams that had not yet come to their rates: that 15 bring thrice as much is no reason to take 30 before 4 have been
 * seen again. */
static void early_levels(void **state)
{
	struct stream_control s = begun(0.5, 32);

	(void)state;
	feed(&s, STREAM_CONTROL_LEVEL_S, 20e6, false);
	feed(&s, STREAM_CONTROL_LEVEL_S, 72e6, false);
	assert_int_equal(s.target, ADVICE_START);
	assert_string_equal(s.reason, "probing with 4 streams");
	feed(&s, STREAM_CONTROL_LEVEL_S, 50e6, false);
	assert_int_equal(s.phase, STREAM_CONTROL_HOLDING);
	assert_true(s.streams < 15);
}

/* All streams wait for their buffers, and more of them bring no more: a processor has all it can do. */
static void no_room(void **state)
{
	struct stream_control_sample busy = { .interval_s = STREAM_CONTROL_SAMPLE_S, .rate_bps = 4e9, .steady = true,
		.host_limited = true };
	struct stream_control s = begun(0.1, 32);
	unsigned i;

	(void)state;
	for (i = 0; i < 200; i++)
		stream_control_add(&s, &busy);
	assert_int_equal(s.target, ADVICE_START);
	assert_near(s.predicted_bps, 4e9, 1e-9);
}

/* As many as fill the path: 8 Mbit/s each, 196 in all. */
static void windows(void **state)
{
	struct stream_control_sample host_limited = { .interval_s = STREAM_CONTROL_SAMPLE_S, .steady = true,
		.host_limited = true };
	struct stream_control s = begun(0.1, 32);
	unsigned i;

	(void)state;
	for (i = 0; i < 120; i++) {
		host_limited.rate_bps = s.streams * 8e6;
		stream_control_add(&s, &host_limited);
	}
	assert_int_equal(s.target, 30);
	feed(&s, STREAM_CONTROL_LEVEL_S, 196e6, false);
	assert_int_equal(s.target, 25);
	assert_near(s.predicted_bps, 196e6, 1e-9);
	assert_near(s.predicted_impact_ratio, 0, 0);
}

/* The same behind a receiver that syncs its disk for 0.2 s of each 3 s, with a level of 5 s: pauses end no level and
 * begin none anew. */
static void pauses_of_the_receiver(void **state)
{
	struct stream_control s = begun(0.1, 32);
	unsigned i;

	(void)state;
	for (i = 0; i < 300; i++) {
		bool syncs = i % 30 < 2;
		struct stream_control_sample x = { .interval_s = STREAM_CONTROL_SAMPLE_S,
			.rate_bps = fmin(s.streams * 8e6, 196e6), .steady = true, .starved = syncs,
			.host_limited = true };

		x.rate_bps *= syncs ? 0.1 : 1;
		stream_control_add(&s, &x);
	}
	assert_in_range(s.answer, 24, 26);
	assert_near(s.predicted_bps, 196e6, 0.02);
}

/* A disk that stalls for 4 s in the middle of a level: the level is what was seen before and after. */
static void a_disk_stalls(void **state)
{
	struct stream_control s = begun(0.1, 32);

	(void)state;
	feed(&s, STREAM_CONTROL_LEVEL_S / 2, 90e6 * 4 / 9, false);
	assert_int_equal(feed(&s, 4, 1e6, true), 0);
	assert_int_equal(feed(&s, STREAM_CONTROL_LEVEL_S / 2 + 0.1, 90e6 * 4 / 9, false), 1);
	assert_int_equal(s.target, 15);
	feed(&s, STREAM_CONTROL_LEVEL_S / 2, 90e6 * 15 / 20, false);
	assert_int_equal(feed(&s, 4, 1e6, true), 0);
	assert_int_equal(feed(&s, STREAM_CONTROL_LEVEL_S / 2 + 0.1, 90e6 * 15 / 20, false), 1);
	assert_true(s.advised && s.answer == 1);
	assert_near(s.predicted_bps, 15e6, 1e-6);
}

static const struct evidence unseen;
static const struct probe known[] = { { 4, 40e6, 2e6 }, { 12, 60e6, 3e6 } };

static void from_history(void **state)
{
	struct stream_control s = begun(0.3, 32), fresh = s;
	int t;

	(void)state;
	stream_control_recall(&s, known, 2, &unseen);
	assert_true(s.recalled && s.advised && s.phase == STREAM_CONTROL_HOLDING);
	assert_non_null(strstr(s.reason, "from history"));
	assert_int_equal(feed(&s, 9, s.predicted_bps, false), 0);
	assert_true(s.recalled);
	/* contradicted: probed as if nothing had been known */
	s = fresh;
	stream_control_recall(&s, known, 2, &unseen);
	for (t = 0; !s.contradicted && t < 40; t++)
		feed(&s, 1, s.predicted_bps / 3, false);
	assert_true(s.contradicted && s.phase == STREAM_CONTROL_PROBING);
	assert_false(s.recalled);
	assert_int_equal(s.profile.n, 0);
	assert_int_equal(s.answer, 0);
	/* what cannot be is not taken */
	stream_control_recall(&fresh, known, 1, &unseen);
	assert_false(fresh.recalled || fresh.advised);
	assert_int_equal(fresh.streams, ADVICE_START);
}

static void the_path_changes(void **state)
{
	struct stream_control s = begun(0.3, 32);

	(void)state;
	stream_control_recall(&s, known, 2, &unseen);
	feed(&s, 40, s.predicted_bps, false);
	while (s.phase != STREAM_CONTROL_HOLDING)
		feed(&s, STREAM_CONTROL_SAMPLE_S, 45e6, false);
	feed(&s, 9, 45e6, false);
	assert_int_equal(feed(&s, 5, 9e6, false), 1);
	assert_int_equal(s.phase, STREAM_CONTROL_PROBING);
	assert_non_null(strstr(s.reason, s.profile.probe[0].streams == 1 ? ": 1 stream delivers " :
	    " streams deliver "));
}

/* ---- With the kernel's view of the streams ---- */

/* 96 Mbit/s and 58 ms; a queue of one bandwidth-delay product. */
struct seen {
	double others;        /* flows beside ours */
	double each_bps;      /* limit of a stream by random loss; 0: none */
	double early_s;       /* before the first losses */
};

static double seen_bps(const struct seen *p, unsigned n)
{
	double share = 96e6 * n / (n + p->others), limit = n * p->each_bps;

	return p->each_bps > 0 ? fmin(share, limit) : share;
}

static struct stream_control_sample see(const struct seen *p, unsigned n, struct rng *r)
{
	double bps = seen_bps(p, n) * (1 + 0.06 * (rng_uniform(r) - 0.5)), part = bps / 96e6;
	bool full = p->others > 0 || part > 0.95;
	double segments = bps * STREAM_CONTROL_SAMPLE_S / 8 / 1448;
	double loss = p->each_bps > 0 ? 1e-3 : 2e-5 * pow(n + p->others, 1.6);

	return (struct stream_control_sample){ STREAM_CONTROL_SAMPLE_S, bps, true, false, false,
		{ STREAM_CONTROL_SAMPLE_S, bps * STREAM_CONTROL_SAMPLE_S / 8, segments, loss * segments,
		    0.058 * (full ? 1.6 + 0.4 * rng_uniform(r) : 1 + 0.05 * rng_uniform(r)), 0.06,
		    n * STREAM_CONTROL_SAMPLE_S, 0, 0 }, 0 };
}

struct course {
	double sent_bits, most_minute; /* largest mean impact of a minute */
	unsigned changes, most_left, ends;   /* decisions; most streams that left at once */
};

static struct course course_of(const struct seen *p, double seconds, double from_s, uint64_t seed)
{
	struct stream_control s = begun(0.1, 32);
	struct rng r = { seed };
	struct course c = { .ends = 0 };
	static double taken[6000];
	double sum = 0;
	size_t i, n = (size_t)(seconds / STREAM_CONTROL_SAMPLE_S);

	for (i = 0; i < n && i < 6000; i++) {
		bool early = (double)i * STREAM_CONTROL_SAMPLE_S < p->early_s;
		struct stream_control_sample x = see(early ? &(struct seen){ p->others, 0, 0 } : p, s.streams, &r);
		unsigned before = s.streams, target = s.target;

		if ((double)i * STREAM_CONTROL_SAMPLE_S >= from_s)
			c.sent_bits += x.rate_bps * STREAM_CONTROL_SAMPLE_S;
		taken[i] = p->others > 0 ? 1 - (1 + p->others) / (s.streams + p->others) : 0;
		sum += taken[i] - (i >= 600 ? taken[i - 600] : 0);
		c.most_minute = fmax(c.most_minute, sum / 600);
		stream_control_add(&s, &x);
		c.changes += s.target != target;
		if (s.streams < before && before - s.streams > c.most_left)
			c.most_left = before - s.streams;
	}
	c.ends = s.streams;
	return c;
}

/* Random loss on an idle path, 5 Mbit/s a stream: as many streams as fill the link, and no others later. */
static void random_loss_and_nobody_else(void **state)
{
	struct seen p = { 0, 5e6, 0 };
	struct course c;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++) {
		c = course_of(&p, 120, 25, seed);
		assert_true(c.sent_bits >= 0.9 * 96e6 * 95);
		assert_true(c.changes <= 10);
		assert_true(c.ends >= 18);
	}
}

/* The streams of the first level had no losses yet, and filled the link. */
static void random_loss_after_the_first_level(void **state)
{
	struct seen p = { 0, 7e6, 5 };
	struct course c;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++) {
		c = course_of(&p, 120, 35, seed);
		assert_true(c.sent_bits >= 0.7 * 96e6 * 85);
		assert_true(c.ends >= 11);
	}
}

/* Nobody was seen, and more streams are held than ever before: others that these show are not displaced until the hold
 * time is over. The queue never empties, and a seventh of the capacity is missing. */
static void a_new_count_is_judged_soon(void **state)
{
	struct stream_control s = begun(0.1, 32);
	struct seen nobody = { 0, 5e6, 0 };
	struct rng r = { 1 };
	double seconds = 0;
	unsigned held;

	(void)state;
	while (s.phase != STREAM_CONTROL_HOLDING || s.target <= 15 || s.streams != s.target) {
		struct stream_control_sample x = see(&nobody, s.streams, &r);

		stream_control_add(&s, &x);
		assert_true((seconds += x.interval_s) < 100);
	}
	assert_int_equal(s.advice.others, ADVICE_OTHERS_NONE);
	held = s.target;
	for (seconds = 0; s.advice.others == ADVICE_OTHERS_NONE; seconds += STREAM_CONTROL_SAMPLE_S) {
		struct stream_control_sample x = see(&nobody, s.streams, &r);

		x.rate_bps = x.kernel.delivered_bytes = 0.86 * 96e6 * (1 + 0.06 * (rng_uniform(&r) - 0.5));
		x.kernel.delivered_bytes *= STREAM_CONTROL_SAMPLE_S / 8;
		x.kernel.sent_segments = x.kernel.delivered_bytes / 1448;
		x.kernel.rtt_s = 0.058 * (1.6 + 0.4 * rng_uniform(&r));
		stream_control_add(&s, &x);
		assert_true(seconds < STREAM_CONTROL_FIRST_HOLD_S - 2);
	}
	assert_true(s.target < held);
}

/* Five others come to a path where nobody was: the new levels are judged with the kernel's view, and the budget
 * decides. They were not, and three times as many streams as before were held. */
static void others_come(void **state)
{
	struct seen p = { 0, 0, 0 };
	struct stream_control s = begun(0.1, 32);
	struct rng r = { 1 };
	double seconds;
	bool changed = false;

	(void)state;
	for (seconds = 0; seconds < 120; seconds += STREAM_CONTROL_SAMPLE_S) {
		struct stream_control_sample x = see(&p, s.streams, &r);

		stream_control_add(&s, &x);
		p.others = seconds > 60 ? 5 : 0;
		changed |= strstr(s.reason, "the path has changed") != NULL;
		if (changed && s.phase == STREAM_CONTROL_HOLDING) {
			assert_true(s.advised);
			assert_in_range(s.target, 1, 2);
		}
	}
	assert_true(changed);
	assert_int_equal(s.advice.others, ADVICE_OTHERS_SOME);
}

static double seconds_of_second_level(const struct seen *p)
{
	struct stream_control s = begun(0.1, 32);
	struct stream_control_sample x;
	struct rng r = { 1 };
	double seconds = 0;

	while (!s.advised) {
		x = see(p, s.streams, &r);
		seconds += s.target > ADVICE_START ? x.interval_s : 0;
		stream_control_add(&s, &x);
	}
	return seconds;
}

/* Beside two others 4 streams are too many already, and 15 take most from them. Random loss is not as clear. */
static void a_clear_answer_ends_the_level(void **state)
{
	(void)state;
	assert_near(seconds_of_second_level(&(struct seen){ 2, 0, 0 }), STREAM_CONTROL_EARLY_S, 0.05);
	assert_near(seconds_of_second_level(&(struct seen){ 0, 5e6, 0 }), STREAM_CONTROL_LEVEL_S, 0.05);
}

/* On an idle path: what fills the link is not taken back at once. */
static void the_link_stays_full(void **state)
{
	struct seen p = { 0, 0, 0 };
	struct course c = course_of(&p, 120, 0, 1);

	(void)state;
	assert_true(c.most_left <= 4);
	assert_true(c.changes <= 8);
}

/* Beside others the budget of 10 % holds over every minute, probes included. */
static void every_minute(void **state)
{
	static const double others[] = { 2, 5, 10, 20 };
	struct course c;
	uint64_t seed;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof others / sizeof *others; i++)
		for (seed = 1; seed <= 3; seed++) {
			c = course_of(&(struct seen){ others[i], 0, 0 }, 300, 0, seed);
			if (c.most_minute > 0.15)
				fail_msg("%g others: %.1f %% in a minute", others[i], 100 * c.most_minute);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_choice),
		cmocka_unit_test(probes_then_holds),
		cmocka_unit_test(a_connection_takes_long),
		cmocka_unit_test(few_allowed),
		cmocka_unit_test(too_little_to_send),
		cmocka_unit_test(early_levels),
		cmocka_unit_test(windows),
		cmocka_unit_test(no_room),
		cmocka_unit_test(pauses_of_the_receiver),
		cmocka_unit_test(a_disk_stalls),
		cmocka_unit_test(from_history),
		cmocka_unit_test(the_path_changes),
		cmocka_unit_test(random_loss_and_nobody_else),
		cmocka_unit_test(random_loss_after_the_first_level),
		cmocka_unit_test(a_new_count_is_judged_soon),
		cmocka_unit_test(others_come),
		cmocka_unit_test(a_clear_answer_ends_the_level),
		cmocka_unit_test(the_link_stays_full),
		cmocka_unit_test(every_minute),
		cmocka_unit_test(time_lost),
		cmocka_unit_test(time_lost_where_it_is_calm),
	};
	return cmocka_run_group_tests_name("model/stream_control", tests, NULL, NULL);
}
