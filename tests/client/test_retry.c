/* Further attempts after a lost connection, and waiting for a busy server: when, how often, how long. */
#include "fixture.h"

static const struct cf_files sends = { true, { "a" }, CF_NO_HOST "b" };
static struct cf_events events;
static struct ptcp_transfer_opts opts;
static struct ptcp_task *t;

/* A task whose session has run, and was lost now. */
static int setup(void **state)
{
	struct ptcp_err e;

	(void)state;
	opts = cf_opts();
	cf_record(&opts, &events);
	t = cf_accepted(&opts, &sends);
	retry_worked(t);
	err_set(&t->why, PTCP_EPEER, "cut off");
	t->result = PTCP_EPEER;
	wait_begin(t);
	return timer_new(&t->timer, t->loop, NULL, NULL, &e);
}

static int teardown(void **state)
{
	(void)state;
	retry_pause_end(t);
	timer_free(t->timer);
	ptcp_task_free(t);
	return 0;
}

/* Time until the timer of the loop, once handles that were freed are closed. */
static int next_ms(void)
{
	loop_run_once(t->loop, false);
	return loop_timeout_ms(t->loop);
}

/* ---- After a lost connection ---- */

/* The network or the other host failed; not the files, the options, the identity, nor a newer run. */
static void errors(void **state)
{
	static const int help[] = { PTCP_ECONNECT, PTCP_EPEER, PTCP_ETIMEOUT, PTCP_EBUSY };
	int code;
	size_t i;

	(void)state;
	for (code = 0; code > -64; code--) {
		for (i = 0; i < 4 && help[i] != code; i++)
			;
		assert_int_equal(retry_may_help(code), i < 4);
		t->result = code;
		assert_int_equal(retry_is_due(t), i < 4);
	}
}

static void only_a_lost_session(void **state)
{
	struct remote_job *job = (struct remote_job *)&events;
	struct prober prober;

	(void)state;
	assert_true(retry_is_due(t));
	t->retry.worked = false; /* the first connection has failed */
	assert_false(retry_is_due(t));
	t->retry.worked = true;
	t->remote_job = job;
	assert_false(retry_is_due(t));
	t->remote_job = NULL;
	t->prober = &prober;
	assert_false(retry_is_due(t));
	t->prober = NULL;
	t->session = (struct session *)&events;
	assert_false(retry_is_due(t));
	t->session = NULL;
	assert_true(retry_is_due(t));
	atomic_store(&t->canceled, true);
	assert_false(retry_is_due(t));
}

/* The time begins again whenever data moves, and with it the pauses. */
static void since_data_moved(void **state)
{
	const struct mono long_ago = { 1 }; /* when this host started, perhaps a minute ago */

	(void)state;
	assert_true(t->o.retry_for_s == 600);
	t->o.retry_for_s = (double)mono_now().ns / 2e9;
	t->retry.moved = long_ago;
	t->retry.attempts = 9;
	assert_false(retry_is_due(t));
	retry_moved(t, 0);
	assert_false(retry_is_due(t));
	retry_moved(t, 5);
	assert_true(retry_is_due(t));
	assert_int_equal(t->retry.attempts, 0);
	t->retry.moved = long_ago;
	t->retry.attempts = 9;
	retry_moved(t, 5); /* no byte since */
	assert_false(retry_is_due(t));
	assert_int_equal(t->retry.attempts, 9);
	retry_worked(t); /* a session without data */
	assert_false(retry_is_due(t));
	t->o.retry_for_s *= 4;
	assert_true(retry_is_due(t));
	t->o.retry_for_s = 0;
	t->retry.moved = mono_now();
	assert_false(retry_is_due(t));
}

/* The pauses double, from a second to 64, each up to a quarter shorter or longer. */
static void pauses(void **state)
{
	double usual = 1;
	struct ptcp_err e;
	unsigned n;
	int ms;

	(void)state;
	for (n = 1; n <= 10; n++) {
		t->over = true;
		t->result = PTCP_EPEER;
		assert_int_equal(retry_pause(t, &e), 0);
		assert_int_equal(events.n[PTCP_EVENT_RECONNECTING], n);
		assert_int_equal(events.last.attempt, n);
		assert_string_equal(events.text, "cut off");
		assert_true(events.last.in_s >= 0.75 * usual && events.last.in_s <= 1.25 * usual);
		assert_false(t->over); /* the loop runs until the pause ends */
		assert_int_equal(t->result, 0);
		ms = next_ms();
		assert_true(ms <= 1 + (int)(events.last.in_s * 1000));
		assert_true(n < 3 || ms > 1000); /* on a busy machine, a part of it has passed */
		usual = usual < 64 ? 2 * usual : 64;
		retry_pause_end(t);
		assert_null(t->retry.timer);
	}
}

/* A transfer that was cut off is the outcome, not the last attempt to connect. */
static void the_outcome(void **state)
{
	(void)state;
	t->result = err_set(&t->why, PTCP_ECONNECT, "no such host");
	retry_give_up(t);
	assert_int_equal(t->result, PTCP_EPEER);
	assert_int_equal(t->why.code, PTCP_EPEER);
	cf_says(&t->why,
	    "cut off, and not continued within 600 s: no such host (run the same command again to resume it)");
	t->result = err_set(&t->why, PTCP_ETIMEOUT, "silent");
	retry_give_up(t);
	assert_int_equal(t->result, PTCP_ETIMEOUT);
	assert_string_equal(t->why.msg, "silent");
	t->result = err_set(&t->why, PTCP_ECONNECT, "no movers");
	t->avoids_movers = true; /* the first session had no stream */
	retry_give_up(t);
	assert_int_equal(t->result, PTCP_ECONNECT);
	t->retry.attempts = 1;
	retry_give_up(t);
	assert_int_equal(t->result, PTCP_EPEER);
	t->result = err_set(&t->why, PTCP_ECONNECT, "no such host");
	t->retry.worked = false;
	retry_give_up(t);
	assert_int_equal(t->result, PTCP_ECONNECT);
	t->retry.worked = true;
	t->result = 0; /* in order, whatever failed before */
	retry_give_up(t);
	assert_int_equal(t->result, 0);
}

/* ---- A busy server ---- */

static struct ptcp_err error(int code)
{
	struct ptcp_err e;

	err_set(&e, code, "busy");
	return e;
}

static bool waits(int code)
{
	const struct ptcp_err why = error(code);
	bool r = wait_after(t, &why);

	assert_int_equal(t->wait.pausing, r);
	t->wait.pausing = false;
	return r;
}

static void patience(void **state)
{
	(void)state;
	assert_true(wait_ms(t) > 50000 && wait_ms(t) <= 60001);
	assert_true(t->wait.until_closed.ns < t->wait.until.ns);
	t->o.wait_s = 2;
	wait_begin(t);
	assert_true(wait_ms(t) <= 2001);
	assert_int_equal(t->wait.until_closed.ns, t->wait.until.ns); /* not longer than the user permits */
	t->o.wait_s = 0;
	wait_begin(t);
	assert_int_equal(wait_ms(t), 0);
	assert_false(waits(PTCP_EBUSY));
	assert_int_equal(events.n[PTCP_EVENT_WAITING], 0);
}

/* Only a busy server is waited for; or one that was busy, and may restart; not a host that was never there. */
static void for_whom(void **state)
{
	(void)state;
	assert_false(waits(PTCP_ECONNECT));
	assert_false(waits(PTCP_EREFUSED));
	assert_true(waits(PTCP_EBUSY));
	assert_true(waits(PTCP_ECONNECT));
	assert_true(waits(PTCP_EPEER));
	assert_false(waits(PTCP_EREFUSED));
	assert_false(waits(PTCP_EUSAGE));
	wait_begin(t); /* the next attempt knows nothing of that */
	assert_false(waits(PTCP_ECONNECT));
	wait_report(t, 3, NULL); /* its place in the queue shows a server */
	assert_true(waits(PTCP_ECONNECT));
}

/* A connection that ended before HELLO: perhaps a crowded server; for ten seconds. */
static void unanswered(void **state)
{
	(void)state;
	t->wait.unanswered = true;
	assert_true(waits(PTCP_EPEER));
	t->wait.until_closed = mono_now();
	assert_false(waits(PTCP_EPEER));
	assert_true(waits(PTCP_EBUSY));
}

static void not_any_more(void **state)
{
	(void)state;
	t->report.announced = true; /* the session has run */
	assert_false(waits(PTCP_EBUSY));
	t->report.announced = false;
	t->target.ssh = true; /* its server serves this client only */
	assert_false(waits(PTCP_EBUSY));
	t->target.ssh = false;
	t->o.remote.launch = "x";
	assert_false(waits(PTCP_EBUSY));
	t->o.remote.launch = NULL;
	assert_true(waits(PTCP_EBUSY));
	t->wait.until = mono_now();
	assert_false(waits(PTCP_EBUSY));
	wait_begin(t);
	atomic_store(&t->canceled, true);
	assert_false(waits(PTCP_EBUSY));
}

/* Pauses of half a second, doubled up to four seconds, each from half to one and a half times as long. */
static void pauses_of_waiting(void **state)
{
	int usual_ms = 500, ms;
	unsigned n;

	(void)state;
	for (n = 0; n < 8; n++) {
		assert_true(wait_pause(t, t->wait.until, "busy"));
		t->wait.pausing = false;
		ms = next_ms();
		assert_true(ms <= usual_ms * 3 / 2 + 1);
		assert_true(n < 3 || ms > 1000); /* as above */
		usual_ms = usual_ms < 4000 ? 2 * usual_ms : 4000;
	}
	assert_int_equal(t->wait.pauses, 8);
}

/* The user learns once, and again when the place in the queue changes. */
static void reports(void **state)
{
	(void)state;
	assert_true(waits(PTCP_EBUSY));
	assert_true(waits(PTCP_EBUSY));
	assert_int_equal(events.n[PTCP_EVENT_WAITING], 1);
	assert_int_equal(events.last.ahead, PTCP_AHEAD_UNKNOWN);
	assert_string_equal(events.text, "busy");
	wait_report(t, 2, NULL);
	wait_report(t, 2, NULL);
	assert_int_equal(events.n[PTCP_EVENT_WAITING], 2);
	assert_int_equal(events.last.ahead, 2);
	wait_report(t, 0, NULL);
	assert_int_equal(events.n[PTCP_EVENT_WAITING], 3);
}

/* task_finish() waits in place of the end; while it waits, only the user ends the task. */
static void in_place_of_the_end(void **state)
{
	const struct ptcp_err busy = error(PTCP_EBUSY), refused = error(PTCP_EREFUSED);

	(void)state;
	task_finish(t, &busy);
	assert_true(t->wait.pausing && !t->over);
	task_finish(t, &refused);
	assert_false(t->over);
	atomic_store(&t->canceled, true);
	task_finish(t, &refused);
	assert_true(t->over);
	assert_int_equal(t->result, PTCP_ECANCELED);
	cf_says(&t->why, "interrupted");
	atomic_store(&t->canceled, false);
	t->wait.pausing = false;
	task_finish(t, &refused); /* the first outcome counts */
	assert_int_equal(t->result, PTCP_ECANCELED);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(errors),
		test(only_a_lost_session),
		test(since_data_moved),
		test(pauses),
		test(the_outcome),
		test(patience),
		test(for_whom),
		test(unanswered),
		test(not_any_more),
		test(pauses_of_waiting),
		test(reports),
		test(in_place_of_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
