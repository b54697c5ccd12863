#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/pacer.h"

#define START_NS (1000 * NS_PER_S)

/* So many who wake `late_ns` after they were told to, for `s` seconds; bytes let go. The promise of the header is
 * checked at every step. */
static double run(struct pacer *p, uint64_t bps, double s, uint64_t late_ns, unsigned takers)
{
	struct pacer_turn turn[16] = { 0 };
	uint64_t wake[16], gone = 0, end = START_NS + (uint64_t)(s * 1e9);
	struct mono now = { START_NS }, at;
	double most;
	unsigned i, next;
	size_t n;

	pacer_set(p, bps, now);
	for (i = 0; i < takers; i++)
		wake[i] = START_NS;
	for (;;) {
		for (i = 1, next = 0; i < takers; i++)
			if (wake[i] < wake[next])
				next = i;
		now.ns = wake[next];
		if (now.ns >= end)
			return (double)gone;
		while ((n = pacer_take(p, &turn[next], now, &at)) > 0) {
			gone += n;
			most = (double)bps / 8 * ((double)(now.ns - START_NS + PACER_BURST_NS) / 1e9);
			assert_true((double)gone <= most + takers * PACER_MAX_QUANTUM_BYTES);
		}
		assert_true(at.ns > now.ns && at.ns <= now.ns + NS_PER_S);
		wake[next] = at.ns + late_ns;
	}
}

static void keeps_the_rate(void **state)
{
	static const uint64_t rates[] = { 100000, 1000000, 40000000, 1000000000, 25000000000 };
	static const uint64_t late[] = { 0, NS_PER_MS, 20 * NS_PER_MS };
	struct pacer p;
	size_t i, k;
	double got, want;

	(void)state;
	for (i = 0; i < sizeof rates / sizeof *rates; i++)
		for (k = 0; k < sizeof late / sizeof *late; k++) {
			pacer_init(&p);
			want = (double)rates[i] / 8 * 10;
			got = run(&p, rates[i], 10, late[k], k == 0 ? 1 : 7);
			if (got < want * 0.985 - 8192 || got > want * 1.01 + 8192)
				fail_msg("%.0f bytes instead of %.0f", got, want);
		}
}

/* 64 users on a loop that calls those that are due in the same order each time: all get the same, but for the
 * milliseconds until they are called again, which count at high rates. */
static void takes_turns(void **state)
{
	static const uint64_t rates[] = { 10000000, 1000000000, 10000000000 };
	struct mono now = { START_NS }, at[64];
	struct pacer_turn turn[64];
	uint64_t got[64], until, sum;
	struct pacer p;
	size_t i, k, n;

	(void)state;
	for (k = 0; k < sizeof rates / sizeof *rates; k++) {
		memset(got, 0, sizeof got);
		memset(turn, 0, sizeof turn);
		pacer_init(&p);
		pacer_set(&p, rates[k], now);
		for (i = 0; i < 64; i++)
			at[i] = now;
		for (until = now.ns + 10 * NS_PER_S; now.ns < until; now.ns += NS_PER_MS)
			for (i = 0; i < 64; i++)
				if (at[i].ns <= now.ns && (n = pacer_take(&p, &turn[i], now, &at[i])) > 0)
					got[i] += n;
		for (i = sum = 0; i < 64; i++)
			sum += got[i];
		for (i = 1; i < 64; i++)
			if (got[i] + got[0] / 4 + PACER_MAX_QUANTUM_BYTES < got[0] ||
			    got[i] > got[0] + got[0] / 4 + PACER_MAX_QUANTUM_BYTES)
				fail_msg("%llu bytes, beside %llu", (unsigned long long)got[i],
				    (unsigned long long)got[0]);
		assert_true((double)sum > 0.95 * (double)rates[k] / 8 * 10 - 64.0 * PACER_MAX_QUANTUM_BYTES);
	}
}

/* What was not used is there for a moment only. */
static void forgets_idleness(void **state)
{
	struct mono now = { START_NS }, at;
	struct pacer_turn turn = { 0 };
	struct pacer p;
	uint64_t gone = 0;
	size_t n;

	(void)state;
	pacer_init(&p);
	pacer_set(&p, 80000000, now);
	now.ns += 60 * NS_PER_S;
	while ((n = pacer_take(&p, &turn, now, &at)) > 0)
		gone += n;
	assert_true(gone >= 500000 && gone <= 500000 + PACER_MAX_QUANTUM_BYTES); /* 50 ms of it */
}

static void changes(void **state)
{
	struct mono now = { START_NS }, at;
	struct pacer_turn turn = { 0 };
	struct pacer p;
	int i;

	(void)state;
	pacer_init(&p);
	assert_false(pacer_limits(&p));
	for (i = 0; i < 1000; i++)
		assert_int_equal(pacer_take(&p, &turn, now, &at), PACER_MAX_QUANTUM_BYTES);
	pacer_set(&p, 10000, now);
	assert_true(pacer_limits(&p));
	assert_true(pacer_take(&p, &turn, now, &at) > 0);
	assert_int_equal(pacer_take(&p, &turn, now, &at), 0);
	assert_int_equal(at.ns, now.ns + NS_PER_S / 4); /* it would be seconds, but the rate may change */
	assert_in_range(pacer_quantum_ns(10000), 3 * NS_PER_S, 4 * NS_PER_S);
	pacer_set(&p, 10000, now);
	assert_int_equal(pacer_take(&p, &turn, now, &at), 0); /* the same again is no change */
	now.ns += NS_PER_S;
	pacer_set(&p, 80000000, now);
	assert_true(pacer_take(&p, &turn, now, &at) > 0);
	pacer_set(&p, 0, now);
	assert_false(pacer_limits(&p));
}

/* Only while somebody waits, and a moment longer. */
static void holds(void **state)
{
	struct mono now = { START_NS }, at;
	struct pacer_turn turn = { 0 };
	struct pacer p;
	int i;

	(void)state;
	pacer_init(&p);
	pacer_set(&p, 8000000, now);
	for (i = 0; i < 1000; i++, now.ns += 5 * NS_PER_MS) { /* 4 ms of it each */
		assert_true(pacer_take(&p, &turn, now, &at) > 0);
		assert_false(pacer_throttles(&p, now));
	}
	while (pacer_take(&p, &turn, now, &at) > 0)
		;
	assert_true(pacer_throttles(&p, now));
	now.ns += NS_PER_S / 4;
	assert_true(pacer_throttles(&p, now));
	now.ns += NS_PER_S / 4;
	assert_false(pacer_throttles(&p, now));
	while (pacer_take(&p, &turn, now, &at) > 0)
		;
	pacer_set(&p, 0, now);
	assert_false(pacer_throttles(&p, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_rate),
		cmocka_unit_test(takes_turns),
		cmocka_unit_test(forgets_idleness),
		cmocka_unit_test(changes),
		cmocka_unit_test(holds),
	};

	return cmocka_run_group_tests_name("core/pacer", tests, NULL, NULL);
}
