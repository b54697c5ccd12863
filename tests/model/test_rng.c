#include "draw.h"
#include "model/near.h"

/* First outputs of SplitMix64 seeded with 1234567, as its authors publish them. */
static void published_sequence(void **state)
{
	struct rng r = { 1234567 };

	(void)state;
	assert_true(rng_next(&r) == 6457827717110365317u);
	assert_true(rng_next(&r) == 3203168211198807973u);
	assert_true(rng_next(&r) == 9817491932198370423u);
}

static void uniform_in_range(void **state)
{
	struct rng r = { 7 };
	unsigned counts[10] = { 0 };
	double sum = 0, u;
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		u = rng_uniform(&r);
		assert_true(u >= 0 && u < 1);
		sum += u;
		counts[rng_below(&r, 10)]++;
	}
	assert_near(sum / 100000, 0.5, 0.01);
	for (i = 0; i < 10; i++)
		assert_in_range(counts[i], 9500, 10500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_sequence),
		cmocka_unit_test(uniform_in_range),
	};
	return cmocka_run_group_tests_name("model/rng", tests, NULL, NULL);
}
