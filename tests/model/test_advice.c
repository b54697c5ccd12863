#include "model/near.h"

#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "model/advice.h"
#include "model/stats.h"
#include "quantile.h"

static struct advice_opts opts(enum fit_model m, double budget, double gain, unsigned max)
{
	struct advice_opts o;

	advice_opts_init(&o);
	o.model = m;
	o.budget_ratio = budget;
	o.min_gain_ratio = gain;
	o.max_streams = max;
	return o;
}

/* From issue to answer by hand: (1, 10), (10, 50): a = 0.03 / 99, b = 0.01 - a.
 * At 10 %: sqrt((0.01 / 0.81 - b) / a) = 2.98, so 2 streams. */
static void worked_example(void **state)
{
	const struct probe p[] = { { 1, 10, 0 }, { 10, 50, 0 } };
	struct advice_opts o = opts(FIT_PARTIAL_QUADRATIC, 0.10, 0, 32);
	struct advice a;

	(void)state;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 2);
	assert_int_equal(a.limited_by, ADVICE_BY_IMPACT);
	assert_near(a.throughput_bps, fit_throughput_bps(&a.fit, 2), 0);
	assert_near(a.impact_ratio, 1 - sqrt(0.01 / (0.01 + 3 * 0.03 / 99)), 1e-12);
	assert_near(a.budget_ratio, 0.10, 0);
	o.budget_ratio = 0.5;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 10); /* sqrt(0.04 - b) / a) = 10 exactly */
	o.budget_ratio = 0;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 1);
	o.budget_ratio = 1;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 32);
	assert_int_equal(a.limited_by, ADVICE_BY_MAX);
	o.min_gain_ratio = 0.05;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_int_equal(a.limited_by, ADVICE_BY_GAIN);
	assert_true(fit_throughput_bps(&a.fit, a.streams) >=
	    1.05 * fit_throughput_bps(&a.fit, a.streams - 1));
	assert_true(fit_throughput_bps(&a.fit, a.streams + 1) <
	    1.05 * fit_throughput_bps(&a.fit, a.streams));
}

static void equals_closed_form(void **state)
{
	struct rng r = { 1 };
	struct advice_opts o = opts(FIT_PARTIAL_QUADRATIC, 0, 0, 100000);
	enum advice_limit by;
	int i, tried = 0;

	(void)state;
	for (i = 0; i < 20000; i++) {
		struct fit f = { .model = FIT_PARTIAL_QUADRATIC };
		double exact;

		f.used[0] = pow(10, -6 * rng_uniform(&r));
		f.used[1] = pow(10, -4 * rng_uniform(&r));
		o.budget_ratio = 0.99 * rng_uniform(&r);
		exact = sqrt(((f.used[0] + f.used[1]) / pow(1 - o.budget_ratio, 2) - f.used[1]) /
		    f.used[0]);
		if (exact >= o.max_streams || fabs(exact - round(exact)) < 1e-7)
			continue;
		tried++;
		assert_int_equal(advice_search(&f, &o, &by), (unsigned)exact);
		assert_int_equal(by, ADVICE_BY_IMPACT);
	}
	assert_true(tried > 15000);
}

/* The search equals trying every n, for every model, whatever the probes. */
static void equals_enumeration(void **state)
{
	static const enum fit_model models[] = {
		FIT_AUTO, FIT_PARTIAL_QUADRATIC, FIT_FAIR_SHARE, FIT_QUADRATIC, FIT_LINEAR
	};
	static const unsigned levels[] = { 1, 10, 4 };
	struct rng r = { 2 };
	struct probe p[3];
	struct advice a;
	unsigned n, best;
	int i, j;

	(void)state;
	for (i = 0; i < 5000; i++) {
		struct advice_opts o = opts(models[i % 5], rng_uniform(&r) * 0.6,
		    rng_uniform(&r) * 0.05, 1 + rng_below(&r, 64));

		for (j = 0; j < 3; j++)
			p[j] = (struct probe){ levels[j], 1e6 * pow(30, rng_uniform(&r)), 0 };
		assert_int_equal(advice_from_probes(&a, p, 3, &o, NULL), 0);
		assert_in_range(a.streams, 1, o.max_streams);
		assert_true(a.streams_low >= 1 && a.streams_low <= a.streams);
		assert_true(a.streams_high >= a.streams && a.streams_high <= o.max_streams);
		assert_true(a.confident == (a.warnings == 0 && advice_is_narrow(&a)));
		assert_true(a.next_probe <= o.max_streams);
		if (a.fit.flags & FIT_FALLS) {
			assert_int_equal(a.streams, 1);
			assert_int_equal(a.limited_by, ADVICE_BY_SATURATED);
			continue;
		}
		for (best = 1, n = 2; n <= o.max_streams; n++)
			if (fit_impact_ratio(&a.fit, n) <= o.budget_ratio + 1e-12 &&
			    fit_throughput_bps(&a.fit, n) >= fit_throughput_bps(&a.fit, n - 1) *
			    (1 + o.min_gain_ratio) * (1 - 1e-12))
				best = n;
		assert_int_equal(a.streams, best);
	}
}

/* A larger budget never asks for fewer streams; nor does a larger maximum. */
static void answer_rises_with_budget(void **state)
{
	struct rng r = { 3 };
	struct probe p[] = { { 1, 0, 0 }, { 10, 0, 0 } };
	struct advice a;
	unsigned last;
	int i, percent;

	(void)state;
	for (i = 0; i < 500; i++) {
		p[0].throughput_bps = 1e6 * (1 + rng_uniform(&r));
		p[1].throughput_bps = p[0].throughput_bps * (1 + 9 * rng_uniform(&r));
		for (last = 0, percent = 0; percent <= 100; percent += 5) {
			struct advice_opts o = opts(FIT_AUTO, percent / 100.0, 0.01, 32);

			assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
			assert_true(a.streams >= last);
			last = a.streams;
		}
	}
}

/* More loss never raises the estimate: lower rates at the larger level never
 * predict more for numbers of streams in between, nor advise more streams. */
static void more_loss_never_raises(void **state)
{
	struct rng r = { 4 };
	struct advice_opts o = opts(FIT_AUTO, 0.2, 0.01, 32);
	struct probe p[] = { { 1, 10e6, 0 }, { 10, 0, 0 } };
	struct advice a;
	unsigned last_n;
	double last, bw;
	int i, j;

	(void)state;
	for (i = 0; i < 300; i++) {
		o.budget_ratio = rng_uniform(&r);
		last = INFINITY;
		last_n = 32;
		for (j = 0; j < 20; j++) {
			p[1].throughput_bps = 99e6 - 4.4e6 * j;
			assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
			bw = fit_throughput_bps(&a.fit, 5);
			assert_true(bw <= last);
			assert_true(a.streams <= last_n);
			last = bw;
			last_n = a.streams;
		}
	}
}

static void degenerate_probes(void **state)
{
	const struct probe super[] = { { 1, 10e6, 0 }, { 10, 200e6, 0 } };
	const struct probe falls[] = { { 1, 100e6, 0 }, { 10, 80e6, 0 } };
	const struct probe flat[] = { { 1, 100e6, 0 }, { 10, 100e6, 0 } };
	const struct probe close[] = { { 1, 10e6, 0 }, { 2, 15e6, 0 } };
	const struct probe equal[] = { { 4, 10e6, 0 }, { 4, 15e6, 0 } };
	struct advice_opts o = opts(FIT_PARTIAL_QUADRATIC, 0.1, 0.01, 32);
	struct advice a;

	(void)state;
	assert_int_equal(advice_from_probes(&a, super, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 32);
	assert_int_equal(a.limited_by, ADVICE_BY_MAX);
	assert_true(a.warnings & ADVICE_WARN_NO_CONGESTION);
	assert_true(a.warnings & ADVICE_WARN_OUTSIDE);
	assert_int_equal(a.next_probe, 30);
	assert_non_null(strstr(advice_warning_text(a.warnings, 0), "no congestion"));
	o.min_gain_ratio = 0.1; /* the 11th stream brings 10 % */
	assert_int_equal(advice_from_probes(&a, super, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 11);
	assert_int_equal(a.limited_by, ADVICE_BY_GAIN);

	o.min_gain_ratio = 0.01;
	assert_int_equal(advice_from_probes(&a, falls, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 1);
	assert_int_equal(a.limited_by, ADVICE_BY_SATURATED);
	assert_near(a.throughput_bps, 100e6, 1e-9);
	assert_true(a.warnings & ADVICE_WARN_FALLS);
	assert_false(a.confident);
	assert_int_equal(a.next_probe, 3);

	assert_int_equal(advice_from_probes(&a, flat, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 1);
	assert_int_equal(a.limited_by, ADVICE_BY_SATURATED);

	assert_int_equal(advice_from_probes(&a, close, 2, &o, NULL), 0);
	assert_true(a.warnings & ADVICE_WARN_CLOSE_LEVELS);
	assert_int_equal(a.next_probe, 10);

	assert_int_equal(advice_from_probes(&a, equal, 2, &o, NULL), PTCP_EUSAGE);
}

static void options_out_of_range(void **state)
{
	const struct probe p[] = { { 1, 10, 0 }, { 10, 50, 0 } };
	struct advice_opts o;
	struct advice a;
	struct ptcp_err e;

	(void)state;
	advice_opts_init(&o);
	assert_int_equal(advice_from_probes(&a, p, 2, &o, &e), 0);
	o.budget_ratio = 1.01;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, &e), PTCP_EUSAGE);
	o.budget_ratio = NAN;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, &e), PTCP_EUSAGE);
	advice_opts_init(&o);
	o.min_gain_ratio = -0.01;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, &e), PTCP_EUSAGE);
	advice_opts_init(&o);
	o.max_streams = 0;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, &e), PTCP_EUSAGE);
}

/* Five others on a link shared equally: good repeated probes are believed, single short ones are not. The impact
 * against no transfer, here above the budget, is no reason for doubt. */
static void confidence(void **state)
{
	struct probe p[] = { { 1, 100e6 / 6, 0 }, { 4, 400e6 / 9, 0 }, { 15, 75e6, 0 } };
	struct advice_opts o = opts(FIT_AUTO, 0.5, 0.01, 32);
	struct advice a;
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		p[i].error_bps = 0.03 * p[i].throughput_bps;
	assert_int_equal(advice_from_probes(&a, p, 3, &o, NULL), 0);
	assert_int_equal(a.streams, 7);
	assert_near(a.impact_total_ratio, 7.0 / 12, 1e-6);
	assert_true(a.impact_total_ratio > o.budget_ratio);
	assert_int_equal(a.warnings, 0);
	assert_true(a.confident);
	assert_int_equal(a.next_probe, 0);

	o.budget_ratio = 0.8;
	o.max_streams = 10;
	o.congestion = ADVICE_CC_CUBIC;
	assert_int_equal(advice_from_probes(&a, p, 3, &o, NULL), 0);
	assert_int_equal(a.warnings, 0);
	assert_true(a.confident);
	assert_null(advice_warning_text(a.warnings, 0));
	assert_null(a.congestion_advice);
	assert_true(a.throughput_sd_ratio > 0 && a.throughput_sd_ratio < 0.1);

	o.congestion = ADVICE_CC_BBR;
	assert_int_equal(advice_from_probes(&a, p, 3, &o, NULL), 0);
	assert_int_equal(a.warnings, ADVICE_WARN_BBR);
	assert_string_equal(a.congestion_advice, "cubic");

	o.congestion = ADVICE_CC_CUBIC;
	p[0].throughput_bps = 5e6; /* off the curve, and sure of it */
	p[0].error_bps = 0.1e6;
	assert_int_equal(advice_from_probes(&a, p, 3, &o, NULL), 0);
	assert_true(a.warnings & ADVICE_WARN_MISFIT);

	o.model = FIT_FAIR_SHARE; /* what is usual would settle it */
	p[0] = (struct probe){ 1, 100e6 / 6, 15e6 }; /* on it by luck */
	o.max_streams = 2;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_true(a.warnings & ADVICE_WARN_NOISY);
	assert_int_equal(a.next_probe, 2); /* between: one stream alone tells little */

	p[2] = (struct probe){ 2, 28e6, 25e6 };
	assert_int_equal(advice_from_probes(&a, p, 3, &o, NULL), 0);
	assert_true(a.warnings & ADVICE_WARN_NOISY);
	assert_true(a.next_probe == 1 || a.next_probe == 2); /* that is there, too: once more */
}

/* Whether the probes tell how many others there are does not hang on the budget. */
static void noise_is_of_the_path(void **state)
{
	struct probe p[] = { { 4, 400e6 / 19, 0 }, { 15, 1500e6 / 30, 0 } }; /* 15 others */
	struct advice_opts o = opts(FIT_AUTO, 0, 0.01, 32);
	double share_sd = 0, error;
	struct advice a;
	int percent;

	(void)state;
	o.prior_others = FIT_PRIOR_OTHERS;
	for (error = 0.05; error < 0.3; error += 0.2) {
		p[0].error_bps = error * p[0].throughput_bps;
		p[1].error_bps = error * p[1].throughput_bps;
		for (percent = 10; percent <= 50; percent += 10) {
			o.budget_ratio = percent / 100.0;
			assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
			assert_true(percent == 10 || a.share_sd_ratio == share_sd);
			share_sd = a.share_sd_ratio;
			assert_int_equal((a.warnings & ADVICE_WARN_NOISY) != 0, error > 0.1);
		}
	}
}

/* On an idle path more streams bring the same give or take a hair: that is no reason to doubt. */
static void falls_by_a_hair(void **state)
{
	struct probe p[] = { { 4, 96.3e6, 0 }, { 15, 96.1e6, 0 } };
	struct advice_opts o = opts(FIT_AUTO, 1, 0.01, 32);
	struct advice a;

	(void)state;
	o.prior_others = FIT_PRIOR_OTHERS;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_true(a.warnings & ADVICE_WARN_FALLS); /* what it scatters by is not known */
	probe_grew(&p[0], &p[1], 1.5);
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_int_equal(a.warnings, 0);
	assert_int_equal(a.streams, 1);
	assert_int_equal(a.limited_by, ADVICE_BY_SATURATED);
	assert_near(a.throughput_bps, 96.3e6, 0.01);
	p[1].throughput_bps = 90e6;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_true(a.warnings & ADVICE_WARN_FALLS);
}

static double normal(struct rng *r)
{
	return sqrt(-2 * log(1 - rng_uniform(r))) * cos(2 * 3.14159265358979 * rng_uniform(r));
}

/* One probe of several runs: their mean, and an error from their scatter, where the error assumed of a single run
 * counts as two more runs. */
static void probe_of_runs(struct probe *out, unsigned streams, const double *throughput_bps, size_t runs)
{
	struct stats s;
	double prior;

	stats_of(&s, throughput_bps, runs);
	*out = (struct probe){ streams, s.mean, 0 };
	prior = probe_error_ratio(out) * s.mean;
	out->error_bps = sqrt((2 * prior * prior + s.sd * s.sd * (double)(runs - 1)) / (double)(runs +
	    1) / (double)runs);
}

/* Probes of a known curve that scatter as Linux does: 3 runs with 1 stream, 2 with
 * 4, 1 with 10. */
static void noisy_probes(struct probe *p, const struct fit *truth, struct rng *r)
{
	static const unsigned levels[] = { 1, 4, 10 };
	struct probe one;
	double runs[3];
	int i, j;

	for (i = 0; i < 3; i++) {
		for (j = 0; j < 3 - i; j++) {
			one = (struct probe){ levels[i], fit_throughput_bps(truth, levels[i]), 0 };
			runs[j] = one.throughput_bps * exp(probe_error_ratio(&one) * normal(r));
		}
		probe_of_runs(&p[i], levels[i], runs, (size_t)(3 - i));
	}
}

/* Where the model holds, what is said of the answer's errors is what they are, and
 * answers of high confidence keep the marks: throughput
 * within 15 % in the median and 35 % in nine of ten, impact within 12 points. */
static void errors_are_as_claimed(void **state)
{
	static double rate_miss[6000], impact_miss[6000];
	struct advice_opts o = opts(FIT_AUTO, 0, 0.01, 32);
	struct rng r = { 6 };
	struct probe p[3];
	struct advice a;
	double miss, claimed = 0, seen = 0;
	size_t n = 0;
	int i;

	(void)state;
	for (i = 0; i < 6000; i++) {
		struct fit truth = { .model = FIT_FAIR_SHARE, .used = { 1e-8, 0, 0 } };

		truth.used[1] = 1e-8 * (1 + rng_below(&r, 15));
		o.budget_ratio = 0.1 * (1 + rng_below(&r, 3));
		noisy_probes(p, &truth, &r);
		assert_int_equal(advice_from_probes(&a, p, 3, &o, NULL), 0);
		if (!a.confident)
			continue;
		miss = a.throughput_bps / fit_throughput_bps(&truth, a.streams) - 1;
		claimed += a.throughput_sd_ratio * a.throughput_sd_ratio;
		seen += miss * miss;
		rate_miss[n] = fabs(miss);
		impact_miss[n++] = fabs(a.impact_ratio - fit_impact_ratio(&truth, a.streams));
	}
	stats_sort(rate_miss, n);
	stats_sort(impact_miss, n);
	print_message("# %.0f %% settled; throughput off by %.1f %%, p90 %.1f %%; impact by %.1f points\n",
	    n / 60.0, 100 * quantile(rate_miss, n, 0.5),
	    100 * quantile(rate_miss, n, 0.9), 100 * quantile(impact_miss, n, 0.5));
	assert_true(n > 2500);
	assert_true(quantile(rate_miss, n, 0.5) < 0.15);
	assert_true(quantile(rate_miss, n, 0.9) < 0.35);
	assert_true(quantile(impact_miss, n, 0.5) < 0.12);
	assert_near(sqrt(seen / (double)n), sqrt(claimed / (double)n), 0.35);
}

/* Far outside the probes the two models part: said, and a probe there asked for. */
static void rival_disagrees(void **state)
{
	const struct probe p[] = { { 1, 10e6, 1e5 }, { 4, 25e6, 1e5 } };
	struct advice_opts o = opts(FIT_AUTO, 1, 0, 32);
	struct advice a;

	(void)state;
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_int_equal(a.streams, 32);
	assert_int_equal(a.limited_by, ADVICE_BY_MAX);
	assert_true(a.warnings & ADVICE_WARN_RIVAL);
	assert_true(a.warnings & ADVICE_WARN_OUTSIDE);
	assert_int_equal(a.next_probe, 12);
	o.max_streams = 3; /* between the probes they agree */
	assert_int_equal(advice_from_probes(&a, p, 2, &o, NULL), 0);
	assert_int_equal(a.warnings, 0);
}

static void each_warning_has_its_text(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < 13; i++)
		assert_string_equal(advice_warning_text(~0u, i), advice_warning_text(1u << i, 0));
	assert_null(advice_warning_text(~0u, 13));
	assert_string_equal(advice_warning_text(ADVICE_WARN_FALLS | ADVICE_WARN_BBR, 1),
	    advice_warning_text(ADVICE_WARN_BBR, 0));
	assert_null(advice_warning_text(ADVICE_WARN_FALLS | ADVICE_WARN_BBR, 2));
}

static void congestion_names(void **state)
{
	(void)state;
	assert_int_equal(advice_congestion_by_name("reno"), ADVICE_CC_RENO);
	assert_int_equal(advice_congestion_by_name("cubic"), ADVICE_CC_CUBIC);
	assert_int_equal(advice_congestion_by_name("bbr2"), ADVICE_CC_BBR);
	assert_int_equal(advice_congestion_by_name("vegas"), ADVICE_CC_OTHER);
	assert_int_equal(advice_congestion_by_name(""), ADVICE_CC_UNKNOWN);
	assert_int_equal(advice_congestion_by_name(NULL), ADVICE_CC_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_example),
		cmocka_unit_test(equals_closed_form),
		cmocka_unit_test(equals_enumeration),
		cmocka_unit_test(answer_rises_with_budget),
		cmocka_unit_test(more_loss_never_raises),
		cmocka_unit_test(degenerate_probes),
		cmocka_unit_test(options_out_of_range),
		cmocka_unit_test(confidence),
		cmocka_unit_test(noise_is_of_the_path),
		cmocka_unit_test(falls_by_a_hair),
		cmocka_unit_test(errors_are_as_claimed),
		cmocka_unit_test(rival_disagrees),
		cmocka_unit_test(each_warning_has_its_text),
		cmocka_unit_test(congestion_names),
	};
	return cmocka_run_group_tests_name("model/advice", tests, NULL, NULL);
}
