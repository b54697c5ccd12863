/* A signal at any instant stops what is set: the function with its own handle, never that of another, nor none. */
#include "cli/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SIGNALS 100000

static int first, second;
static atomic_int mixed, handled;
static atomic_bool done;

static void stop_first(void *handle)
{
	mixed += handle != &first;
	handled++;
}

static void stop_second(void *handle)
{
	mixed += handle != &second;
	handled++;
}

static void *send_signals(void *arg)
{
	int i;

	for (i = 0; i < SIGNALS; i++)
		pthread_kill(*(pthread_t *)arg, SIGINT);
	atomic_store(&done, true);
	return NULL;
}

static void signals_while_stops_change(void **state)
{
	pthread_t self = pthread_self(), sender;

	(void)state;
	process_catch(1, NULL);
	process_set_stops(INT_MAX);
	assert_int_equal(pthread_create(&sender, NULL, send_signals, &self), 0);
	while (!atomic_load(&done)) {
		process_set_stop(stop_first, &first);
		process_set_stop(NULL, NULL);
		process_set_stop(stop_second, &second);
		process_set_stop(stop_first, &first);
	}
	pthread_join(sender, NULL);
	process_set_stop(NULL, NULL);
	assert_true(handled > 0);
	assert_int_equal(mixed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_while_stops_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
