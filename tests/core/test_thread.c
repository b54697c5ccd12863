/* Threads that leave signals alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <time.h>

#include "core/thread.h"

static void *mask_of(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return arg;
}

static void takes_no_signals(void **state)
{
	sigset_t before, there, after;
	pthread_t thread;
	struct ptcp_err e;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(sigismember(&before, SIGTERM), 0);
	assert_int_equal(thread_start(&thread, mask_of, &there, &e), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sigismember(&there, SIGINT), 1);
	assert_int_equal(sigismember(&there, SIGTERM), 1);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGTERM), 0);
}

static void counts_waits(void **state)
{
	const struct timespec short_while = { .tv_nsec = 1000000 };
	uint64_t before = thread_waits();
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++)
		nanosleep(&short_while, NULL);
	assert_in_range(thread_waits() - before, 3, 3 + 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(takes_no_signals), cmocka_unit_test(counts_waits) };

	return cmocka_run_group_tests_name("core/thread", tests, NULL, NULL);
}
