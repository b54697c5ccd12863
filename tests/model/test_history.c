#include "model/near.h"

#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "model/history.h"

static const struct history_entry sample = {
	.key = { true, "ann@archive:7811", "cubic", "192.0.2.7" }, .when_s = 1700000000,
	.probe = { { 4, 31e6, 2.4e6 }, { 12, 50e6, 3.1e6 } }, .n_probes = 2,
	.evidence = { .level = { { { 4, 31e6, 0.93e6 }, 0.15, 0.104, 0.092, 4e-4, 20000, 0, 10, 0, 0 } }, .n = 1,
	.base_rtt_s = 0.058, .peak_rtt_s = 0.116,
	    .idle_rtt_s = 0.0581, .burst_bps = 96e6 }, .limit = LIMIT_NETWORK, .partly_limited = true
};
static const char golden[] = "send ann@archive:7811 cubic 192.0.2.7 1700000000 network+ 58000:116000:58100:96000000 "
    "4:31000000:2400000:150000:104000:92000:400:20000:0:10000000,12:50000000:3100000\n";

static void there_and_back(void **state)
{
	char line[HISTORY_LINE_BYTES];
	struct history_entry h;

	(void)state;
	assert_int_equal(history_format(line, &sample), strlen(golden));
	assert_string_equal(line, golden);
	assert_true(history_parse(&h, line));
	assert_true(history_same(&h.key, &sample.key));
	h.key.congestion[0] = '\0';
	assert_true(history_same(&h.key, &sample.key));
	strcpy(h.key.congestion, "bbr");
	assert_false(history_same(&h.key, &sample.key));
	assert_int_equal(h.when_s, 1700000000);
	assert_int_equal(h.n_probes, 2);
	assert_int_equal(h.probe[1].streams, 12);
	assert_near(h.probe[1].throughput_bps, 50e6, 0);
	assert_near(h.probe[1].error_bps, 3.1e6, 0);
	assert_int_equal(h.limit, LIMIT_NETWORK);
	assert_true(h.partly_limited);
	assert_int_equal(h.evidence.n, 1);
	assert_near(h.evidence.level[0].low_rtt_s, 0.092, 1e-9);
	assert_near(h.evidence.level[0].loss_ratio, 4e-4, 1e-9);
	assert_near(h.evidence.level[0].time_s, 10, 1e-9);
	assert_near(h.evidence.peak_rtt_s, 0.116, 1e-9);
	assert_near(h.evidence.burst_bps, 96e6, 0);
	line[strlen(line) - 1] = '\0';
	assert_true(history_parse(&h, line));
}

/* A name cannot break the line, nor reach a terminal as it is. */
static void odd_names(void **state)
{
	char line[HISTORY_LINE_BYTES];
	struct history_entry h = sample, back;
	const char *p;

	(void)state;
	strcpy(h.key.peer, "a b\nrecv\t%\033[31m\177\xff:1");
	assert_true(history_format(line, &h) > 0);
	for (p = line; p[1] != '\0'; p++)
		assert_true(*p >= ' ' && *p < 0x7f);
	assert_true(history_parse(&back, line));
	assert_string_equal(back.key.peer, h.key.peer);
	memset(h.key.peer, '\n', sizeof h.key.peer - 1);
	h.key.peer[sizeof h.key.peer - 1] = '\0';
	assert_true(history_format(line, &h) > 0 && history_parse(&back, line));
	assert_true(history_same(&back.key, &h.key));
	h.key.peer[0] = '\0';
	assert_int_equal(history_format(line, &h), 0);
	h = sample;
	h.n_probes = 0;
	assert_int_equal(history_format(line, &h), 0);
	h = sample;
	h.probe[1].throughput_bps = NAN;
	assert_int_equal(history_format(line, &h), 0);
}

static void what_is_no_entry(void **state)
{
	static const char *const bad[] = {
		"", "\n", "#", "send", "send a cubic b 1", "send a cubic b 1 ",
		"give a cubic b 1 network 0:0:0:0 4:1:1", "send a cubic b x network 0:0:0:0 4:1:1",
		"send a cubic b -1 network 0:0:0:0 4:1:1", "send a cubic b 1 network 0:0:0:0 4:1",
		"send a cubic b 1 network 0:0:0:0 4:1:1,", "send a cubic b 1 network 0:0:0:0 ,4:1:1",
		"send a cubic b 1 network 0:0:0:0 0:1:1", "send a cubic b 1 network 0:0:0:0 4:0:1",
		"send a cubic b 1 network 0:0:0:0 4:1:0", "send a cubic b 1 network 0:0:0:0 4:1:1 ",
		"send a cubic b 1 network 0:0:0:0 4:1e9:1", "send a cubic b 1 network 0:0:0:0 4:1:1;",
		"send a  b 1 4:1:1", "send a cubic b  1 4:1:1",
		"send a%0 cubic b 1 network 0:0:0:0 4:1:1", "send a%00 cubic b 1 network 0:0:0:0 4:1:1",
		"send a seventeen-letters b 1 network 0:0:0:0 4:1:1",
		"send a cubic b 1 network 0:0:0:0 4:9999999999999999:1",
		"send a cubic b 99999999999999999999 network 0:0:0:0 4:1:1",
		"send a cubic b 1 network 0:0:0:0 4:1:1\n\n",
		"send a cubic b 1 network 0:0:0:0 1:1:1,2:1:1,3:1:1,4:1:1,5:1:1,6:1:1,7:1:1,8:1:1,9:1:1",
		"send a cubic b 1 4:1:1", "send a cubic b 1 net 0:0:0:0 4:1:1", "send a cubic b 1 network 0:0:0 4:1:1",
		"send a cubic b 1 network 0:0:0:0 4:1:1:1",
		"send a cubic b 1 network 0:0:0:0 4:1:1:1:1:1:1:1:9999999:1",
		"send a cubic b 1 network 0:0:0:0 4:1:1:1:1:1:1:1:1",
		" send a cubic b 1 4:1:1", "sendsendsendsend a cubic b 1 4:1:1",
	};
	struct history_entry h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		if (history_parse(&h, bad[i]))
			fail_msg("taken: '%s'", bad[i]);
	assert_true(history_parse(&h, "recv a cubic b 1 network 0:0:0:0 4:1:1"));
	assert_false(h.key.sends);
}

/* Whatever bytes there are: no crash, and what is taken can be written and read again. */
static void garbage(void **state)
{
	char line[HISTORY_LINE_BYTES], again[HISTORY_LINE_BYTES];
	struct rng r = { 5 };
	struct history_entry h, back;
	unsigned i, k, taken = 0;

	(void)state;
	for (i = 0; i < 200000; i++) {
		strcpy(line, golden);
		for (k = rng_below(&r, 3); k > 0; k--)
			line[rng_below(&r, sizeof golden - 2)] = (char)(1 + rng_below(&r, 255));
		if (!history_parse(&h, line))
			continue;
		taken++;
		assert_true(history_format(again, &h) > 0);
		assert_true(history_parse(&back, again) && history_same(&back.key, &h.key));
	}
	assert_true(taken > 1000);
}

static void ageing(void **state)
{
	(void)state;
	assert_true(history_is_valid(&sample, 1700000000 + HISTORY_MAX_S));
	assert_false(history_is_valid(&sample, 1700000001 + HISTORY_MAX_S));
	assert_true(history_is_valid(&sample, 1700000000 - 60));
	assert_false(history_is_valid(&sample, 1700000000 - 61));
	assert_near(history_doubt(-1), 1, 1e-12);
	assert_true(history_doubt(60) < 1.15);
	assert_true(history_doubt(3600) > 2 && history_doubt(3600) < 3); /* Lu et al.: a factor of 2 in 60 % of cases */
	assert_true(history_doubt(HISTORY_MAX_S) > history_doubt(3600));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(odd_names),
		cmocka_unit_test(what_is_no_entry),
		cmocka_unit_test(garbage),
		cmocka_unit_test(ageing),
	};
	return cmocka_run_group_tests_name("model/history", tests, NULL, NULL);
}
