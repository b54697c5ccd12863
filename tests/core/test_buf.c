#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/buf.h"

/* Appends and consumes pieces of changing size; what comes out is what went in. */
static void queue(void **state)
{
	struct buf b = BUF_INIT;
	uint8_t in = 0, out = 0, *p;
	size_t round, n, i;

	(void)state;
	for (round = 0; round < 3000; round++) {
		n = round * 7 % 501;
		p = buf_reserve(&b, n, NULL);
		assert_non_null(p);
		assert_ptr_equal(p, b.data + b.end);
		for (i = 0; i < n; i++)
			p[i] = in++;
		buf_added(&b, n);
		n = round % 5 == 4 ? buf_len(&b) : buf_len(&b) * (round % 3) / 3;
		for (i = 0; i < n; i++)
			assert_int_equal(buf_head(&b)[i], out++);
		buf_consume(&b, n);
	}
	buf_fini(&b);
	assert_null(b.data);
	assert_int_equal(buf_len(&b), 0);
}

/* A queue that is emptied as it is filled does not grow for ever. */
static void stays_small(void **state)
{
	struct buf b = BUF_INIT;
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		assert_non_null(buf_reserve(&b, 100, NULL));
		buf_added(&b, 100);
		if (i > 0)
			buf_consume(&b, 100);
	}
	assert_int_equal(buf_len(&b), 100);
	assert_true(b.cap <= 1024);
	buf_fini(&b);
}

static void absurd_sizes(void **state)
{
	struct buf b = BUF_INIT;

	(void)state;
	memcpy(buf_reserve(&b, 3, NULL), "abc", 3);
	buf_added(&b, 3);
	assert_null(buf_reserve(&b, SIZE_MAX, NULL));
	assert_null(buf_reserve(&b, SIZE_MAX / 2, NULL));
	assert_int_equal(buf_len(&b), 3);
	assert_memory_equal(buf_head(&b), "abc", 3);
	buf_fini(&b);
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue),
		cmocka_unit_test(stays_small),
		cmocka_unit_test(absurd_sizes),
	};
	return cmocka_run_group_tests_name("core/buf", tests, NULL, NULL);
}
