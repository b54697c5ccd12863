/* What the user learns of a session: events of files, warnings and paths, and the outcome that follows from the counts. */
#include "fixture.h"

#include <errno.h>
#include <math.h>

#include "client/remote_job_impl.h"

static struct cf_events events;
static struct ptcp_transfer_opts opts;
static struct ptcp_task *t;
static const struct session_ops *const session = &task_session_ops;

static void end_task(void)
{
	if (t != NULL)
		timer_free(t->timer);
	ptcp_task_free(t);
	t = NULL;
}

static void new_task(const struct cf_files *f)
{
	struct ptcp_err e;

	end_task();
	cf_record(&opts, &events);
	t = cf_accepted(&opts, f);
	assert_int_equal(timer_new(&t->timer, t->loop, NULL, NULL, &e), 0);
}

static const struct cf_files sends = { true, { "a" }, CF_NO_HOST "b" };
static const struct cf_files between = { true, { CF_NO_HOST "a" }, "ptcp://127.0.0.1:2/b" };

static int setup(void **state)
{
	(void)state;
	opts = cf_opts();
	new_task(&sends);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	end_task();
	return 0;
}

/* ---- Files ---- */

static void file(enum ptcp_file_status status, const struct ptcp_err *why)
{
	const struct session_file f = { .path = "d/\033f", .status = status, .size_bytes = 9, .why = why };

	session->file(t, &f);
}

/* Failures and vanished files always; other files if the caller wants them; deleted ones are counted in any case. */
static void files(void **state)
{
	struct ptcp_err why;

	(void)state;
	err_set(&why, PTCP_EIO, "denied");
	file(PTCP_FILE_DONE, NULL);
	file(PTCP_FILE_SKIPPED, NULL);
	file(PTCP_FILE_DELETED, NULL);
	assert_int_equal(events.n[PTCP_EVENT_FILE], 0);
	assert_int_equal(t->report.deleted, 1);
	file(PTCP_FILE_FAILED, &why);
	assert_int_equal(events.n[PTCP_EVENT_FILE], 1);
	assert_int_equal(events.status, PTCP_FILE_FAILED);
	assert_int_equal(events.code, PTCP_EIO);
	assert_string_equal(events.text, "denied");
	assert_string_equal(events.path, "d/\033f"); /* raw, as documented */
	assert_int_equal(t->report.failures, 1);
	err_set(&why, PTCP_EVANISHED, "vanished");
	file(PTCP_FILE_VANISHED, &why);
	assert_int_equal(events.n[PTCP_EVENT_FILE], 2);
	assert_int_equal(t->report.failures, 1);
	assert_int_equal(t->report.vanished, 1);
	t->o.file_events = true;
	file(PTCP_FILE_DONE, NULL);
	file(PTCP_FILE_DELETED, NULL);
	file(PTCP_FILE_SKIPPED, NULL);
	assert_int_equal(events.n[PTCP_EVENT_FILE], 5);
	assert_int_equal(events.last.size_bytes, 9);
	assert_int_equal(t->report.deleted, 2);
	assert_int_equal(t->report.failures, 1);
}

/* A sentence of the other host names that host, which does not know its own name. */
static void files_that_the_peer_refuses(void **state)
{
	struct ptcp_err why;

	(void)state;
	err_set(&why, PTCP_EREFUSED, "denied");
	why.from_peer = true;
	file(PTCP_FILE_FAILED, &why);
	assert_string_equal(events.text, "127.0.0.1:1: denied");
	assert_int_equal(events.last.sys, EACCES);
	assert_true(t->report.first.sys == EACCES && t->report.first.from_peer);
	assert_int_equal(t->report.refused, 1);
	assert_null(strchr(t->report.first.msg, '\033')); /* the outcome may be printed */
	cf_says(&t->report.first, "f: 127.0.0.1:1: denied");
	err_set(&why, PTCP_EIO, "second");
	file(PTCP_FILE_FAILED, &why);
	cf_says(&t->report.first, "denied"); /* the first one counts */
	assert_int_equal(t->report.first.sys, 0); /* they have no cause in common */
	assert_int_equal(t->report.refused, 1);
	assert_int_equal(t->report.failures, 2);
}

static void warnings(void **state)
{
	(void)state;
	session->warning(t, NULL, "careful");
	assert_string_equal(events.text, "careful");
	session->warning(t, "d/\033f", "odd");
	assert_non_null(strstr(events.text, "f: odd"));
	assert_null(strchr(events.text, '\033'));
	task_warn(t, "also");
	assert_int_equal(events.n[PTCP_EVENT_WARNING], 3);
	assert_int_equal(t->report.warnings, 3);
}

/* ---- Changes of streams, congestion control and paths ---- */

static void changes(void **state)
{
	struct prober prober = { .judges_streams = true };

	(void)state;
	session->streams(t, 4, 8, "more");
	assert_int_equal(events.n[PTCP_EVENT_STREAMS], 1);
	assert_true(events.last.from == 4 && events.last.to == 8);
	assert_string_equal(events.text, "more");
	session->congestion(t, "bbr", "losses");
	assert_int_equal(events.n[PTCP_EVENT_CONGESTION], 1);
	t->prober = &prober; /* which changes it all the time */
	session->congestion(t, "cubic", "next");
	t->prober = NULL;
	assert_int_equal(events.n[PTCP_EVENT_CONGESTION], 1);
	session->reconnecting(t, 3, 1500000000, "lost");
	assert_int_equal(events.last.attempt, 3);
	assert_true(events.last.in_s == 1.5);
	session->waiting(t, 5);
	assert_int_equal(events.last.ahead, 5);
	session->paths(t, "faster");
	assert_int_equal(events.n[PTCP_EVENT_PATHS], 1);
	assert_int_equal(events.last.n_paths, 1);
}

/* Once a path, however often it fails. */
static void failed_paths(void **state)
{
	static const char *const via[] = { "127.0.0.1:2", "direct" };

	(void)state;
	opts.paths = via;
	opts.n_paths = 2;
	new_task(&sends);
	session->path_failed(t, 0, 1, "refused");
	session->path_failed(t, 0, 1, "refused");
	assert_int_equal(events.n[PTCP_EVENT_WARNING], 1);
	assert_string_equal(events.text, "path 127.0.0.1:2: refused");
	assert_int_equal(events.last.failed_hop, 1);
	session->path_failed(t, 1, 0, "refused");
	assert_int_equal(events.n[PTCP_EVENT_WARNING], 2);
	assert_string_equal(events.text, "path direct: refused");
	assert_int_equal(t->report.warnings, 2);
}

/* ---- Leftovers ---- */

/* The command to type, with the name of the directory as a word for a shell; no name that display would change. */
static void leftovers(void **state)
{
	static const struct { const char *dest, *shown; } all[] = { { "dir", "'dir'" }, { "a b", "'a b'" }, { "./-x", "'./-x'" },
		{ "a\033b", "DIRECTORY" }, { "it's", "DIRECTORY" } };
	const struct wire_leftovers f = { .files = 2, .bytes = 9 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof all / sizeof *all; i++) {
		new_task(&(struct cf_files){ false, { CF_NO_HOST "b" }, all[i].dest });
		session->leftovers(t, &f);
		if (strstr(events.text, all[i].shown) == NULL)
			fail_msg("%s: %s", all[i].shown, events.text);
		assert_null(strchr(events.text, '\033'));
	}
	new_task(&sends);
	session->leftovers(t, &f);
	assert_non_null(strstr(events.text, "ptcp://127.0.0.1:1/b"));
}

/* ---- The start, and the end ---- */

/* Waiting for a busy server is no part of the transfer's time. */
static void starts(void **state)
{
	const struct mono before = { 1 };

	(void)state;
	t->started = before;
	task_started(t);
	assert_int_equal(t->started.ns, before.ns);
	assert_true(t->report.announced && t->retry.worked);
	assert_int_equal(events.n[PTCP_EVENT_START], 1);
	assert_true(isnan(events.last.eta_s));
	t->wait.waited = true;
	t->avoids_movers = true;
	task_started(t);
	assert_true(t->started.ns > before.ns);
	assert_int_equal(events.n[PTCP_EVENT_WARNING], 1); /* that the movers are out of reach */
}

/* A task whose server reports these counts. */
static void counts(uint64_t done, uint64_t failed)
{
	new_task(&between);
	t->remote_job->frames.progress = (struct ptcp_progress){ .files = done, .failed = failed, .bytes = done };
	t->report.announced = true;
}

static void ends(void **state)
{
	struct ptcp_err why;

	(void)state;
	counts(2, 0);
	task_outcome(t, NULL);
	assert_true(t->over);
	assert_int_equal(t->result, 0);
	assert_int_equal(events.n[PTCP_EVENT_PROGRESS], 1); /* the last counts */
	counts(2, 1);
	task_outcome(t, NULL);
	assert_int_equal(t->result, PTCP_EPARTIAL);
	err_set(&why, PTCP_EREFUSED, "no");
	counts(0, 1); /* the only failure, which the user has seen, is the outcome */
	file(PTCP_FILE_FAILED, &why);
	task_outcome(t, NULL);
	assert_int_equal(t->result, PTCP_EREFUSED);
	cf_says(&t->why, "f: no");
	counts(0, 2);
	file(PTCP_FILE_FAILED, &why);
	file(PTCP_FILE_FAILED, &why);
	task_outcome(t, NULL);
	assert_int_equal(t->result, PTCP_EREFUSED);
	cf_says(&t->why, "all sources were refused (see above)");
	counts(0, 2);
	file(PTCP_FILE_FAILED, &why);
	err_set(&why, PTCP_EIO, "broken");
	file(PTCP_FILE_FAILED, &why);
	task_outcome(t, NULL);
	assert_int_equal(t->result, PTCP_EIO);
	cf_says(&t->why, "all sources failed (see above)");
	err_set(&why, PTCP_EVANISHED, "vanished");
	counts(0, 0);
	file(PTCP_FILE_VANISHED, &why);
	task_outcome(t, NULL);
	assert_int_equal(t->result, PTCP_EVANISHED);
	cf_says(&t->why, "1 file vanished");
	counts(1, 1); /* a failure counts more */
	file(PTCP_FILE_VANISHED, &why);
	task_outcome(t, NULL);
	assert_int_equal(t->result, PTCP_EPARTIAL);
	counts(2, 1); /* a lost connection is the outcome, whatever failed before */
	err_set(&why, PTCP_EPEER, "cut off");
	task_outcome(t, &why);
	assert_int_equal(t->result, PTCP_EPEER);
	assert_string_equal(t->why.msg, "cut off");
}

/* The rate leaves out resumed bytes; the remaining time counts them. */
static void rate(void **state)
{
	(void)state;
	counts(0, 0);
	t->report.sample[0].at = (struct mono){ mono_now().ns - 2000000000u };
	t->report.n_samples = 1;
	t->remote_job->frames.progress = (struct ptcp_progress){ .bytes = 3000000, .resumed_bytes = 1000000, .total_known = true,
		.total_bytes = 6000000 };
	task_show_progress(t);
	assert_true(events.last.rate_bps > 1e6 && events.last.rate_bps <= 8e6);
	assert_true(events.last.eta_s >= 2 && events.last.eta_s * events.last.rate_bps <= 16.1e6 * 1.5);
	t->remote_job->frames.progress.total_bytes = 5; /* nonsense of the server */
	task_show_progress(t);
	assert_true(isnan(events.last.eta_s));
	t->remote_job->frames.progress.total_bytes = 6000000;
	t->remote_job->frames.progress.total_known = false;
	task_show_progress(t);
	assert_true(isnan(events.last.eta_s));
}

/* The advice of the session: here by the probes of an earlier transfer. */
static void results(void **state)
{
	static const struct probe probe[] = { { 1, 10e6, 1e6 }, { 4, 38e6, 1e6 }, { 16, 90e6, 1e6 } };
	const struct stream_control_opts o = { .budget_ratio = 0.1, .max_streams = 32 };
	const struct evidence unknown = { .n = 0 };
	struct stream_control *m = &t->history.control;
	struct ptcp_result r;

	(void)state;
	ptcp_result_init(&r);
	ptcp_transfer_result(t, &r);
	assert_int_equal(r.advised_streams, 0); /* no advice was given */
	assert_true(isnan(r.predicted_bps) && isnan(r.measured_bps) && isnan(r.predicted_impact_percent));
	stream_control_init(m, &o);
	stream_control_recall(m, probe, 3, &unknown);
	assert_true(m->advised);
	ptcp_transfer_result(t, &r);
	assert_int_equal(r.advised_streams, m->answer);
	assert_true(r.predicted_bps == m->predicted_bps && r.from_history && isnan(r.measured_bps));
	assert_true(r.predicted_impact_percent <= 10);
	m->observed_bps = 4e6;
	m->recalled = false;
	ptcp_transfer_result(t, &r);
	assert_true(r.measured_bps == 4e6 && !r.from_history);
	if (r.fastest_streams > 0) { /* the budget has limited the answer */
		assert_true(r.fastest_streams > m->answer && r.budget_percent == 10 && r.fastest_impact_percent > 10);
		assert_true(r.fastest_bps >= r.predicted_bps);
	}
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(files),
		test(files_that_the_peer_refuses),
		test(warnings),
		test(changes),
		test(failed_paths),
		test(leftovers),
		test(starts),
		test(ends),
		test(rate),
		test(results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
