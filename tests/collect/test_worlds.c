/* Whole collections in drawn networks: no competing flows are seen in empty networks, wrong overlays cost little,
 * and competing flows are found. Goals beyond these limits: nothing seen in any draw, 1.25 times the least time at
 * the worst, competing flows found within 5 s in nine of ten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "collect/collect_world.h"

/* Seeds of the worlds. FIRST_SEED and DRAWS of the environment draw others, WORLD_TRACE prints the events of each. */
#define DRAWS 30
#define FIRST_SEED 1

static uint64_t first_seed(void)
{
	return getenv("FIRST_SEED") != NULL ? strtoull(getenv("FIRST_SEED"), NULL, 10) : FIRST_SEED;
}

static size_t draws(void)
{
	return getenv("DRAWS") != NULL ? strtoull(getenv("DRAWS"), NULL, 10) : DRAWS;
}

struct tally {
	double ratio[1000];
	size_t n, found;
};

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void add(struct tally *t, const struct world_outcome *o, uint64_t seed, const char *what)
{
	t->ratio[t->n++] = o->seconds / o->best_s;
	t->found += o->found > 0;
	if (getenv("WORLD_TRACE") != NULL)
		fprintf(stderr, "# %s %llu: %.1f s of %.1f, %.2f%s, %u plans, %zu shared\n", what,
		    (unsigned long long)seed, o->seconds, o->best_s, o->seconds / o->best_s,
		    o->found > 0 ? ", seen" : "", o->plans, o->shared);
}

static double at_quantile(struct tally *t, double q)
{
	qsort(t->ratio, t->n, sizeof *t->ratio, by_size);
	return t->ratio[(size_t)ceil(q * (double)(t->n - 1))];
}

/* Limits: draws with competing flows seen, per 60; time over the least time, median and nine in ten. */
static void judge(struct tally *t, const char *what, size_t seen, double median, double most)
{
	printf("# %s: %zu of %zu see competing flows; over the least time %.2f median, %.2f at 0.9, %.2f worst\n", what,
	    t->found, t->n, at_quantile(t, 0.5), at_quantile(t, 0.9), at_quantile(t, 1));
	if (t->found > (seen * t->n + 59) / 60)
		fail_msg("%s: competing flows in %zu of %zu empty networks", what, t->found, t->n);
	if (at_quantile(t, 0.5) > median || at_quantile(t, 0.9) > most)
		fail_msg("%s: %.2f median and %.2f at 0.9, instead of %.2f and %.2f", what, at_quantile(t, 0.5),
		    at_quantile(t, 0.9), median, most);
}

static void right_overlays(void **state)
{
	struct tally t = { .n = 0 };
	struct world_outcome o;
	struct world w;
	uint64_t seed;

	(void)state;
	for (seed = first_seed(); seed < first_seed() + draws(); seed++) {
		world_draw(&w, seed);
		world_collect(&w, &o);
		add(&t, &o, seed, "right");
	}
	judge(&t, "right overlays", 0, 1.15, 1.25);
}

static void one_rate_is_told_wrong(double ratio, const char *what, double median, double most)
{
	struct tally t = { .n = 0 };
	struct world_outcome o;
	struct world w;
	uint64_t seed;

	for (seed = first_seed(); seed < first_seed() + draws(); seed++) {
		world_draw(&w, seed);
		w.point[seed % w.points].told_ratio = ratio;
		world_collect(&w, &o);
		add(&t, &o, seed, what);
	}
	judge(&t, what, 0, median, most);
}

static void rates_five_times_too_high(void **state)
{
	(void)state;
	one_rate_is_told_wrong(5, "5 times too high", 1.15, 1.35);
}

static void rates_five_times_too_low(void **state)
{
	(void)state;
	one_rate_is_told_wrong(0.2, "5 times too low", 1.25, 1.5);
}

static void bottlenecks_that_nobody_told(void **state)
{
	struct tally t = { .n = 0 };
	struct world_outcome o;
	struct world w;
	uint64_t seed;

	(void)state;
	for (seed = first_seed(); seed < first_seed() + draws(); seed++) {
		world_draw(&w, seed);
		w.blind = true;
		world_collect(&w, &o);
		add(&t, &o, seed, "blind");
	}
	judge(&t, "no shared bottlenecks told", 14, 1.2, 1.4);
}

/* A point falls to a sixth in the course of the collection. */
static void points_that_fall(void **state)
{
	struct tally t = { .n = 0 };
	struct world_outcome o;
	struct world w;
	uint64_t seed;

	(void)state;
	for (seed = first_seed(); seed < first_seed() + draws(); seed++) {
		world_draw(&w, seed);
		w.point[seed % w.points].later_at_s = 5 + (double)(seed % 7);
		w.point[seed % w.points].later_bps = w.point[seed % w.points].bps / 6;
		world_collect(&w, &o);
		add(&t, &o, seed, "falls");
	}
	judge(&t, "a point falls", 7, 1.2, 1.55);
}

static void competing_flows_are_found(void **state)
{
	size_t n = 0, soon = 0, ever = 0;
	struct world_outcome o;
	struct world w;
	uint64_t seed;

	(void)state;
	for (seed = first_seed(); seed < first_seed() + draws(); seed++) {
		world_draw(&w, seed);
		w.point[0].others = 2 + (unsigned)(seed % 11);
		w.point[0].others_from_s = 0;
		world_collect(&w, &o);
		n++;
		ever += o.found > 0;
		soon += o.found_s <= 6; /* 5 s after the first data of all */
		if (getenv("WORLD_TRACE") != NULL)
			fprintf(stderr, "# beside %u others, %llu: %.1f s, found after %.1f s, %u times, %.2f Mbit/s\n",
			    w.point[0].others, (unsigned long long)seed, o.seconds, o.found_s, o.found,
			    o.others_bps / 1e6);
	}
	printf("# competing flows: found in %zu of %zu, within 5 s in %zu\n", ever, n, soon);
	if (10 * ever < 6 * n || 30 * soon < n)
		fail_msg("competing flows are found in %zu of %zu, within 5 s in %zu", ever, n, soon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_overlays), cmocka_unit_test(rates_five_times_too_high),
		cmocka_unit_test(rates_five_times_too_low), cmocka_unit_test(bottlenecks_that_nobody_told),
		cmocka_unit_test(points_that_fall), cmocka_unit_test(competing_flows_are_found),
	};

	return cmocka_run_group_tests_name("collect/worlds", tests, NULL, NULL);
}
