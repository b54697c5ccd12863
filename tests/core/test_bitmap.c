#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/bitmap.h"

#define N 200

/* The plain way. */
static uint32_t plain_next(const bool *b, bool in, uint32_t from, uint32_t end)
{
	while (from < end && b[from] != in)
		from++;
	return from < end ? from : end;
}

static void ranges_are_as_one_by_one(void **state)
{
	uint64_t x = 7, bits[(N + 63) / 64] = { 0 };
	bool plain[N] = { false }, in;
	uint32_t i, first, end;
	unsigned round;

	(void)state;
	for (round = 0; round < 20000; round++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		first = (uint32_t)(x >> 33) % (N + 1);
		end = first + (uint32_t)(x >> 21) % (N + 1 - first);
		in = x >> 63;
		bitmap_set(bits, in, first, end);
		for (i = first; i < end; i++)
			plain[i] = in;
		for (i = 0; i < N; i++)
			assert_int_equal(bitmap_has(bits, i), plain[i]);
		first = (uint32_t)(x >> 40) % (N + 1);
		end = (uint32_t)(x >> 27) % (N + 1);
		if (first <= end)
			for (i = 0; i < 2; i++)
				assert_int_equal(bitmap_next(bits, i, first, end), plain_next(plain, i, first, end));
	}
}

static void of_many(void **state)
{
	const uint32_t n = 1u << 27;
	uint64_t *b = bitmap_new(n);

	(void)state;
	assert_non_null(b);
	assert_int_equal(bitmap_next(b, true, 0, n), n);
	bitmap_set(b, true, 1, n - 1);
	assert_int_equal(bitmap_next(b, true, 0, n), 1);
	assert_int_equal(bitmap_next(b, false, 1, n), n - 1);
	assert_int_equal(bitmap_next(b, false, 1, n - 1), n - 1);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_as_one_by_one),
		cmocka_unit_test(of_many),
	};
	return cmocka_run_group_tests_name("core/bitmap", tests, NULL, NULL);
}
