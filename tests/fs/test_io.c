#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fs/io.h"

#define JOBS 1000

struct counted {
	struct io_job job; /* first: the job's address is ours */
	struct io *io;
	int again;         /* submits itself so many times more */
	atomic_int ran;
	int turn;          /* of the last run */
	bool signals_blocked;
};

static struct counted jobs[JOBS];
static atomic_int turns;

static void run(struct io_job *job)
{
	struct counted *c = (struct counted *)(void *)job;
	sigset_t set;

	c->turn = atomic_fetch_add(&turns, 1);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	c->signals_blocked = sigismember(&set, SIGINT) && sigismember(&set, SIGTERM);
	atomic_fetch_add(&c->ran, 1);
	if (c->again-- > 0)
		io_submit(c->io, job);
}

static void prepare(struct io *io, int again)
{
	int i;

	atomic_store(&turns, 0);
	for (i = 0; i < JOBS; i++) {
		jobs[i] = (struct counted){ .job.run = run, .io = io, .again = again };
		atomic_init(&jobs[i].ran, 0);
	}
}

static void in_order(void **state)
{
	struct io *io;
	int i;

	(void)state;
	assert_int_equal(io_new(&io, 1, NULL), 0);
	prepare(io, 0);
	for (i = 0; i < JOBS; i++)
		io_submit(io, &jobs[i].job);
	io_free(io); /* runs them all */
	for (i = 0; i < JOBS; i++) {
		assert_int_equal(atomic_load(&jobs[i].ran), 1);
		assert_int_equal(jobs[i].turn, i);
		assert_true(jobs[i].signals_blocked);
	}
}

/* Also what jobs submit while the pool is being ended. */
static void again_and_again(void **state)
{
	struct io *io;
	int i;

	(void)state;
	assert_int_equal(io_new(&io, 4, NULL), 0);
	prepare(io, 9);
	for (i = 0; i < JOBS; i++)
		io_submit(io, &jobs[i].job);
	io_free(io);
	for (i = 0; i < JOBS; i++)
		assert_int_equal(atomic_load(&jobs[i].ran), 10);
}

static void *submit_some(void *arg)
{
	struct counted *c = arg;
	int i;

	for (i = 0; i < JOBS / 4; i++)
		io_submit(c->io, &c[i].job);
	return NULL;
}

static void from_many_threads(void **state)
{
	struct io *io;
	pthread_t t[4];
	int i;

	(void)state;
	assert_int_equal(io_new(&io, 3, NULL), 0);
	prepare(io, 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, submit_some, &jobs[i * JOBS / 4]), 0);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	io_free(io);
	for (i = 0; i < JOBS; i++)
		assert_int_equal(atomic_load(&jobs[i].ran), 2);
}

/* Two jobs that wait for each other: they do run side by side. */
static atomic_int met;

static void meet(struct io_job *job)
{
	(void)job;
	atomic_fetch_add(&met, 1);
	while (atomic_load(&met) < 2)
		sched_yield();
}

static void side_by_side(void **state)
{
	struct io_job a = { .run = meet }, b = { .run = meet };
	struct io *io;

	(void)state;
	assert_int_equal(io_new(&io, 2, NULL), 0);
	io_submit(io, &a);
	io_submit(io, &b);
	io_free(io);
	assert_int_equal(atomic_load(&met), 2);
	io_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(again_and_again),
		cmocka_unit_test(from_many_threads),
		cmocka_unit_test(side_by_side),
	};
	return cmocka_run_group_tests_name("fs/io", tests, NULL, NULL);
}
