/* Queries of the links that a server publishes, and the permission to query them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "api/fixture.h"

static struct ptcp_permission permission;

static int setup(void **state)
{
	struct ptcp_server_opts o;

	(void)state;
	ptcp_server_opts_init(&o);
	ptcp_permission_init(&permission);
	return lf_make_dir() < 0 ? -1 : lf_serve(&o, &permission);
}

static int setup_no_relay(void **state)
{
	struct ptcp_server_opts o;

	(void)state;
	ptcp_server_opts_init(&o);
	ptcp_permission_init(&permission);
	permission.no_relay = true;
	return lf_make_dir() < 0 ? -1 : lf_serve(&o, &permission);
}

/* The task of the query; freed by the caller. */
static int ask(struct ptcp_task **t, struct ptcp_err *e)
{
	struct ptcp_transfer_opts o;

	lf_opts(&o);
	assert_int_equal(ptcp_link_query_new(t, &o, lf_address, e), 0);
	return ptcp_task_run(*t, e);
}

static void must_fail(int code)
{
	struct ptcp_task *t;
	struct ptcp_err e;

	assert_int_equal(ask(&t, &e), code);
	assert_int_equal(ptcp_link_query_links(t, NULL, 0), 0);
	ptcp_task_free(t);
}

static const struct ptcp_published_link known[] = {
	{ "b.example.org", NULL, 12, 4, 4e8, 8e6, 0.02, 0.0005, false, 61 },
	{ "[::1]:99", "gone", 1, 1, 1e6, NAN, 0.5, NAN, true, 0 },
	{ "127.0.0.1:7812", "connecting: refused", 0, 0, 0, 0, 0, 0, false, 0 },
};

static void told(void **state)
{
	struct ptcp_published_link got[4];
	struct ptcp_task *t;
	struct ptcp_err e;

	(void)state;
	must_fail(PTCP_EPEER); /* it does not measure */
	assert_int_equal(ptcp_server_set_links(lf_server, known, 0, &e), 0);
	assert_int_equal(ask(&t, &e), 0); /* it does, and knows nothing yet */
	assert_int_equal(ptcp_link_query_links(t, got, 4), 0);
	ptcp_task_free(t);
	assert_int_equal(ptcp_server_set_links(lf_server, known, 3, &e), 0);
	assert_int_equal(ask(&t, &e), 0);
	assert_int_equal(ptcp_link_query_links(t, got, 2), 3);
	assert_int_equal(ptcp_link_query_links(t, got, 4), 3);
	assert_string_equal(got[0].to, "b.example.org:7811");
	assert_null(got[0].why);
	assert_int_equal(got[0].messages, 12);
	assert_int_equal(got[0].streams, 4);
	assert_true(got[0].rate_bps == 4e8 && got[0].rate_error_bps == 8e6 && got[0].delay_s == 0.02 &&
	    got[0].delay_error_s == 0.0005 && !got[0].delay_from_round_trip);
	assert_true(got[0].age_s >= 61);
	assert_string_equal(got[1].to, "[::1]:99");
	assert_string_equal(got[1].why, "gone");
	assert_true(isnan(got[1].rate_error_bps) && isnan(got[1].delay_error_s) && got[1].delay_from_round_trip);
	assert_string_equal(got[2].to, "127.0.0.1:7812");
	assert_int_equal(got[2].messages, 0);
	ptcp_task_free(t);
	assert_int_equal(ptcp_server_set_links(lf_server, NULL, 0, &e), 0);
	must_fail(PTCP_EPEER);
}

/* What cannot be is not taken, and what was known stays. */
static void refused(void **state)
{
	struct ptcp_published_link bad[] = { known[0], known[0], known[0], known[0], known[0], known[0],
		known[0], known[0] };
	static struct ptcp_published_link many[PTCP_PUBLISHED_LINKS_MAX + 1];
	struct ptcp_task *t;
	struct ptcp_err e;
	size_t i;

	(void)state;
	bad[0].rate_bps = NAN;
	bad[1].rate_bps = 0;
	bad[2].rate_error_bps = -1;
	bad[3].delay_s = INFINITY;
	bad[4].delay_s = 1e9;
	bad[5].streams = 0;
	bad[6].to = "user@host";
	bad[7].age_s = -1;
	assert_int_equal(ptcp_server_set_links(lf_server, known, 3, &e), 0);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ptcp_server_set_links(lf_server, &bad[i], 1, &e), PTCP_EUSAGE);
	for (i = 0; i < PTCP_PUBLISHED_LINKS_MAX + 1; i++)
		many[i] = known[i % 3];
	assert_int_equal(ptcp_server_set_links(lf_server, many, PTCP_PUBLISHED_LINKS_MAX + 1, &e), PTCP_EUSAGE);
	assert_int_equal(ask(&t, &e), 0);
	assert_int_equal(ptcp_link_query_links(t, NULL, 0), 3);
	ptcp_task_free(t);
	assert_int_equal(ptcp_server_set_links(lf_server, many, PTCP_PUBLISHED_LINKS_MAX, &e), 0);
	assert_int_equal(ask(&t, &e), 0);
	assert_int_equal(ptcp_link_query_links(t, NULL, 0), PTCP_PUBLISHED_LINKS_MAX);
	ptcp_task_free(t);
}

static void not_for_everybody(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_server_set_links(lf_server, known, 3, &e), 0);
	must_fail(PTCP_EREFUSED);
}

static void wrong_places(void **state)
{
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;
	struct ptcp_err e;

	(void)state;
	lf_opts(&o);
	assert_int_equal(ptcp_link_query_new(&t, &o, "user@host", &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_link_query_new(&t, &o, "", &e), PTCP_EUSAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(told, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(refused, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(not_for_everybody, setup_no_relay, lf_teardown),
		cmocka_unit_test(wrong_places),
	};

	return cmocka_run_group_tests_name("client/remote_query", tests, NULL, NULL);
}
