/* Whether an end is the bottleneck, from what its threads and its disk did: one warning, by who starts, with several
 * paths, and no claim where the network limits. What lies around it is played here, and so is the time. */
#include "session/session_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define WORKERS 3

static struct {
	struct session p;
	struct context host;
	struct paths paths;
	struct wire_open open;
	struct send_side snd;
	struct receive_side rcv;
	struct mono now;
	uint64_t idle_ns[WORKERS];
	bool on_disk, held, rates;
	enum ptcp_activity activity;
	struct wire_load told;       /* to the peer, the last, */
	unsigned n_told, n_warnings; /* how often */
	char warning[300];
} fx;

/* A loop is known by its place in the host. */
uint64_t loop_idle_ns(struct loop *l) { return fx.idle_ns[(uintptr_t)l - 1]; }

bool engine_spooled(const struct engine *s) { return s == NULL && fx.held; }
bool path_rates_limit(const struct session *p) { return p == &fx.p && fx.rates; }
bool session_waits_for_disk(const struct session *p) { return p == &fx.p && fx.on_disk; }

struct session_progress session_progress(const struct session *p)
{
	assert_ptr_equal(p, &fx.p);
	return (struct session_progress){ .activity = fx.activity };
}

void engine_report_load(struct engine *s, const struct wire_load *f)
{
	(void)s;
	fx.told = *f;
	fx.n_told++;
}

static void on_warning(void *arg, const char *path, const char *text)
{
	(void)arg;
	assert_null(path);
	strncpy(fx.warning, text, sizeof fx.warning - 1);
	fx.n_warnings++;
}

static const struct session_ops session_ops = { .warning = on_warning };

static int setup(void **state)
{
	uintptr_t i;

	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.paths.n = 2;
	fx.host.n_workers = WORKERS;
	for (i = 0; i < WORKERS; i++)
		fx.host.worker[i] = (struct loop *)(i + 1);
	fx.p.o = (struct session_opts){ .host = &fx.host, .open = &fx.open, .paths = &fx.paths, .ops = &session_ops };
	fx.p.receive = &fx.rcv;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	host_load_free(&fx.p);
	return 0;
}

static void begin(void)
{
	assert_int_equal(host_load_new(&fx.p, NULL), 0);
	fx.now = mono_now();
}

/* Seconds of which the threads are idle for so many thousandths, the last of them for others, and a disk is waited for. */
static void pass(unsigned seconds, unsigned idle, unsigned last_idle, unsigned disk)
{
	unsigned s, i;

	for (s = 0; s < seconds; s++) {
		for (i = 0; i < WORKERS; i++)
			fx.idle_ns[i] += (i + 1 < WORKERS ? idle : last_idle) * NS_PER_MS;
		fx.on_disk = true;
		host_load_pump(&fx.p, mono_add_ns(fx.now, 1)); /* events come in between */
		fx.on_disk = false;
		host_load_pump(&fx.p, mono_add_ns(fx.now, 1 + disk * NS_PER_MS));
		fx.now = mono_add_ns(fx.now, NS_PER_S + 1);
		host_load_pump(&fx.p, fx.now);
	}
}

static void says(const char *what)
{
	assert_int_equal(fx.n_warnings, 1);
	assert_non_null(strstr(fx.warning, what));
	assert_non_null(strstr(fx.warning, "more of them bring nothing"));
}

/* ---- The starter's own ---- */

static void our_processor(void **state)
{
	(void)state;
	begin();
	pass(3, 100, 50, 0);
	assert_int_equal(fx.n_warnings, 0);
	pass(1, 100, 50, 0);
	says("this host's processor is what limits");
	pass(60, 0, 0, 0);
	assert_int_equal(fx.n_warnings, 1);
	assert_int_equal(host_load_deadline(&fx.p).ns, MONO_NEVER.ns);
}

/* A thread that has time would have it for another stream. */
static void a_thread_has_time(void **state)
{
	(void)state;
	begin();
	pass(60, 0, 300, 0);
	assert_int_equal(fx.n_warnings, 0);
}

static void our_disk(void **state)
{
	(void)state;
	begin();
	pass(60, 600, 600, 600);
	assert_int_equal(fx.n_warnings, 0);
	pass(4, 600, 600, 900);
	says("this host's disk");
}

/* Now the processor, now the disk: the end it is. */
static void in_turn(void **state)
{
	(void)state;
	begin();
	pass(1, 100, 100, 500);
	pass(2, 600, 600, 950);
	pass(1, 100, 100, 500);
	assert_int_equal(fx.n_warnings, 1);
}

/* The path limits, with moments in which it does not. */
static void now_and_then(void **state)
{
	unsigned i;

	(void)state;
	begin();
	for (i = 0; i < 50; i++) {
		pass(2, 100, 100, 0);
		pass(2, 800, 800, 0);
	}
	assert_int_equal(fx.n_warnings, 0);
}

/* ---- The other side's ---- */

static void theirs(const struct wire_load *f, unsigned seconds)
{
	unsigned i;

	for (i = 0; i < seconds; i++) {
		host_load_heard(&fx.p, f, fx.now);
		pass(1, 700, 700, 100);
	}
}

static void their_processor(void **state)
{
	const struct wire_load some = { 500, 810 }, much = { 950, 810 };

	(void)state;
	fx.p.receive = NULL;
	fx.p.send = &fx.snd;
	begin();
	theirs(&much, 3);
	theirs(&some, 1);
	says("the other side's processor");
}

/* What was said long ago does not count. */
static void no_news(void **state)
{
	const struct wire_load much = { 950, 0 };

	(void)state;
	begin();
	theirs(&much, 1);
	pass(60, 700, 700, 0);
	theirs(&much, 1);
	assert_int_equal(fx.n_warnings, 0);
}

/* ---- No claim ---- */

static void slow_by_choice(void **state)
{
	(void)state;
	begin();
	fx.held = true;
	pass(10, 0, 0, 1000);
	fx.held = false;
	fx.rates = true;
	pass(10, 0, 0, 1000);
	fx.rates = false;
	fx.activity = PTCP_VERIFYING;
	pass(10, 0, 0, 1000);
	fx.activity = PTCP_TRANSFERRING;
	pacer_init(&fx.host.pacing.in);
	pacer_set(&fx.host.pacing.in, 1000000, fx.now);
	pass(10, 0, 0, 1000);
	assert_int_equal(fx.n_warnings, 0);
	pacer_set(&fx.host.pacing.in, 0, fx.now);
	pass(4, 0, 0, 1000);
	assert_int_equal(fx.n_warnings, 1);
}

static void one_path(void **state)
{
	(void)state;
	fx.paths.n = 1;
	begin();
	assert_null(fx.p.host_load);
	host_load_heard(&fx.p, &(struct wire_load){ 1000, 1000 }, fx.now);
	host_load_pump(&fx.p, fx.now);
	assert_int_equal(host_load_deadline(&fx.p).ns, MONO_NEVER.ns);
	assert_int_equal(fx.n_warnings, 0);
}

/* ---- The acceptor ---- */

static void tells(void **state)
{
	(void)state;
	fx.p.o.open = NULL;
	fx.p.o.paths = NULL;
	begin();
	pass(5, 500, 100, 700);
	assert_int_equal(fx.n_told, 0);
	pass(2, 150, 100, 300);
	assert_int_equal(fx.n_told, 2);
	assert_in_range(fx.told.busy_permille, 845, 855);
	assert_in_range(fx.told.disk_permille, 295, 305);
	pass(1, 900, 900, 1000);
	assert_int_equal(fx.n_told, 3);
	assert_int_equal(fx.n_warnings, 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(our_processor), test(a_thread_has_time), test(our_disk), test(in_turn), test(now_and_then),
		test(their_processor), test(no_news), test(slow_by_choice), test(one_path), test(tells),
	};

	return cmocka_run_group_tests_name("lib/ends", tests, NULL, NULL);
}
