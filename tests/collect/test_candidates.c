/* Which paths a transfer is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "collect/candidates.h"

static struct ptcp_overlay *overlay;
static struct schedule *schedule;

static void plan(const char *text)
{
	struct ptcp_plan_opts opts;
	struct ptcp_plan *p;
	struct ptcp_err e;

	if (ptcp_overlay_parse(&overlay, text, strlen(text), "test", &e) < 0)
		fail_msg("%s", e.msg);
	ptcp_plan_opts_init(&opts);
	if (ptcp_plan_make(&p, overlay, &opts, &e) < 0 || schedule_new(&schedule, p, &e) < 0)
		fail_msg("%s", e.msg);
	ptcp_plan_free(p);
}

static void done(struct candidates *v)
{
	candidates_fini(v);
	schedule_free(schedule);
	ptcp_overlay_free(overlay);
}

/* The data goes S, A, B, D: we connect to B first. The direct link is too slow to be worth anything, but it is the
 * first to try. */
static void relays_are_named_from_the_destination_on(void **state)
{
	struct candidates v;
	struct ptcp_err e;
	int hop[3];

	(void)state;
	plan("destination: D\n"
	    "hosts:\n"
	    "  D: {}\n"
	    "  S: {address: s, data: 1GB, path: /d}\n"
	    "  A: {address: '2001:db8::1', relay: true}\n"
	    "  B: {address: 'b.example:900', relay: true}\n"
	    "links: [{from: S, to: A, rate: 1Gbit/s}, {from: A, to: B, rate: 1Gbit/s}, {from: B, to: D, rate: "
	    "1Gbit/s},\n  {from: S, to: D, rate: 0}]\n");
	assert_int_equal(candidates_choose(&v, overlay, schedule, ptcp_overlay_find_host(overlay, "S"), &e), 0);
	assert_int_equal(v.n, 2);
	assert_string_equal(v.at[0].text, "direct");
	assert_false(v.at[0].planned);
	assert_string_equal(v.at[1].text, "b.example:900,[2001:db8::1]:7811");
	assert_true(v.at[1].planned);
	hop[0] = ptcp_overlay_find_host(overlay, "A");
	hop[1] = ptcp_overlay_find_host(overlay, "B");
	hop[2] = ptcp_overlay_find_host(overlay, "D");
	assert_int_equal(candidates_find(&v, hop, 3), 1);
	assert_int_equal(candidates_find(&v, hop, 2), -1);
	done(&v);
}

/* Beside what is planned there are the widest of the others, and not all of them. */
static void spares_are_the_widest(void **state)
{
	struct candidates v;
	struct ptcp_err e;
	size_t i, planned = 0;

	(void)state;
	plan("destination: D\n"
	    "hosts:\n"
	    "  D: {}\n"
	    "  S: {address: s, data: 1GB, path: /d, egress: 1Gbit/s}\n"
	    "  A: {address: a, relay: true}\n"
	    "  B: {address: b, relay: true}\n"
	    "  C: {address: c, relay: true}\n"
	    "  E: {address: e, relay: true}\n"
	    "  F: {address: f}\n"
	    "links: [{from: S, to: D, rate: 1Gbit/s},\n"
	    "  {from: S, to: A, rate: 1Mbit/s}, {from: A, to: D, rate: 900Mbit/s},\n"
	    "  {from: S, to: B, rate: 300Mbit/s}, {from: B, to: D, rate: 300Mbit/s},\n"
	    "  {from: S, to: C, rate: 200Mbit/s}, {from: C, to: D, rate: 200Mbit/s},\n"
	    "  {from: S, to: E, rate: 400Mbit/s}, {from: E, to: D, rate: 400Mbit/s},\n"
	    "  {from: S, to: F, rate: 900Mbit/s}, {from: F, to: D, rate: 900Mbit/s}]\n");
	assert_int_equal(candidates_choose(&v, overlay, schedule, ptcp_overlay_find_host(overlay, "S"), &e), 0);
	assert_int_equal(v.n, 4);
	for (i = 0; i < v.n; i++)
		planned += v.at[i].planned;
	assert_int_equal(planned, 1);
	assert_string_equal(v.at[0].text, "direct");
	assert_string_equal(v.at[1].text, "e:7811");
	assert_string_equal(v.at[2].text, "b:7811");
	assert_string_equal(v.at[3].text, "c:7811");
	done(&v);
}

/* Where the paths of the plan share a bottleneck, a spare path leads past it, even if it is a little slower. */
static void spares_lead_past_bottlenecks(void **state)
{
	struct candidates v;
	struct ptcp_err e;

	(void)state;
	plan("destination: D\n"
	    "hosts:\n"
	    "  D: {}\n"
	    "  S: {address: s, data: 1GB, path: /d, egress: 50Mbit/s}\n"
	    "  A: {address: a, relay: true}\n"
	    "  B: {address: b, relay: true}\n"
	    "  C: {address: c, relay: true}\n"
	    "  E: {address: e, relay: true}\n"
	    "  F: {address: f, relay: true}\n"
	    "links: [{from: S, to: D, rate: 50Mbit/s},\n"
	    "  {from: S, to: A, rate: 90Mbit/s}, {from: A, to: D, rate: 50Mbit/s},\n"
	    "  {from: S, to: B, rate: 90Mbit/s}, {from: B, to: D, rate: 50Mbit/s},\n"
	    "  {from: S, to: C, rate: 90Mbit/s}, {from: C, to: D, rate: 47Mbit/s},\n"
	    "  {from: S, to: E, rate: 90Mbit/s}, {from: E, to: D, rate: 46Mbit/s},\n"
	    "  {from: S, to: F, rate: 90Mbit/s}, {from: F, to: D, rate: 1Mbit/s}]\n"
	    "shared: [{rate: 50Mbit/s, links: [S>D, A>D, B>D]}, {rate: 50Mbit/s, links: [C>D, E>D]}]\n");
	assert_int_equal(candidates_choose(&v, overlay, schedule, ptcp_overlay_find_host(overlay, "S"), &e), 0);
	assert_int_equal(v.n, 4);
	assert_string_equal(v.at[0].text, "direct");
	assert_string_equal(v.at[1].text, "c:7811");
	assert_string_equal(v.at[2].text, "a:7811"); /* each bottleneck has one by now */
	assert_string_equal(v.at[3].text, "e:7811");
	done(&v);
}

static void a_relay_needs_an_address(void **state)
{
	struct candidates v = { .n = 0 };
	struct ptcp_err e;

	(void)state;
	plan("destination: D\n"
	    "hosts: {D: {}, S: {address: s, data: 1GB, path: /d}, K: {relay: true}}\n"
	    "links: [{from: S, to: K, rate: 1Gbit/s}, {from: K, to: D, rate: 1Gbit/s}]\n");
	assert_int_equal(candidates_choose(&v, overlay, schedule, ptcp_overlay_find_host(overlay, "S"), &e),
	    PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "host K: has no address"));
	done(&v);
}

/* A relay spools what arrives during a window, and has to be sent later. */
static void data_for_a_window_is_stored(void **state)
{
	static const char *const link[] = { "S>K, from: 8s", NULL };
	char text[600];
	struct candidates v;
	size_t i, k;

	(void)state;
	for (i = 0; i < 2; i++) {
		snprintf(text, sizeof text, "destination: D\nhosts: {D: {address: d}, S: {address: s, path: /p, data: "
		    "40MB}, K: {address: k, relay: true}}\nlinks:\n  - {from: S, to: D, rate: 4Mbit/s}\n"
		    "  - {from: S, to: K, rate: 60Mbit/s}\n  - {from: K, to: D, rate: 10Mbit/s}\n%s%s%s",
		    link[i] != NULL ? "windows:\n  - {link: " : "", link[i] != NULL ? link[i] : "",
		    link[i] != NULL ? ", rate: 0}\n" : "");
		plan(text);
		assert_int_equal(candidates_choose(&v, overlay, schedule, ptcp_overlay_find_host(overlay, "S"), NULL),
		    0);
		for (k = 0; k < v.n && v.at[k].nhops != 2; k++)
			;
		assert_true(k < v.n && v.at[k].planned);
		if ((v.at[k].stored_bytes > 0) != (link[i] != NULL))
			fail_msg("window %s: %llu bytes", link[i], (unsigned long long)v.at[k].stored_bytes);
		done(&v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relays_are_named_from_the_destination_on),
		cmocka_unit_test(spares_are_the_widest), cmocka_unit_test(spares_lead_past_bottlenecks),
		cmocka_unit_test(a_relay_needs_an_address), cmocka_unit_test(data_for_a_window_is_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
