#include "model/near.h"

#include <string.h>

#include "model/fit.h"
#include "model/rng.h"

static const enum fit_model all[] = {
	FIT_PARTIAL_QUADRATIC, FIT_FAIR_SHARE, FIT_QUADRATIC, FIT_LINEAR
};

static void names(void **state)
{
	enum fit_model m = FIT_LINEAR;

	(void)state;
	assert_string_equal(fit_model_name(FIT_PARTIAL_QUADRATIC), "partial-quadratic");
	assert_int_equal(fit_model_by_name(&m, "fair-share"), 0);
	assert_int_equal(m, FIT_FAIR_SHARE);
	assert_int_equal(fit_model_by_name(&m, "auto"), 0);
	assert_int_equal(m, FIT_AUTO);
	assert_int_equal(fit_model_by_name(&m, "cubist"), -1);
	assert_int_equal(m, FIT_AUTO);
}

/* Lu et al.: probes (1, 10) and (10, 50): a = (0.2^2 - 0.1^2) / 99. */
static void worked_equations(void **state)
{
	const struct probe p[] = { { 1, 10, 0 }, { 10, 50, 0 } };
	const double a = 0.03 / 99, b = 0.01 - 0.03 / 99;
	struct fit f;

	(void)state;
	assert_int_equal(fit_probes(&f, FIT_PARTIAL_QUADRATIC, p, 2, NULL), 0);
	assert_near(f.raw[0], a, 1e-12);
	assert_near(f.raw[1], b, 1e-12);
	assert_near(f.used[0], a, 1e-12);
	assert_near(f.used[1], b, 1e-12);
	assert_int_equal(f.flags, 0);
	assert_near(fit_throughput_bps(&f, 4), 4 / sqrt(16 * a + b), 1e-12);
	assert_near(fit_impact_ratio(&f, 4), 1 - sqrt(0.01 / (16 * a + b)), 1e-12);
	assert_near(fit_impact_total_ratio(&f, 4), 1 - sqrt(b / (16 * a + b)), 1e-12);

	assert_int_equal(fit_probes(&f, FIT_FAIR_SHARE, p, 2, NULL), 0);
	assert_near(f.used[0], 0.1 / 9, 1e-12);
	assert_near(f.used[1], 0.1 - 0.1 / 9, 1e-12);
	assert_int_equal(fit_probes(&f, FIT_LINEAR, p, 2, NULL), 0);
	assert_near(f.used[0], 0.03 / 9, 1e-12);
	assert_near(f.used[1], 0.01 - 0.03 / 9, 1e-12);
}

/* A link of 100 Mbit/s shared equally with 5 others. */
static void fair_share_reads_the_link(void **state)
{
	const struct probe p[] = { { 1, 100e6 / 6, 0 }, { 10, 1000e6 / 15, 0 } };
	struct fit f;

	(void)state;
	assert_int_equal(fit_probes(&f, FIT_FAIR_SHARE, p, 2, NULL), 0);
	assert_near(1 / f.used[0], 100e6, 1e-9);
	assert_near(f.used[1] / f.used[0], 5, 1e-9);
	assert_near(fit_throughput_bps(&f, 30), 100e6 * 30 / 35, 1e-9);
	assert_near(fit_impact_ratio(&f, 10), 1 - 6.0 / 15, 1e-9);
	assert_near(fit_impact_total_ratio(&f, 10), 10.0 / 15, 1e-9);
}

/* Measured with Linux, 100 Mbit/s, 20 ms, 5 cross flows, Mbit/s with 1, 4, 10 and
 * 30 streams: from (1, 10), fair share misses 4 and 30 by less than the partial
 * quadratic in the mean, with Reno and with CUBIC. */
static void fair_share_is_nearer_on_linux(void **state)
{
	static const double truth[2][4] = { { 18, 26, 52, 78 }, { 7, 20, 48, 70 } };
	double miss[2] = { 0 };
	struct fit f;
	int i, m;

	(void)state;
	for (i = 0; i < 2; i++) {
		const struct probe p[] = {
			{ 1, truth[i][0] * 1e6, 0 }, { 10, truth[i][2] * 1e6, 0 }
		};
		for (m = 0; m < 2; m++) {
			assert_int_equal(fit_probes(&f, all[m], p, 2, NULL), 0);
			miss[m] += fabs(fit_throughput_bps(&f, 4) / truth[i][1] / 1e6 - 1);
			miss[m] += fabs(fit_throughput_bps(&f, 30) / truth[i][3] / 1e6 - 1);
		}
	}
	assert_true(miss[1] < miss[0]);
}

static void every_model_finds_itself(void **state)
{
	static const unsigned levels[] = { 1, 4, 10, 15, 30 };
	struct rng r = { 5 };
	struct probe p[5];
	struct fit f;
	int round, i, m;

	(void)state;
	for (round = 0; round < 2000; round++)
		for (m = 0; m < 4; m++) {
			struct fit truth = { .model = all[m] };

			truth.used[0] = pow(10, -3 * rng_uniform(&r));
			truth.used[1] = pow(10, -3 * rng_uniform(&r));
			truth.used[2] = all[m] == FIT_QUADRATIC ? rng_uniform(&r) : 0;
			for (i = 0; i < 5; i++)
				p[i] = (struct probe){ levels[i],
				    fit_throughput_bps(&truth, levels[i]), 0 };
			assert_int_equal(fit_probes(&f, all[m], p, 3 + round % 3, NULL), 0);
			assert_near(f.used[0], truth.used[0], 1e-7);
			assert_near(f.used[1], truth.used[1], 1e-7);
			if (all[m] == FIT_QUADRATIC)
				assert_near(f.used[2], truth.used[2], 1e-7);
			assert_true(f.worst_ratio < 1e-9);
		}
}

/* Whatever the probes, what is used neither falls, nor gains more and more, nor
 * takes less from others, as the number of streams rises. */
static void curves_are_monotone(void **state)
{
	static const unsigned levels[] = { 1, 2, 6, 10, 25 };
	struct rng r = { 9 };
	struct probe p[5];
	struct fit f;
	int round, i, n;
	size_t m;

	(void)state;
	for (round = 0; round < 3000; round++) {
		for (i = 0; i < 5; i++)
			p[i] = (struct probe){ levels[i], 1e6 * pow(100, rng_uniform(&r)), 0 };
		for (m = 0; m < 4; m++) {
			double bw, last = 0, gain, least_gain = INFINITY, impact, most = 0;

			assert_int_equal(fit_probes(&f, all[m], p, 3 + round % 3, NULL), 0);
			for (n = 1; n <= 40; n++) {
				bw = fit_throughput_bps(&f, n);
				impact = fit_impact_ratio(&f, n);
				assert_true(isfinite(bw) && bw >= last * (1 - 1e-12));
				assert_true(impact >= most - 1e-12 && impact < 1);
				assert_true(fit_impact_total_ratio(&f, n) >= impact - 1e-12);
				gain = n > 1 ? bw / last : INFINITY;
				assert_true(gain <= least_gain * (1 + 1e-12));
				least_gain = gain;
				most = impact;
				last = bw;
			}
		}
	}
}

/* Weighted squares of relative errors in y^2 for the quadratic with these terms. */
static double objective(const struct fit *f, const struct probe *p, int count)
{
	double sum = 0, y, ratio;
	int i;

	for (i = 0; i < count; i++) {
		y = p[i].streams / p[i].throughput_bps;
		ratio = p[i].streams / fit_throughput_bps(f, p[i].streams) / y;
		sum += pow((ratio * ratio - 1) / probe_error_ratio(&p[i]), 2);
	}
	return sum;
}

/* No other set of terms that are not negative fits better. */
static void used_is_the_best_allowed(void **state)
{
	static const unsigned levels[] = { 1, 3, 8, 15, 30 };
	struct rng r = { 12 };
	struct probe p[5];
	struct fit f, moved;
	int round, i, j, bound = 0;
	double best, step;

	(void)state;
	for (round = 0; round < 2000; round++) {
		for (i = 0; i < 5; i++)
			p[i] = (struct probe){ levels[i], pow(30, rng_uniform(&r)), 0 };
		assert_int_equal(fit_probes(&f, FIT_QUADRATIC, p, 5, NULL), 0);
		best = objective(&f, p, 5);
		bound += f.used[0] == 0 || f.used[1] == 0 || f.used[2] == 0;
		for (j = 0; j < 3; j++)
			for (step = -1e-4; step < 2e-4; step += 2e-4) {
				moved = f;
				moved.used[j] += step * (f.used[0] + f.used[1] + f.used[2]);
				if (moved.used[j] >= 0)
					assert_true(objective(&moved, p, 5) >= best * (1 - 1e-9));
			}
	}
	assert_in_range(bound, 200, 2000);
}

static void degenerate_shapes(void **state)
{
	const struct probe more_than_linear[] = { { 1, 10, 0 }, { 10, 200, 0 } };
	const struct probe linear[] = { { 1, 10, 0 }, { 10, 100, 0 } };
	const struct probe falls[] = { { 1, 100, 0 }, { 10, 80, 0 } };
	const struct probe flat[] = { { 1, 100, 0 }, { 10, 100, 0 } };
	const struct probe close[] = { { 1, 10, 0 }, { 2, 15, 0 } };
	struct fit f;
	int m;

	(void)state;
	for (m = 0; m < 2; m++) {
		assert_int_equal(fit_probes(&f, all[m], more_than_linear, 2, NULL), 0);
		assert_true(f.raw[0] < 0 && f.raw[1] > 0);
		assert_true(f.used[0] == 0 && f.used[1] > 0);
		assert_int_equal(f.flags, FIT_NO_CONGESTION);
		assert_near(fit_throughput_bps(&f, 20), 20 * fit_throughput_bps(&f, 1), 1e-12);
		assert_near(fit_impact_ratio(&f, 20), 0, 0);

		assert_int_equal(fit_probes(&f, all[m], linear, 2, NULL), 0);
		assert_true(f.used[0] == 0);
		assert_int_equal(f.flags, FIT_NO_CONGESTION);
		assert_near(fit_throughput_bps(&f, 10), 100, 1e-9);

		assert_int_equal(fit_probes(&f, all[m], falls, 2, NULL), 0);
		assert_true(f.raw[1] < 0);
		assert_true(f.used[0] > 0 && f.used[1] == 0);
		assert_int_equal(f.flags, FIT_FALLS);
		assert_near(fit_throughput_bps(&f, 1), 100, 1e-12);

		assert_int_equal(fit_probes(&f, all[m], flat, 2, NULL), 0);
		assert_true(f.used[1] == 0);
		assert_int_equal(f.flags, 0);
		assert_near(fit_throughput_bps(&f, 5), 100, 1e-9);

		assert_int_equal(fit_probes(&f, all[m], close, 2, NULL), 0);
		assert_int_equal(f.flags, FIT_CLOSE_LEVELS);
	}
}

static void what_is_no_probe(void **state)
{
	static const double bad[] = { 0, -1, NAN, INFINITY, -INFINITY, 1e-300, 1e300 };
	struct probe p[] = { { 1, 10, 0 }, { 10, 50, 0 }, { 20, 60, 0 } };
	struct ptcp_err e;
	struct fit f, before;
	size_t i, m;

	(void)state;
	memset(&f, 0x5a, sizeof f);
	before = f;
	for (m = 0; m < 4; m++) {
		for (i = 0; i < sizeof bad / sizeof *bad; i++) {
			p[1].throughput_bps = bad[i];
			assert_int_equal(fit_probes(&f, all[m], p, 3, &e), PTCP_EUSAGE);
		}
		p[1].throughput_bps = 50;
		p[1].error_bps = NAN;
		assert_int_equal(fit_probes(&f, all[m], p, 3, &e), PTCP_EUSAGE);
		p[1].error_bps = 0;
		p[1].streams = 0;
		assert_int_equal(fit_probes(&f, all[m], p, 3, &e), PTCP_EUSAGE);
		p[1].streams = 1;
		assert_int_equal(fit_probes(&f, all[m], p, 2, &e), PTCP_EUSAGE);
		assert_int_equal(fit_probes(&f, all[m], p, 1, &e), PTCP_EUSAGE);
		assert_int_equal(fit_probes(&f, all[m], p, 0, &e), PTCP_EUSAGE);
		p[1].streams = 10;
	}
	assert_int_equal(fit_probes(&f, FIT_QUADRATIC, p, 2, &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "quadratic needs 3"));
	assert_memory_equal(&f, &before, sizeof f);
}

/* Repeats count: two probes at one level draw the curve between them, the one
 * with the smaller error closer. */
static void errors_weigh(void **state)
{
	struct probe p[] = { { 1, 10, 1 }, { 1, 14, 1 }, { 10, 50, 1 } };
	struct fit f;
	double middle;

	(void)state;
	assert_int_equal(fit_probes(&f, FIT_FAIR_SHARE, p, 3, NULL), 0);
	middle = fit_throughput_bps(&f, 1);
	assert_true(middle > 10 && middle < 14);
	p[1].error_bps = 0.1;
	assert_int_equal(fit_probes(&f, FIT_FAIR_SHARE, p, 3, NULL), 0);
	assert_true(fit_throughput_bps(&f, 1) > middle);
	assert_near(fit_throughput_bps(&f, 1), 14, 0.01);
}

/* What is usual is nothing beside good probes, and a good part of the answer beside bad ones; it
 * never changes what was fitted, nor another model. */
static void usual_counts_where_probes_scatter(void **state)
{
	struct probe p[] = { { 4, 400e6 / 24, 0 }, { 15, 1500e6 / 35, 0 } }; /* 20 others */
	struct fit f, plain, again;
	double last = 21, others;
	int i, error;

	(void)state;
	assert_int_equal(fit_probes(&plain, FIT_FAIR_SHARE, p, 2, NULL), 0);
	for (error = 1; error <= 100; error *= 10) {
		for (i = 0; i < 2; i++)
			p[i].error_bps = 0.01 * error * p[i].throughput_bps;
		assert_int_equal(fit_probes_prior(&f, FIT_AUTO, FIT_PRIOR_OTHERS, p, 2, NULL), 0);
		assert_int_equal(f.model, FIT_FAIR_SHARE);
		assert_near(f.raw[0], plain.raw[0], 1e-9);
		assert_near(f.raw[1], plain.raw[1], 1e-9);
		others = f.used[1] / f.used[0];
		assert_true(others > FIT_PRIOR_OTHERS && others < last);
		assert_true(error > 1 || others > 19);
		assert_true(error < 100 || others < 7);
		last = others;
	}
	assert_near(f.prior_others, FIT_PRIOR_OTHERS, 0);
	assert_int_equal(fit_like(&again, &f, p, 2, NULL), 0);
	assert_memory_equal(&again, &f, sizeof f);
	f.prior_others = 20;
	assert_int_equal(fit_like(&again, &f, p, 2, NULL), 0);
	assert_near(again.used[1] / again.used[0], 20, 1e-6);
	assert_int_equal(fit_like(&again, &plain, p, 2, NULL), 0);
	assert_near(again.used[1] / again.used[0], 20, 1e-6);
	assert_near(again.prior_others, 0, 0);
}

/* One level and what is usual are two observations; one level alone is not enough, nor is it for other models. */
static void usual_stands_in_for_a_level(void **state)
{
	struct probe p[] = { { 4, 40e6, 0 }, { 4, 40e6, 0 } };
	struct fit f;

	(void)state;
	assert_int_equal(fit_probes_prior(&f, FIT_AUTO, 6, p, 2, NULL), 0);
	assert_near(f.used[0], 1 / 100e6, 1e-12);
	assert_near(f.used[1] / f.used[0], 6, 1e-6);
	assert_near(fit_throughput_bps(&f, 14), 70e6, 1);
	assert_int_equal(fit_probes(&f, FIT_AUTO, p, 2, NULL), PTCP_EUSAGE);
	assert_int_equal(fit_probes_prior(&f, FIT_PARTIAL_QUADRATIC, 6, p, 2, NULL), PTCP_EUSAGE);
}

/* As given there is no congestion; of a group that grew, the first probe tells little, and what is usual stands in for
 * it. */
static void more_than_in_proportion(void **state)
{
	struct probe given[] = { { 4, 6.6, 0 }, { 15, 35.5, 0 } };
	struct fit f;

	(void)state;
	assert_int_equal(fit_probes(&f, FIT_AUTO, given, 2, NULL), 0);
	assert_int_equal(f.flags, FIT_NO_CONGESTION);
	probe_grew(&given[0], &given[1], 1);
	assert_int_equal(fit_probes_prior(&f, FIT_AUTO, FIT_PRIOR_OTHERS, given, 2, NULL), 0);
	assert_int_equal(f.flags, 0);
	assert_true(f.raw[0] < 0 && f.used[0] > 0);
}

static void auto_follows_evidence(void **state)
{
	static const unsigned levels[] = { 1, 4, 10, 20, 30 };
	struct fit truth = { .model = FIT_PARTIAL_QUADRATIC, .used = { 1, 20, 0 } };
	struct probe p[5];
	struct fit f;
	int i, sure;

	(void)state;
	for (sure = 0; sure < 2; sure++) {
		for (i = 0; i < 5; i++) {
			p[i].streams = levels[i];
			p[i].throughput_bps = fit_throughput_bps(&truth, levels[i]);
			p[i].error_bps = sure ? p[i].throughput_bps * 0.01 : 0;
		}
		/* Two levels cannot tell; three can when the probes are good. */
		p[1] = p[2];
		assert_int_equal(fit_probes(&f, FIT_AUTO, p, 2, NULL), 0);
		assert_int_equal(f.model, FIT_FAIR_SHARE);
		p[1].streams = 4;
		p[1].throughput_bps = fit_throughput_bps(&truth, 4);
		p[1].error_bps = sure ? p[1].throughput_bps * 0.01 : 0;
		assert_int_equal(fit_probes(&f, FIT_AUTO, p, 5, NULL), 0);
		assert_int_equal(f.model, sure ? FIT_PARTIAL_QUADRATIC : FIT_FAIR_SHARE);
	}
	/* Nothing makes it take the linear model, which is there for comparison. */
	truth = (struct fit){ .model = FIT_LINEAR, .used = { 1, 5, 0 } };
	for (i = 0; i < 5; i++) {
		p[i].throughput_bps = fit_throughput_bps(&truth, levels[i]);
		p[i].error_bps = p[i].throughput_bps * 0.01;
	}
	assert_int_equal(fit_probes(&f, FIT_AUTO, p, 5, NULL), 0);
	assert_int_not_equal(f.model, FIT_LINEAR);
	/* Through three levels the quadratic always goes: no evidence for it. */
	truth = (struct fit){ .model = FIT_QUADRATIC, .used = { 1, 60, 100 } };
	for (i = 0; i < 5; i++) {
		p[i].throughput_bps = fit_throughput_bps(&truth, levels[i]);
		p[i].error_bps = p[i].throughput_bps * 0.001;
	}
	assert_int_equal(fit_probes(&f, FIT_AUTO, p, 3, NULL), 0);
	assert_int_not_equal(f.model, FIT_QUADRATIC);
	assert_int_equal(fit_probes(&f, FIT_AUTO, p, 5, NULL), 0);
	assert_int_equal(f.model, FIT_QUADRATIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(worked_equations),
		cmocka_unit_test(fair_share_reads_the_link),
		cmocka_unit_test(fair_share_is_nearer_on_linux),
		cmocka_unit_test(every_model_finds_itself),
		cmocka_unit_test(curves_are_monotone),
		cmocka_unit_test(used_is_the_best_allowed),
		cmocka_unit_test(degenerate_shapes),
		cmocka_unit_test(what_is_no_probe),
		cmocka_unit_test(errors_weigh),
		cmocka_unit_test(usual_counts_where_probes_scatter),
		cmocka_unit_test(usual_stands_in_for_a_level),
		cmocka_unit_test(more_than_in_proportion),
		cmocka_unit_test(auto_follows_evidence),
	};
	return cmocka_run_group_tests_name("model/fit", tests, NULL, NULL);
}
