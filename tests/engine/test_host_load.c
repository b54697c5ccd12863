/* Whether a host is the bottleneck, from the load of its threads and disk: one warning, by the starter, and none while
 * the network is the bottleneck. The test plays both hosts and time. */
#include "engine/host_load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/units.h"

#define WORKERS 3

static struct {
	struct host_load h;
	struct mono now;
	uint64_t idle_ns[WORKERS];
	bool throttled;
	unsigned n_warnings, n_reports;
} fx;

static int setup(void **state)
{
	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.now = (struct mono){ 1000 * NS_PER_S };
	host_load_init(&fx.h, true, true, fx.now);
	return 0;
}

/* Seconds during each of which the threads are idle for `idle` ms, the last one for `last_idle`, and a disk blocks for
 * `disk` ms. */
static void pass(unsigned seconds, unsigned idle, unsigned last_idle, unsigned disk)
{
	enum host_load_action a;
	unsigned s, i;

	for (s = 0; s < seconds; s++) {
		for (i = 0; i < WORKERS; i++)
			fx.idle_ns[i] += (i + 1 < WORKERS ? idle : last_idle) * NS_PER_MS;
		host_load_disk(&fx.h, true, mono_add_ns(fx.now, 1));
		assert_false(host_load_due(&fx.h, mono_add_ns(fx.now, 1)));
		host_load_disk(&fx.h, false, mono_add_ns(fx.now, 1 + disk * NS_PER_MS));
		fx.now = mono_add_ns(fx.now, NS_PER_S + 1);
		host_load_disk(&fx.h, false, fx.now);
		assert_true(host_load_due(&fx.h, fx.now));
		a = host_load_check(&fx.h, fx.idle_ns, WORKERS, fx.throttled, fx.now);
		fx.n_warnings += a == HOST_LOAD_WARN;
		fx.n_reports += a == HOST_LOAD_REPORT;
	}
}

static void warns_of(const char *what)
{
	char text[200], want[100] = "the bottleneck is ";

	assert_int_equal(fx.n_warnings, 1);
	host_load_warning(&fx.h, text, sizeof text);
	assert_non_null(strstr(text, strcat(want, what)));
	assert_true(strlen(text) + 1 < sizeof text);
}

/* ---- The starter's own load ---- */

static void our_processor(void **state)
{
	(void)state;
	assert_int_equal(host_load_deadline(&fx.h).ns, fx.now.ns + NS_PER_S);
	pass(3, 100, 50, 0);
	assert_int_equal(fx.n_warnings, 0);
	pass(1, 100, 50, 0);
	warns_of("this host's processor, not the network");
	pass(60, 0, 0, 0);
	assert_int_equal(fx.n_warnings, 1);
	assert_int_equal(host_load_deadline(&fx.h).ns, fx.now.ns + NS_PER_S); /* the load is of use for others */
}

/* The idle thread could serve another stream. */
static void one_thread_is_idle(void **state)
{
	(void)state;
	pass(60, 0, 300, 0);
	assert_int_equal(fx.n_warnings, 0);
}

static void our_disk(void **state)
{
	(void)state;
	pass(60, 600, 600, 600);
	assert_int_equal(fx.n_warnings, 0);
	pass(4, 600, 600, 900);
	warns_of("this host's disk");
}

/* The processor and the disk in turn: the host still is the bottleneck. */
static void in_turn(void **state)
{
	(void)state;
	pass(1, 100, 100, 500);
	pass(2, 600, 600, 950);
	pass(1, 100, 100, 500);
	assert_int_equal(fx.n_warnings, 1);
}

/* The network is the bottleneck half of the time. */
static void now_and_then(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 50; i++) {
		pass(2, 100, 100, 0);
		pass(2, 800, 800, 0);
	}
	assert_int_equal(fx.n_warnings, 0);
}

/* ---- The peer's load ---- */

static void reported(const struct wire_load *f, unsigned seconds)
{
	unsigned i;

	for (i = 0; i < seconds; i++) {
		host_load_peer(&fx.h, f, fx.now);
		pass(1, 700, 700, 100);
	}
}

static void the_peers_processor(void **state)
{
	const struct wire_load some = { 500, 810 }, much = { 950, 810 };

	(void)state;
	reported(&much, 3);
	reported(&some, 1);
	warns_of("the peer's processor");
}

static void the_peers_disk(void **state)
{
	const struct wire_load f = { 500, 810 };

	(void)state;
	reported(&f, 4);
	warns_of("the peer's disk");
}

/* Old reports expire. */
static void no_recent_report(void **state)
{
	const struct wire_load much = { 950, 0 };

	(void)state;
	reported(&much, 1);
	pass(60, 700, 700, 0);
	reported(&much, 1);
	assert_int_equal(fx.n_warnings, 0);
}

/* ---- No warning ---- */

static void slow_on_purpose(void **state)
{
	(void)state;
	fx.throttled = true;
	pass(40, 0, 0, 1000);
	assert_int_equal(fx.n_warnings, 0);
	fx.throttled = false;
	pass(4, 0, 0, 1000);
	assert_int_equal(fx.n_warnings, 1);
}

/* ---- The acceptor ---- */

static void the_acceptor_reports(void **state)
{
	(void)state;
	host_load_init(&fx.h, false, false, fx.now);
	pass(5, 1000, 950, 50);
	assert_int_equal(fx.n_reports, 0);
	pass(2, 150, 100, 300);
	assert_int_equal(fx.n_reports, 2);
	assert_in_range(fx.h.ours.busy_permille, 845, 855);
	assert_in_range(fx.h.ours.disk_permille, 295, 305);
	pass(1, 900, 900, 1000);
	assert_int_equal(fx.n_reports, 3);
	assert_int_equal(fx.n_warnings, 0);
	assert_int_equal(host_load_deadline(&fx.h).ns, fx.now.ns + NS_PER_S);
}

#define test(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(our_processor), test(one_thread_is_idle), test(our_disk), test(in_turn), test(now_and_then),
		test(the_peers_processor), test(the_peers_disk), test(no_recent_report), test(slow_on_purpose),
		test(the_acceptor_reports),
	};

	return cmocka_run_group_tests_name("engine/host_load", tests, NULL, NULL);
}
