/* Congestion control that a sender begins with, for each request, kernel and role, and when a transfer yields. */
#include "engine/congestion_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ptcp/err.h>
#include <string.h>

#define ALL "reno cubic bbr "

static const char *permitted; /* names, each with a blank behind it */

static bool permits(const char *name)
{
	const char *at = strstr(permitted, name);

	return at != NULL && at[strlen(name)] == ' ';
}

static void each_request_and_kernel(void **state)
{
	static const struct {
		uint8_t request;
		const char *permitted, *name;
		bool judges, denied;
	} cases[] = {
		{ WIRE_CC_AUTO, ALL, "cubic", true, false },
		{ WIRE_CC_AUTO, "reno bbr ", "reno", true, false },
		{ WIRE_CC_AUTO, "bbr ", NULL, false, true },
		{ WIRE_CC_FAIR, ALL, "cubic", false, false },
		{ WIRE_CC_FAIR, "reno bbr ", "reno", false, false },
		{ WIRE_CC_FAIR, "bbr ", NULL, false, false }, /* a fixed number has no budget */
		{ WIRE_CC_YIELD, ALL, "cubic", false, false },
		{ WIRE_CC_YIELD, "bbr ", NULL, false, false }, /* yields anyway */
		{ WIRE_CC_SYSTEM, ALL, NULL, false, false },
		{ WIRE_CC_CUBIC, ALL, "cubic", false, false },
		{ WIRE_CC_CUBIC, "bbr ", "cubic", false, false }, /* is refused */
		{ WIRE_CC_BBR, "bbr ", "bbr", false, false },
		{ WIRE_CC_RENO, ALL, "reno", false, false },
	};
	struct congestion_choice c;
	uint8_t role;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_GENERATES; role++) {
			const struct wire_open o = { .role = role, .congestion = cases[i].request };
			bool transfer = role == WIRE_ACCEPTOR_RECEIVES || role == WIRE_ACCEPTOR_SENDS;

			permitted = cases[i].permitted;
			congestion_choose(&c, &o, permits);
			assert_string_equal(c.name != NULL ? c.name : "system",
			    cases[i].name != NULL ? cases[i].name : "system");
			assert_int_equal(c.judges, cases[i].judges && transfer);
			assert_int_equal(congestion_is_denied(&o, c.why), cases[i].denied);
			/* A measurement is about what several streams deliver. */
			assert_int_equal(congestion_yields(&o, c.why, false), cases[i].denied && transfer);
			assert_false(congestion_yields(&o, c.why, true));
		}
}

/* The receiver knows names only. */
static void of_a_peer(void **state)
{
	static const struct {
		uint8_t request;
		const char *from, *name;
		bool yields;
		const char *why;
	} cases[] = {
		{ WIRE_CC_AUTO, "", "cubic", false, "shares links" },
		{ WIRE_CC_AUTO, "", "bbr", true, "net.ipv4.tcp_allowed_congestion_control" },
		{ WIRE_CC_AUTO, "cubic", "bbr", false, "random loss" },
		{ WIRE_CC_AUTO, "bbr", "cubic", false, "competing flows are seen" },
		{ WIRE_CC_FAIR, "", "bbr", false, "net.ipv4.tcp_allowed_congestion_control" },
		{ WIRE_CC_YIELD, "", "bbr", false, "net.ipv4.tcp_allowed_congestion_control" },
		{ WIRE_CC_SYSTEM, "", "bbr", false, "system" },
		{ WIRE_CC_BBR, "", "bbr", false, "requested" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct wire_open o = { .role = WIRE_ACCEPTOR_SENDS, .congestion = cases[i].request };
		const char *why = congestion_peer_why(&o, cases[i].from, cases[i].name);

		assert_non_null(strstr(why, cases[i].why));
		assert_int_equal(congestion_yields(&o, why, false), cases[i].yields);
		assert_false(congestion_yields(&o, NULL, false)); /* not known yet */
	}
	assert_non_null(strstr(congestion_denied_warning, "net.ipv4.tcp_allowed_congestion_control"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_request_and_kernel), cmocka_unit_test(of_a_peer) };

	return cmocka_run_group_tests_name("engine/congestion_choice", tests, NULL, NULL);
}
