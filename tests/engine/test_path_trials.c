/* The selection among candidates in a simulated network with random bandwidths: make multipath-report has more
 * draws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "bench/multipath/candidates_cases.h"

#define DRAWS 60
#define SCATTER 6 /* percentage points: of fewer draws */

static void after_20_s_the_best_paths_are_in_use(void **state)
{
	struct candidates_figures f;
	struct rng r = { 11 };
	size_t i;

	(void)state;
	for (i = 0; i < CANDIDATES_CASES; i++) {
		candidates_measure(&candidates_cases[i], DRAWS, CANDIDATES_MEASURED_S, &r, &f);
		if (f.good < candidates_cases[i].mark - SCATTER)
			fail_msg("%s: 90 %% of the best paths in %.1f %% of the draws, not %.0f",
			    candidates_cases[i].name, f.good, candidates_cases[i].mark);
	}
}

/* n candidates of `bps` each, 50 ms. */
static void equal(struct candidates *w, size_t n, size_t places, double bps)
{
	struct rng r = { 1 };
	size_t i;

	candidates_draw(w, n, places, &r);
	for (i = 0; i < n; i++) {
		w->bps[i] = bps;
		w->rtt_s[i] = 0.05;
	}
}

static void equal_paths_do_not_flap(void **state)
{
	static struct candidates_run x;
	struct candidates w;
	struct rng r = { 3 };
	unsigned i, n = 0;

	(void)state;
	equal(&w, 6, 2, 40e6);
	for (i = 0; i < 20; i++) {
		candidates_run(&w, true, 120, &r, &x);
		n += candidates_replaced(&x, 20, 120);
	}
	assert_true(n <= 2); /* in 2000 s */
}

static void short_transfers_lose_little(void **state)
{
	static struct candidates_run x, fixed;
	struct candidates w;
	struct rng r = { 5 };

	(void)state;
	equal(&w, 4, 2, 40e6); /* nothing to gain */
	candidates_run(&w, false, 10, &r, &fixed);
	candidates_run(&w, true, 10, &r, &x);
	assert_true(candidates_mean_bps(&x, 0, 10) >= 0.93 * candidates_mean_bps(&fixed, 0, 10));
	w.left_bits = 5 * 80e6; /* it ends before trials pay off */
	candidates_run(&w, true, 5, &r, &x);
	assert_int_equal(candidates_replaced(&x, 0, 5), 0);
}

/* The first choice, before any trial. */
static void known_bandwidths_weigh_the_first_choice(void **state)
{
	static struct candidates_run x;
	struct candidates w;
	struct rng r = { 9 };
	double weighed = 0, uniform = 0;
	unsigned i;

	(void)state;
	for (i = 0; i < 200; i++) {
		candidates_draw(&w, 8, 2, &r);
		candidates_run(&w, false, 3, &r, &x);
		uniform += candidates_mean_bps(&x, 2, 3) / candidates_best_bps(&w, 0);
		memcpy(w.known, w.bps, sizeof w.known);
		candidates_run(&w, false, 3, &r, &x);
		weighed += candidates_mean_bps(&x, 2, 3) / candidates_best_bps(&w, 0);
	}
	assert_true(weighed >= 1.2 * uniform);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_20_s_the_best_paths_are_in_use), cmocka_unit_test(equal_paths_do_not_flap),
		cmocka_unit_test(short_transfers_lose_little),
		cmocka_unit_test(known_bandwidths_weigh_the_first_choice),
	};

	return cmocka_run_group_tests_name("engine/path_trials", tests, NULL, NULL);
}
