/* Many controllers on shared relays: a small form of make multipath-report, and
 * what the paper proves. */
#include "model/near.h"

#include <string.h>

#include "bench/multipath/study.h"
#include "model/stats.h"
#include "quantile.h"

static struct ratectl_opts exact(double eps_ratio)
{
	struct ratectl_opts o;

	ratectl_opts_init(&o);
	o.delta_ratio = 0;
	o.eps_ratio = eps_ratio;
	return o;
}

static void small_study(void **state)
{
	static const double skews[] = { 0, 0.5, 1 }, loads[] = { 0.6, 1, 1.6, 2 };
	static struct study s;
	struct ratectl_opts o = exact(0.01);
	struct study_outcome out;
	double gap[36], converged[36];
	struct stats g;
	struct rng r = { 1 };
	size_t b, f, i, n = 0;

	(void)state;
	for (b = 0; b < 3; b++)
		for (f = 0; f < 4; f++)
			for (i = 0; i < 3; i++) {
				study_init(&s, 2, skews[b], loads[f], 0, &r);
				study_choose(&s, false, 0, &r);
				study_run(&s, &o, &r, &out);
				gap[n] = 1 - out.reached / out.optimum;
				converged[n++] = (double)out.converged;
				assert_true(gap[n - 1] > -1e-9);
			}
	stats_of(&g, gap, n);
	stats_sort(converged, n);
	print_message("# gap mean %.2f %%, max %.2f %%; converged median %.0f, p90 %.0f\n",
	    g.mean * 100, g.max * 100, quantile(converged, n, 0.5),
	    quantile(converged, n, 0.9));
	assert_true(g.mean <= 0.008 && g.max <= 0.045);
	assert_true(quantile(converged, n, 0.5) <= 22);
	assert_true(quantile(converged, n, 0.9) <= 55);
}

static void small_network(struct study *s, size_t sources, size_t relays, size_t k, double f,
    struct rng *r)
{
	double total = 0;
	size_t i;

	s->sharing = STUDY_PROPORTIONAL;
	s->sources = sources;
	s->relays = relays;
	s->k = k;
	for (i = 0; i < sources; i++)
		s->demand[i] = 1;
	for (i = 0; i < relays; i++)
		total += s->capacity[i] = 0.1 + rng_uniform(r);
	for (i = 0; i < relays; i++)
		s->capacity[i] *= f * (double)sources / total;
	study_choose(s, false, 0, r);
}

/* Theorem 1: one destination, one relay a path, small steps: the optimum is
 * reached, and the closer the smaller the steps. It holds where all flows feel a
 * full relay; see enum study_sharing. */
static void small_steps_reach_the_optimum(void **state)
{
	static struct study s;
	static const double eps[] = { 0.02, 0.002 };
	double gap[2] = { 0 }, worst = 0, reached, optimum;
	struct rng r = { 2 };
	int round, i, t;

	(void)state;
	for (round = 0; round < 20; round++) {
		small_network(&s, 20, 15, 2, 0.6 + 1.2 * rng_uniform(&r), &r);
		optimum = study_optimum(&s);
		for (i = 0; i < 2; i++) {
			struct ratectl_opts o = exact(eps[i]);

			study_start(&s, &o);
			for (reached = 0, t = 0; t < 8000; t++) {
				double got = study_interval(&s, &r);

				assert_true(got <= optimum * (1 + 1e-9));
				if (t >= 6000)
					reached += got / 2000;
			}
			gap[i] += (1 - reached / optimum) / 20;
			if (i == 1)
				worst = fmax(worst, 1 - reached / optimum);
		}
	}
	print_message("# mean gap %.3f %% with steps of 2 %%, %.3f %% with 0.2 %% (worst %.3f %%)\n",
	    gap[0] * 100, gap[1] * 100, worst * 100);
	assert_true(gap[1] < gap[0] / 4);
	assert_true(worst < 0.003);
}

/* Corollary 2: where some choice of paths satisfies all, k-reselection finds one. */
static void reselection_finds_a_choice(void **state)
{
	static struct study s;
	struct ratectl_opts o = exact(0.01);
	struct rng r = { 3 };
	unsigned most = 0, n;
	int round;

	(void)state;
	for (round = 0; round < 20; round++) {
		/* Such a choice exists: source i on relays i and i + 1 has enough. */
		small_network(&s, 8, 8, 2, 1, &r);
		for (n = 0; n < 8; n++)
			s.capacity[n] = 0.9 + 0.6 * (n % 2);
		n = study_reselect(&s, &o, RESELECT_ALL, false, 1000, &r);
		assert_true(n < 1000);
		if (n > most)
			most = n;
	}
	print_message("# at most %u reselections\n", most);
	assert_true(most > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_study),
		cmocka_unit_test(small_steps_reach_the_optimum),
		cmocka_unit_test(reselection_finds_a_choice),
	};
	return cmocka_run_group_tests_name("model/study", tests, NULL, NULL);
}
