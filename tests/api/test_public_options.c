/* Options and checks for programs, which the command does not use. Public headers only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

static int setup(void **state)
{
	struct ptcp_server_opts o;
	struct ptcp_permission p;

	(void)state;
	if (lf_make_dir() < 0)
		return -1;
	if (mkdir(lf_path("root"), 0755) != 0 || mkdir(lf_path("root/there"), 0755) != 0 ||
	    mkdir(lf_path("here"), 0755) != 0)
		return -1;
	ptcp_server_opts_init(&o);
	ptcp_permission_init(&p);
	o.root = lf_path("root");
	return lf_serve(&o, &p);
}

static void put(const char *name)
{
	FILE *f = fopen(lf_path(name), "w");

	assert_non_null(f);
	assert_true(fputs(name, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static const char *url(const char *path)
{
	static char text[2][200];
	static unsigned i;
	char *to = text[i++ % 2];

	snprintf(to, sizeof text[0], "ptcp://%s/%s", lf_address, path);
	return to;
}

/* Result of a transfer of n sources to the destination, which names the file. */
static int move(bool sends, const char *const *source, size_t n, const char *dest, struct ptcp_err *e)
{
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;
	int r;

	lf_opts(&o);
	o.dest_is_file = true;
	if ((r = (sends ? ptcp_send_new : ptcp_recv_new)(&t, &o, source, n, dest, e)) < 0)
		return r;
	r = ptcp_task_run(t, e);
	ptcp_task_free(t);
	return r;
}

static void refused(bool sends, const char *const *source, size_t n, const char *dest, const char *why)
{
	struct ptcp_err e;

	if (move(sends, source, n, dest, &e) >= 0)
		fail_msg("%s: not refused", dest);
	if (strstr(e.msg, why) == NULL)
		fail_msg("%s: %s", dest, e.msg);
}

static void dest_is_file(void **state)
{
	char data[200], more[200];
	const char *const local[] = { data, more };
	const char *remote;
	struct ptcp_err e;

	(void)state;
	put("data");
	put("more");
	snprintf(data, sizeof data, "%s", lf_path("data"));
	snprintf(more, sizeof more, "%s", lf_path("more"));
	refused(true, local, 1, url("there"), "Is a directory");
	refused(true, local, 1, url("there/"), "Is a directory");
	refused(true, local, 1, url("new/"), "Is a directory");
	refused(true, local, 2, url("new"), "several sources");
	assert_int_equal(move(true, local, 1, url("new"), &e), 0);
	assert_int_equal(access(lf_path("root/new"), F_OK), 0);
	remote = url("new");
	refused(false, &remote, 1, lf_path("here"), "Is a directory");
	refused(true, &remote, 1, url("other"), "between two other hosts");
	assert_int_equal(move(false, &remote, 1, lf_path("here/new"), &e), 0);
	assert_int_equal(access(lf_path("here/new"), F_OK), 0);
	assert_int_equal(rmdir(lf_path("root/there")), 0); /* empty */
}

static void rate_check(void **state)
{
	static const char *const good[] = { "200Mbit/s", "0", "08:00-18:00=200Mbit/s,else=0" };
	static const char *const bad[] = { "", "x", "-1Mbit/s", "1bit/s", "08:00-18:00=1Mbit/s,else=x" };
	struct ptcp_err e;
	size_t i;

	(void)state;
	assert_int_equal(ptcp_rate_check(NULL, &e), 0);
	for (i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(ptcp_rate_check(good[i], &e), 0);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ptcp_rate_check(bad[i], &e), PTCP_EUSAGE);
}

/* ---- Options that are NULL ---- */

#define TASK(name, call) \
	static int name(const void *o, struct ptcp_err *e) \
	{ \
		struct ptcp_task *t = NULL; \
		int r = call; \
\
		ptcp_task_free(t); \
		return r; \
	}
#define HOST "127.0.0.1"

static const char *const sources[] = { "." }, *const urls[] = { "ptcp://" HOST "/x" };

TASK(send_task, ptcp_send_new(&t, o, sources, 1, urls[0], e))
TASK(recv_task, ptcp_recv_new(&t, o, urls, 1, ".", e))
TASK(status_task, ptcp_status_new(&t, o, HOST, false, e))
TASK(clean_task, ptcp_clean_new(&t, o, urls[0], NULL, e))
TASK(clean_task_opts, ptcp_clean_new(&t, NULL, urls[0], o, e))
TASK(manage_task, ptcp_manage_new(&t, o, PTCP_LIST, urls, 1, NULL, e))
TASK(manage_task_opts, ptcp_manage_new(&t, NULL, PTCP_LIST, urls, 1, o, e))
TASK(advise_task, ptcp_advise_new(&t, o, HOST, NULL, e))
TASK(advise_task_opts, ptcp_advise_new(&t, NULL, HOST, o, e))
TASK(measure_task, ptcp_measure_new(&t, o, HOST, NULL, e))
TASK(measure_task_opts, ptcp_measure_new(&t, NULL, HOST, o, e))
TASK(timing_task, ptcp_timing_new(&t, o, HOST, NULL, e))
TASK(timing_task_opts, ptcp_timing_new(&t, NULL, HOST, o, e))
TASK(between_task, ptcp_timing_between_new(&t, o, HOST, HOST, NULL, e))
TASK(between_task_opts, ptcp_timing_between_new(&t, NULL, HOST, HOST, o, e))
TASK(link_query_task, ptcp_link_query_new(&t, o, HOST, e))

static int advice(const void *o, struct ptcp_err *e)
{
	struct ptcp_probe p[2] = { { .streams = 1, .throughput_bps = 1e8, .error_bps = NAN },
		{ .streams = 10, .throughput_bps = 5e8, .error_bps = NAN } };
	struct ptcp_advice a;

	ptcp_advice_init(&a);
	return ptcp_advice_from_probes(&a, p, 2, o, e);
}

static int clean(const void *o, struct ptcp_err *e)
{
	struct ptcp_clean_result result;

	ptcp_clean_result_init(&result);
	return ptcp_clean(lf_path("here"), o, &result, e);
}

static int server(const void *o, struct ptcp_err *e)
{
	struct ptcp_server *s = NULL;
	int r = ptcp_server_new(&s, o, e);

	if (r == 0)
		ptcp_server_free(s);
	return r == 0 || strstr(e->msg, "7811") != NULL ? 0 : r; /* another server may have the default port */
}

static int change(const void *o, struct ptcp_err *e) { return ptcp_server_change(lf_server, o, e); }
static int mover(const void *o, struct ptcp_err *e) { return ptcp_mover(o, e); }
static int authorize(const void *o, struct ptcp_err *e) { return ptcp_authorize(NULL, o, e); }

static int certificate(const void *o, struct ptcp_err *e)
{
	char text[PTCP_CERTIFICATE_BYTES];

	return ptcp_certificate_sign(lf_path("no.key"), o, text, e);
}

/* Each function that takes options: NULL stands for those of _init(), which some functions refuse with a reason of
 * their own; and options without a size are refused. */
static void options_of_nobody(void **state)
{
	static const struct { const char *name; int (*call)(const void *o, struct ptcp_err *e);
		const char *why; } cases[] = {
		{ "send", send_task, NULL }, { "recv", recv_task, NULL }, { "status", status_task, NULL },
		{ "clean task", clean_task, NULL }, { "clean task, its own", clean_task_opts, NULL },
		{ "manage", manage_task, NULL }, { "manage, its own", manage_task_opts, NULL },
		{ "advise", advise_task, NULL }, { "advise, its own", advise_task_opts, NULL },
		{ "measure", measure_task, NULL }, { "measure, its own", measure_task_opts, NULL },
		{ "timing", timing_task, NULL }, { "timing, its own", timing_task_opts, NULL },
		{ "timing between", between_task, NULL }, { "timing between, its own", between_task_opts, NULL },
		{ "link query", link_query_task, NULL }, { "advice", advice, NULL }, { "clean", clean, NULL },
		{ "server", server, NULL }, { "change", change, NULL }, { "mover", mover, "no invitation" },
		{ "authorize", authorize, "not a fingerprint" }, { "certificate", certificate, "not a fingerprint" },
	};
	static const size_t no_size;
	struct ptcp_err e;
	size_t i;
	int r;

	(void)state;
	assert_int_equal(setenv("XDG_CONFIG_HOME", lf_path("config"), 1), 0);
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		r = cases[i].call(NULL, &e);
		if (cases[i].why == NULL ? r != 0 : r != PTCP_EUSAGE || strstr(e.msg, cases[i].why) == NULL)
			fail_msg("%s without options: %d, %s", cases[i].name, r, r < 0 ? e.msg : "");
		r = cases[i].call(&no_size, &e);
		if (r != PTCP_EUSAGE || strstr(e.msg, "not initialized") == NULL)
			fail_msg("%s with options of no size: %d, %s", cases[i].name, r, r < 0 ? e.msg : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(dest_is_file), cmocka_unit_test(rate_check),
		cmocka_unit_test(options_of_nobody) };

	return cmocka_run_group_tests(tests, setup, lf_teardown);
}
