/* Transfers of one user on one path: who leads, what the others are ordered, who takes over, and what remains.
 * against: state */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/path_group.h"

#define MBIT 1e6

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ptcp-path-group.XXXXXX");
	return mkdtemp(dir) == NULL ? -1 : 0;
}

/* Nothing remains in a runtime directory. */
static int teardown(void **state)
{
	char run[80];

	(void)state;
	snprintf(run, sizeof run, "%s/run", dir);
	return access(run, F_OK) == 0 ? -1 : rmdir(dir);
}

struct member {
	struct path_group *g;
	struct stream_control s;
	struct stream_share share;
	bool leads;
};

static struct path_group *joins_path(const char *peer, enum stream_member_kind kind)
{
	struct history_key key = { .sends = true, .local = "192.0.2.1" };
	struct ptcp_err e;
	struct path_group *g;

	strcpy(key.peer, peer);
	if ((g = path_group_join(dir, &key, kind, 0.1, &e)) == NULL)
		fail_msg("%s", e.msg);
	return g;
}

static void starts(struct member *m)
{
	struct stream_control_opts o;

	stream_control_opts_init(&o);
	o.congestion = ADVICE_CC_CUBIC;
	memset(m, 0, sizeof *m);
	stream_control_init(&m->s, &o);
	m->g = joins_path("storage", STREAM_MEMBER_SHARES);
	m->leads = path_group_begin(m->g, "cubic");
	m->share.streams = m->leads ? m->s.streams : 1;
}

/* A tenth of a second on a link that the streams share, and that they fill with sixteen. */
static bool sends(struct member *m)
{
	double rate_bps = 3 * MBIT * m->share.streams;
	struct stream_control_sample x = { STREAM_CONTROL_SAMPLE_S, rate_bps, true, false, false,
		{ STREAM_CONTROL_SAMPLE_S, rate_bps * STREAM_CONTROL_SAMPLE_S / 8, 20, 0.02, 0.05, 0.05, 0.1, 0, 0.02 },
		0 };

	return path_group_add(m->g, &m->s, &x, &m->share);
}

static void send_all(struct member *m, unsigned n, double seconds)
{
	double t;
	unsigned i;

	for (t = 0; t < seconds; t += STREAM_CONTROL_SAMPLE_S)
		for (i = 0; i < n; i++)
			sends(&m[i]);
}

static void one_leads(void **state)
{
	struct member m[3];

	(void)state;
	starts(&m[0]);
	assert_true(m[0].leads);
	assert_int_equal(path_group_others(m[0].g), 0);
	starts(&m[1]);
	starts(&m[2]);
	assert_false(m[1].leads || m[2].leads);
	assert_int_equal(path_group_others(m[2].g), 2);
	send_all(m, 3, 0.5);
	assert_int_equal(m[0].s.o.members, 3);
	assert_int_equal(m[0].share.streams + m[1].share.streams + m[2].share.streams, ADVICE_START);
	assert_int_equal(m[1].share.transfers, 3);
	assert_int_equal(m[1].s.recorded, 0); /* observes nothing by itself */
	send_all(m, 3, 6);
	assert_int_equal(m[0].s.recorded, 1);
	assert_int_equal(m[2].share.streams, 5);
	assert_string_equal(m[2].share.reason, "3 transfers together: probing with 15 streams");
	path_group_leave(m[2].g);
	send_all(m, 2, 0.3);
	assert_int_equal(m[0].share.streams + m[1].share.streams, 15);
	path_group_leave(m[1].g);
	path_group_leave(m[0].g);
}

/* The smallest budget counts, also one that changes. */
static void a_budget_changes(void **state)
{
	struct member m[2];

	(void)state;
	starts(&m[0]);
	starts(&m[1]);
	send_all(m, 2, 0.3);
	assert_true(m[0].s.o.budget_ratio == 0.1);
	path_group_budget(m[1].g, 0.02);
	send_all(m, 2, 0.3);
	assert_true(m[0].s.o.budget_ratio == 0.02);
	path_group_budget(m[1].g, 0.4);
	send_all(m, 2, 0.3);
	assert_true(m[0].s.o.budget_ratio == 0.1);
	path_group_leave(m[1].g);
	path_group_leave(m[0].g);
}

/* The next one leads, and knows what the first has observed. */
static void the_leader_ends(void **state)
{
	struct member m[2];
	struct probe *known;

	(void)state;
	starts(&m[0]);
	starts(&m[1]);
	send_all(m, 2, 40);
	assert_true(m[0].s.advised && m[0].s.answer > 2);
	path_group_leave(m[0].g);
	sends(&m[1]);
	known = m[1].s.profile.probe;
	assert_true(m[1].s.recalled && m[1].s.profile.n == m[0].s.profile.n);
	assert_int_equal(known[0].streams, m[0].s.profile.probe[0].streams);
	assert_int_equal(m[1].share.streams, m[1].s.streams);
	assert_int_equal(m[1].s.o.members, 1);
	path_group_leave(m[1].g);
}

/* Another process that dies releases its place. */
static void a_killed_member_is_gone(void **state)
{
	struct member m;
	int ready[2];
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	if ((child = fork()) == 0) {
		starts(&m);
		_exit(!m.leads || write(ready[1], "", 1) != 1 || pause() == 0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	starts(&m);
	assert_false(m.leads);
	assert_int_equal(path_group_others(m.g), 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	send_all(&m, 1, 0.2);
	assert_int_equal(m.share.transfers, 1);
	assert_int_equal(m.share.streams, ADVICE_START);
	path_group_leave(m.g);
	close(ready[0]);
	close(ready[1]);
}

/* What members that died have left is no member, and no order. */
static void leftovers(void **state)
{
	struct member m;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		starts(&m);
		send_all(&m, 1, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	starts(&m);
	assert_true(m.leads);
	assert_int_equal(path_group_others(m.g), 0);
	sends(&m);
	assert_int_equal(m.share.transfers, 1);
	path_group_leave(m.g);
}

/* Other paths are other groups; on one path, a fixed number of streams and a measurement are members without a
 * share. */
static void who_belongs_together(void **state)
{
	struct path_group *other = joins_path("elsewhere", STREAM_MEMBER_SHARES), *fixed, *probes;
	struct member m;

	(void)state;
	fixed = joins_path("storage", STREAM_MEMBER_FIXED);
	starts(&m);
	assert_true(m.leads);
	assert_int_equal(path_group_others(m.g), 1);
	send_all(&m, 1, 0.5);
	assert_int_equal(m.share.transfers, 2);
	assert_int_equal(m.share.streams, ADVICE_START);
	probes = joins_path("storage", STREAM_MEMBER_MEASURES);
	assert_int_equal(path_group_others(probes), 2);
	send_all(&m, 1, 10);
	assert_int_equal(m.s.recorded, 0); /* waits */
	path_group_leave(probes);
	send_all(&m, 1, 6);
	assert_int_equal(m.s.recorded, 1);
	path_group_leave(m.g);
	path_group_leave(fixed);
	path_group_leave(other);
}

static void no_directory(void **state)
{
	struct history_key key = { .sends = true, .peer = "storage", .local = "192.0.2.1" };
	struct ptcp_err e;

	(void)state;
	assert_null(path_group_join("/dev/null/x", &key, STREAM_MEMBER_SHARES, 0.1, &e));
	assert_int_equal(e.code, PTCP_ECONFIG);
	path_group_leave(NULL);
}

/* All places are taken: the next transfer is alone. */
static void a_full_group(void **state)
{
	struct history_key key = { .sends = true, .peer = "storage", .local = "192.0.2.1" };
	struct path_group *g[STREAM_GROUP_MAX];
	struct ptcp_err e;
	unsigned i;

	(void)state;
	for (i = 0; i < STREAM_GROUP_MAX; i++)
		g[i] = joins_path("storage", STREAM_MEMBER_FIXED);
	assert_null(path_group_join(dir, &key, STREAM_MEMBER_FIXED, 0.1, &e));
	path_group_leave(g[7]);
	g[7] = joins_path("storage", STREAM_MEMBER_FIXED);
	for (i = 0; i < STREAM_GROUP_MAX; i++)
		path_group_leave(g[i]);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(one_leads),
		test(the_leader_ends),
		test(a_budget_changes),
		test(a_killed_member_is_gone),
		test(leftovers),
		test(who_belongs_together),
		test(no_directory),
		test(a_full_group),
	};

	return cmocka_run_group_tests_name("client/path_group", tests, NULL, NULL);
}
