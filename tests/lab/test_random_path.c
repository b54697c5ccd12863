/* Random paths: ranges, variety, reproducibility, and topologies that the laboratory accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random_path.h"
#include "topo.h"

#define SEEDS 2000

static char *printed(uint64_t seed, double max_mbps, void (*print)(const struct random_path *, FILE *))
{
	struct random_path p;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	random_path_draw(&p, seed, max_mbps);
	assert_non_null(to);
	print(&p, to);
	fclose(to);
	return text;
}

static void the_same_seed_gives_the_same_path(void **state)
{
	char *a = printed(17, 300, random_path_topology), *b = printed(17, 300, random_path_topology);
	char *other = printed(18, 300, random_path_topology);

	(void)state;
	assert_string_equal(a, b);
	assert_string_not_equal(a, other);
	free(a);
	free(b);
	free(other);
}

/* The numbers of the issue that asked for these paths. */
static void paths_are_within_the_ranges(void **state)
{
	struct random_path p;
	unsigned i;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		random_path_draw(&p, seed, 300);
		assert_true(p.rate_mbps >= 4.99 && p.rate_mbps <= 300.1);
		assert_true(p.rtt_ms >= 4.99 && p.rtt_ms <= 250.1);
		assert_true(p.queue_packets >= 25);
		assert_true(p.queue_packets <= 50 || p.queue_packets <= 2.02 * random_path_bdp_packets(&p));
		assert_true(p.loss_percent >= 0 && p.loss_percent <= 0.5);
		assert_true(p.window_bytes == 0 || (p.window_bytes >= 16000 && p.window_bytes <= 1000000));
		assert_true(random_path_others(&p) <= 20);
		for (i = 0; i < p.groups; i++) {
			assert_true(p.group[i].flows > 0);
			assert_true(p.group[i].rtt_ms >= 4.99 && p.group[i].rtt_ms <= 250.1);
			assert_int_equal(p.group[i].on_s > 0, p.group[i].off_s > 0);
		}
	}
}

enum class {
	SLOW, FAST, NEAR, FAR, SHORT_QUEUE, LONG_QUEUE, RED, LOSS, WINDOW, RENO, CUBIC, BBR, NOBODY, FEW, MANY,
	OTHER_RENO, OTHER_BBR, MIXED, COME_AND_GO, MIXED_RTT, RANDOM_LOSS_ALONE, CLASSES
};

/* At least 2 % of the seeds are in each class, so that 60 seeds very likely have one. */
static void paths_vary(void **state)
{
	unsigned seeds[CLASSES] = { 0 }, i;
	struct random_path p;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		unsigned others;

		random_path_draw(&p, seed, 300);
		others = random_path_others(&p);
		seeds[SLOW] += p.rate_mbps < 10;
		seeds[FAST] += p.rate_mbps > 150;
		seeds[NEAR] += p.rtt_ms < 10;
		seeds[FAR] += p.rtt_ms > 150;
		seeds[SHORT_QUEUE] += p.queue_packets < 0.25 * random_path_bdp_packets(&p);
		seeds[LONG_QUEUE] += p.queue_packets > random_path_bdp_packets(&p);
		seeds[RED] += p.red;
		seeds[LOSS] += p.loss_percent > 0;
		seeds[WINDOW] += p.window_bytes > 0;
		seeds[RENO] += strcmp(p.congestion, "reno") == 0;
		seeds[CUBIC] += strcmp(p.congestion, "cubic") == 0;
		seeds[BBR] += strcmp(p.congestion, "bbr") == 0;
		seeds[NOBODY] += others == 0;
		seeds[FEW] += others == 1 || others == 2;
		seeds[MANY] += others > 10;
		seeds[OTHER_RENO] += p.groups > 0 && strcmp(p.group[0].congestion, "reno") == 0;
		seeds[OTHER_BBR] += p.groups > 0 && strcmp(p.group[0].congestion, "bbr") == 0;
		seeds[MIXED] += p.groups > 1 && strcmp(p.group[0].congestion, p.group[1].congestion) != 0;
		seeds[COME_AND_GO] += p.groups > 0 && p.group[0].on_s > 0;
		seeds[MIXED_RTT] += p.groups > 0 && p.group[0].rtt_ms != p.rtt_ms;
		seeds[RANDOM_LOSS_ALONE] += others == 0 && p.loss_percent > 0;
	}
	for (i = 0; i < CLASSES; i++)
		if (seeds[i] < SEEDS / 50)
			fail_msg("class %u: %u of %d seeds", i, seeds[i], SEEDS);
}

/* The maximum rate changes rate and queue of a seed only. */
static void the_maximum_rate_applies(void **state)
{
	struct random_path p, fast;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		random_path_draw(&p, seed, 40);
		random_path_draw(&fast, seed, 300);
		assert_true(p.rate_mbps <= 40.1);
		assert_true(p.rtt_ms == fast.rtt_ms && p.loss_percent == fast.loss_percent);
		assert_int_equal(random_path_others(&p), random_path_others(&fast));
	}
}

/* Round-trip time between two hosts whose only link beside the bottleneck is the access link. */
static double rtt_ms(const struct topo *t, const char *sender, const char *receiver)
{
	uint64_t ns = 0;
	int i;

	for (i = 0; i < t->links; i++)
		if (strcmp(t->link[i].name, "bottleneck") == 0 || strcmp(t->link[i].name, sender) == 0 ||
		    strcmp(t->link[i].name, receiver) == 0)
			ns += t->link[i].conf[0].delay_ns + t->link[i].conf[1].delay_ns;
	return (double)ns / 1e6;
}

static const struct link_conf *bottleneck(const struct topo *t, int direction)
{
	int i = 0;

	while (strcmp(t->link[i].name, "bottleneck") != 0)
		i++;
	return &t->link[i].conf[direction];
}

static void check_topology(const struct random_path *p, const struct topo *t)
{
	const struct link_conf *there = bottleneck(t, 0), *back = bottleneck(t, 1);
	unsigned i;

	assert_float_equal((double)there->rate_bps, p->rate_mbps * 1e6, p->rate_mbps * 1e3);
	assert_int_equal(there->queue_packets, p->queue_packets);
	assert_int_equal(there->red.max_packets > 0, p->red);
	assert_float_equal(there->loss_ratio, p->loss_percent / 100, 1e-7);
	assert_true(back->loss_ratio == 0);
	assert_int_equal(t->node[topo_host(t, "dst")].window_bytes, p->window_bytes);
	assert_float_equal(rtt_ms(t, "src", "dst"), p->rtt_ms, 0.01);
	assert_int_equal(t->hosts, 2 + 2 * (int)p->groups);
	for (i = 0; i < p->groups; i++) {
		char sender[8], receiver[8];

		snprintf(sender, sizeof sender, "x%u", i + 1);
		snprintf(receiver, sizeof receiver, "y%u", i + 1);
		assert_float_equal(rtt_ms(t, sender, receiver), p->group[i].rtt_ms, 0.01);
		assert_int_equal(t->node[topo_host(t, receiver)].window_bytes, p->all_windows ? p->window_bytes : 0);
	}
}

static void the_laboratory_accepts_the_topologies(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		char file[] = "/tmp/test_random_path-XXXXXX", *text = printed(seed, 300, random_path_topology);
		struct random_path p;
		struct ptcp_err e = { 0 };
		struct topo *t;
		int fd = mkstemp(file), r;

		assert_true(fd >= 0);
		assert_int_equal(write(fd, text, strlen(text)), strlen(text));
		close(fd);
		r = topo_load(&t, file, &e);
		unlink(file);
		if (r < 0)
			fail_msg("seed %d: %s", (int)seed, e.msg);
		random_path_draw(&p, seed, 300);
		check_topology(&p, t);
		topo_free(t);
		free(text);
	}
}

static void json_has_the_groups(void **state)
{
	struct random_path p = {
		.seed = 7, .rate_mbps = 12.5, .rtt_ms = 80, .queue_packets = 40, .congestion = "cubic", .groups = 2,
		.group = { { .flows = 3, .congestion = "reno", .rtt_ms = 80 },
		    { .flows = 2, .congestion = "bbr", .rtt_ms = 120, .on_s = 5, .off_s = 10 } },
	};
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	(void)state;
	random_path_json(&p, to);
	fclose(to);
	assert_string_equal(text,
	    "{\"seed\":7,\"rate_mbps\":12.5,\"rtt_ms\":80,\"queue_packets\":40,\"bdp_packets\":83.3,\"red\":false,\"loss_percent\":0,\"window_bytes\":0,\"all_windows\":false,\"congestion\":\"cubic\","
	    "\"others\":5,\"groups\":[{\"flows\":3,\"congestion\":\"reno\",\"rtt_ms\":80,\"on_s\":0,\"off_s\":0},"
	    "{\"flows\":2,\"congestion\":\"bbr\",\"rtt_ms\":120,\"on_s\":5,\"off_s\":10}]}\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_seed_gives_the_same_path),
		cmocka_unit_test(paths_are_within_the_ranges),
		cmocka_unit_test(paths_vary),
		cmocka_unit_test(the_maximum_rate_applies),
		cmocka_unit_test(the_laboratory_accepts_the_topologies),
		cmocka_unit_test(json_has_the_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
