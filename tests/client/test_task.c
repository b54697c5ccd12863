/* The life of a task: it runs once, ends with one outcome, and may be canceled or freed at any step. */
#include "fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/fixture.h"

#define BYTES 600000

static struct ptcp_permission permission;
static char config[256], source[256], url[64];

static int setup(void **state)
{
	static char data[BYTES];
	struct ptcp_server_opts o;
	FILE *f;
	size_t i;

	(void)state;
	ptcp_server_opts_init(&o);
	ptcp_permission_init(&permission);
	for (i = 0; i < BYTES; i++)
		data[i] = (char)(i * 7 + i / 251);
	if (lf_make_dir() < 0 || mkdir(lf_path("root"), 0755) != 0 || (f = fopen(lf_path("file"), "w")) == NULL ||
	    fwrite(data, 1, BYTES, f) != BYTES || fclose(f) != 0)
		return -1;
	o.root = lf_path("root");
	snprintf(config, sizeof config, "%s", lf_path("client"));
	snprintf(source, sizeof source, "%s", lf_path("file"));
	if (lf_serve(&o, &permission) < 0)
		return -1;
	snprintf(url, sizeof url, "ptcp://%s/copy", lf_address);
	return 0;
}

static struct ptcp_task *task(struct cf_events *ev)
{
	const struct cf_files f = { true, { source }, url };
	struct ptcp_transfer_opts o = cf_opts();

	lf_opts(&o);
	o.no_history = true;
	o.config_dir = config;
	o.streams = 2;
	if (ev != NULL)
		cf_record(&o, ev);
	return cf_accepted(&o, &f);
}

/* Waits for the descriptor of the task, and steps. */
static int step(struct ptcp_task *t, struct ptcp_err *e)
{
	struct pollfd p = { ptcp_task_fd(t), POLLIN, 0 };

	poll(&p, 1, ptcp_task_timeout_ms(t));
	return ptcp_task_step(t, e);
}

static void is_complete(void)
{
	struct stat st;

	assert_int_equal(stat(lf_path("root/copy"), &st), 0);
	assert_int_equal(st.st_size, BYTES);
	assert_int_equal(remove(lf_path("root/copy")), 0);
}

/* ---- Order ---- */

static void once(void **state)
{
	struct ptcp_result result;
	struct cf_events ev;
	struct ptcp_task *t = task(&ev);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_task_step(t, &e), PTCP_EUSAGE);
	cf_says(&e, "does not run");
	assert_int_equal(ptcp_task_run(t, &e), 0);
	assert_int_equal(ev.n[PTCP_EVENT_START], 1);
	assert_string_equal(ev.peer, lf_address);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_EUSAGE);
	cf_says(&e, "a task runs once");
	assert_int_equal(ptcp_task_start(t, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_task_step(t, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_task_timeout_ms(t), 0);
	ptcp_task_cancel(t); /* too late, and harmless */
	ptcp_result_init(&result);
	ptcp_transfer_result(t, &result);
	assert_int_equal(result.progress.files, 1);
	assert_int_equal(result.progress.bytes, BYTES);
	assert_true(result.seconds > 0);
	assert_int_equal(result.warnings, 0);
	ptcp_task_free(t);
	ptcp_task_free(NULL);
	is_complete();
}

/* The last step gives the result; an error needs no place. */
static void by_steps(void **state)
{
	struct ptcp_task *t = task(NULL);
	unsigned n = 0;
	int r;

	(void)state;
	assert_int_equal(ptcp_task_start(t, NULL), 0);
	while ((r = step(t, NULL)) > 0)
		n++;
	assert_int_equal(r, 0);
	assert_true(n > 1);
	ptcp_task_free(t);
	is_complete();
}

/* ---- Canceled ---- */

/* Before it runs, a task can be canceled, too: each kind says what it was. */
static void before_it_runs(void **state)
{
	struct ptcp_transfer_opts o;
	struct ptcp_measure_opts m;
	struct ptcp_task *t;
	struct ptcp_err e;
	int p[2];

	(void)state;
	lf_opts(&o);
	t = task(NULL);
	ptcp_task_cancel(t);
	ptcp_task_cancel(t);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECANCELED);
	cf_says(&e, "transfer: interrupted (run the same command again to resume it)");
	ptcp_task_free(t);
	assert_int_equal(access(lf_path("root/copy"), F_OK), -1);
	ptcp_measure_opts_init(&m);
	assert_int_equal(ptcp_measure_new(&t, &o, lf_address, &m, &e), 0);
	ptcp_task_cancel(t);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECANCELED);
	cf_says(&e, "measurement: interrupted");
	ptcp_task_free(t);
	assert_int_equal(ptcp_status_new(&t, &o, lf_address, false, &e), 0);
	ptcp_task_cancel(t);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECANCELED);
	cf_says(&e, "query: interrupted");
	ptcp_task_free(t);
	assert_int_equal(pipe(p), 0);
	o.pipe.fd = p[0];
	t = cf_accepted(&o, &(struct cf_files){ true, { "-" }, url });
	ptcp_task_cancel(t);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECANCELED);
	cf_says(&e, "the file is not complete");
	ptcp_task_free(t);
	o.pipe.fd = p[1];
	t = cf_accepted(&o, &(struct cf_files){ false, { url }, "-" });
	ptcp_task_cancel(t);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECANCELED);
	cf_says(&e, "the output is not complete");
	ptcp_task_free(t);
	close(p[0]);
	close(p[1]);
}

/* Starts a transfer and makes up to n steps; true: it still runs. */
static bool begins(struct ptcp_task **t, unsigned n, struct ptcp_err *e)
{
	int r = 1;

	*t = task(NULL);
	assert_int_equal(ptcp_task_start(*t, e), 0);
	for (; n > 0 && r > 0; n--)
		r = step(*t, e);
	assert_true(r >= 0);
	return r > 0;
}

/* After any number of steps: the outcome is the cancellation, unless the transfer was complete; and what is at the
 * destination is a whole file, or none. */
static void at_each_step(void **state)
{
	unsigned n, canceled = 0;
	struct ptcp_task *t;
	struct ptcp_err e;
	int r;

	(void)state;
	for (n = 0; begins(&t, n, &e); n += 1 + n / 4) {
		ptcp_task_cancel(t);
		while ((r = step(t, &e)) > 0)
			;
		if (r < 0) {
			assert_int_equal(r, PTCP_ECANCELED);
			assert_int_equal(e.code, PTCP_ECANCELED);
			canceled++;
		}
		ptcp_task_free(t);
		if (access(lf_path("root/copy"), F_OK) == 0)
			is_complete();
		else
			assert_true(r < 0);
	}
	ptcp_task_free(t);
	assert_true(canceled > 3);
	is_complete();
}

/* Freed while it runs: nothing of it is left, which the fixture checks for descriptors; the next one works. */
static void freed_at_each_step(void **state)
{
	struct ptcp_task *t;
	struct ptcp_err e;
	unsigned n;

	(void)state;
	for (n = 0; begins(&t, n, &e); n += 1 + n / 4) {
		ptcp_task_free(t);
		if (access(lf_path("root/copy"), F_OK) == 0)
			is_complete();
	}
	ptcp_task_free(t);
	is_complete();
}

static void cancel_at(void *arg, const struct ptcp_event *ev)
{
	struct ptcp_task **t = arg;

	if (ev->type == PTCP_EVENT_START || ev->type == PTCP_EVENT_RECONNECTING)
		ptcp_task_cancel(*t);
}

/* By the callback of an event, which the task itself calls. */
static void by_an_event(void **state)
{
	struct cf_events ev;
	struct ptcp_task *t = task(&ev);
	struct ptcp_err e;

	(void)state;
	ev.then = cancel_at;
	ev.arg = &t;
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECANCELED);
	assert_int_equal(ev.n[PTCP_EVENT_START], 1);
	ptcp_task_free(t);
}

/* ---- Between two attempts ---- */

/* A transfer that has lost its session, to a server that is gone. */
static struct ptcp_task *lost(struct cf_events *ev)
{
	const struct cf_files f = { true, { source }, CF_NO_HOST "copy" };
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t;

	o.config_dir = config;
	cf_record(&o, ev);
	t = cf_accepted(&o, &f);
	retry_worked(t);
	return t;
}

static void in_a_pause(void **state)
{
	struct cf_events ev;
	struct ptcp_task *t = lost(&ev);
	struct ptcp_err e;

	(void)state;
	ev.then = cancel_at;
	ev.arg = &t;
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECANCELED);
	assert_int_equal(ev.n[PTCP_EVENT_RECONNECTING], 1);
	ptcp_task_free(t);
	t = lost(&ev); /* or freed in the pause */
	assert_int_equal(ptcp_task_start(t, &e), 0);
	while (ev.n[PTCP_EVENT_RECONNECTING] == 0)
		assert_int_equal(step(t, &e), 1);
	ptcp_task_free(t);
}

/* After the pause the task connects again; without time left, it gives up. */
static void after_a_pause(void **state)
{
	struct cf_events ev;
	struct ptcp_task *t = lost(&ev);
	struct ptcp_err e;
	int r;

	(void)state;
	assert_int_equal(ptcp_task_start(t, &e), 0);
	while ((r = step(t, &e)) > 0)
		if (ev.n[PTCP_EVENT_RECONNECTING] == 2)
			t->o.retry_for_s = 0.001;
		else if (t->retry.timer != NULL)
			timer_set(t->retry.timer, mono_now());
	assert_int_equal(r, PTCP_EPEER);
	cf_says(&e, "cut off, and not continued within");
	assert_int_equal(ev.n[PTCP_EVENT_RECONNECTING], 2);
	ptcp_task_free(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(once),
		cmocka_unit_test(by_steps),
		cmocka_unit_test(before_it_runs),
		cmocka_unit_test(at_each_step),
		cmocka_unit_test(freed_at_each_step),
		cmocka_unit_test(by_an_event),
		cmocka_unit_test(in_a_pause),
		cmocka_unit_test(after_a_pause),
	};

	return cmocka_run_group_tests(tests, setup, lf_teardown);
}
