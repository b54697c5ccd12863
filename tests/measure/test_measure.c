/* Handles that measure, as callers of libptcp see them. Public headers only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "api/fixture.h"

#define GRANTED 8 /* streams, by the server */

/* It serves no files. */
static int setup(void **state)
{
	struct ptcp_server_opts o;
	struct ptcp_permission p;

	(void)state;
	ptcp_permission_init(&p);
	p.read_only = true;
	ptcp_server_opts_init(&o);
	o.max_streams = GRANTED;
	o.rate = "1Gbit/s"; /* floods would take the processors otherwise */
	return lf_make_dir() == 0 ? lf_serve(&o, &p) : -1;
}

struct heard {
	unsigned rounds, streams, failed;
};

static void on_round(void *arg, const struct ptcp_round *r)
{
	struct heard *h = arg;
	unsigned i;

	assert_int_equal(r->number, ++h->rounds);
	h->streams += r->streams;
	h->failed += r->why != NULL;
	for (i = 0; r->why == NULL && i < r->streams; i++) {
		assert_true(r->per_stream_bps[i] > 0);
		assert_true(r->per_stream_bps[i] <= r->throughput_bps * 1e3);
	}
}

static struct ptcp_task *measure(const unsigned *streams, size_t n, struct heard *h,
    enum ptcp_cipher cipher)
{
	struct ptcp_transfer_opts o;
	struct ptcp_measure_opts m;
	struct ptcp_task *t;
	struct ptcp_err e;

	lf_opts(&o);
	o.cipher = cipher;
	ptcp_measure_opts_init(&m);
	m.streams = streams;
	m.n_streams = n;
	m.rounds = 3;
	m.bytes_per_stream = 300001;
	m.round = on_round;
	m.arg = h;
	if (ptcp_measure_new(&t, &o, lf_address, &m, &e) < 0)
		fail_msg("%s", e.msg);
	return t;
}

static void rounds_and_levels(void **state)
{
	static const unsigned streams[] = { GRANTED, 1, 3 };
	struct ptcp_level level[PTCP_LEVELS_MAX];
	struct heard h = { 0 };
	struct ptcp_task *t = measure(streams, 3, &h, PTCP_CIPHER_AES128GCM);
	struct ptcp_advice a;
	struct ptcp_err e = { .code = 0 };
	unsigned saturates_at;
	int r;

	(void)state;
	assert_int_equal(ptcp_measure_levels(t, level, PTCP_LEVELS_MAX, &saturates_at), 0);
	r = ptcp_task_run(t, &e);
	assert_string_equal(e.msg, "");
	assert_int_equal(r, 0);
	assert_int_equal(h.rounds, 9);
	assert_int_equal(h.streams, 3 * (GRANTED + 1 + 3));
	assert_int_equal(h.failed, 0);
	assert_int_equal(ptcp_measure_levels(t, level, 1, &saturates_at), 3); /* writes one */
	assert_int_equal(ptcp_measure_levels(t, level, PTCP_LEVELS_MAX, &saturates_at), 3);
	assert_int_equal(level[0].streams, 1);
	assert_int_equal(level[2].streams, GRANTED);
	assert_int_equal(level[2].rounds, 3);
	assert_int_equal(level[2].failed, 0);
	assert_true(level[2].min_bps <= level[2].mean_bps && level[2].mean_bps <= level[2].max_bps);
	ptcp_advice_init(&a);
	assert_int_equal(ptcp_advise_result(t, &a, &e), PTCP_EUSAGE); /* of another kind */
	ptcp_task_free(t);
}

static void more_than_is_granted(void **state)
{
	static const unsigned streams[] = { GRANTED + 1 };
	struct heard h = { 0 };
	struct ptcp_task *t = measure(streams, 1, &h, PTCP_CIPHER_AES256GCM);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_task_run(t, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "at most 8"));
	assert_int_equal(h.rounds, 0);
	ptcp_task_free(t);
}

/* In clear is as with files: only where the server allows it. */
static void a_cipher_that_is_not_allowed(void **state)
{
	static const unsigned streams[] = { 1 };
	struct heard h = { 0 };
	struct ptcp_task *t = measure(streams, 1, &h, PTCP_CIPHER_NONE);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_task_run(t, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "cipher none"));
	ptcp_task_free(t);
}

struct cancelling {
	struct ptcp_task *t;
	unsigned at, seen;
};

static void cancel_at(void *arg, const struct ptcp_event *ev)
{
	struct cancelling *c = arg;

	if (ev->type == PTCP_EVENT_STREAMS && ++c->seen == c->at)
		ptcp_task_cancel(c->t);
}

/* With one stream, and while others join. */
static void canceled(void **state)
{
	static const unsigned levels[] = { 1, 2, 6 };
	struct cancelling c;
	struct ptcp_transfer_opts o;
	struct ptcp_advice_opts ao;
	struct ptcp_advice a;
	struct ptcp_err e;
	unsigned at;

	(void)state;
	for (at = 1; at <= 3; at++) {
		c = (struct cancelling){ .at = at };
		lf_opts(&o);
		o.event = cancel_at;
		o.arg = &c;
		ptcp_advice_opts_init(&ao);
		ao.levels = levels + 1; /* 2 and 6 */
		ao.n_levels = 2;
		ao.probe_s = 2.5;
		assert_int_equal(ptcp_advise_new(&c.t, &o, lf_address, &ao, &e), 0);
		assert_int_equal(ptcp_task_run(c.t, &e), PTCP_ECANCELED);
		ptcp_advice_init(&a);
		assert_int_equal(ptcp_advise_result(c.t, &a, &e), PTCP_EUSAGE);
		ptcp_task_free(c.t);
	}
}

/* Freed while streams flood. */
static void freed_at_work(void **state)
{
	struct ptcp_transfer_opts o;
	struct ptcp_advice_opts ao;
	struct cancelling c = { .at = 0 };
	struct ptcp_err e;

	(void)state;
	lf_opts(&o);
	o.event = cancel_at;
	o.arg = &c;
	ptcp_advice_opts_init(&ao);
	ao.levels = (const unsigned[]){ 4, 8 };
	ao.n_levels = 2;
	assert_int_equal(ptcp_advise_new(&c.t, &o, lf_address, &ao, &e), 0);
	assert_int_equal(ptcp_task_start(c.t, &e), 0);
	while (c.seen < 4)
		assert_int_equal(ptcp_task_step(c.t, &e), 1);
	ptcp_task_free(c.t);
}

static void what_cannot_be_asked_for(void **state)
{
	static const char *const bad[] = { "", "a/b", "ptcp://h/path", "ssh://h/path", "user@", "@h", "u@h:22",
		"-u@h", "h:x", "h:0" };
	static const double bad_s[] = { -10, 2, 51, NAN }, short_s[] = { 10.4, 7.4, NAN, -1 };
	struct ptcp_transfer_opts o;
	struct ptcp_advice_opts ao;
	struct ptcp_measure_opts m;
	struct ptcp_task *t = NULL;
	struct ptcp_err e;
	size_t i;

	(void)state;
	lf_opts(&o);
	ptcp_advice_opts_init(&ao);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		if (ptcp_advise_new(&t, &o, bad[i], &ao, &e) == 0 || t != NULL)
			fail_msg("'%s' is taken", bad[i]);
	ao.impact_percent = 101;
	assert_int_equal(ptcp_advise_new(&t, &o, "h", &ao, &e), PTCP_EUSAGE);
	ptcp_advice_opts_init(&ao);
	for (i = 0; i < sizeof bad_s / sizeof *bad_s; i++) {
		ao.probe_s = bad_s[i];
		assert_int_equal(ptcp_advise_new(&t, &o, "h", &ao, &e), PTCP_EUSAGE);
		assert_non_null(strstr(e.msg, "duration of a probe: must be 2.5 to 50 s"));
	}
	for (i = 0; i < sizeof short_s / sizeof *short_s; i++) {
		ptcp_advice_opts_init(&ao);
		ao.time_s = short_s[i];
		ao.history = i == 0;
		assert_int_equal(ptcp_advise_new(&t, &o, "h", &ao, &e), PTCP_EUSAGE);
		assert_non_null(strstr(e.msg, "3 numbers of streams take"));
	}
	ptcp_advice_opts_init(&ao);
	ao.levels = (const unsigned[]){ 5, 5 };
	ao.n_levels = 2;
	assert_int_equal(ptcp_advise_new(&t, &o, "h", &ao, &e), PTCP_EUSAGE);
	ao.size = 0;
	assert_int_equal(ptcp_advise_new(&t, &o, "h", &ao, &e), PTCP_EUSAGE);
	ptcp_measure_opts_init(&m);
	m.rounds = 0;
	assert_int_equal(ptcp_measure_new(&t, &o, "h", &m, &e), PTCP_EUSAGE);
	ptcp_measure_opts_init(&m);
	m.streams = (const unsigned[]){ 1, 129 };
	m.n_streams = 2;
	assert_int_equal(ptcp_measure_new(&t, &o, "h", &m, &e), PTCP_EUSAGE);
	assert_null(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_and_levels),
		cmocka_unit_test(more_than_is_granted),
		cmocka_unit_test(a_cipher_that_is_not_allowed),
		cmocka_unit_test(canceled),
		cmocka_unit_test(freed_at_work),
		cmocka_unit_test(what_cannot_be_asked_for),
	};
	return cmocka_run_group_tests_name("measure/measure", tests, setup, lf_teardown);
}
