#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/pacer.h"

#define START_NS (1000 * NS_PER_S)

/* So many who wake `late_ns` after they were told to, for `s` seconds; bytes let go. The promise of the header is
 * checked at every step. */
static double run(struct pacer *p, uint64_t bps, double s, uint64_t late_ns, unsigned takers)
{
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
		while ((n = pacer_take(p, now, &at)) > 0) {
			gone += n;
			most = (double)bps / 8 * ((double)(now.ns - START_NS + PACER_BURST_NS) / 1e9);
			assert_true((double)gone <= most + PACER_MAX_QUANTUM_BYTES);
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

/* What was not used is there for a moment only. */
static void forgets_idleness(void **state)
{
	struct mono now = { START_NS }, at;
	struct pacer p;
	uint64_t gone = 0;
	size_t n;

	(void)state;
	pacer_init(&p);
	pacer_set(&p, 80000000, now);
	now.ns += 60 * NS_PER_S;
	while ((n = pacer_take(&p, now, &at)) > 0)
		gone += n;
	assert_true(gone >= 500000 && gone <= 500000 + PACER_MAX_QUANTUM_BYTES); /* 50 ms of it */
}

static void changes(void **state)
{
	struct mono now = { START_NS }, at;
	struct pacer p;
	int i;

	(void)state;
	pacer_init(&p);
	assert_false(pacer_limits(&p));
	for (i = 0; i < 1000; i++)
		assert_int_equal(pacer_take(&p, now, &at), PACER_MAX_QUANTUM_BYTES);
	pacer_set(&p, 10000, now);
	assert_true(pacer_limits(&p));
	assert_true(pacer_take(&p, now, &at) > 0);
	assert_int_equal(pacer_take(&p, now, &at), 0);
	assert_int_equal(at.ns, now.ns + NS_PER_S / 4); /* it would be seconds, but the rate may change */
	assert_in_range(pacer_quantum_ns(10000), 3 * NS_PER_S, 4 * NS_PER_S);
	pacer_set(&p, 10000, now);
	assert_int_equal(pacer_take(&p, now, &at), 0); /* the same again is no change */
	now.ns += NS_PER_S;
	pacer_set(&p, 80000000, now);
	assert_true(pacer_take(&p, now, &at) > 0);
	pacer_set(&p, 0, now);
	assert_false(pacer_limits(&p));
}

/* Only while somebody waits, and a moment longer. */
static void holds(void **state)
{
	struct mono now = { START_NS }, at;
	struct pacer p;
	int i;

	(void)state;
	pacer_init(&p);
	pacer_set(&p, 8000000, now);
	for (i = 0; i < 1000; i++, now.ns += 5 * NS_PER_MS) { /* 4 ms of it each */
		assert_true(pacer_take(&p, now, &at) > 0);
		assert_false(pacer_throttles(&p, now));
	}
	while (pacer_take(&p, now, &at) > 0)
		;
	assert_true(pacer_throttles(&p, now));
	now.ns += NS_PER_S / 4;
	assert_true(pacer_throttles(&p, now));
	now.ns += NS_PER_S / 4;
	assert_false(pacer_throttles(&p, now));
	while (pacer_take(&p, now, &at) > 0)
		;
	pacer_set(&p, 0, now);
	assert_false(pacer_throttles(&p, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_rate),
		cmocka_unit_test(forgets_idleness),
		cmocka_unit_test(changes),
		cmocka_unit_test(holds),
	};

	return cmocka_run_group_tests_name("core/pacer", tests, NULL, NULL);
}
