/* Continuous measurement spends its turns where measurements scatter (Wu, Rao, Iyengar, section V). Measurements are
 * played: links have rates that scatter by different parts of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collect/links_impl.h"
#include "core/err.h"
#include "model/rng.h"

#define LINKS 3
#define TURNS 3000

static const char text[] = "destination: D\nhosts:\n  D: {address: 192.0.2.1}\n  S1: {address: 192.0.2.3}\n"
    "  S2: {address: 192.0.2.4}\n  S3: {address: 192.0.2.5}\n"
    "links: [{from: S1, to: D}, {from: S2, to: D}, {from: S3, to: D}]\n";

static const double rate_bps[LINKS] = { 1e9, 1e6, 1e8 }, scatter[LINKS] = { 0.05, 0.2, 0.1 };

static struct {
	struct ptcp_links *links;
	struct rng rng;
	unsigned turns[LINKS], all;
	bool fails; /* the first link does */
} fx;

/* ---- Measurements ---- */

int links_canceled(struct ptcp_err *e) { return err_set(e, PTCP_ECANCELED, "canceled"); }

int links_run(struct ptcp_links *s, struct ptcp_task *t, struct ptcp_err *e)
{
	(void)s, (void)t;
	return err_set(e, PTCP_EIO, "nothing runs here");
}

int ptcp_links_measure(struct ptcp_links *s, struct ptcp_err *e) { return links_run(s, NULL, e); }

int links_measure_link(struct ptcp_links *s, struct link_state *l, unsigned messages, struct ptcp_err *e)
{
	size_t i = (size_t)(l - s->link);

	fx.turns[i]++;
	if (fx.fails && i == 0)
		return err_set(e, PTCP_ECONNECT, "connecting: Connection refused");
	l->estimate.rate_bps = rate_bps[i] * (1 + scatter[i] * (rng_uniform(&fx.rng) < 0.5 ? -1 : 1));
	l->estimate.delay_s = 0.01;
	l->estimate.messages = messages;
	l->measured_at = mono_now();
	return 0;
}

static int on_seen(void *arg, size_t link, const char *why, struct ptcp_err *e)
{
	assert_true(arg == &fx && link < LINKS && (why != NULL) == (fx.fails && link == 0));
	return ++fx.all < TURNS ? 0 : err_set(e, PTCP_ECANCELED, "enough");
}

static void watch(bool fails)
{
	struct ptcp_transfer_opts connect;
	struct ptcp_overlay *overlay;
	struct ptcp_links_watch w;
	struct ptcp_links_opts o;

	memset(&fx, 0, sizeof fx);
	fx.rng.state = 5;
	fx.fails = fails;
	assert_int_equal(ptcp_overlay_parse(&overlay, text, strlen(text), "test", NULL), 0);
	ptcp_transfer_opts_init(&connect);
	ptcp_links_opts_init(&o);
	o.local_host = "D";
	assert_int_equal(ptcp_links_new(&fx.links, overlay, &connect, &o, NULL), 0);
	ptcp_links_watch_init(&w);
	w.pause_s = 0;
	w.seen = on_seen;
	w.arg = &fx;
	assert_int_equal(ptcp_links_watch(fx.links, &w, NULL), PTCP_ECANCELED);
	ptcp_links_free(fx.links);
	ptcp_overlay_free(overlay);
}

static void assert_share(size_t link, double share)
{
	double found = (double)fx.turns[link] / TURNS;

	if (fabs(found - share) > 0.05)
		fail_msg("link %zu: %.3f of the turns instead of %.3f", link, found, share);
}

/* Relative to the rates: 0.05, 0.2 and 0.1. */
static void turns_follow_the_scatter(void **state)
{
	(void)state;
	watch(false);
	assert_share(0, 1 / 7.0);
	assert_share(1, 4 / 7.0);
	assert_share(2, 2 / 7.0);
}

/* Its scatter is unknown: it counts as the mean of the others. */
static void failing_links_have_a_mean_share(void **state)
{
	(void)state;
	watch(true);
	assert_share(0, 1 / 3.0);
	assert_share(1, 4 / 9.0);
	assert_share(2, 2 / 9.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_follow_the_scatter),
		cmocka_unit_test(failing_links_have_a_mean_share),
	};

	return cmocka_run_group_tests_name("collect/links_watch", tests, NULL, NULL);
}
