/* Where lost connections are made again, and what is reported of paths and movers that fail: sessions with a real peer
 * on loopback. tests/engine/test_connecting.c has the cases of the decisions. */
#include "fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/units.h"

#define LARGE (24u << 20)

static struct timetable slow;

/* ---- Ports ---- */

/* A port of this host at which nothing listens. */
static unsigned closed_port(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof sa;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	close(fd);
	return ntohs(sa.sin_port);
}

/* Two paths, the second one through a relay that is down. Streams take turns. */
static struct paths paths;

static void use_paths(unsigned n)
{
	struct ptcp_err e;
	unsigned i;

	paths = (struct paths){ .n = n, .n_places = n, .port = listener_port(sf.listener),
	    .at[0].candidate = (char *)"",
		.at[1] = { .n_relays = 1, .candidate = (char *)"relay" } };
	strcpy(paths.host, "127.0.0.1");
	strcpy(paths.at[1].relay[0].host, "127.0.0.1");
	paths.at[1].relay[0].port = closed_port();
	for (i = 0; i < n; i++)
		paths.place[i] = i;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		paths.dealt[i] = (uint8_t)(i % n);
	sf.starter.o.paths = &paths;
	assert_int_equal(tls_random((uint8_t *)&sf.starter.o.route_session, sizeof sf.starter.o.route_session, &e), 0);
}

static void begin(unsigned streams)
{
	assert_int_equal(pacing_parse(&slow, "20Mbit/s", NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &slow, sf.control, NULL), 0);
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, streams);
}

static bool two_joined(void)
{
	return sf_both_run() && sf.starter.session->streams.n_connected == 2 &&
	    sf.acceptor.session->streams.n_connected == 2;
}
static struct slot *control_slot(void) { return &sf.starter.session->slot[SLOT_CONTROL]; }
static bool failed_once(void) { return sf.starter.session != NULL && sf.starter.session->slot[0].retries >= 1; }
static bool failed_twice(void) { return sf.starter.session != NULL && sf.starter.session->slot[0].retries >= 2; }
static bool first_connected(void) { return sf.starter.session != NULL && sf.starter.session->slot[0].stream != NULL; }
static bool path_failed(void) { return sf.starter.n_path_failed > 0; }

/* ---- Addresses of the peer ---- */

/* The address is unreachable: the name is tried next, and the address that it leads to serves all later connections. */
static void the_name_takes_its_turn(void **state)
{
	struct session *sess;

	(void)state;
	sf.starter.o.address = "127.0.0.9"; /* the acceptor listens at another one */
	sf.starter.o.name = "localhost";
	begin(1);
	sf_until(first_connected);
	sess = sf.starter.session;
	assert_string_equal(sess->peer.address, "127.0.0.1");
	assert_int_equal(sess->peer.port, listener_port(sf.listener));
	assert_false(sess->slot[0].attempt.by_name);
	assert_int_equal(sess->slot[0].retries, 0);
}

/* Without a name only the address is left. */
static void no_name(void **state)
{
	(void)state;
	sf.starter.o.address = "127.0.0.9";
	begin(1);
	sf_until(sf_both_run);
	sf_until(failed_twice);
	assert_false(sf.starter.session->slot[0].attempt.by_name);
	assert_string_equal(sf.starter.session->peer.address, "127.0.0.9");
	assert_int_equal(sf.starter.session->streams.join_why.code, PTCP_ECONNECT);
	assert_int_equal(sf.n_joins, 0);
}

/* The name and the address take turns while both fail. */
static void turns(void **state)
{
	bool by_name;

	(void)state;
	sf.starter.o.address = "127.0.0.9";
	sf.starter.o.port = closed_port();
	sf.starter.o.name = "localhost";
	begin(1);
	sf_until(sf_both_run);
	sf_until(failed_once);
	by_name = sf.starter.session->slot[0].attempt.by_name;
	assert_true(by_name);
	sf_until(failed_twice);
	assert_false(sf.starter.session->slot[0].attempt.by_name);
}

/* The successor of the control connection, and streams beside it, wait for each other: one attempt finds out whether
 * the peer can be reached. */
static void only_the_control_connection_is_tried(void **state)
{
	struct session *sess;

	(void)state;
	begin(2);
	sf_until(two_joined);
	sess = sf.starter.session;
	sf_unreachable(true);
	sf_cut(session_control_fd(sess));
	sf_cut_streams();
	while (sess->streams.n_connected > 0 || !slot_attempts(control_slot()))
		loop_run_once(sf.control, true);
	stream_connect_pump(sess, mono_add_ns(mono_now(), NS_PER_S));
	assert_false(slot_attempts(&sess->slot[0]) || slot_attempts(&sess->slot[1]));
	assert_true(stream_connect_deadline(sess).ns == MONO_NEVER.ns); /* the attempt has a limit of its own */
	sf_unreachable(false);
	while (sf.n_joins < 4)
		loop_run_once(sf.control, true);
	assert_int_equal(control_slot()->retries, 0);
	assert_true(control_is_up(sess));
}

/* Attempts of a stream that is no longer active end with the others of the session. */
static void stops(void **state)
{
	struct session *sess;

	(void)state;
	begin(2);
	sf_until(two_joined);
	sess = sf.starter.session;
	sf_unreachable(true);
	sf_cut_streams();
	while (!slot_attempts(&sess->slot[0]))
		loop_run_once(sf.control, true);
	assert_true(slot_attempts(&sess->slot[0]));
	stream_connect_stop(sess);
	assert_false(slot_attempts(&sess->slot[0]));
	assert_null(sess->slot[0].attempt.connect);
	sf_unreachable(false);
}

/* ---- Paths ---- */

/* A path without any stream is reported once, with the hop that failed; the other path carries the transfer. */
static void a_path_that_fails(void **state)
{
	struct session *sess;
	unsigned n;

	(void)state;
	use_paths(2);
	begin(4);
	sf_until(path_failed);
	assert_int_equal(sf.starter.failed_path, 1);
	assert_int_equal(sf.starter.failed_hop, 0);
	sess = sf.starter.session;
	for (n = sess->slot[1].retries; sess->slot[1].retries < n + 2;)
		loop_run_once(sf.control, true);
	assert_int_equal(sf.starter.n_path_failed, 1);
	assert_int_equal(sess->streams.failed_paths, 2);
	while (sf.n_joins < 2)
		loop_run_once(sf.control, true);
	assert_int_equal(streams_on_path(sess, 0), 2);
	assert_int_equal(streams_on_path(sess, 1), 0);
}

/* A stream that moves to another path keeps its connection until the new one is there. */
static void a_stream_moves(void **state)
{
	struct session *sess;
	uint32_t before;

	(void)state;
	use_paths(2);
	paths.at[1].n_relays = 0; /* a second direct path */
	begin(2);
	sf_until(two_joined);
	sess = sf.starter.session;
	assert_int_equal(streams_on_path(sess, 0), 1);
	assert_int_equal(streams_on_path(sess, 1), 1);
	assert_false(streams_moves(sess, 1));
	sess->adapt.selects_paths = true;
	path_select_init(&sess->adapt.path_select, 2, paths.place, 2, paths.prior_bps, 1,
	    mono_add_ns(mono_now(), 3600 * NS_PER_S));
	before = sess->slot[1].generation;
	paths.place[1] = 0;
	stream_connect_move(sess, 1);
	assert_true(streams_moves(sess, 1));
	assert_int_equal(streams_on_path(sess, 1), 1);
	stream_connect_pump(sess, mono_now());
	assert_int_equal(sess->slot[1].state, SLOT_MOVING);
	while (streams_on_path(sess, 0) < 2)
		loop_run_once(sf.control, true);
	assert_int_equal(sess->slot[1].generation, before + 1);
	assert_false(streams_moves(sess, 1));
	assert_int_equal(streams_on_path(sess, 1), 0);
}

/* The only path leads through a relay that is down: the session waits for it, and reports no path. */
static void the_only_path(void **state)
{
	(void)state;
	use_paths(2);
	paths.at[0] = paths.at[1];
	paths.n = paths.n_places = 1;
	memset(paths.dealt, 0, sizeof paths.dealt);
	begin(1);
	sf_until(sf_both_run);
	sf_until(failed_twice);
	assert_int_equal(sf.starter.n_path_failed, 0);
	assert_int_equal(sf.starter.session->streams.join_why.code, PTCP_ECONNECT);
}

/* ---- Movers of the acceptor ---- */

static struct endpoints endpoints;

static void use_endpoint(struct session *sess, const char *host, unsigned port, bool relays_only)
{
	endpoints = (struct endpoints){ .n = 1, .of = { { .id = 5, .port = port, .relays_only = relays_only } } };
	strcpy(endpoints.of[0].host, host);
	strcpy(endpoints.of[0].fingerprint, sf.acceptor.context.identity.fingerprint);
	sess->striping.endpoints = &endpoints;
	sess->slot[0].endpoint = 5;
}

static void starts_with_a_mover(struct session *sess)
{
	use_endpoint(sess, "127.0.0.1", closed_port(), false);
	sf_add_files(sess);
}

static void forget_endpoints(void)
{
	sf.starter.session->striping.endpoints = NULL;
}

/* A closed port: one warning with the address, the failures counted. */
static void a_mover_that_cannot_be_reached(void **state)
{
	(void)state;
	sf.starts = starts_with_a_mover;
	begin(1);
	sf_until(failed_once);
	assert_int_equal(endpoints.of[0].failures, 1);
	sf_until(failed_twice);
	assert_int_equal(sf.starter.n_warnings, 1);
	assert_non_null(strstr(sf.starter.warning, "a mover of the server, 127.0.0.1 port "));
	assert_non_null(strstr(sf.starter.warning, "cannot be reached"));
	assert_int_equal(sf.n_joins, 0);
	forget_endpoints();
}

static void starts_with_a_private_mover(struct session *sess)
{
	use_paths(2);
	use_endpoint(sess, "10.0.0.2", 7, true);
	sf_add_files(sess);
}

/* Private addresses of movers may be another host's here: only relays connect to them. */
static void a_mover_for_relays_only(void **state)
{
	(void)state;
	use_paths(2);
	sf.starts = starts_with_a_private_mover;
	begin(2);
	sf_until(path_failed);
	assert_int_equal(sf.starter.failed_path, 0);
	assert_non_null(strstr(sf.starter.path_failed, "name the direct path first"));
	assert_null(sf.starter.session->slot[0].attempt.connect);
	forget_endpoints();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sf_test(the_name_takes_its_turn), sf_test(no_name), sf_test(turns),
		sf_test(only_the_control_connection_is_tried),
		sf_test(stops), sf_test(a_path_that_fails), sf_test(a_stream_moves), sf_test(the_only_path),
		sf_test(a_mover_that_cannot_be_reached), sf_test(a_mover_for_relays_only),
	};

	return cmocka_run_group_tests_name("session/stream_connect", tests, NULL, NULL);
}
