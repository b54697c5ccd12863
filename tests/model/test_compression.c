/* The choice of a level, in a simulated world: a path, processors and data, drawn at random, and every fixed level
 * as the oracle. */
#include "model/compression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "model/rng.h"

#define STEP_S .25

/* What the model does not know. Costs and gains of levels differ from the table of the model by up to a tenth. */
struct world {
	double path_bytes_s, source_bytes_s; /* rates of the path, and of the disk that the data is read from */
	double speed_bytes_s;                /* of a thread, by the fastest level */
	double ratio;                        /* 1: the data does not shrink, and most of it is not tried */
	double odd;                          /* factor of the costs and savings of slower levels */
	unsigned threads;
};

static const int levels[] = { 0, 1, 5, 9 };

static double saving(const struct world *w, int level)
{
	double gain = level == 0 ? 0 : level == 1 ? 1 : (level == 5 ? 1.1 : 1.15) * w->odd;

	return 1 + (w->ratio - 1) * gain;
}

static double speed(const struct world *w, int level)
{
	double cost = level == 1 ? 1 : (level == 5 ? 2.5 : 7) / w->odd;

	return level == 0 ? INFINITY : w->speed_bytes_s / cost * (w->ratio > 1 ? 1 : 32);
}

/* Bytes of data per second that arrive by this level. */
static double arrives(const struct world *w, int level)
{
	return fmin(w->source_bytes_s, fmin(w->path_bytes_s * saving(w, level), w->threads * speed(w, level)));
}

/* By the best level that leaves processor time: the fastest level has .8, others have half of all, if the model's
 * table is right. */
static double best(const struct world *w)
{
	static const double shares[] = { 1, .8, .4, .4 };
	double most = 0;
	unsigned i;

	for (i = 0; i < sizeof levels / sizeof *levels; i++)
		if (arrives(w, levels[i]) < shares[i] * w->threads * speed(w, levels[i]))
			most = fmax(most, arrives(w, levels[i]));
		else if (i == 1)
			most = fmax(most, shares[i] * w->threads * speed(w, levels[i]));
	return most;
}

/* Mean rate at which data arrives from `from_s` to `until_s`, of an infinite transfer. */
static double run(const struct world *w, struct compression *c, double from_s, double until_s)
{
	double t, rate, tried, all = 0;
	int level;

	for (t = 0; t < until_s; t += STEP_S) {
		rate = arrives(w, c->level);
		if (t >= from_s)
			all += rate * STEP_S;
		level = c->level > 0 ? c->level : COMPRESSION_FASTEST;
		tried = c->level > 0 ? rate * STEP_S : 1 << 18;
		compression_add(c, &(struct compression_sample){ .took_s = STEP_S, .data_bytes = tried,
		    .packed_bytes = tried / saving(w, level), .pack_s = tried / speed(w, level),
		    .sent_bytes = rate * STEP_S / saving(w, c->level),
		    .full = w->path_bytes_s * saving(w, c->level) <= rate * (1 + 1e-9), .threads = w->threads });
	}
	return all / (until_s - from_s);
}

static double uniform(struct rng *r, double a, double b) { return a + (b - a) * rng_uniform(r); }

/* Rates of 100 kB/s to 10 GB/s, processors of 20 MB/s to 1 GB/s, data that shrinks to a tenth at most. */
static struct world drawn(struct rng *r)
{
	return (struct world){ .path_bytes_s = pow(10, uniform(r, 5, 10)), .source_bytes_s = INFINITY,
		.speed_bytes_s = pow(10, uniform(r, 7.3, 9)), .ratio = rng_uniform(r) < .2 ? 1 : uniform(r, 1.05, 10),
		.odd = uniform(r, .9, 1.1), .threads = 1 + (unsigned)(rng_uniform(r) * 8) };
}

/* At least nine tenths of what the best level brings, from the second second on, whatever the RTT had suggested. */
static void as_fast_as_the_best(void **state)
{
	struct compression c;
	struct world w;
	struct rng r = { 1 };
	unsigned i;
	double got;

	(void)state;
	for (i = 0; i < 20000; i++) {
		w = drawn(&r);
		compression_init(&c);
		compression_begin(&c, i % 2 == 0 ? .02 : 0);
		got = run(&w, &c, 2, 30);
		if (got < .9 * best(&w))
			fail_msg("draw %u: path %.3g, processors %u of %.3g, ratio %.3g: %.3g of %.3g", i,
			    w.path_bytes_s, w.threads, w.speed_bytes_s, w.ratio, got, best(&w));
	}
}

/* A path that becomes faster or slower: found within five seconds. */
static void changes(void **state)
{
	struct compression c;
	struct world w, after;
	struct rng r = { 2 };
	unsigned i;
	double got;

	(void)state;
	for (i = 0; i < 5000; i++) {
		after = w = drawn(&r);
		after.path_bytes_s = drawn(&r).path_bytes_s;
		compression_init(&c);
		run(&w, &c, 0, 10);
		got = run(&after, &c, 5, 15);
		if (got < .9 * best(&after))
			fail_msg("draw %u: path %.3g > %.3g, processors %u of %.3g, ratio %.3g: %.3g of %.3g", i,
			    w.path_bytes_s, after.path_bytes_s, w.threads, w.speed_bytes_s, w.ratio, got, best(&after));
	}
}

/* A near path that was never full has no compression: the disk, or the processor, is the limit. */
static void not_the_path(void **state)
{
	struct compression c;
	struct world w;
	struct rng r = { 3 };
	unsigned i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		w = drawn(&r);
		w.source_bytes_s = .9 * w.path_bytes_s;
		compression_init(&c);
		compression_begin(&c, 1e-4);
		run(&w, &c, 0, 10);
		assert_int_equal(c.level, 0);
	}
}

/* Random data followed by text: a slow path goes on trying. */
static void data_changes(void **state)
{
	struct compression c;
	struct world w = { .path_bytes_s = 1e6, .source_bytes_s = INFINITY, .speed_bytes_s = 2e8, .ratio = 1, .odd = 1,
		.threads = 2 };

	(void)state;
	compression_init(&c);
	compression_begin(&c, .01);
	run(&w, &c, 0, 60);
	assert_int_equal(c.level, COMPRESSION_FASTEST);
	w.ratio = 4;
	assert_true(run(&w, &c, 2, 10) > .9 * best(&w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_fast_as_the_best), cmocka_unit_test(changes), cmocka_unit_test(not_the_path),
		cmocka_unit_test(data_changes)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
