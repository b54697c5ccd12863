/* What a collection writes of rates that fell: not while this host lacked processor time; and when it tests for others.
 * The transfers are played, and the clock: time passes as the start moves back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collect_impl.h"
#include "plan/rate_limits.h"

#define RATE_BPS 40e6 /* of each of three links, the last of which keeps it */

static const char text[] = "destination: D\nhosts:\n  D: {}\n"
    "  S1: {address: 192.0.2.1, path: /a, data: 1GB}\n  S2: {address: 192.0.2.2, path: /a, data: 1GB}\n"
    "  S3: {address: 192.0.2.3, path: /a, data: 1GB}\n"
    "links:\n  - {from: S1, to: D, rate: 40Mbit/s}\n  - {from: S2, to: D, rate: 40Mbit/s}\n"
    "  - {from: S3, to: D, rate: 40Mbit/s}\n";

static struct {
	struct ptcp_overlay *overlay;
	struct ptcp_collect *c;
	bool starved, congested;
	double t;
	char dir[40], file[60], written[60];
} fx;

bool processor_is_starved(struct processor *p, double now_s)
{
	assert_ptr_equal(p, &fx.c->processor);
	return now_s > 0 && fx.starved;
}

static void set_time(double t)
{
	fx.t = t;
	fx.c->start = (struct mono){ mono_now().ns - (uint64_t)(t * 1e9) };
}

static void play_source(struct source_transfer *s)
{
	struct route *r = &s->route[0];
	size_t most = limits_max_of_link(fx.c->overlay);

	assert_int_equal(candidates_choose(&s->candidates, fx.c->overlay, fx.c->schedule, s->status->host, NULL), 0);
	r->limit = calloc(most, sizeof *r->limit);
	r->link[r->n_links++] = limits_link(fx.c->overlay, s->status->host, ptcp_overlay_destination(fx.c->overlay));
	r->n_limits = limits_of_link(fx.c->overlay, r->link[0], r->limit, most);
	r->streams = 1;
	s->busy = true;
	s->flows_since_s = 0;
	s->status->state = PTCP_COLLECT_RUNNING;
	s->status->progress.total_bytes = UINT64_C(1000000000);
	s->status->progress.total_known = true;
}

static int setup(void **state)
{
	struct ptcp_transfer_opts connect;
	struct ptcp_collect_opts o;
	FILE *f;
	size_t i;

	(void)state;
	memset(&fx, 0, sizeof fx);
	strcpy(fx.dir, "/tmp/test_monitor.XXXXXX");
	assert_non_null(mkdtemp(fx.dir));
	snprintf(fx.file, sizeof fx.file, "%s/o.yaml", fx.dir);
	snprintf(fx.written, sizeof fx.written, "%s/written.yaml", fx.dir);
	assert_non_null(f = fopen(fx.file, "w"));
	fputs(text, f);
	fclose(f);
	ptcp_transfer_opts_init(&connect);
	ptcp_collect_opts_init(&o);
	o.impact_percent = 100;
	assert_int_equal(ptcp_overlay_load(&fx.overlay, fx.file, NULL), 0);
	assert_int_equal(ptcp_collect_new(&fx.c, fx.overlay, &connect, fx.dir, &o, NULL), 0);
	set_time(0);
	assert_int_equal(allocate_first(fx.c, NULL), 0);
	for (i = 0; i < fx.c->n; i++)
		play_source(&fx.c->source[i]);
	allocate_rates(fx.c);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ptcp_collect_free(fx.c);
	ptcp_overlay_free(fx.overlay);
	unlink(fx.file);
	unlink(fx.written);
	return rmdir(fx.dir);
}

/* A queue and losses, as the kernel of the source sees them. */
static void play_congestion(struct route *r, uint64_t bytes)
{
	r->rtt_s = 0.06;
	r->min_rtt_s = 0.04;
	r->segments += bytes / 1448;
	r->lost += bytes / 1448 / 50;
}

/* The first two sources deliver so much, the last its rate, as far as it is assigned, until the plan no longer fits, or
 * until a time. */
static bool deliver(double bps, double until_s)
{
	struct source_transfer *s;
	uint64_t bytes;

	fx.c->unfit = NULL;
	while (fx.t < until_s) {
		set_time(fx.t + TICK_S);
		for (s = fx.c->source; s < fx.c->source + fx.c->n; s++) {
			bytes = (uint64_t)(fmin(s == &fx.c->source[2] ? RATE_BPS : bps,
			    PACE * drift_ratio(&fx.c->drift) * s->route[0].assigned_bps) * TICK_S / 8);
			s->route[0].bytes += bytes;
			s->status->progress.bytes += bytes;
			if (fx.congested)
				play_congestion(&s->route[0], bytes);
		}
		monitor_update(fx.c);
		if (fx.c->unfit != NULL)
			return true;
		allocate_rates(fx.c);
	}
	return false;
}

static bool is_written(const char *line)
{
	char all[2000];
	size_t n;
	FILE *f;

	assert_true(ptcp_collect_save(fx.c, fx.file, fx.written, NULL) >= 0);
	assert_non_null(f = fopen(fx.written, "r"));
	n = fread(all, 1, sizeof all - 1, f);
	fclose(f);
	all[n] = '\0';
	return strstr(all, line) != NULL;
}

static void fallen_rates_are_written(void **state)
{
	(void)state;
	assert_false(deliver(RATE_BPS, 20));
	assert_true(is_written("S1, to: D, rate: 40Mbit/s"));
	assert_true(deliver(RATE_BPS / 10, 40));
	assert_null(strstr(fx.c->unfit, "processor"));
	assert_true(is_written("shared:")); /* both at the same time */
}

static void rates_of_a_starved_host_are_not(void **state)
{
	(void)state;
	assert_false(deliver(RATE_BPS, 20));
	fx.starved = true;
	assert_true(deliver(RATE_BPS / 10, 40));
	assert_non_null(strstr(fx.c->unfit, "carries"));
	assert_non_null(strstr(fx.c->unfit, ", while this host lacks processor time"));
	assert_true(limits_bps(fx.c->overlay, 0) < RATE_BPS / 2); /* the plan has to do with it */
	assert_true(is_written("S1, to: D, rate: 40Mbit/s"));
	assert_true(is_written("S2, to: D, rate: 40Mbit/s"));
	assert_false(is_written("shared:"));
}

/* The links are slower by themselves, too: seen long after the lack. */
static void later_rates_are(void **state)
{
	(void)state;
	assert_false(deliver(RATE_BPS, 20));
	fx.starved = true;
	assert_true(deliver(RATE_BPS / 10, 40));
	fx.starved = false;
	drift_changed(&fx.c->drift, fx.t);
	while (fx.t < 45) /* delays are reported meanwhile */
		deliver(RATE_BPS / 10, 45);
	assert_true(is_written("S1, to: D, rate: 40Mbit/s"));
	while (fx.t < 60)
		deliver(RATE_BPS / 100, 60);
	assert_false(is_written("S1, to: D, rate: 40Mbit/s"));
}

/* With queue and losses, what a probe finds may be the rate of others: with a budget the test for others comes
 * first. */
static void a_test_for_others_comes_first(void **state)
{
	(void)state;
	fx.congested = true;
	deliver(1.4 * RATE_BPS, 2.5);
	assert_true(drift_is_probing(&fx.c->drift));
	teardown(NULL);
	setup(NULL);
	fx.congested = true;
	fx.c->o.impact_percent = 10;
	assert_false(deliver(1.4 * RATE_BPS, 2.5));
	assert_false(drift_is_probing(&fx.c->drift));
	assert_false(deliver(1.4 * RATE_BPS, 5));
	assert_int_equal(fx.c->bottleneck[0].others.phase, OTHERS_TEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fallen_rates_are_written, setup, teardown),
		cmocka_unit_test_setup_teardown(rates_of_a_starved_host_are_not, setup, teardown),
		cmocka_unit_test_setup_teardown(later_rates_are, setup, teardown),
		cmocka_unit_test_setup_teardown(a_test_for_others_comes_first, setup, teardown),
	};

	return cmocka_run_group_tests_name("collect/monitor", tests, NULL, NULL);
}
