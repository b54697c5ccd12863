/* The control connection and its successors: which connection is read, written and freed when. The starter is a real
 * session; the test answers its attempts itself. tests/engine/test_control_replay.c has the cases of the replay. */
#include "core/units.h"
#include "fixture.h"
#include "net/chan.h"

#define LARGE (24u << 20)

/* ---- The peer that the test plays on a successor ---- */

static struct {
	struct chan *chan;         /* of the last attempt */
	unsigned n_taken;
	uint8_t in[70000];         /* what the starter has sent on it */
	size_t n;
	bool closed;
} peer;

static void on_readable(void *arg)
{
	size_t n;

	(void)arg;
	while ((n = chan_read(peer.chan, peer.in + peer.n, sizeof peer.in - peer.n)) > 0)
		peer.n += n;
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	(void)arg, (void)why;
	peer.closed = true;
}

static const struct chan_ops peer_ops = { .readable = on_readable, .closed = on_closed };

static void takes(struct chan *c)
{
	struct ptcp_err e;

	chan_free(peer.chan);
	peer.chan = c;
	peer.n_taken++;
	peer.n = 0;
	peer.closed = false;
	assert_int_equal(chan_attach(c, sf.control, &peer_ops, NULL, &e), 0);
}

static void writes(const uint8_t *p, size_t n)
{
	assert_int_equal(chan_write(peer.chan, p, n), n);
	chan_flush(peer.chan);
}

/* A whole frame of that type among those that the starter has sent behind its CONTROL_ACK: others, that the engine had
 * queued before, may precede it. */
static bool has_sent(uint8_t type)
{
	size_t at = WIRE_CONTROL_ACK_MAX_BYTES;
	struct wire_header h;

	for (; at + WIRE_HEADER_BYTES <= peer.n; at += WIRE_HEADER_BYTES + h.length) {
		assert_int_equal(wire_header_decode(&h, peer.in + at, NULL), 0);
		if (h.type == type)
			return at + WIRE_HEADER_BYTES + h.length <= peer.n;
	}
	return false;
}

static size_t answer(uint8_t *out, uint64_t bytes)
{
	return wire_control_ack_encode(out, &(struct wire_control_ack){ bytes });
}

/* ---- A starter that sends, and has lost its control connection ---- */

static struct control *control(void) { return &sf.starter.session->control; }
static bool joined(void) { return sf_both_run() && sf.starter.session->streams.n_connected > 0; }
static bool resuming(void)
{
	return peer.n_taken == 1 && control()->successor != NULL && peer.n >= WIRE_CONTROL_ACK_MAX_BYTES;
}
static bool asked_again(void) { return peer.n_taken == 2 && control()->successor != NULL; }
static bool reported(void) { return sf.starter.n_reconnecting > 0; }
static bool up(void) { return control()->chan != NULL; }
static bool starter_over(void) { return session_over(sf.starter.session); }
static bool peer_closed(void) { return peer.closed; }
static bool starter_gone(void) { return sf.starter.gone; }
static bool acceptor_lost_it(void) { return sf.acceptor.session->control.lost || sf.acceptor.gone; }

static void begin(void)
{
	static struct timetable slow;

	memset(&peer, 0, sizeof peer);
	assert_int_equal(pacing_parse(&slow, "8Mbit/s", NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &slow, sf.control, NULL), 0);
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_until(joined);
	assert_true(control_is_up(sf.starter.session));
	assert_false(control_wants_successor(sf.starter.session));
}

static void begin_lost(void)
{
	begin();
	sf.takes = takes;
	sf_cut(session_control_fd(sf.starter.session));
	sf_until(resuming);
}

static int teardown(void **state)
{
	chan_free(peer.chan);
	peer.chan = NULL;
	return sf_teardown(state);
}

/* ---- Cases ---- */

/* Nothing but the number of received bytes is sent before the peer's answer, which may arrive in pieces; then the bytes
 * follow that the peer does not have. */
static void answer_in_pieces(void **state)
{
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES];
	uint64_t acked, sent;
	size_t n, i;

	(void)state;
	begin_lost();
	assert_int_equal(peer.n, WIRE_CONTROL_ACK_MAX_BYTES);
	assert_int_equal(answer(frame, control()->replay.received), WIRE_CONTROL_ACK_MAX_BYTES);
	assert_memory_equal(peer.in, frame, sizeof frame);
	assert_null(control()->chan);
	acked = control()->replay.acked;
	sent = buf_len(&control()->replay.retained);
	n = answer(frame, acked);
	for (i = 0; i < n; i++) {
		assert_null(control()->chan);
		writes(frame + i, 1);
		if (i + 1 < n)
			while (control()->replay.got <= i)
				loop_run_once(sf.control, true);
	}
	sf_until(up);
	assert_null(control()->successor);
	assert_true(control_is_up(sf.starter.session));
	while (peer.n < WIRE_CONTROL_ACK_MAX_BYTES + sent)
		loop_run_once(sf.control, true);
	assert_false(session_over(sf.starter.session));
}

static void wrong_answers(void **state)
{
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES] = { WIRE_PING };

	(void)state;
	begin_lost();
	writes(frame, sizeof frame);
	sf_until(asked_again); /* dropped, and tried again */
	assert_false(session_over(sf.starter.session));
	/* more than was sent */
	writes(frame, answer(frame, control()->replay.acked + buf_len(&control()->replay.retained) + 1));
	sf_until(starter_over);
	assert_int_equal(sf.starter.session->end.why.code, PTCP_EPROTO);
	while (!has_sent(WIRE_ERROR)) { /* the successor carries the reason */
		assert_false(peer.closed);
		loop_run_once(sf.control, true);
	}
}

static void a_closed_successor(void **state)
{
	(void)state;
	begin_lost();
	chan_free(peer.chan);
	peer.chan = NULL;
	sf_until(asked_again);
	assert_false(session_over(sf.starter.session));
}

/* The peer does not answer on the successor: it is dropped after the same time as a silent connection. */
static void a_silent_successor(void **state)
{
	struct mono at;

	(void)state;
	begin_lost();
	at = control_deadline(sf.starter.session);
	assert_true(at.ns < MONO_NEVER.ns);
	control_pump(sf.starter.session, (struct mono){ at.ns - 1 });
	assert_non_null(control()->successor);
	control_pump(sf.starter.session, mono_add_ns(at, 60 * NS_PER_S));
	assert_null(control()->successor);
	assert_true(control_wants_successor(sf.starter.session));
	sf_until(peer_closed);
}

static void a_silent_connection(void **state)
{
	struct session *sess;
	struct mtu_lost lost;
	struct mono at;

	(void)state;
	begin();
	sess = sf.starter.session;
	at = control_deadline(sess);
	assert_true(at.ns >= mono_add_ns(engine_last_input(sess->engine), control()->quiet_ns).ns);
	control_pump(sess, (struct mono){ at.ns - 1 });
	assert_non_null(control()->chan);
	assert_false(control_take_lost(sess, &lost));
	control_pump(sess, mono_add_ns(at, 60 * NS_PER_S)); /* not even a long RTT is an excuse */
	assert_null(control()->chan);
	assert_int_equal(session_control_fd(sess), -1);
	assert_int_equal(sf.starter.n_reconnecting, 1);
	assert_string_equal(sf.starter.reconnecting, "the control connection is silent");
	assert_true(control_take_lost(sess, &lost));
	assert_false(control_take_lost(sess, &lost)); /* once */
	sf_until(acceptor_lost_it); /* reset: a close would arrive late */
	assert_false(sf.acceptor.gone);
	sf_until(up);
	assert_true(control()->resumed.ns > 0);
	assert_int_equal(sess->slot[SLOT_CONTROL].retries, 0);
}

static uint64_t proof_bytes; /* that all streams have to deliver */
static bool streams_prove(void) { return up() && streams_delivered(sf.starter.session, 0) >= proof_bytes; }

/* A control connection delivers little: that two in a row are lost is no sign of dropped packets if streams deliver. */
static void outages_are_no_small_mtu(void **state)
{
	struct session *sess;
	unsigned i;

	(void)state;
	begin();
	sess = sf.starter.session;
	for (i = 0; i < 3; i++) {
		proof_bytes = streams_delivered(sess, 0) + MTU_PROOF_BYTES;
		sf_until(streams_prove);
		control_pump(sess, mono_add_ns(control_deadline(sess), 60 * NS_PER_S));
		assert_true(control()->lost);
		sf_until(up);
		sess->stalls.checked = (struct mono){ 0 }; /* due now */
		stalls_pump(sess, mono_now());
		assert_false(control()->lost);
		assert_int_equal(sf.starter.n_warnings, 0);
	}
}

static void a_stuck_connection(void **state)
{
	(void)state;
	begin();
	control_stuck(sf.starter.session);
	assert_null(control()->chan);
	assert_string_equal(sf.starter.reconnecting, "the control connection is stuck");
	sf_until(up);
	assert_false(session_over(sf.starter.session));
}

/* By its peer, in good order: the session is over there. */
static void closed_in_good_order(void **state)
{
	(void)state;
	begin();
	chan_shutdown(sf.acceptor.session->control.chan);
	sf_until(starter_gone);
	sf_failed(&sf.starter, PTCP_EPEER, "the peer closed it");
	assert_int_equal(sf.starter.n_reconnecting, 0);
}

static void the_acceptor_knows_no_session(void **state)
{
	(void)state;
	begin();
	sf.forgets = true;
	sf_cut(session_control_fd(sf.starter.session));
	sf_until(starter_gone);
	sf_failed(&sf.starter, PTCP_EPEER, "no such session or stream");
}

/* Attempts that fail for other reasons are repeated. */
static void no_successor_yet(void **state)
{
	struct connect_result r = { .cause = CONNECT_UNREACHABLE, .why = { .code = PTCP_ECONNECT, .msg = "refused" } };

	(void)state;
	begin();
	sf_unreachable(true);
	sf_cut(session_control_fd(sf.starter.session));
	sf_until(reported);
	control_failed(sf.starter.session, &r);
	assert_false(session_over(sf.starter.session));
	assert_int_equal(sf.starter.n_reconnecting, 2);
	assert_string_equal(sf.starter.reconnecting, "refused");
	sf_unreachable(false);
	sf_until(up);
}

/* The address may be another host's by now; the transfer ends once the name, too, leads to another identity. */
static void another_identity(void **state)
{
	struct connect_result r = { .cause = CONNECT_IDENTITY, .why = { .code = PTCP_EREFUSED, .msg = "another" } };
	struct slot *s;

	(void)state;
	begin();
	s = &sf.starter.session->slot[SLOT_CONTROL];
	sf_unreachable(true);
	sf_cut(session_control_fd(sf.starter.session));
	sf_until(reported);
	s->attempt.by_name = true; /* the next attempt */
	control_failed(sf.starter.session, &r);
	assert_false(session_over(sf.starter.session));
	s->attempt.by_name = false;
	control_failed(sf.starter.session, &r);
	assert_true(session_over(sf.starter.session));
	assert_int_equal(sf.starter.session->end.why.code, PTCP_EREFUSED);
	sf_unreachable(false);
}

static const struct ptcp_err enough = { .code = PTCP_ECANCELED, .msg = "enough" };

/* A failed session needs no other connection to the peer that it has told. */
static void not_taken(void **state)
{
	struct chan *before;

	(void)state;
	begin_lost();
	sf.takes = NULL;
	before = sf.acceptor.session->control.chan;
	session_cancel(sf.acceptor.session, &enough);
	assert_false(control_may_resume(sf.acceptor.session));
	control_take(sf.acceptor.session, peer.chan); /* freed */
	peer.chan = NULL;
	assert_null(sf.acceptor.session->control.successor);
	assert_true(sf.acceptor.session->control.chan == before || sf.acceptor.session->control.chan == NULL);
}

#define test(f) cmocka_unit_test_setup_teardown(f, sf_setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(answer_in_pieces), test(wrong_answers), test(a_closed_successor), test(a_silent_successor),
		test(a_silent_connection), test(outages_are_no_small_mtu), test(a_stuck_connection),
		test(closed_in_good_order), test(the_acceptor_knows_no_session),
		test(no_successor_yet), test(another_identity), test(not_taken),
	};

	return cmocka_run_group_tests_name("session/control", tests, NULL, NULL);
}
