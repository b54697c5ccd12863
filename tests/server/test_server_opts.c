/* Options of a server: ranges, what a confined server needs, changes while it runs, and the states of a handle. */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/server_impl.h"

static struct ptcp_server_opts o, checked;
static struct relay_acl *hops;
static struct timetable rate;
static struct ptcp_err e;

static int check(void)
{
	int r;

	memset(&e, 0, sizeof e);
	relay_acl_free(hops);
	hops = NULL;
	r = server_check_opts(&checked, &hops, &rate, &o, &e);
	return r;
}

static void accepted(void)
{
	if (check() != 0)
		fail_msg("refused: %s", e.msg);
}

static void refused(const char *why)
{
	assert_int_equal(check(), PTCP_EUSAGE);
	if (strstr(e.msg, why) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", e.msg, why);
	assert_null(hops);
}

static int setup(void **state)
{
	(void)state;
	ptcp_server_opts_init(&o);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	relay_acl_free(hops);
	hops = NULL;
	return 0;
}

#define opts_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- Checks ---- */

/* Each number is accepted at both ends of its range, and refused beyond, with its name. */
static void numbers(void **state)
{
	static const struct { const char *name; size_t at; unsigned min, max; } rows[] = {
		{ "--max-streams", offsetof(struct ptcp_server_opts, max_streams), 1, PTCP_STREAMS_MAX },
		{ "--max-sessions", offsetof(struct ptcp_server_opts, max_sessions), 1, PTCP_SESSIONS_MAX },
		{ "--max-client-sessions", offsetof(struct ptcp_server_opts, max_client_sessions), 1,
		    PTCP_SESSIONS_MAX },
		{ "--max-waiting", offsetof(struct ptcp_server_opts, max_waiting), 1, PTCP_SESSIONS_MAX },
		{ "--max-startups", offsetof(struct ptcp_server_opts, max_startups), 1, PTCP_STARTUPS_MAX },
		{ "--max-relayed", offsetof(struct ptcp_server_opts, max_relayed), 2, 65535 },
		{ "--share-sessions", offsetof(struct ptcp_server_opts, share_sessions), 1, PTCP_SESSIONS_MAX },
	};
	unsigned i, *n;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		setup(NULL);
		n = (unsigned *)(void *)((char *)&o + rows[i].at);
		*n = rows[i].min;
		accepted();
		*n = rows[i].max;
		accepted();
		*n = rows[i].min - 1;
		refused(rows[i].name);
		*n = rows[i].max + 1;
		refused(rows[i].name);
	}
}

static void times(void **state)
{
	static const struct { const char *name; size_t at; double min, max; } rows[] = {
		{ "--timeout", offsetof(struct ptcp_server_opts, timeout_s), 0.5, 86400 },
		{ "--max-linger", offsetof(struct ptcp_server_opts, max_linger_s), 0, 30 * 86400 },
		{ "--drain", offsetof(struct ptcp_server_opts, drain_s), 0, 86400 },
	};
	unsigned i;
	double *s;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		setup(NULL);
		s = (double *)(void *)((char *)&o + rows[i].at);
		*s = rows[i].min;
		accepted();
		*s = rows[i].max;
		accepted();
		*s = rows[i].min - 0.01;
		refused(rows[i].name);
		*s = rows[i].max + 1;
		refused(rows[i].name);
		*s = NAN;
		refused(rows[i].name);
	}
}

static void bytes(void **state)
{
	(void)state;
	o.max_memory_bytes = PTCP_MEMORY_MIN;
	accepted();
	o.max_memory_bytes--;
	refused("--max-memory");
	setup(NULL);
	o.relay_storage_bytes = 2 << 20;
	accepted();
	o.relay_storage_bytes--;
	refused("--relay-storage");
	o.relay_storage_bytes = 0;
	accepted();
}

static void addresses(void **state)
{
	const int sockets[PTCP_LISTEN_MAX] = { 0 };

	(void)state;
	o.sockets = sockets;
	o.n_sockets = PTCP_LISTEN_MAX;
	accepted();
	o.listen = ":7811";
	refused("listening: more than");
}

static void texts(void **state)
{
	const char *const to[] = { "192.0.2.0/24:7000", "host.example" }, *const bad[] = { "192.0.2.1", "host:99999" };

	(void)state;
	o.rate = "fast";
	refused("--rate");
	setup(NULL);
	o.relay_to = to;
	o.n_relay_to = 2;
	accepted();
	assert_true(relay_acl_may_permit(hops, "192.0.2.9", 7000));
	assert_true(relay_acl_may_permit(hops, "host.example", PTCP_PORT));
	assert_false(relay_acl_may_permit(hops, "192.0.2.9", 22));
	o.relay_to = bad;
	assert_true(check() < 0);
	assert_null(hops);
}

/* A program of an earlier version has a shorter struct: the rest is the default. */
static void sizes(void **state)
{
	(void)state;
	o.max_sessions = 3;
	o.drain_s = 7;
	o.size = offsetof(struct ptcp_server_opts, drain_s);
	accepted();
	assert_int_equal(checked.max_sessions, 3);
	assert_true(checked.drain_s == 0);
	o.size = 0;
	refused("ptcp_server_opts_init()");
	o.size = sizeof o + 8;
	refused("ptcp_server_opts_init()");
	assert_int_equal(server_check_opts(&checked, &hops, &rate, NULL, &e), 0);
	assert_int_equal(checked.max_sessions, 64);
}

static void movers(void **state)
{
	(void)state;
	o.mover_port = 7000;
	refused("--mover-port: without movers");
	setup(NULL);
	o.stripe_bytes = 64 << 20;
	assert_int_equal(check(), PTCP_EUSAGE);
	setup(NULL);
	o.mover_file = "/tmp/invitation";
	o.mover_port = 65535;
	accepted();
	o.mover_port = 65536;
	refused("--mover-port 65536");
	o.mover_port = 7000;
	o.ephemeral = true;
	refused("not for an ephemeral server");
}

/* ---- Needs of a confined server ---- */

static struct {
	char roots[600];
	bool binds, connects, signals, state;
	unsigned n;
	int r;
} needs;

static int on_confine(void *arg, const struct ptcp_server_needs *n, struct ptcp_err *err)
{
	const char *const *at;

	(void)arg;
	(void)err;
	needs.roots[0] = '\0';
	for (at = n->roots; *at != NULL; at++)
		snprintf(needs.roots + strlen(needs.roots), sizeof needs.roots - strlen(needs.roots), "%s ", *at);
	needs.binds = n->binds;
	needs.connects = n->connects;
	needs.signals = n->signals;
	needs.state = n->state_dir != NULL;
	needs.n++;
	return needs.r;
}

static void confine(struct ptcp_server *s, const char *roots)
{
	assert_int_equal(server_confine(s, &e), needs.r);
	assert_string_equal(needs.roots, roots);
	server_forget_needs(s);
	s->roots = NULL;
}

static void authorize(const char *fingerprint, const char *root)
{
	struct ptcp_permission p;

	ptcp_permission_init(&p);
	p.fingerprint = fingerprint;
	p.root = root;
	assert_int_equal(ptcp_authorize(fx_path("config"), &p, &e), 0);
}

/* The server's root, and those of its clients at the start; nothing else. */
static void needs_of_a_server(void **state)
{
	static const char *const keys[] = { "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"SHA256:BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" };
	struct ptcp_server *s = calloc(1, sizeof *s);
	char expected[400];

	(void)state;
	memset(&needs, 0, sizeof needs);
	setup(NULL);
	s->o = o;
	strcpy(s->context.config_dir, fx_path("config"));
	s->root = vf.root;
	assert_int_equal(server_confine(s, &e), 0); /* no program to tell */
	assert_int_equal(needs.n, 0);
	assert_null(s->roots);
	s->o.confine = on_confine;
	authorize(keys[0], NULL);
	authorize(keys[1], "/srv/client");
	snprintf(expected, sizeof expected, "%s /srv/client ", vf.root);
	confine(s, expected);
	assert_false(needs.binds || needs.connects || needs.signals || needs.state);
	s->root = NULL;
	s->o.n_relay_to = 1;
	s->o.movers = "slurm";
	strcpy(s->own_dirs.path[1], "/state");
	confine(s, "/srv/client ");
	assert_true(needs.connects && needs.signals && needs.state);
	needs.r = PTCP_ECONFIG; /* ends the start */
	confine(s, "/srv/client ");
	needs.r = 0;
	s->o.ephemeral = true;
	confine(s, "/ "); /* any path of this user, and none of the clients' */
	assert_true(needs.binds && needs.connects);
	free(s);
}

/* ---- Changes ---- */

static struct ptcp_server *new_server(void)
{
	struct ptcp_server *s;

	setup(NULL);
	o.config_dir = fx_path("config");
	o.listen = "127.0.0.1:0";
	o.root = vf.root;
	if (ptcp_server_new(&s, &o, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

/* All of the documented options change, or, with a fault in one of them, none. */
static void changes(void **state)
{
	const char *const to[] = { "192.0.2.1:7000" };
	struct ptcp_server *s = new_server();

	(void)state;
	o.max_sessions = 5;
	o.max_streams = PTCP_STREAMS_MAX + 1;
	assert_int_equal(ptcp_server_change(s, &o, &e), PTCP_EUSAGE);
	assert_int_equal(s->o.max_sessions, 64);
	o.max_streams = 9;
	o.max_client_sessions = 3;
	o.max_waiting = 4;
	o.timeout_s = 11;
	o.max_linger_s = 12;
	o.drain_s = 13;
	o.max_relayed = 14;
	o.max_memory_bytes = PTCP_MEMORY_MIN;
	o.rate = "80Mbit/s";
	o.relay_to = to;
	o.n_relay_to = 1;
	o.log_level = PTCP_LOG_DEBUG;
	o.max_startups = 100; /* not one of them */
	if (ptcp_server_change(s, &o, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(s->o.max_sessions, 5);
	assert_int_equal(s->o.max_streams, 9);
	assert_int_equal(s->o.max_client_sessions, 3);
	assert_int_equal(s->o.max_waiting, 4);
	assert_true(s->o.timeout_s == 11 && s->o.max_linger_s == 12 && s->o.drain_s == 13);
	assert_int_equal(s->relay.max, 14);
	assert_true(relay_acl_may_permit(s->relay.to, "192.0.2.1", 7000));
	assert_ptr_equal(s->relay.to, s->jobs.next_hops);
	assert_true(pacer_limits(&s->context.pacing.out));
	assert_int_equal(s->context.log.level, LOG_DEBUG);
	assert_int_equal(s->o.max_startups, 512);
	o.relay_to = NULL;
	o.n_relay_to = 0;
	o.rate = NULL;
	assert_int_equal(ptcp_server_change(s, &o, &e), 0);
	assert_null(s->relay.to);
	assert_false(pacer_limits(&s->context.pacing.out));
	ptcp_server_free(s);
}

static void statistics(void **state)
{
	const struct ptcp_published_link l[] = {
		{ .to = "host", .messages = 1, .streams = 1, .rate_bps = 1e6, .rate_error_bps = NAN,
		    .delay_error_s = NAN },
		{ .to = "silent" } };
	struct ptcp_server *s = new_server();
	struct ptcp_server_stats st;

	(void)state;
	assert_int_equal(ptcp_server_set_links(s, l, 2, &e), 0);
	ptcp_server_stats_init(&st);
	ptcp_server_stats(s, &st);
	assert_int_equal(st.links_known, 1);
	assert_int_equal(st.sessions + st.sessions_now + st.refused + st.memory_bytes, 0);
	ptcp_server_stats_init(&st);
	st.size = offsetof(struct ptcp_server_stats, links_known); /* of an earlier version */
	st.links_known = 77;
	ptcp_server_stats(s, &st);
	assert_int_equal(st.links_known, 77);
	ptcp_server_free(s);
}

/* ---- States of a handle ---- */

static void runs_once(void **state)
{
	struct ptcp_server *s = new_server();
	const char *address;
	unsigned port;

	(void)state;
	assert_int_equal(ptcp_server_step(s, &e), PTCP_EUSAGE);
	assert_true(ptcp_server_listening(s, 0, &address, &port));
	assert_string_equal(address, "127.0.0.1");
	assert_true(port > 0 && port == ptcp_server_port(s));
	assert_false(ptcp_server_listening(s, 1, &address, &port));
	ptcp_server_stop(s); /* before it serves */
	ptcp_server_stop(s);
	assert_int_equal(ptcp_server_run(s, &e), 0);
	assert_int_equal(ptcp_server_run(s, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_server_step(s, &e), PTCP_EUSAGE);
	ptcp_server_free(s);
}

/* Without sessions there is nothing to wait for. */
static void drains(void **state)
{
	struct ptcp_server *s = new_server();

	(void)state;
	o.drain_s = 86400;
	assert_int_equal(ptcp_server_change(s, &o, &e), 0);
	ptcp_server_drain(s);
	assert_int_equal(ptcp_server_run(s, &e), 0);
	ptcp_server_free(s);
}

static void no_root(void **state)
{
	struct ptcp_server *s;

	(void)state;
	setup(NULL);
	o.config_dir = fx_path("config");
	o.listen = "127.0.0.1:0";
	o.root = fx_path("none");
	assert_int_equal(ptcp_server_new(&s, &o, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "--root"));
	o.root = fx_path("config");
	assert_int_equal(ptcp_server_new(&s, &o, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "own configuration or state directory"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		opts_test(numbers), opts_test(times), opts_test(bytes), opts_test(addresses), opts_test(texts),
		opts_test(sizes), opts_test(movers), vf_test(needs_of_a_server), vf_test(changes), vf_test(statistics),
		vf_test(runs_once), vf_test(drains), vf_test(no_root),
	};

	return cmocka_run_group_tests_name("server/server_opts", tests, NULL, NULL);
}
