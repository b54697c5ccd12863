/* What a client requests of the server for its options: flags and numbers of OPEN; and over which paths it connects. */
#include "fixture.h"

#include <unistd.h>

static const struct cf_files sends = { true, { "a" }, CF_NO_HOST "b" };
static const struct cf_files receives = { false, { CF_NO_HOST "b" }, "a" };

/* ---- Flags ---- */

#define KIND (WIRE_OPEN_FILE | WIRE_OPEN_SELECTED | WIRE_OPEN_INTO_DIR | WIRE_OPEN_CONTENTS | WIRE_OPEN_PARTIAL)

static void has_flags(const struct ptcp_transfer_opts *o, const struct cf_files *f, uint32_t flags)
{
	struct ptcp_task *t = cf_accepted(o, f);

	assert_int_equal(task_open_flags(t) & KIND, flags);
	assert_int_equal(task_open_flags(t) & ~(uint32_t)KIND, options_open_flags(o));
	ptcp_task_free(t);
}

static void flags(void **state)
{
	static const char *const list[] = { "x" };
	struct ptcp_transfer_opts o = cf_opts();

	(void)state;
	has_flags(&o, &sends, 0);
	has_flags(&o, &receives, 0);
	has_flags(&o, &(struct cf_files){ true, { "a/" }, CF_NO_HOST "b" }, WIRE_OPEN_CONTENTS);
	has_flags(&o, &(struct cf_files){ true, { "." }, CF_NO_HOST "b" }, WIRE_OPEN_CONTENTS);
	has_flags(&o, &(struct cf_files){ true, { "a" }, CF_NO_HOST "b/" }, WIRE_OPEN_INTO_DIR);
	has_flags(&o, &(struct cf_files){ true, { "a", "b/" }, CF_NO_HOST "c" }, WIRE_OPEN_INTO_DIR);
	/* flags of the path, and local ones */
	has_flags(&o, &(struct cf_files){ false, { CF_NO_HOST "b/" }, "a/" }, 0);
	o.files = list;
	o.n_files = 1;
	has_flags(&o, &sends, WIRE_OPEN_CONTENTS); /* the sender selects here */
	has_flags(&o, &receives, WIRE_OPEN_SELECTED);
}

static void syncs(void **state)
{
	static const struct { enum ptcp_fsync given; uint8_t sent; } all[] = { { PTCP_FSYNC_GROUP, WIRE_FSYNC_GROUP },
		{ PTCP_FSYNC_NONE, WIRE_FSYNC_NONE }, { PTCP_FSYNC_FILE, WIRE_FSYNC_FILE } };
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof all / sizeof *all; i++) {
		o.fsync = all[i].given;
		t = cf_accepted(&o, &sends);
		assert_int_equal(task_fsync(t), all[i].sent);
		ptcp_task_free(t);
	}
}

/* ---- Congestion control ---- */

static void congestion_is(const struct ptcp_transfer_opts *o, bool adaptive, uint8_t expected)
{
	struct ptcp_task *t = cf_accepted(o, &sends);

	t->history.adaptive = adaptive;
	assert_int_equal(task_congestion(t), expected);
	ptcp_task_free(t);
}

static void congestion(void **state)
{
	static const struct { const char *name; uint8_t sent; } all[] = { { "system", WIRE_CC_SYSTEM },
		{ "cubic", WIRE_CC_CUBIC }, { "bbr", WIRE_CC_BBR }, { "reno", WIRE_CC_RENO } };
	struct ptcp_transfer_opts o = cf_opts();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof all / sizeof *all; i++) {
		o.congestion = all[i].name;
		congestion_is(&o, false, all[i].sent);
		congestion_is(&o, true, all[i].sent);
	}
	o.congestion = "auto"; /* the same choice for each number; changed only where the number of streams is judged */
	congestion_is(&o, true, WIRE_CC_AUTO);
	congestion_is(&o, false, WIRE_CC_FAIR);
	o.congestion = NULL;
	congestion_is(&o, true, WIRE_CC_AUTO);
	congestion_is(&o, false, WIRE_CC_FAIR);
	o.impact_percent = 0;
	congestion_is(&o, true, WIRE_CC_YIELD);
	o.streams = 2; /* a fixed number does not yield */
	congestion_is(&o, false, WIRE_CC_FAIR);
}

static void congestion_of_probes(void **state)
{
	const struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_advice_opts a;
	struct ptcp_task *t;
	struct ptcp_err e;

	(void)state;
	ptcp_advice_opts_init(&a);
	assert_int_equal(ptcp_advise_new(&t, &o, "127.0.0.1:1", &a, &e), 0);
	assert_int_equal(task_congestion(t), t->prober->judges_streams ? WIRE_CC_AUTO : WIRE_CC_FAIR);
	t->prober->judges_streams = !t->prober->judges_streams;
	assert_int_equal(task_congestion(t), t->prober->judges_streams ? WIRE_CC_AUTO : WIRE_CC_FAIR);
	ptcp_task_free(t);
}

/* ---- Streams ---- */

static struct task_streams streams_of(const struct ptcp_transfer_opts *o, enum ssh_start_mode mode)
{
	struct ptcp_task *t = cf_accepted(o, &sends);
	struct task_streams n = task_streams(t, mode);

	ptcp_task_free(t);
	return n;
}

static void adaptive(void **state)
{
	static const char *const two[] = { "direct", "127.0.0.1:2" };
	struct ptcp_transfer_opts o = cf_opts();
	struct task_streams n = streams_of(&o, SSH_START_DIRECT);

	(void)state;
	assert_true(n.adaptive && !n.fixed && n.reaches_movers);
	assert_int_equal(n.requested, 32); /* the controller chooses among them */
	o.max_streams = 7;
	assert_int_equal(streams_of(&o, SSH_START_DIRECT).requested, 7);
	assert_true(streams_of(&o, SSH_START_BACK).adaptive);
	assert_false(streams_of(&o, SSH_START_BACK).reaches_movers); /* this host does not connect */
	assert_false(streams_of(&o, SSH_START_PIPE).adaptive); /* one channel */
	o.rate = "8Mbit/s"; /* the limit, and not the path, determines the throughput */
	assert_false(streams_of(&o, SSH_START_DIRECT).adaptive);
	o = cf_opts();
	o.paths = two;
	o.n_paths = 2; /* the throughput of several paths says nothing about one of them */
	assert_false(streams_of(&o, SSH_START_DIRECT).adaptive);
	o = cf_opts();
	o.dry_run = true;
	n = streams_of(&o, SSH_START_DIRECT);
	assert_true(!n.adaptive && !n.reaches_movers);
	assert_int_equal(n.requested, n.few);
}

static void fixed(void **state)
{
	static const char *const three[] = { "direct", "127.0.0.1:2", "127.0.0.1:3" };
	struct ptcp_transfer_opts o = cf_opts();
	struct task_streams n;

	(void)state;
	o.streams = 3;
	n = streams_of(&o, SSH_START_DIRECT);
	assert_true(n.fixed && !n.adaptive);
	assert_int_equal(n.requested, 3);
	o.streams = 2;
	o.paths = three; /* each path needs a stream */
	o.n_paths = 3;
	assert_int_equal(streams_of(&o, SSH_START_DIRECT).requested, 3);
	o.streams = 0;
	o.max_streams = 2;
	assert_int_equal(streams_of(&o, SSH_START_BACK).few, 3);
	o.n_paths = 0;
	assert_int_equal(streams_of(&o, SSH_START_BACK).few, 2);
	o.max_streams = 32;
	assert_int_equal(streams_of(&o, SSH_START_BACK).few, ADVICE_START);
}

/* One stream yields to competing flows; a mover does not. */
static void yielding(void **state)
{
	struct ptcp_transfer_opts o = cf_opts();
	struct task_streams n;

	(void)state;
	o.impact_percent = 0;
	n = streams_of(&o, SSH_START_DIRECT);
	assert_int_equal(n.few, 1);
	assert_int_equal(n.requested, 1);
	assert_false(n.reaches_movers);
}

/* What the task has learned: a limit of the path, movers of the server out of reach. */
static void learned(void **state)
{
	const struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t = cf_accepted(&o, &sends);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_transfer_set_path_rate(t, 0, 1000000, &e), 0);
	assert_false(task_streams(t, SSH_START_DIRECT).adaptive);
	assert_int_equal(ptcp_transfer_set_path_rate(t, 1, 1000000, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_path_rate(t, 0, 1, &e), PTCP_EUSAGE);
	t->avoids_movers = true;
	assert_false(task_streams(t, SSH_START_DIRECT).reaches_movers);
	ptcp_task_free(t);
}

/* ---- Connecting ---- */

/* Ports of this host without a listener: each path fails at once, and the user learns of each, in order. */
static struct cf_events events;
static char failed[8][64];

static void on_warning(void *arg, const struct ptcp_event *ev)
{
	(void)arg;
	if (ev->type == PTCP_EVENT_WARNING && ev->failed_path != NULL)
		snprintf(failed[events.n[PTCP_EVENT_WARNING] - 1], sizeof failed[0], "%s", ev->failed_path->candidate);
}

static void paths_that_fail(void **state)
{
	static const char *const via[] = { "127.0.0.1:2", "direct", "127.0.0.1:3" };
	struct ptcp_transfer_opts o = cf_opts();
	char dir[] = "/tmp/ptcp-connect.XXXXXX", command[64];
	struct ptcp_task *t;
	struct ptcp_err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	o.config_dir = dir;
	o.paths = via;
	o.n_paths = 3;
	cf_record(&o, &events);
	events.then = on_warning;
	t = cf_accepted(&o, &sends);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECONNECT);
	cf_says(&e, "127.0.0.1:2"); /* the first path's error */
	assert_int_equal(events.n[PTCP_EVENT_WARNING], 3);
	assert_string_equal(failed[0], "127.0.0.1:2");
	assert_string_equal(failed[1], "");
	assert_string_equal(failed[2], "127.0.0.1:3");
	assert_int_equal(events.n[PTCP_EVENT_START], 0);
	assert_int_equal(events.n[PTCP_EVENT_RECONNECTING], 0); /* no session was lost */
	ptcp_task_free(t);
	o.n_paths = 0; /* the only path: the error says it */
	cf_record(&o, &events);
	t = cf_accepted(&o, &sends);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECONNECT);
	assert_int_equal(events.n[PTCP_EVENT_WARNING], 0);
	ptcp_task_free(t);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags),
		cmocka_unit_test(syncs),
		cmocka_unit_test(congestion),
		cmocka_unit_test(congestion_of_probes),
		cmocka_unit_test(adaptive),
		cmocka_unit_test(fixed),
		cmocka_unit_test(yielding),
		cmocka_unit_test(learned),
		cmocka_unit_test(paths_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
