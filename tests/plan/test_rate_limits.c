/* An overlay as it changes under a collection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "parsed.h"
#include "plan/overlay_copy.h"
#include "plan/rate_limits.h"

static const char text[] =
    "destination: D\n"
    "hosts: {D: {}, S1: {data: 1GB, path: /d}, S2: {data: 1GB, path: /d, egress: 1Gbit/s}}\n"
    "links: [{from: S1, to: D, rate: 10Mbit/s}, {from: S2, to: D, rate: 20Mbit/s}, {from: S1, to: S2}]\n"
    "shared: [{rate: 25Mbit/s, links: [S1>D, S2>D]}]\n"
    "windows: [{link: S1>D, from: 5s, until: 10s, rate: 1Mbit/s}, {link: S1>D, from: 10s, rate: 2Mbit/s}]\n";

static void links_and_what_they_share(void **state)
{
	struct ptcp_overlay *o = overlay_of(text);
	size_t of[5];
	char name[64];

	(void)state;
	assert_int_equal(limits_count(o), 3 + 1 + 3 + 3);
	assert_int_equal(limits_link(o, 1, 0), 0);
	assert_int_equal(limits_link(o, 0, 1), -1);
	assert_true(limits_windowed(o, 0) && !limits_windowed(o, 1));
	assert_int_equal(limits_max_of_link(o), 4);
	assert_int_equal(limits_of_link(o, 1, of, 5), 4);
	assert_true(of[0] == 1 && of[1] == 3 && of[2] == 4 && of[3] == 9); /* D takes it in, S2 sends it */
	assert_int_equal(limits_of_link(o, 2, of, 5), 3);
	assert_true(of[0] == 2 && of[1] == 6 && of[2] == 8);
	assert_true(limits_is_host(o, 4) && limits_is_host(o, 9) && !limits_is_host(o, 3));
	assert_string_equal(limits_name(o, 4, name, sizeof name), "all to D");
	assert_string_equal(limits_name(o, 9, name, sizeof name), "all from S2");
	assert_true(limits_bps(o, 9) == 1e9 && isinf(limits_bps(o, 6)));
	assert_string_equal(limits_name(o, 0, name, sizeof name), "S1>D");
	assert_string_equal(limits_name(o, 3, name, sizeof name), "S1>D + S2>D");
	assert_string_equal(limits_name(o, 3, name, 6), "S1>D ");
	assert_true(limits_bps(o, 3) == 25e6 && isinf(limits_bps(o, 2)));
	limits_set_bps(o, 3, 40e6);
	limits_set_bps(o, 1, INFINITY); /* kept within what can be */
	assert_true(limits_bps(o, 3) == 40e6 && limits_bps(o, 1) > 1e15);
	ptcp_overlay_free(o);
}

static void streams_are_counted_where_there_is_a_curve(void **state)
{
	static const char curves[] =
	    "destination: D\n"
	    "hosts: {D: {}, S1: {data: 1GB, path: /d}, S2: {data: 1GB, path: /d}}\n"
	    "links: [{from: S1, to: D, curve: {1: {rate: 10Mbit/s, impact: 0}}}, {from: S2, to: D, rate: 20Mbit/s}]\n"
	    "shared: [{curve: {1: {rate: 10Mbit/s, impact: 0}}, links: [S1>D]}, {rate: 20Mbit/s, links: [S2>D]}]\n";
	struct ptcp_overlay *o;
	struct ptcp_err e;

	(void)state;
	if (ptcp_overlay_parse(&o, curves, strlen(curves), "test", &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(limits_curve(o, 0) != NULL && limits_curve(o, 1) == NULL);
	assert_true(limits_curve(o, 2) != NULL && limits_curve(o, 3) == NULL && limits_curve(o, 4) == NULL);
	ptcp_overlay_free(o);
}

static void windows_come_and_go(void **state)
{
	struct ptcp_overlay *o = overlay_of(text);

	(void)state;
	assert_true(limits_bps(o, 0) == 10e6);
	limits_pass(o, 4);
	assert_true(limits_bps(o, 0) == 10e6);
	limits_pass(o, 2);
	assert_true(limits_bps(o, 0) == 1e6);
	limits_set_bps(o, 0, 3e6); /* of this window */
	assert_true(limits_bps(o, 0) == 3e6);
	limits_pass(o, 4.5);
	assert_true(limits_bps(o, 0) == 2e6);
	limits_pass(o, 1e6);
	assert_true(limits_bps(o, 0) == 2e6); /* it has no end */
	assert_true(limits_bps(o, 1) == 20e6);
	ptcp_overlay_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_and_what_they_share),
		cmocka_unit_test(streams_are_counted_where_there_is_a_curve),
		cmocka_unit_test(windows_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
