/* Options and checks for programs, which the command does not use. Public headers only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

static int setup(void **state)
{
	struct ptcp_server_opts o;
	struct ptcp_permission p;

	(void)state;
	if (lf_make_dir() < 0)
		return -1;
	if (mkdir(lf_path("root"), 0755) != 0 || mkdir(lf_path("root/there"), 0755) != 0 || mkdir(lf_path("here"), 0755) != 0)
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(dest_is_file), cmocka_unit_test(rate_check) };

	return cmocka_run_group_tests(tests, setup, lf_teardown);
}
