/* Named limits of paths. The oracle is a world of single packets (packet_path.h), which knows what limits it: a name is
 * right if the world has this limit, and is missing where the limit costs throughput. WORLDS and FIRST choose other
 * worlds than the few of `make check`; the first 1,000 were used to find the parameters. */
#include "model/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/advice.h"
#include "model/packet_path.h"
#include "model/path_limit.h"

#define FIRST 20001 /* none that the parameters were made for */
#define WORLDS 140
#define COSTS 0.93  /* less of the throughput of many streams with one */
#define SHALLOW_PACKETS 32

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *v = getenv(name);

	return v != NULL ? strtoul(v, NULL, 10) : otherwise;
}

/* ---- The oracle ---- */

static bool has(const struct packet_path *p, enum path_limit l)
{
	switch (l) {
	case PATH_LIMIT_POLICER: return p->police_bps > 0;
	case PATH_LIMIT_SHALLOW: return p->queue <= SHALLOW_PACKETS;
	case PATH_LIMIT_LOSS: return p->loss_ratio > 0;
	default: return false;
	}
}

/* Whether it should be named: it costs one stream some of what many obtain, and competing flows don't hide it. */
static bool costs(const struct packet_path *p, enum path_limit l, uint64_t seed)
{
	if (!has(p, l))
		return false;
	if (l == PATH_LIMIT_SHALLOW || l == PATH_LIMIT_LOSS)
		return p->others == 0 && packet_path_truth(p, seed, 1, 30, NULL) <
		    COSTS * packet_path_truth(p, seed, 15, 15, NULL);
	return true;
}

struct score {
	unsigned right, wrong, found, missing, alone, not_alone;
};

static void judge(struct score of[PATH_LIMITS], const struct packet_path *p, const struct advice *a, uint64_t seed)
{
	enum path_limit named = a->path_limit.limit;
	int l;

	if (named != PATH_LIMIT_NONE)
		(*(has(p, named) ? &of[named].right : &of[named].wrong))++;
	if (a->path_limit.alone)
		(*(p->others == 0 ? &of[named].alone : &of[named].not_alone))++;
	for (l = PATH_LIMIT_NONE + 1; l < PATH_LIMITS; l++)
		if (costs(p, (enum path_limit)l, seed))
			(*((int)named == l ? &of[l].found : &of[l].missing))++;
}

static void advise(struct advice *a, const struct packet_path *p, uint64_t seed)
{
	struct advice_opts o;
	struct evidence e;

	advice_opts_init(&o);
	o.congestion = ADVICE_CC_CUBIC;
	packet_path_evidence(p, seed, &e);
	assert_int_equal(advice_from_evidence(a, &e, &o, NULL), 0);
}

static double part(unsigned n, unsigned of) { return of > 0 ? (double)n / (n + of) : 1; }

static void names_are_right(void **state)
{
	unsigned long first = setting("FIRST", FIRST), worlds = setting("WORLDS", WORLDS), seed;
	static const double precision[PATH_LIMITS] = { [PATH_LIMIT_POLICER] = 0.95,
		[PATH_LIMIT_SHALLOW] = 0.9, [PATH_LIMIT_LOSS] = 0.85 };
	static const double recall[PATH_LIMITS] = { [PATH_LIMIT_POLICER] = 0.8, [PATH_LIMIT_SHALLOW] = 0.5,
		[PATH_LIMIT_LOSS] = 0.7 };
	struct score of[PATH_LIMITS] = { 0 };
	unsigned plain = 0, plain_named = 0;
	int l;

	(void)state;
	for (seed = first; seed < first + worlds; seed++) {
		struct packet_path p = packet_path_draw(seed);
		struct advice a;

		advise(&a, &p, seed);
		judge(of, &p, &a, seed);
		if (p.limit == PACKET_LINK || (p.limit == PACKET_OTHERS && p.queue > SHALLOW_PACKETS)) {
			plain++;
			plain_named += a.path_limit.limit != PATH_LIMIT_NONE;
		}
	}
	for (l = PATH_LIMIT_NONE + 1; l < PATH_LIMITS; l++) {
		printf("#> %s: %u of %u names are right, %u of %u limits are named\n",
		    path_limit_name((enum path_limit)l), of[l].right, of[l].right + of[l].wrong, of[l].found,
		    of[l].found + of[l].missing);
		assert_true(part(of[l].right, of[l].wrong) >= precision[l]);
		assert_true(part(of[l].found, of[l].missing) >= recall[l]);
	}
	printf("#> nobody shares %u of %u policers that nobody should share\n", of[PATH_LIMIT_POLICER].alone,
	    of[PATH_LIMIT_POLICER].alone + of[PATH_LIMIT_POLICER].not_alone);
	assert_true(part(of[PATH_LIMIT_POLICER].alone, of[PATH_LIMIT_POLICER].not_alone) >= 0.97);
	printf("#> %u of %u worlds without such a limit have a name\n", plain_named, plain);
	assert_true(plain_named <= 0.1 * plain);
}

/* ---- Numbers ---- */

/* The review's world: an idle path behind a policer, told 11.4 Mbit/s and 35 % from others who were not there. */
static void names_reach_the_numbers(void **state)
{
	static const struct packet_path policed = { .limit = PACKET_POLICER, .rate_bps = 100e6, .rtt_s = 0.058,
		.queue = 400, .back_bps = 1e9, .back_queue = 1000, .police_bps = 20e6, .police_bytes = 250e3 };
	struct advice_point beyond;
	struct advice a;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++) {
		double best_bps = packet_path_truth(&policed, seed, 15, 20, NULL), bps;

		advise(&a, &policed, seed);
		assert_int_equal(a.path_limit.limit, PATH_LIMIT_POLICER);
		assert_true(a.path_limit.alone && a.measured);
		assert_int_equal(a.others, ADVICE_OTHERS_NONE);
		assert_true(a.impact_ratio == 0 && a.impact_total_ratio == 0);
		bps = packet_path_truth(&policed, seed, a.streams, 40, NULL);
		printf("#> %u streams: told %.1f, true %.1f of %.1f Mbit/s\n", a.streams, a.throughput_bps / 1e6,
		    bps / 1e6, best_bps / 1e6);
		assert_true(bps >= 0.9 * best_bps && bps >= a.throughput_low_bps && bps <= a.throughput_high_bps);
		advice_at(&a, 100, &beyond); /* nothing is known of */
		assert_true(beyond.throughput_bps == a.curve[14].throughput_bps);
	}
}

/* Other flows share the policer: they lose what our streams gain, and the warning reaches the confidence. */
static void a_shared_policer_has_impact(void **state)
{
	static const struct packet_path shared = { .limit = PACKET_POLICER, .rate_bps = 100e6, .rtt_s = 0.058,
		.queue = 400, .back_bps = 1e9, .back_queue = 1000, .police_bps = 20e6, .police_bytes = 250e3,
		.others = 2 };
	unsigned named = 0;
	struct advice a;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++) {
		advise(&a, &shared, seed);
		if (a.path_limit.limit != PATH_LIMIT_POLICER)
			continue;
		named++;
		assert_true(!a.path_limit.alone && !a.measured && !a.confident);
		assert_true(a.warnings & ADVICE_WARN_PATH);
	}
	assert_in_range(named, 3, 5);
}

/* The rate of a policer, and its burst, as the remedy needs them. */
static void policers_are_measured(void **state)
{
	unsigned n, rates = 0, bursts = 0, named = 0;
	uint64_t seed;

	(void)state;
	for (seed = FIRST; seed < FIRST + 40; seed++) {
		struct packet_path p = packet_path_of(PACKET_POLICER, seed);
		struct advice a;
		double rate, burst;

		p.others = 0;
		advise(&a, &p, seed);
		if (a.path_limit.limit != PATH_LIMIT_POLICER)
			continue;
		rate = a.path_limit.rate_bps * 1500 / 1448 / p.police_bps;
		burst = a.path_limit.burst_bytes / p.police_bytes;
		named++;
		rates += rate > 0.95 && rate <= 1.02;
		bursts += burst > 0.5 && burst < 2;
	}
	n = named;
	printf("#> of %u policers %u have their rate within 5 %%, %u their burst within a factor of 2\n", n, rates,
	    bursts);
	assert_true(rates >= 0.8 * n && bursts >= 0.7 * n && n >= 30);
}

/* ---- Sentences ---- */

static void each_limit_has_a_remedy(void **state)
{
	struct path_limit_found l = { .rate_bps = 20e6, .burst_bytes = 250e3, .queue_packets = 15, .loss_ratio = 0.005,
		.alone = false };
	char text[PATH_LIMIT_TEXT_BYTES];
	int i;

	(void)state;
	for (i = PATH_LIMIT_NONE + 1; i < PATH_LIMITS; i++) {
		l.limit = (enum path_limit)i;
		assert_true(strlen(path_limit_text(text, &l)) < PATH_LIMIT_TEXT_BYTES - 20);
		assert_non_null(strchr(text, '('));
		assert_int_equal(text[strlen(text) - 1], ')');
	}
	l.limit = PATH_LIMIT_POLICER;
	l.alone = true;
	assert_string_equal(path_limit_text(text, &l), "a policer drops what exceeds about 20.0 Mbit/s after a burst "
	    "of about 250 kB: more streams only lose more (send with --rate slightly below, where little is "
	    "lost)");
	l.limit = PATH_LIMIT_NONE;
	assert_string_equal(path_limit_text(text, &l), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_right),
		cmocka_unit_test(names_reach_the_numbers),
		cmocka_unit_test(a_shared_policer_has_impact),
		cmocka_unit_test(policers_are_measured),
		cmocka_unit_test(each_limit_has_a_remedy),
	};

	return cmocka_run_group_tests_name("model/path_limit", tests, NULL, NULL);
}
