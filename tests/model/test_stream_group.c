/* Transfers that control their streams together: sums, shares and members, and groups on simulated paths
 * (drawn_path.h), which begin at once or one after the other, and whose leader ends. */
#include "model/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/drawn_path.h"
#include "model/stream_group.h"

#define STEP_S STREAM_CONTROL_SAMPLE_S

static struct stream_group g;
static struct stream_control s;
static struct stream_member table[STREAM_GROUP_MAX];

static int setup(void **state)
{
	struct stream_control_opts o;

	(void)state;
	memset(&g, 0, sizeof g);
	memset(table, 0, sizeof table);
	stream_control_opts_init(&o);
	o.congestion = ADVICE_CC_CUBIC;
	stream_control_init(&s, &o);
	return 0;
}

static void joins(unsigned place)
{
	static uint64_t id;

	table[place] = (struct stream_member){ .id = ++id, .congestion = "cubic",
		.budget_ratio = 0.1, .streams = 1 };
}

/* ---- Sums and shares ---- */

static void publishes(unsigned place, double rate_bps, double seconds)
{
	stream_member_add(&table[place], &(struct stream_control_sample){ seconds, rate_bps, true, false, false,
	    { seconds, rate_bps * seconds / 8, 100 * seconds, seconds, 0.01 * (place + 1), 0.01, seconds, 0, seconds },
	    0 });
}

static void adds_what_all_have_published(void **state)
{
	(void)state;
	joins(0);
	joins(7);
	table[0].streams = table[7].streams = 2;
	assert_true(stream_group_add(&g, &s, table, 0, STEP_S)); /* they have joined */
	assert_int_equal(g.members, 2);
	publishes(0, 30e6, STEP_S);
	publishes(7, 10e6, 2 * STEP_S);
	assert_false(stream_group_add(&g, &s, table, 0, STEP_S));
	assert_near(s.settle.rate_bps[s.settle.n - 1], 40e6, 1e-9);
	assert_near(s.kernel.sample[s.kernel.n - 1].delivered_bytes, 40e6 * STEP_S / 8, 1e-9);
	assert_near(s.kernel.sample[s.kernel.n - 1].rtt_s, 0.045, 1e-9); /* the mean of 10 and 80 ms */
	publishes(0, 20e6, STEP_S); /* the other one publishes a little later: as before */
	stream_group_add(&g, &s, table, 0, STEP_S);
	assert_near(s.settle.rate_bps[s.settle.n - 1], 30e6, 1e-9);
}

static unsigned share_of(unsigned place)
{
	struct stream_share x;

	stream_group_share(&x, &g, &s, place);
	return x.streams;
}

static unsigned shares(void)
{
	unsigned i, sum = 0;

	for (i = 0; i < STREAM_GROUP_MAX; i++)
		if (table[i].id != 0)
			sum += table[i].streams = share_of(i);
	return sum;
}

static void shares_are_equal(void **state)
{
	unsigned n;

	(void)state;
	joins(0);
	stream_group_add(&g, &s, table, 0, STEP_S);
	assert_int_equal(shares(), ADVICE_START); /* of one transfer: all */
	for (n = 2; n <= 7; n++) {
		joins(n);
		stream_group_add(&g, &s, table, 0, STEP_S);
		assert_int_equal(g.members, n);
		assert_int_equal(s.streams, n > ADVICE_START ? n : ADVICE_START); /* at least one each */
		assert_int_equal(shares(), s.streams);
		assert_in_range(table[0].streams, table[n].streams, table[n].streams + 1);
	}
}

/* The smallest budget is everybody's; a fixed number, or another congestion control, has no share. */
static void who_shares(void **state)
{
	(void)state;
	joins(0);
	joins(1);
	joins(2);
	joins(3);
	table[1].budget_ratio = 0.05;
	table[2].kind = STREAM_MEMBER_FIXED;
	strcpy(table[3].congestion, "bbr");
	stream_group_add(&g, &s, table, 0, STEP_S);
	assert_int_equal(g.members, 2);
	assert_int_equal(g.transfers, 4);
	assert_near(s.o.budget_ratio, 0.05, 1e-9);
	table[1].id = 0; /* has left */
	assert_true(stream_group_add(&g, &s, table, 0, STEP_S));
	assert_int_equal(g.members, 1);
	assert_near(s.o.budget_ratio, 0.1, 1e-9);
	assert_int_equal(share_of(0), s.streams);
}

/* A transfer that its disk limits, or whose process stops, is no reason to wait. */
static void idle_members_do_not_count(void **state)
{
	double t;

	(void)state;
	joins(0);
	joins(1);
	for (t = 0; t < STREAM_CONTROL_STARVED_S - 1; t += STEP_S) {
		publishes(0, 30e6, STEP_S);
		stream_group_add(&g, &s, table, 0, STEP_S);
	}
	assert_int_equal(g.members, 2);
	for (t = 0; t < 2; t += STEP_S) {
		publishes(0, 30e6, STEP_S);
		stream_group_add(&g, &s, table, 0, STEP_S);
	}
	assert_int_equal(g.members, 1);
	assert_int_equal(share_of(1), s.streams); /* as if each counted */
	for (t = 0; t < STREAM_CONTROL_STARVED_S; t += STEP_S) {
		publishes(0, 30e6, STEP_S);
		publishes(1, 30e6, STEP_S);
		stream_group_add(&g, &s, table, 0, STEP_S);
	}
	assert_int_equal(g.members, 2);
}

/* What is observed beside an own measurement is no evidence. */
static void a_measurement_is_waited_for(void **state)
{
	struct stream_share x;
	size_t seen;
	int i;

	(void)state;
	joins(0);
	joins(1);
	for (i = 0; i < 10; i++) {
		publishes(0, 30e6, STEP_S);
		publishes(1, 30e6, STEP_S);
		stream_group_add(&g, &s, table, 0, STEP_S);
		shares();
	}
	seen = s.settle.n;
	assert_true(seen > 0);
	stream_group_share(&x, &g, &s, 1);
	assert_int_equal(x.transfers, 2);
	assert_true(x.settled);
	joins(2);
	table[2].kind = STREAM_MEMBER_MEASURES;
	for (i = 0; i < 10; i++) {
		publishes(0, 10e6, STEP_S);
		publishes(1, 10e6, STEP_S);
		stream_group_add(&g, &s, table, 0, STEP_S);
	}
	assert_int_equal(s.settle.n, seen);
	table[2].id = 0;
	publishes(0, 30e6, STEP_S);
	publishes(1, 30e6, STEP_S);
	stream_group_add(&g, &s, table, 0, STEP_S);
	assert_int_equal(s.settle.n, seen + 1);
}

/* ---- On paths ---- */

#define MEMBERS 5
#define RUN_S 200
#define STEPS (10 * RUN_S)
#define WINDOW_S 60

struct course {
	double apart_s;  /* from one beginning to the next */
	double ends_s;   /* the first member, the leader, ends; 0: at the end of the run */
	unsigned n;
};

struct result {
	double share;    /* mean rate from 30 s after the last beginning on, over the capacity */
	double fairness; /* Jain's, of the rates from 60 s after the last beginning on */
	double above;    /* largest impact over 60 s, beside as many single streams, over the budget */
};

static void hands_over(struct stream_control *to)
{
	struct stream_control_opts o = s.o;
	struct probe p[PROFILE_MAX];
	size_t n = s.profile.n;
	struct evidence e = s.evidence;

	memcpy(p, s.profile.probe, n * sizeof *p);
	stream_control_init(to, &o);
	stream_control_recall(to, p, n, &e);
	memset(&g, 0, sizeof g);
}

static double jain(const double *x, unsigned from, unsigned n)
{
	double sum = 0, squares = 0;
	unsigned i;

	for (i = from; i < n; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	return sum * sum / ((n - from) * squares);
}

/* Each member has its part of the rate, and noise of its own. */
static void divide(const struct stream_control_sample *all, unsigned total, unsigned from, unsigned n, struct rng *r,
    double rate_bps[MEMBERS])
{
	unsigned i;

	for (i = from; i < n; i++) {
		double part = (double)table[i].streams / total, noisy = 1 + 0.1 * (rng_uniform(r) - 0.5);
		struct stream_control_sample x = *all;

		x.rate_bps *= part * noisy;
		x.kernel.delivered_bytes *= part * noisy;
		x.kernel.sent_segments *= part;
		x.kernel.lost_segments *= part;
		x.kernel.loss_events *= part;
		x.kernel.busy_s *= part;
		x.kernel.window_s *= part;
		stream_member_add(&table[i], &x);
		rate_bps[i] = x.rate_bps;
	}
}

static struct result run(const struct drawn *p, const struct course *c, uint64_t seed)
{
	static double taken[STEPS];
	const size_t window = (size_t)(WINDOW_S / STEP_S + 0.5);
	double last_s = c->apart_s * (c->n - 1), late_s = 0, sum = 0, rates[MEMBERS] = { 0 };
	struct result out = { .above = -INFINITY };
	unsigned from = 0, n = 0, total;
	struct drawn_world w;
	struct rng r = { seed };
	size_t i;

	setup(NULL);
	drawn_begin(&w, p, seed);
	for (i = 0; i < STEPS; i++) {
		double t = (double)i * STEP_S, rate_bps[MEMBERS] = { 0 };
		struct stream_control_sample all;

		while (n < c->n && t >= c->apart_s * n)
			joins(n++);
		if (c->ends_s > 0 && from == 0 && t >= c->ends_s) {
			table[from++].id = 0;
			hands_over(&s);
		}
		total = 0;
		for (unsigned k = from; k < n; k++)
			total += table[k].streams;
		all = drawn_step(&w, total);
		divide(&all, total, from, n, &r, rate_bps);
		if (stream_group_add(&g, &s, table, from, STEP_S) || i % 2 == 0) /* orders take their time */
			shares();
		sum += taken[i] = p->others > 0 ? 1 - w.others_bps / drawn_leaves(p, n - from) : 0;
		sum -= i >= window ? taken[i - window] : 0;
		if (i + 1 >= window)
			out.above = fmax(out.above, sum / (double)window - DRAWN_BUDGET);
		if (t >= last_s + 30) {
			out.share += all.rate_bps / p->capacity_bps * STEP_S;
			late_s += STEP_S;
		}
		for (unsigned k = from; k < n && t >= last_s + 60; k++)
			rates[k] += rate_bps[k];
	}
	out.share /= late_s;
	out.fairness = jain(rates, from, n);
	return out;
}

#define SEEDS 3

/* The worst of some seeds. */
static struct result worst(const char *what, const struct drawn *p, const struct course *c)
{
	struct result all = { 1, 1, -INFINITY };
	uint64_t seed;

	for (seed = 1; seed <= SEEDS; seed++) {
		struct result r = run(p, c, seed);

		all.share = fmin(all.share, r.share);
		all.fairness = fmin(all.fairness, r.fairness);
		all.above = fmax(all.above, r.above);
	}
	printf("#> %u transfers, %.0f s apart, %s: at least %.0f %% of the link, Jain %.2f; impact %.0f %%\n", c->n,
	    c->apart_s, what, 100 * all.share, all.fairness, 100 * (all.above + DRAWN_BUDGET));
	return all;
}

static const struct course at_once = { 0, 0, 3 }, apart = { 20, 0, 3 }, leader_ends = { 0, 50, 3 };

static void fills(const char *what, const struct drawn *p, const struct course *c)
{
	struct result r = worst(what, p, c);

	assert_true(r.share >= 0.93);
	assert_true(r.fairness >= 0.95);
}

/* Three on an idle path with random loss, or with windows: each took the probes of the others for competing flows, and
 * half of the link was empty. */
static void an_idle_path_is_full(void **state)
{
	const struct drawn lossy = { .capacity_bps = 48e6, .rtt_s = 0.058, .queue_s = 0.058, .loss_ratio = 1e-3 };
	const struct drawn windowed = { .capacity_bps = 48e6, .rtt_s = 0.058, .queue_s = 0.058, .window_bytes = 30e3 };
	const struct drawn clean = { .capacity_bps = 48e6, .rtt_s = 0.058, .queue_s = 0.058 };

	(void)state;
	fills("random loss", &lossy, &at_once);
	fills("random loss", &lossy, &apart);
	fills("random loss, the first ends", &lossy, &leader_ends);
	fills("windows", &windowed, &at_once);
	fills("windows, the first ends", &windowed, &leader_ends);
	fills("clean", &clean, &apart);
}

/* Five, 20 s apart, beside five competing flows: each kept the budget, and together they took four times as much. */
static void a_group_keeps_one_budget(void **state)
{
	static const struct course five_apart = { 20, 0, 5 }, five_at_once = { 0, 0, 5 };
	const struct drawn p = { .capacity_bps = 48e6, .rtt_s = 0.058, .queue_s = 0.058, .others = 5 };
	struct result r;

	(void)state;
	r = worst("beside five flows", &p, &five_apart);
	assert_true(r.above <= 0.05);
	assert_true(r.fairness >= 0.95);
	r = worst("beside five flows", &p, &five_at_once);
	assert_true(r.above <= 0.05);
	assert_true(r.fairness >= 0.95);
}

#define test(f) cmocka_unit_test_setup(f, setup)

_Static_assert(STREAM_GROUP_MAX >= MEMBERS, "members");

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(adds_what_all_have_published),
		test(shares_are_equal),
		test(who_shares),
		test(idle_members_do_not_count),
		test(a_measurement_is_waited_for),
		test(an_idle_path_is_full),
		test(a_group_keeps_one_budget),
	};

	return cmocka_run_group_tests_name("model/stream_group", tests, NULL, NULL);
}
