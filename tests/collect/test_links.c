/* Links that are watched gently, kept from one run to the next, and asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <ptcp/plan.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "api/fixture.h"
#include "core/err.h"
#include "timed.h"

static struct ptcp_overlay *overlay;

/* B is the fixture's server, C nobody. */
static int setup(void **state)
{
	struct ptcp_permission p;
	struct ptcp_server_opts o;
	struct ptcp_err e;
	char text[400];
	int n;

	(void)state;
	ptcp_permission_init(&p);
	ptcp_server_opts_init(&o);
	if (lf_make_dir() < 0 || lf_serve(&o, &p) < 0)
		return -1;
	n = snprintf(text, sizeof text, "destination: A\n"
	    "hosts: {A: {address: '127.0.0.1:2'}, B: {address: '%s'}, C: {address: '127.0.0.1:1'}}\n"
	    "links: [{from: A, to: B}, {from: A, to: C}, {from: B, to: A}, {from: B, to: C}, {from: C, to: A}]\n",
	    lf_address);
	return ptcp_overlay_parse(&overlay, text, (size_t)n, "test", &e);
}

static int teardown(void **state)
{
	ptcp_overlay_free(overlay);
	return lf_teardown(state);
}

static struct ptcp_links *links(const char *local_host, int local_only)
{
	struct ptcp_transfer_opts connect;
	struct ptcp_links_opts o;
	struct ptcp_links *l;
	struct ptcp_err e;

	lf_opts(&connect);
	connect.rate = "50Mbit/s"; /* far below what any machine can do: sizes tell */
	ptcp_links_opts_init(&o);
	o.local_host = local_host;
	o.local_only = local_only;
	o.most_bytes = 256 << 10;
	assert_int_equal(ptcp_links_new(&l, overlay, &connect, &o, &e), 0);
	return l;
}

static struct ptcp_link_estimate estimate(const struct ptcp_links *l, size_t i)
{
	struct ptcp_link_estimate m;

	ptcp_links_get(l, i, &m);
	return m;
}

/* ---- Watching ---- */

struct watched {
	struct ptcp_links *l;
	unsigned busy, free_at, turns[2];
	bool early;
};

static bool on_busy(void *arg)
{
	struct watched *w = arg;

	return w->busy++ < w->free_at;
}

/* Some ten milliseconds of a message tell little where the processor is somebody else's; means over turns do. */
static bool is_likely(const struct ptcp_link_estimate *m)
{
	return m->state == PTCP_LINK_MEASURED && m->rate_bps > 0 && m->rate_bps < 100e6;
}

/* Until the link that can be measured was. */
static int on_seen(void *arg, size_t link, const char *why, struct ptcp_err *e)
{
	struct watched *w = arg;
	struct ptcp_link_estimate m = estimate(w->l, 0);

	w->early |= w->busy <= w->free_at;
	assert_true(link < 2);
	assert_true(link == 0 || why != NULL);
	w->turns[link]++;
	if (w->turns[0] >= 1 && w->turns[1] >= 1 && is_likely(&m))
		return err_set(e, PTCP_EPARTIAL, "enough");
	return w->turns[0] < 60 ? 0 : err_set(e, PTCP_ETIMEOUT, "nothing likely measured in 60 turns");
}

static void watch(struct watched *w)
{
	struct ptcp_links_watch o;
	struct ptcp_err e;

	ptcp_links_watch_init(&o);
	o.pause_s = 0.1;
	o.jitter_ratio = 0.5;
	o.seen = on_seen;
	o.busy = on_busy;
	o.arg = w;
	assert_int_equal(ptcp_links_watch(w->l, &o, &e), PTCP_EPARTIAL);
	assert_string_equal(e.msg, "enough");
}

static void gently(void **state)
{
	struct watched w = { .l = links("A", 1), .free_at = 3 };
	struct ptcp_link_estimate m;

	(void)state;
	watch(&w);
	assert_false(w.early);
	m = estimate(w.l, 0);
	assert_true(m.messages >= 4 && m.messages <= 4 * w.turns[0]);
	assert_int_equal(m.streams, 4);
	assert_true(m.age_s >= 0 && m.age_s < 60);
	m = estimate(w.l, 1);
	assert_int_equal(m.state, PTCP_LINK_FAILED);
	assert_non_null(strstr(m.why, "127.0.0.1:1"));
	assert_int_equal(estimate(w.l, 2).state, PTCP_LINK_ELSEWHERE);
	ptcp_links_free(w.l);
}

static void nothing_to_watch(void **state)
{
	static const char text[] = "destination: A\nhosts: {A: {}, B: {}}\nlinks: [{from: A, to: B}]\n";
	struct ptcp_overlay *whole = overlay;
	struct ptcp_links_watch o;
	struct ptcp_links *l;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_overlay_parse(&overlay, text, strlen(text), "test", &e), 0);
	l = links("A", 1);
	ptcp_links_watch_init(&o);
	assert_int_equal(ptcp_links_watch(l, &o, &e), PTCP_EUSAGE);
	o.jitter_ratio = 1;
	assert_int_equal(ptcp_links_watch(l, &o, &e), PTCP_EUSAGE);
	ptcp_links_free(l);
	ptcp_overlay_free(overlay);
	overlay = whole;
}

/* ---- Keeping ---- */

static void write_lines(const char *path, const char *lines)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(lines, f);
	fclose(f);
}

/* What is recalled from "ADDRESS of B" and this; and from the file as it is. */
static struct ptcp_link_estimate recalled_from(const char *path)
{
	struct ptcp_links *l = links("A", 1);
	struct ptcp_link_estimate m;
	struct ptcp_err e;

	assert_int_equal(ptcp_links_recall(l, path, &e), 0);
	m = estimate(l, 0);
	ptcp_links_free(l);
	return m;
}

static struct ptcp_link_estimate recalled(const char *fmt, long long age_s, const char *rest)
{
	char line[300];

	snprintf(line, sizeof line, fmt, lf_address, (long long)time(NULL) - age_s, rest);
	write_lines(lf_path("kept"), line);
	return recalled_from(lf_path("kept"));
}

static void kept(void **state)
{
	struct ptcp_links *l = links("A", 1), *other = links("B", 1);
	struct ptcp_link_estimate m;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(recalled_from(lf_path("kept")).state, PTCP_LINK_FAILED); /* there is no file */
	m = recalled("%s 4 %lld 50000000 1000000 20000000 - 12 1%s\nb.example:7 4 1 junk\n", 100, "");
	assert_int_equal(m.state, PTCP_LINK_MEASURED);
	assert_true(m.rate_bps == 50e6 && m.rate_error_bps == 1e6 && m.delay_s == 0.02 && isnan(m.delay_error_s));
	assert_int_equal(m.messages, 12);
	assert_true(m.delay_from_round_trip);
	assert_true(m.age_s >= 100 && m.age_s < 160);
	assert_null(m.result);
	/* It comes back as it was, older; what another daemon keeps there stays. */
	assert_int_equal(ptcp_links_recall(l, lf_path("kept"), &e), 0);
	assert_int_equal(ptcp_links_keep(l, lf_path("kept"), &e), 0);
	assert_int_equal(ptcp_links_keep(other, lf_path("kept"), &e), 0);
	m = recalled_from(lf_path("kept"));
	assert_int_equal(m.state, PTCP_LINK_MEASURED);
	assert_true(m.rate_bps == 50e6 && m.delay_s == 0.02 && m.age_s >= 100 && m.age_s < 160);
	ptcp_links_free(l);
	ptcp_links_free(other);
}

static void not_recalled(void **state)
{
	static const char *const bad[] = { "%s 4 %lld 50000000 1 1 1 12 0 %s1\n", "%s 4 %lld 0 1 1 1 12 0%s\n",
		"%s 4 %lld - 1 1 1 12 0%s\n", "%s 4 %lld -5 1 1 1 12 0%s\n", "%s 4 %lld nan 1 1 1 12 0%s\n",
		"%s 4 %lld 99999999999999999999999 1 1 1 12 0%s\n", "%s 4 %lld 50000000 1 9999999999999 1 12 0%s\n",
		"%s 4 %lld 50000000 1 1 1 0 0%s\n", "%s 4 %lld 50000000 1 1 1 12 2%s\n",
		"%s 4 %lld 50000000 1 1 1 12%s\n",
		"%s 8 %lld 50000000 1 1 1 12 0%s\n", "%s  4 %lld 50000000 1 1 1 12 0%s\n", "%s%lld%s" };
	struct ptcp_links *l = links("A", 1);
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(recalled(bad[i], 100, "").state, PTCP_LINK_FAILED);
	assert_int_equal(recalled("%s 4 %lld 50000000 1 1 1 12 0%s\n", 3 * 3600 + 100, "").state, PTCP_LINK_FAILED);
	assert_int_equal(recalled("%s 4 %lld 50000000 1 1 1 12 0%s\n", -1000, "").state, PTCP_LINK_FAILED);
	assert_int_equal(recalled("%s 4 %lld 50000000 1 1 1 12 0%s\n", 100, "").state, PTCP_LINK_MEASURED);
	assert_int_equal(chmod(lf_path("kept"), 0622), 0); /* others may have written it */
	assert_int_equal(ptcp_links_recall(l, lf_path("kept"), &e), PTCP_ECONFIG);
	assert_int_equal(ptcp_links_keep(l, lf_path("none/kept"), &e), PTCP_ECONFIG);
	ptcp_links_free(l);
}

/* ---- Asking ---- */

static void asked(void **state)
{
	const struct ptcp_published_link known[] = {
		{ "127.0.0.1:1", "gone", 7, 4, 3e6, 1e5, 0.01, NAN, true, 100 },
		{ "127.0.0.1:2", NULL, 12, 2, 4e8, 8e6, 0.02, 0.0005, false, 4 * 3600 },
		{ "nowhere.example", NULL, 12, 2, 4e8, 8e6, 0.02, 0.0005, false, 0 },
	};
	struct ptcp_links *l = links("A", 0);
	struct ptcp_link_estimate m;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_server_set_links(lf_server, known, 3, &e), 0);
	assert_int_equal(ptcp_links_query(l, &e), PTCP_EPARTIAL);
	m = estimate(l, 3);
	assert_int_equal(m.state, PTCP_LINK_MEASURED);
	assert_true(m.rate_bps == 3e6 && m.rate_error_bps == 1e5 && m.delay_s == 0.01 && isnan(m.delay_error_s));
	assert_true(m.delay_from_round_trip && m.age_s >= 100 && m.age_s < 160 && m.result == NULL);
	assert_int_equal(m.messages, 7);
	assert_int_equal(m.streams, 4);
	assert_non_null(strstr(estimate(l, 2).why, "4.0 h old"));
	assert_non_null(strstr(estimate(l, 4).why, "127.0.0.1:1"));
	assert_int_equal(estimate(l, 0).state, PTCP_LINK_FAILED); /* at A nobody is there */
	ptcp_links_free(l);
}

/* Servers publish links by the address of their end: a destination without one cannot be asked for. */
static void asked_without_an_address(void **state)
{
	const struct ptcp_published_link known[] = { { "127.0.0.1:2", NULL, 12, 2, 4e8, 8e6, 0.02, 0.0005, false, 0 } };
	struct ptcp_overlay *whole = overlay;
	struct ptcp_links *l;
	struct ptcp_err e;
	char text[200];

	(void)state;
	snprintf(text, sizeof text, "destination: A\nhosts: {A: {}, B: {address: '%s'}}\nlinks: [{from: B, to: A}]\n",
	    lf_address);
	assert_int_equal(ptcp_overlay_parse(&overlay, text, strlen(text), "test", &e), 0);
	l = links("A", 0);
	assert_int_equal(ptcp_server_set_links(lf_server, known, 1, &e), 0);
	assert_int_equal(ptcp_links_query(l, &e), PTCP_ECONFIG);
	assert_non_null(strstr(estimate(l, 0).why, "host A: has no address in the overlay"));
	ptcp_links_free(l);
	ptcp_overlay_free(overlay);
	overlay = whole;
}

static void asked_for_nothing(void **state)
{
	static const struct ptcp_published_link known[] = {
		{ "127.0.0.1:1", "connecting: refused", 0, 0, 0, 0, 0, 0, false, 0 },
		{ "127.0.0.1:2", NULL, 0, 0, 0, 0, 0, 0, false, 0 },
	};
	struct ptcp_links *l = links("B", 1);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_links_query(l, &e), PTCP_EPEER); /* it does not measure */
	ptcp_links_free(l);
	l = links("B", 1);
	assert_int_equal(ptcp_server_set_links(lf_server, known, 2, &e), 0);
	assert_int_equal(ptcp_links_query(l, &e), PTCP_EPEER);
	assert_non_null(strstr(estimate(l, 3).why, "B could not measure it: connecting: refused"));
	assert_non_null(strstr(estimate(l, 2).why, "B has not measured it yet"));
	ptcp_links_free(l);
	l = links("B", 1);
	assert_int_equal(ptcp_server_set_links(lf_server, known, 1, &e), 0);
	assert_int_equal(ptcp_links_query(l, &e), PTCP_EPEER);
	assert_non_null(strstr(estimate(l, 2).why, "does not measure the link to 127.0.0.1:2"));
	ptcp_links_cancel(l);
	assert_int_equal(ptcp_links_query(l, &e), PTCP_ECANCELED);
	ptcp_links_free(l);
}

/* NULL stands for the options of _init(), in both places; options without a size are refused. */
static void options_of_nobody(void **state)
{
	static const char text[] = "destination: A\nhosts: {A: {address: '127.0.0.1:2'}, B: {address: '127.0.0.1:3', "
	    "path: /x, data: 1MB}}\nlinks: [{from: B, to: A, rate: 10Mbit/s}]\n";
	static const struct ptcp_transfer_opts no_connect;
	static const struct ptcp_links_opts no_links;
	static const struct ptcp_collect_opts no_collect;
	struct ptcp_overlay *two;
	struct ptcp_collect *c;
	struct ptcp_links *l;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_overlay_parse(&two, text, sizeof text - 1, "test", &e), 0);
	assert_int_equal(ptcp_links_new(&l, two, NULL, NULL, &e), 0);
	ptcp_links_free(l);
	assert_int_equal(ptcp_links_new(&l, two, &no_connect, NULL, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_links_new(&l, two, NULL, &no_links, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_collect_new(&c, two, NULL, lf_path("data"), NULL, &e), 0);
	ptcp_collect_free(c);
	assert_int_equal(ptcp_collect_new(&c, two, &no_connect, lf_path("data"), NULL, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_collect_new(&c, two, NULL, lf_path("data"), &no_collect, &e), PTCP_EUSAGE);
	ptcp_overlay_free(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		timed_test_setup_teardown(gently, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_to_watch, setup, teardown),
		cmocka_unit_test_setup_teardown(kept, setup, teardown),
		cmocka_unit_test_setup_teardown(not_recalled, setup, teardown),
		cmocka_unit_test_setup_teardown(asked, setup, teardown),
		cmocka_unit_test_setup_teardown(asked_without_an_address, setup, teardown),
		cmocka_unit_test_setup_teardown(asked_for_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(options_of_nobody, setup, teardown),
	};

	return cmocka_run_group_tests_name("collect/links", tests, NULL, NULL);
}
