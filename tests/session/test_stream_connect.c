/* Which address a lost connection is made to again. The test plays connecting. */
#include "session/session_impl.h"

#include "core/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NUMERIC "192.0.2.1"
#define NAME "host.example"

static struct {
	struct session s;
	struct context host;
	struct paths paths;
	struct connect_opts tried;   /* last attempt */
	char tried_host[SOCK_HOST_BYTES];
	unsigned n_tried;
	bool up;                     /* the control connection */
	unsigned n_failed, failed_path, failed_hop;
	struct session_path path;    /* present state of every path */
	struct remote_opts by_mover; /* last request */
	unsigned n_by_mover;
	char by_mover_host[SOCK_HOST_BYTES];
	struct endpoints endpoints;
	bool expects_private;
	int mover_fails_with;        /* code */
} fx;

static struct connect *const some = (struct connect *)&fx;
static struct chan *const made = (struct chan *)&fx;

/* ---- Connecting and the rest of the session ---- */

int connect_start(struct connect **out, const struct connect_opts *o, struct ptcp_err *e)
{
	fx.tried = *o;
	fx.n_tried++;
	snprintf(fx.tried_host, sizeof fx.tried_host, "%s", o->host);
	*out = some;
	return e != NULL ? 0 : -1;
}

void connect_cancel(struct connect *c) { assert_true(c == NULL || c == some); }

void streams_retry_later(struct session *sess, unsigned number)
{
	slot_retry_later(&sess->slot[number], (struct mono){ 0 }, 0);
}

void streams_lost(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	(void)sess, (void)s, (void)why;
}

int remote_connect(struct remote_stream **out, struct mover *m, const struct remote_opts *o, struct ptcp_err *e)
{
	assert_ptr_equal(m, &fx);
	fx.by_mover = *o;
	fx.n_by_mover++;
	snprintf(fx.by_mover_host, sizeof fx.by_mover_host, "%s", o->host);
	*out = (struct remote_stream *)&fx;
	return e != NULL ? 0 : -1;
}

void remote_cancel(struct remote_stream *r) { (void)r; }
uint32_t remote_mover(const struct remote_stream *r) { return r != NULL; }
void *stream_remote(const struct stream *s) { return s != NULL ? NULL : (void *)&fx; }
const struct wire_open *engine_open(const struct engine *s)
{
	static const struct wire_open open;

	(void)s;
	return &open;
}

void streams_add_remote(struct session *sess, unsigned number, struct remote_stream *r) { (void)sess, (void)number, (void)r; }

struct mover *movers_find(const struct movers *m, uint32_t id)
{
	(void)id;
	return m != NULL ? (struct mover *)&fx : NULL;
}

void streams_report(struct session *sess) { assert_ptr_equal(sess, &fx.s); }
void streams_add(struct session *sess, unsigned number, struct chan *c, bool joining)
{
	(void)sess, (void)number, (void)c, (void)joining;
}

void control_failed(struct session *sess, const struct connect_result *r)
{
	assert_true(sess == &fx.s && r->chan == NULL);
}

void control_take(struct session *sess, struct chan *c) { assert_true(sess == &fx.s && c == made); }
bool control_wants_successor(const struct session *sess) { return sess == &fx.s; }
bool control_is_up(const struct session *sess) { return sess == &fx.s && fx.up; }
unsigned streams_on_path(const struct session *sess, unsigned path) { (void)sess, (void)path; return fx.path.streams; }
bool streams_moves(const struct session *sess, unsigned number) { (void)number; return sess != &fx.s; }
void streams_revive(struct session *sess) { fail_msg("%p", (void *)sess); }
struct snd *engine_snd(struct engine *s) { assert_null(s); return NULL; }
struct rcv *engine_rcv(struct engine *s) { assert_null(s); return NULL; }
bool connect_adopt(struct connect *c, const struct connect_opts *o) { return c == NULL && o == NULL; }
bool engine_spooled(const struct engine *s) { return s != NULL; }
uint64_t engine_linger_ns(const struct engine *s) { return s != NULL; }
unsigned stream_path(const struct stream *s) { return s == NULL; }
bool engine_closing(const struct engine *s) { return s != NULL; }
void engine_fail(struct engine *s, const struct ptcp_err *why) { assert_true(s == NULL && why == NULL); }
int mux_open(struct mux *m, struct chan **out, struct ptcp_err *e) { (void)out, (void)e; return m != NULL; }
int chan_export(struct chan *c, uint8_t out[32], struct ptcp_err *e) { (void)out, (void)e; return c != NULL; }
size_t chan_write(struct chan *c, const void *p, size_t n) { (void)p; return c != NULL ? n : 0; }

const char *chan_fingerprint(const struct chan *c) { return c != NULL ? "SHA256:peer" : ""; }
struct mono engine_last_input(const struct engine *s) { return (struct mono){ s != NULL }; }

static void pump(struct session *sess) { assert_ptr_equal(sess, &fx.s); }

static bool only_some(void *arg, const struct addrinfo *all, const struct sockaddr *sa)
{
	assert_ptr_equal(arg, &fx);
	return all == NULL && sa == NULL;
}

static void on_path_failed(void *arg, unsigned path, unsigned hop, const char *why)
{
	assert_ptr_equal(arg, &fx);
	assert_non_null(strstr(why, fx.expects_private ? "name the direct path first" : "no"));
	fx.n_failed++;
	fx.failed_path = path;
	fx.failed_hop = hop;
}

static const struct payload_ops payload;
static const struct session_ops ops = { .permits = only_some, .path_failed = on_path_failed };

static int setup(void **state)
{
	unsigned i;

	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.paths.n = 1;
	strcpy(fx.paths.host, NAME);
	fx.s.o = (struct session_opts){ .host = &fx.host, .connects = true, .paths = &fx.paths, .port = 7811,
		.client = "client", .timeout_ns = 30 * NS_PER_S, .ops = &ops, .arg = &fx };
	fx.s.pump = pump;
	fx.s.payload = &payload;
	fx.s.running = true;
	strcpy(fx.s.peer.address, NUMERIC);
	strcpy(fx.s.peer.name, NAME);
	strcpy(fx.s.peer.fingerprint, "SHA256:peer");
	for (i = 0; i < SLOTS; i++)
		slot_init(&fx.s.slot[i], &fx.s, i, NULL);
	return 0;
}

static void tries(const char *host)
{
	unsigned before = fx.n_tried;

	stream_connect_control(&fx.s, mono_add_ns(mono_now(), NS_PER_S));
	assert_int_equal(fx.n_tried, before + 1);
	assert_string_equal(fx.tried_host, host);
	assert_string_equal(fx.tried.fingerprint, "SHA256:peer");
}

static void fails(void)
{
	struct connect_result r = { .cause = CONNECT_TIMED_OUT };

	fx.tried.done(fx.tried.arg, &r);
}

static void succeeds(const char *address)
{
	struct connect_result r = { .chan = made, .address = address };

	fx.tried.done(fx.tried.arg, &r);
}

/* ---- Cases ---- */

static void name_after_a_failure(void **state)
{
	(void)state;
	tries(NUMERIC);
	assert_null(fx.tried.permits); /* reached before */
	fails();
	tries(NAME);
	assert_string_equal(fx.tried.client, "client");
	assert_true(fx.tried.permits(fx.tried.arg, NULL, NULL));
	fails();
	tries(NUMERIC); /* the outage may have taken the resolver, too */
	fails();
	tries(NAME);
}

static void reached_address_is_kept(void **state)
{
	(void)state;
	tries(NUMERIC);
	fails();
	tries(NAME);
	succeeds("[2001:db8::7]:7812");
	tries("2001:db8::7");
	assert_int_equal(fx.tried.port, 7812);
	fails();
	tries(NAME);
}

static void dead_address_costs_less_than_a_name(void **state)
{
	(void)state;
	tries(NUMERIC);
	assert_true(fx.tried.timeout_ns == 5 * NS_PER_S);
	fails();
	tries(NAME); /* lookup, and all addresses */
	assert_true(fx.tried.timeout_ns == 10 * NS_PER_S);
}

static void without_a_name(void **state)
{
	(void)state;
	fx.s.peer.name[0] = '\0';
	tries(NUMERIC);
	assert_true(fx.tried.timeout_ns == 10 * NS_PER_S);
	fails();
	tries(NUMERIC);
}

/* The last relay resolves the name, each time. */
static void through_relays(void **state)
{
	(void)state;
	fx.paths.at[0].n_relays = 1;
	tries(NAME);
	fails();
	tries(NAME);
	succeeds("relay.example:7811");
	assert_string_equal(fx.s.peer.address, NUMERIC);
	fx.paths.at[0].n_relays = 0;
	tries(NUMERIC);
}

static void try_stream_until(enum connect_cause cause, unsigned hop)
{
	struct connect_result r = { .cause = cause, .why = { .msg = "no" }, .hop = hop };

	stream_connect_pump(&fx.s, mono_add_ns(mono_now(), NS_PER_S));
	fx.tried.done(fx.tried.arg, &r);
}

static void try_stream(unsigned hop) { try_stream_until(CONNECT_RELAY, hop); }

/* One stream, over the second of two paths. */
static void set_paths(const struct wire_open *open)
{
	fx.up = true;
	fx.s.o.open = open;
	fx.s.streams.n_active = fx.s.streams.n_connected = 1;
	fx.paths.dealt[0] = 1;
	fx.paths.place[1] = 1;
	fx.paths.n = 2;
	fx.paths.at[1].n_relays = 1;
}

/* Each path without a stream is reported once, until it connects. */
static void failed_paths_are_reported(void **state)
{
	struct wire_open open = { .streams = 1 };

	(void)state;
	set_paths(&open);
	fx.path.streams = 1; /* another stream carries the path */
	try_stream(1);
	assert_int_equal(fx.n_failed, 0);
	fx.path.streams = 0;
	try_stream(1);
	try_stream(1);
	assert_int_equal(fx.n_failed, 1);
	assert_int_equal(fx.failed_path, 1);
	assert_int_equal(fx.failed_hop, 1);
	fx.s.streams.failed_paths = 0; /* as streams_add() does */
	try_stream(0);
	assert_int_equal(fx.n_failed, 2);
	assert_int_equal(fx.failed_hop, 0);
	fx.s.streams.failed_paths = 0;
	fx.paths.n = 1; /* its failure ends the session, with the reason */
	try_stream(0);
	assert_int_equal(fx.n_failed, 2);
}

/* A host that has the connection, and does not answer in time, has one more attempt, with more time. */
static void slow_paths_have_another_attempt(void **state)
{
	struct wire_open open = { .streams = 1 };

	(void)state;
	set_paths(&open);
	try_stream_until(CONNECT_SLOW, 0);
	assert_true(fx.tried.timeout_ns == 5 * NS_PER_S);
	assert_int_equal(fx.n_failed, 0);
	try_stream_until(CONNECT_SLOW, 0);
	assert_true(fx.tried.timeout_ns == 20 * NS_PER_S);
	assert_int_equal(fx.n_failed, 1);
	fx.s.streams.failed_paths = 0;
	try_stream_until(CONNECT_TIMED_OUT, 0); /* not even a connection */
	assert_int_equal(fx.n_failed, 2);
	fx.s.streams.failed_paths = 0;
	try_stream_until(CONNECT_SLOW, 0);
	assert_true(fx.tried.timeout_ns == 5 * NS_PER_S);
	assert_int_equal(fx.n_failed, 2);
	stream_connect_pump(&fx.s, mono_add_ns(mono_now(), NS_PER_S));
	assert_true(fx.tried.timeout_ns == 20 * NS_PER_S);
	succeeds("relay.example:7811");
	assert_false(fx.s.slot[0].attempt.slow);
	fx.s.o.timeout_ns = 3 * NS_PER_S; /* not longer than the session would wait */
	fx.s.slot[0].attempt.slow = true;
	try_stream(0);
	assert_true(fx.tried.timeout_ns == 3 * NS_PER_S);
}

static void mover_fails(enum connect_cause cause, unsigned hop)
{
	struct connect_result r = { .cause = cause, .why = { .code = fx.mover_fails_with, .msg = "no" }, .hop = hop };

	stream_connect_pump(&fx.s, mono_add_ns(mono_now(), NS_PER_S));
	fx.by_mover.done(fx.by_mover.arg, NULL, &r);
}

/* A stream of a mover takes the relays of its path, and its path's failures are reported as others. */
static void movers_take_the_relays(void **state)
{
	struct wire_open open = { .streams = 1 };

	(void)state;
	set_paths(&open);
	fx.s.striping.movers = (struct movers *)&fx;
	fx.s.o.route_session = 77;
	fx.s.slot[0].mover = 1;
	mover_fails(CONNECT_RELAY, 0);
	assert_ptr_equal(fx.by_mover.relay, fx.paths.at[1].relay);
	assert_int_equal(fx.by_mover.n_relays, 1);
	assert_true(fx.by_mover.route_session == 77);
	assert_ptr_equal(fx.by_mover.issuer, &fx.host.identity);
	assert_non_null(fx.by_mover.check);
	assert_string_equal(fx.by_mover_host, NAME);
	assert_true(fx.n_failed == 1 && fx.failed_path == 1 && fx.failed_hop == 0);
	mover_fails(CONNECT_RELAY, 0);
	assert_true(fx.n_failed == 1 && fx.n_by_mover == 2);
	assert_int_equal(fx.n_tried, 1); /* the control connection */
	fx.paths.dealt[0] = 0; /* the direct path */
	mover_fails(CONNECT_UNREACHABLE, 0);
	assert_int_equal(fx.by_mover.n_relays, 0);
	assert_string_equal(fx.by_mover_host, NUMERIC);
	mover_fails(CONNECT_UNREACHABLE, 0);
	assert_string_equal(fx.by_mover_host, NUMERIC);
	fx.paths.dealt[0] = 1;
	fx.paths.n = 1; /* the only path: the session waits for it, unless the relay has refused the mover */
	fx.s.streams.failed_paths = 0;
	fx.n_failed = 0;
	fx.mover_fails_with = PTCP_ECONNECT;
	mover_fails(CONNECT_RELAY, 0);
	assert_int_equal(fx.n_failed, 0);
	fx.mover_fails_with = PTCP_EREFUSED;
	mover_fails(CONNECT_RELAY, 0);
	mover_fails(CONNECT_RELAY, 0);
	assert_int_equal(fx.n_failed, 1);
}

/* Relays connect to movers of the server, to private ones as well; this host only where the server may have such addresses. */
static void movers_of_the_server(void **state)
{
	struct wire_open open = { .streams = 1 };
	unsigned n;

	(void)state;
	set_paths(&open);
	fx.s.striping.endpoints = &fx.endpoints;
	fx.endpoints = (struct endpoints){ .n = 1, .of = { { .id = 5, .fingerprint = "SHA256:mover", .host = "10.0.0.2", .port = 7,
	    .relays_only = true } } };
	fx.s.slot[0].endpoint = 5;
	try_stream(0);
	assert_string_equal(fx.tried_host, "10.0.0.2");
	assert_int_equal(fx.tried.port, 7);
	assert_int_equal(fx.tried.n_relays, 1);
	assert_string_equal(fx.tried.fingerprint, "SHA256:mover");
	assert_int_equal(fx.n_failed, 1); /* of the relay */
	fx.paths.dealt[0] = 0;
	fx.expects_private = true;
	n = fx.n_tried;
	stream_connect_pump(&fx.s, mono_add_ns(mono_now(), NS_PER_S));
	assert_int_equal(fx.n_tried, n);
	assert_true(fx.n_failed == 2 && fx.failed_path == 0);
	assert_int_equal(fx.s.streams.join_why.code, PTCP_ECONNECT);
	fx.endpoints.of[0].relays_only = false;
	stream_connect_pump(&fx.s, mono_add_ns(mono_now(), NS_PER_S));
	assert_int_equal(fx.n_tried, n + 1);
	assert_int_equal(fx.tried.n_relays, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(name_after_a_failure, setup),
		cmocka_unit_test_setup(reached_address_is_kept, setup),
		cmocka_unit_test_setup(dead_address_costs_less_than_a_name, setup),
		cmocka_unit_test_setup(without_a_name, setup),
		cmocka_unit_test_setup(through_relays, setup),
		cmocka_unit_test_setup(failed_paths_are_reported, setup),
		cmocka_unit_test_setup(slow_paths_have_another_attempt, setup),
		cmocka_unit_test_setup(movers_take_the_relays, setup),
		cmocka_unit_test_setup(movers_of_the_server, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
