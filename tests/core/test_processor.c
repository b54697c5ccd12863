/* A process that others keep from running knows so; at rest, or alone with its own work, it does not believe so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/processor.h"

#define OTHERS_MAX 64

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void spin(double seconds)
{
	double until = now_s() + seconds;

	while (now_s() < until)
		;
}

/* Two busy processes for each processor. */
static int start_others(pid_t *pid)
{
	long n = 2 * sysconf(_SC_NPROCESSORS_ONLN);
	int i;

	for (i = 0; i < n && i < OTHERS_MAX; i++)
		if ((pid[i] = fork()) == 0) {
			spin(20);
			_exit(0);
		}
	return i;
}

static void a_starved_process_knows_so(void **state)
{
	struct processor p = { 0 };
	pid_t pid[OTHERS_MAX];
	int n, i, starved = 0;

	(void)state;
	if (access("/proc/self/schedstat", R_OK) != 0)
		skip();
	n = start_others(pid);
	setpriority(PRIO_PROCESS, 0, 19);
	assert_false(processor_is_starved(&p, now_s()));
	for (i = 0; i < 4; i++) {
		spin(0.3);
		starved += processor_is_starved(&p, now_s());
	}
	for (i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	assert_true(starved >= 3);
}

static void a_sleeping_process_is_not_starved(void **state)
{
	struct processor p = { 0 };

	(void)state;
	assert_false(processor_is_starved(&p, now_s()));
	usleep(300000);
	assert_false(processor_is_starved(&p, now_s()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleeping_process_is_not_starved),
		cmocka_unit_test(a_starved_process_knows_so),
	};

	return cmocka_run_group_tests_name("core/processor", tests, NULL, NULL);
}
