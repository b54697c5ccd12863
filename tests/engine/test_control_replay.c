/* Replay of control frames over a new control connection: unacknowledged bytes are retained and retransmitted, each
 * exactly once and in order. The test plays two ends with connections of a given capacity, and gives the time. */
#include "engine/control_replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

#define MAX CONTROL_REPLAY_MAX_BYTES
#define ACK CONTROL_REPLAY_ACK_BYTES
#define SECOND NS_PER_S

static struct {
	struct control_replay r;
	struct control_replay_session s;
	struct outbox out;
	uint8_t *wire;           /* bytes written on the present connection, */
	size_t wire_n, room;     /* which takes so many more */
	struct mono now;
	struct ptcp_err e;
} fx;

static int setup(void **state)
{
	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.now = (struct mono){ 1000 * SECOND };
	fx.s = (struct control_replay_session){ .agreed = true, .running = true, .last_input = fx.now,
		.quiet_ns = 3 * SECOND };
	fx.wire = malloc(2 * MAX);
	fx.room = 2 * MAX;
	control_replay_init(&fx.r, true, 0, 3, fx.now);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	control_replay_fini(&fx.r);
	buf_fini(&fx.out.b);
	free(fx.wire);
	return 0;
}

/* Byte i of all control frames of this end. */
static uint8_t byte_at(size_t i) { return (uint8_t)(i % 253); }

static size_t put(const uint8_t *p, size_t n)
{
	n = n < fx.room ? n : fx.room;
	assert_true(fx.wire_n + n <= 2 * MAX);
	memcpy(fx.wire + fx.wire_n, p, n);
	fx.wire_n += n;
	fx.room -= n;
	return n;
}

/* As session/control.c writes: returns how many of the n new bytes were sent. */
static size_t send_bytes(size_t from, size_t n)
{
	uint8_t *p = malloc(n + 1);
	struct span again;
	size_t i, done;

	while ((again = control_replay_unsent(&fx.r)).n > 0 && (done = put(again.p, again.n)) > 0)
		control_replay_resent(&fx.r, done);
	for (i = 0; i < n; i++)
		p[i] = byte_at(from + i);
	done = control_replay_room(&fx.r, n);
	done = put(p, done);
	control_replay_sent(&fx.r, p, done);
	free(p);
	return done;
}

static void was_sent(size_t at, size_t from, size_t n)
{
	size_t i;

	assert_true(fx.wire_n >= at + n);
	for (i = 0; i < n; i++)
		assert_int_equal(fx.wire[at + i], byte_at(from + i));
}

/* A new connection; this end's first frame is checked. */
static void connects(void)
{
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES];
	struct wire_header h;
	struct wire_control_ack f;

	fx.wire_n = 0;
	fx.room = 2 * MAX;
	assert_int_equal(control_replay_begin(&fx.r, frame, fx.now), sizeof frame);
	assert_int_equal(wire_header_decode(&h, frame, NULL), 0);
	assert_int_equal(h.type, WIRE_CONTROL_ACK);
	assert_int_equal(wire_control_ack_decode(&f, (struct span){ frame + WIRE_HEADER_BYTES, h.length }, NULL), 0);
	assert_int_equal(f.bytes, fx.r.received);
	assert_int_equal(fx.r.state, CONTROL_RESUMING);
}

static enum control_replay_answer answers(uint64_t bytes)
{
	struct wire_control_ack f = { bytes };
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES];
	size_t n = wire_control_ack_encode(frame, &f);

	assert_int_equal(control_replay_missing(&fx.r), n);
	return control_replay_answer(&fx.r, frame, n, fx.now, &fx.e);
}

static void resumes(uint64_t bytes)
{
	connects();
	assert_int_equal(answers(bytes), CONTROL_ANSWER_RESUMED);
	assert_int_equal(fx.r.state, CONTROL_UP);
}

static uint64_t reported(void)
{
	struct wire_header h;
	struct wire_control_ack f;
	uint8_t *p = buf_head(&fx.out.b);

	assert_int_equal(buf_len(&fx.out.b), WIRE_CONTROL_ACK_MAX_BYTES);
	assert_int_equal(wire_header_decode(&h, p, NULL), 0);
	assert_int_equal(wire_control_ack_decode(&f, (struct span){ p + WIRE_HEADER_BYTES, h.length }, NULL), 0);
	buf_consume(&fx.out.b, buf_len(&fx.out.b));
	return f.bytes;
}

/* ---- Retaining ---- */

static void retained_until_acknowledged(void **state)
{
	(void)state;
	assert_int_equal(send_bytes(0, 1000), 1000);
	fx.room = 500;
	assert_int_equal(send_bytes(1000, 800), 500);
	was_sent(0, 0, 1500);
	assert_int_equal(buf_len(&fx.r.retained), 1500);
	assert_int_equal(control_replay_acked(&fx.r, 600, &fx.e), 0);
	assert_int_equal(buf_len(&fx.r.retained), 900);
	assert_int_equal(*buf_head(&fx.r.retained), byte_at(600));
	assert_int_equal(control_replay_acked(&fx.r, 599, &fx.e), PTCP_EPROTO);  /* less than before */
	assert_int_equal(control_replay_acked(&fx.r, 1501, &fx.e), PTCP_EPROTO); /* never sent */
	assert_int_equal(control_replay_acked(&fx.r, UINT64_MAX, &fx.e), PTCP_EPROTO);
	assert_int_equal(buf_len(&fx.r.retained), 900);
	assert_int_equal(control_replay_acked(&fx.r, 1500, &fx.e), 0);
	assert_int_equal(buf_len(&fx.r.retained), 0);
}

/* A peer that never acknowledges costs bounded memory. */
static void retained_bytes_are_bounded(void **state)
{
	(void)state;
	assert_int_equal(send_bytes(0, MAX + 1000), MAX);
	assert_int_equal(send_bytes(MAX, 1), 0);
	assert_int_equal(control_replay_acked(&fx.r, 10, &fx.e), 0);
	assert_int_equal(send_bytes(MAX, 100), 10);
	was_sent(0, 0, MAX + 10);
}

static void acknowledges(void **state)
{
	(void)state;
	control_replay_received(&fx.r, ACK, NULL); /* before running: counted, not reported */
	assert_int_equal(buf_len(&fx.out.b), 0);
	control_replay_received(&fx.r, 1, &fx.out);
	assert_int_equal(reported(), ACK + 1);
	control_replay_received(&fx.r, ACK - 1, &fx.out);
	assert_int_equal(buf_len(&fx.out.b), 0);
	control_replay_received(&fx.r, 1, &fx.out);
	assert_int_equal(reported(), 2 * ACK + 1);
}

/* ---- The successor ---- */

static void resumes_where_the_peer_stopped(void **state)
{
	(void)state;
	send_bytes(0, 1000);
	assert_int_equal(control_replay_acked(&fx.r, 300, &fx.e), 0);
	control_replay_received(&fx.r, 77, &fx.out);
	resumes(400);
	fx.room = 250; /* retransmissions precede new bytes, however little the connection takes at a time */
	assert_int_equal(send_bytes(1000, 50), 0);
	fx.room = 360;
	assert_int_equal(send_bytes(1000, 50), 10);
	fx.room = MAX;
	assert_int_equal(send_bytes(1010, 40), 40);
	was_sent(0, 400, 650);
	assert_int_equal(fx.wire_n, 650);
	assert_int_equal(control_replay_acked(&fx.r, 1050, &fx.e), 0);
}

static void unsent_bytes_cannot_be_acknowledged(void **state)
{
	(void)state;
	send_bytes(0, 1000);
	resumes(0);
	fx.room = 100;
	assert_int_equal(send_bytes(0, 0), 0);
	assert_int_equal(control_replay_acked(&fx.r, 101, &fx.e), PTCP_EPROTO);
	assert_int_equal(control_replay_acked(&fx.r, 100, &fx.e), 0);
}

/* The successor is lost before the retransmission is complete. */
static void lost_again(void **state)
{
	(void)state;
	send_bytes(0, 1000);
	resumes(100);
	fx.room = 300;
	assert_int_equal(send_bytes(1000, 10), 0);
	resumes(250);
	assert_int_equal(send_bytes(1000, 10), 10);
	was_sent(0, 250, 760);
}

/* The peer may have received more than was sent again, through the old connection. */
static void the_old_connection_delivered_more(void **state)
{
	(void)state;
	send_bytes(0, 1000);
	resumes(100);
	fx.room = 300;
	send_bytes(1000, 0);
	resumes(1000);
	assert_int_equal(control_replay_unsent(&fx.r).n, 0);
	assert_int_equal(send_bytes(1000, 10), 10);
	was_sent(0, 1000, 10);
}

static void answer_in_pieces(void **state)
{
	struct wire_control_ack f = { 10 };
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES];
	size_t n = wire_control_ack_encode(frame, &f), i;

	(void)state;
	send_bytes(0, 10);
	connects();
	for (i = 0; i + 1 < n; i++) {
		assert_int_equal(control_replay_missing(&fx.r), n - i);
		assert_int_equal(control_replay_answer(&fx.r, frame + i, 1, fx.now, &fx.e), CONTROL_ANSWER_PARTIAL);
	}
	assert_int_equal(control_replay_answer(&fx.r, frame + i, 1, fx.now, &fx.e), CONTROL_ANSWER_RESUMED);
	assert_int_equal(buf_len(&fx.r.retained), 0);
}

static void false_answer(void **state)
{
	(void)state;
	send_bytes(0, 1000);
	connects();
	assert_int_equal(answers(1001), CONTROL_ANSWER_VIOLATION);
	assert_int_equal(fx.e.code, PTCP_EPROTO);
}

/* Another successor may follow. */
static void wrong_answer(void **state)
{
	uint8_t ping[WIRE_CONTROL_ACK_MAX_BYTES];
	struct wire_control_ack f = { 10 };

	(void)state;
	send_bytes(0, 1000);
	connects();
	wire_control_ack_encode(ping, &f);
	ping[0] = WIRE_PING;
	assert_int_equal(control_replay_answer(&fx.r, ping, sizeof ping, fx.now, &fx.e), CONTROL_ANSWER_WRONG);
	assert_int_equal(fx.r.state, CONTROL_LOST);
	assert_true(control_replay_wants(&fx.r, &fx.s));
	connects();
	control_replay_dropped(&fx.r); /* closed by the peer */
	assert_true(control_replay_wants(&fx.r, &fx.s));
	assert_int_equal(fx.r.path, 0);
	resumes(1000);
}

/* ---- Who may ---- */

static void sessions_without_successors(void **state)
{
	struct control_replay_session s = fx.s;

	(void)state;
	control_replay_lost(&fx.r);
	assert_true(control_replay_possible(&fx.r, &s) && control_replay_wants(&fx.r, &s));
	s.agreed = false;
	assert_false(control_replay_possible(&fx.r, &s) || control_replay_wants(&fx.r, &s));
	s = fx.s;
	s.running = false;
	assert_false(control_replay_possible(&fx.r, &s));
	s = fx.s;
	s.failed = true;
	assert_false(control_replay_possible(&fx.r, &s));
	s = fx.s;
	s.gone = true;
	assert_false(control_replay_possible(&fx.r, &s));
	s = fx.s;
	s.over = true; /* a sender has received the last frame, */
	assert_false(control_replay_possible(&fx.r, &s));
	s.receives = true; /* the receiver's last frame may be lost */
	assert_true(control_replay_possible(&fx.r, &s));
	control_replay_end(&fx.r); /* the peer has closed its end in good order */
	assert_false(control_replay_possible(&fx.r, &fx.s));
}

/* ---- The starter ---- */

static void silence(void **state)
{
	struct mono late = mono_add_ns(fx.now, 3 * SECOND);

	(void)state;
	assert_int_equal(control_replay_deadline(&fx.r, &fx.s).ns, late.ns);
	assert_false(control_replay_tick(&fx.r, &fx.s, (struct mono){ late.ns - 1 }));
	fx.s.last_input = mono_add_ns(fx.now, SECOND); /* any byte postpones the deadline */
	assert_false(control_replay_tick(&fx.r, &fx.s, late));
	assert_false(control_replay_wants(&fx.r, &fx.s));
	assert_true(control_replay_tick(&fx.r, &fx.s, mono_add_ns(late, SECOND)));
	assert_int_equal(fx.r.path, 1);
	assert_int_equal(control_replay_deadline(&fx.r, &fx.s).ns, MONO_NEVER.ns);
	assert_false(control_replay_tick(&fx.r, &fx.s, mono_add_ns(late, 100 * SECOND)));
	assert_true(control_replay_wants(&fx.r, &fx.s));
	fx.now = mono_add_ns(late, 100 * SECOND);
	resumes(0); /* the time counts from the successor's start */
	assert_false(control_replay_wants(&fx.r, &fx.s));
	assert_int_equal(control_replay_deadline(&fx.r, &fx.s).ns, fx.now.ns + 3 * SECOND);
}

/* A successor is connected, but its peer does not send CONTROL_ACK. */
static void mute_successor(void **state)
{
	(void)state;
	control_replay_lost(&fx.r);
	connects();
	assert_int_equal(control_replay_deadline(&fx.r, &fx.s).ns, fx.now.ns + 3 * SECOND);
	assert_false(control_replay_tick(&fx.r, &fx.s, mono_add_ns(fx.now, 3 * SECOND - 1)));
	assert_false(control_replay_wants(&fx.r, &fx.s));
	assert_true(control_replay_tick(&fx.r, &fx.s, mono_add_ns(fx.now, 3 * SECOND)));
	assert_true(control_replay_wants(&fx.r, &fx.s));
	assert_int_equal(fx.r.path, 2);
}

static void path_by_path(void **state)
{
	struct ptcp_err why = { .code = PTCP_ECONNECT, .msg = "not reachable" };

	(void)state;
	control_replay_lost(&fx.r);
	assert_int_equal(control_replay_failed(&fx.r, &why, false, false, &fx.e), 0);
	assert_int_equal(fx.r.path, 2);
	assert_int_equal(control_replay_failed(&fx.r, &why, false, false, &fx.e), 0);
	assert_int_equal(fx.r.path, 0);
	assert_true(control_replay_possible(&fx.r, &fx.s));
	/* the peer runs, the session ended */
	assert_int_equal(control_replay_failed(&fx.r, &why, true, false, &fx.e), PTCP_EPEER);
	assert_non_null(strstr(fx.e.msg, "not reachable"));
	assert_false(control_replay_possible(&fx.r, &fx.s));
}

/* Relays that refuse will go on refusing: the session ends when all its paths were refused in a row. */
static void relays_that_refuse(void **state)
{
	struct ptcp_err no = { .code = PTCP_EREFUSED, .msg = "no entry" },
		down = { .code = PTCP_ECONNECT, .msg = "down" };
	unsigned i;

	(void)state;
	control_replay_lost(&fx.r);
	for (i = 0; i + 1 < fx.r.n_paths; i++)
		assert_int_equal(control_replay_failed(&fx.r, &no, false, true, &fx.e), 0);
	assert_int_equal(control_replay_failed(&fx.r, &down, false, false, &fx.e), 0);
	for (i = 0; i + 1 < fx.r.n_paths; i++)
		assert_int_equal(control_replay_failed(&fx.r, &no, false, true, &fx.e), 0);
	assert_true(control_replay_possible(&fx.r, &fx.s));
	assert_int_equal(control_replay_failed(&fx.r, &no, false, true, &fx.e), PTCP_EREFUSED);
	assert_non_null(strstr(fx.e.msg, "no entry"));
	assert_false(control_replay_possible(&fx.r, &fx.s));
}

static void the_acceptor_waits(void **state)
{
	struct mono later = mono_add_ns(fx.now, 3600 * SECOND);

	(void)state;
	control_replay_fini(&fx.r);
	control_replay_init(&fx.r, false, 0, 0, fx.now);
	assert_false(control_replay_tick(&fx.r, &fx.s, later));
	assert_int_equal(control_replay_deadline(&fx.r, &fx.s).ns, MONO_NEVER.ns);
	control_replay_lost(&fx.r);
	assert_int_equal(fx.r.path, 0);
	assert_true(control_replay_possible(&fx.r, &fx.s));
	assert_false(control_replay_wants(&fx.r, &fx.s));
}

/* Both ends over connections that die at random bytes: every byte arrives once, in order. */
static void two_ends_over_bad_connections(void **state)
{
	size_t total = 200000, arrived = 0, cut, n, i;
	uint64_t random = 1;

	(void)state;
	while (arrived < total) {
		fx.wire_n = 0;
		random = random * 6364136223846793005u + 1442695040888963407u;
		fx.room = (random >> 33) % 20000;
		send_bytes(fx.r.acked + buf_len(&fx.r.retained), total - fx.r.acked - buf_len(&fx.r.retained));
		cut = fx.wire_n > 0 ? (random >> 40) % (fx.wire_n + 1) : 0; /* delivered before the loss */
		for (i = 0; i < cut; i++)
			assert_int_equal(fx.wire[i], byte_at(arrived + i));
		arrived += cut;
		if ((random >> 50) % 4 > 0 && cut > 0) { /* else the acknowledgment is lost as well */
			n = fx.r.acked + (arrived - fx.r.acked) / 2;
			assert_int_equal(control_replay_acked(&fx.r, n, &fx.e), 0);
		}
		control_replay_lost(&fx.r);
		resumes(arrived);
	}
	assert_int_equal(arrived, total);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(retained_until_acknowledged), test(retained_bytes_are_bounded), test(acknowledges),
		test(resumes_where_the_peer_stopped), test(unsent_bytes_cannot_be_acknowledged), test(lost_again),
		test(the_old_connection_delivered_more), test(answer_in_pieces), test(false_answer), test(wrong_answer),
		test(sessions_without_successors), test(silence), test(mute_successor), test(path_by_path),
		test(relays_that_refuse), test(the_acceptor_waits), test(two_ends_over_bad_connections),
	};

	return cmocka_run_group_tests_name("engine/control_replay", tests, NULL, NULL);
}
