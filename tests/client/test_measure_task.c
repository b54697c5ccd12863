/* Tasks that measure: their options, and what their results are before, and after, and of another kind of task. */
#include "fixture.h"

#include <math.h>

#include "client/remote_job_impl.h"

#define A "127.0.0.1:1"

static struct ptcp_transfer_opts opts;
static struct ptcp_task *t;

static int setup(void **state)
{
	(void)state;
	opts = cf_opts();
	t = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ptcp_task_free(t);
	return 0;
}

/* A host, without a path. */
static void targets(void **state)
{
	static const char *const bad[] = { "", "ptcp://", A "/path", "ptcp://" A "/path", "u@-x", "u@a b" };
	struct ptcp_measure_opts m;
	struct ptcp_advice_opts a;
	struct ptcp_timing_opts g;
	struct ptcp_err e;
	size_t i;

	(void)state;
	ptcp_measure_opts_init(&m);
	ptcp_advice_opts_init(&a);
	ptcp_timing_opts_init(&g);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(ptcp_measure_new(&t, &opts, bad[i], &m, &e), PTCP_EUSAGE);
		assert_int_equal(ptcp_advise_new(&t, &opts, bad[i], &a, &e), PTCP_EUSAGE);
		assert_int_equal(ptcp_timing_new(&t, &opts, bad[i], &g, &e), PTCP_EUSAGE);
		assert_int_equal(ptcp_timing_between_new(&t, &opts, bad[i], A, &g, &e), PTCP_EUSAGE);
		assert_int_equal(ptcp_timing_between_new(&t, &opts, A, bad[i], &g, &e), PTCP_EUSAGE);
		assert_null(t);
	}
	assert_int_equal(ptcp_measure_new(&t, &opts, "ssh://u@h:7/", &m, &e), 0);
	assert_true(t->target.ssh);
	assert_string_equal(t->known_as, "u@h");
}

/* Relays need a server: ssh's own path would be measured. */
static void through_ssh(void **state)
{
	static const char *const via[] = { "127.0.0.1:3" };
	struct ptcp_measure_opts m;
	struct ptcp_err e;

	(void)state;
	ptcp_measure_opts_init(&m);
	opts.paths = via;
	opts.n_paths = 1;
	assert_int_equal(ptcp_measure_new(&t, &opts, "u@h", &m, &e), PTCP_EUSAGE);
	cf_says(&e, "--via: through ssh for transfers only");
	opts.n_paths = 0;
	opts.remote.launch = "sh";
	assert_int_equal(ptcp_measure_new(&t, &opts, A, &m, &e), PTCP_EUSAGE);
	cf_says(&e, "launch: only for a transfer");
	assert_null(t);
}

/* The session has as many streams as the largest level; the controller does not change the number. */
static void streams(void **state)
{
	static const unsigned levels[] = { 3, 17, 5 };
	struct ptcp_measure_opts m;
	struct ptcp_timing_opts g;
	struct ptcp_err e;

	(void)state;
	ptcp_measure_opts_init(&m);
	m.streams = levels;
	m.n_streams = 3;
	m.receive = true;
	opts.streams = 2; /* of a transfer */
	assert_int_equal(ptcp_measure_new(&t, &opts, A, &m, &e), 0);
	assert_int_equal(t->o.streams, 17);
	assert_true(t->prober->receives);
	assert_true(task_streams(t, SSH_START_DIRECT).fixed);
	assert_false(task_streams(t, SSH_START_DIRECT).reaches_movers);
	ptcp_task_free(t);
	ptcp_timing_opts_init(&g);
	g.streams = 6;
	assert_int_equal(ptcp_timing_new(&t, &opts, A, &g, &e), 0);
	assert_int_equal(task_streams(t, SSH_START_DIRECT).requested, 6);
}

static void options(void **state)
{
	struct ptcp_timing_opts g;
	struct ptcp_err e;

	(void)state;
#define REFUSED(member, value) \
	ptcp_timing_opts_init(&g), g.member = value, \
	assert_int_equal(ptcp_timing_new(&t, &opts, A, &g, &e), PTCP_EUSAGE), \
	assert_int_equal(ptcp_timing_between_new(&t, &opts, A, "127.0.0.1:2", &g, &e), PTCP_EUSAGE), \
	assert_null(t)
	REFUSED(streams, 0);
	REFUSED(streams, PTCP_STREAMS_MAX + 1);
	REFUSED(messages, 0);
	REFUSED(messages, PTCP_MESSAGES_MAX + 1);
	REFUSED(most_bytes, 1);
	REFUSED(size, 0);
#undef REFUSED
	opts.streams = PTCP_STREAMS_MAX + 1; /* of the connection: refused by every task */
	ptcp_timing_opts_init(&g);
	assert_int_equal(ptcp_timing_new(&t, &opts, A, &g, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_timing_between_new(&t, &opts, A, "127.0.0.1:2", &g, &e), PTCP_EUSAGE);
}

/* Rates of transfers do not apply to measurements. */
static void no_rates(void **state)
{
	struct ptcp_timing_opts g;
	struct ptcp_err e;

	(void)state;
	ptcp_timing_opts_init(&g);
	assert_int_equal(ptcp_timing_new(&t, &opts, A, &g, &e), 0);
	assert_int_equal(ptcp_transfer_set_rate(t, "8Mbit/s", &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_path_rate(t, 0, 8000000, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_impact(t, 5, &e), PTCP_EUSAGE);
	ptcp_task_free(t);
	assert_int_equal(ptcp_timing_between_new(&t, &opts, A, "127.0.0.1:2", &g, &e), 0);
	assert_int_equal(ptcp_transfer_set_rate(t, "8Mbit/s", &e), PTCP_EUSAGE);
	ptcp_task_free(t);
	t = cf_accepted(&opts, &(struct cf_files){ true, { "a" }, CF_NO_HOST });
	assert_true(task_impact(t) == opts.impact_percent); /* the budget of the options */
	assert_int_equal(ptcp_transfer_set_impact(t, 2.5, &e), 0);
	assert_true(task_impact(t) == 2.5);
	assert_int_equal(ptcp_transfer_set_rate(t, "fast", &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_rate(t, "8Mbit/s", &e), 0);
	assert_true(task_take_rate(t));
	assert_int_equal(timetable_bps(&t->rate, 0), 8000000);
	assert_false(task_take_rate(t)); /* each change once */
	assert_int_equal(ptcp_transfer_set_rate(t, NULL, &e), 0);
	assert_true(task_take_rate(t));
	assert_int_equal(timetable_bps(&t->rate, 0), 0);
}

/* Results before a measurement has any. */
static void no_results(void **state)
{
	struct ptcp_message message[2];
	struct ptcp_timing_opts g;
	struct ptcp_advice_opts a;
	struct ptcp_advice advice = { .size = sizeof advice };
	struct ptcp_measure_opts m;
	struct ptcp_level level[2];
	unsigned saturates = 7;
	struct ptcp_err e;
	double rtt = 7;

	(void)state;
	ptcp_timing_opts_init(&g);
	ptcp_advice_opts_init(&a);
	ptcp_measure_opts_init(&m);
	assert_int_equal(ptcp_timing_new(&t, &opts, A, &g, &e), 0);
	assert_int_equal(ptcp_timing_messages(t, message, 2, &rtt), 0);
	assert_true(isnan(rtt));
	ptcp_task_free(t);
	assert_int_equal(ptcp_advise_new(&t, &opts, A, &a, &e), 0);
	assert_int_equal(ptcp_advise_result(t, &advice, &e), PTCP_EUSAGE);
	cf_says(&e, "no advice: the task has not probed yet");
	ptcp_task_free(t);
	assert_int_equal(ptcp_measure_new(&t, &opts, A, &m, &e), 0);
	ptcp_measure_levels(t, level, 2, &saturates);
	assert_int_equal(saturates, 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(targets),
		test(through_ssh),
		test(streams),
		test(options),
		test(no_rates),
		test(no_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
