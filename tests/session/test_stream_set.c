/* The number of active streams falls: which connections are reset, and which may deliver their blocks; streams that are
 * lost and made; descriptors. Real sessions, except where streams of movers report. */
#include "fixture.h"

#include <stdlib.h>

#include "core/units.h"
#include "fs/fd_budget.h"

#define STREAMS 4
#define LARGE (24u << 20)

static struct session *sender(void) { return sf.starter.session; }
static struct session *receiver(void) { return sf.acceptor.session; }

static bool all_connected(void)
{
	return sf_both_run() && sender()->streams.n_connected == STREAMS &&
	    receiver()->streams.n_connected == STREAMS &&
	    sf.starter.connected == STREAMS && sf.acceptor.connected == STREAMS;
}

static void begin(const char *rate)
{
	struct timetable t;

	assert_int_equal(pacing_parse(&t, rate, NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &t, sf.control, NULL), 0);
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, STREAMS);
	sf_until(all_connected);
}

/* The streams, as bits, that would need more than a second for what they carry. */
static unsigned slow_streams(void)
{
	unsigned i, slow = 0;

	for (i = 0; i < STREAMS; i++)
		slow |= (unsigned)(snd_stream_drains_ns(engine_snd(sender()->engine), i, mono_now()) > NS_PER_S) << i;
	return slow;
}

static bool some_are_slow(void) { return (slow_streams() & 0xe) != 0; }

static unsigned connected(const struct session *sess)
{
	unsigned i, at = 0;

	for (i = 0; i < STREAMS; i++)
		at |= (unsigned)(sess->slot[i].stream != NULL) << i;
	return at;
}

static void slow_streams_are_reset(void **state)
{
	unsigned slow, i;

	(void)state;
	begin("2Mbit/s");
	sf_until(some_are_slow);
	slow = slow_streams() & 0xe;
	streams_activate(sender(), 1, "the test");
	assert_int_equal(connected(sender()) & slow, 0);
	assert_true((connected(sender()) & 1) != 0); /* it stays active */
	assert_int_equal(sender()->streams.n_connected + sender()->streams.n_ending, STREAMS);
	assert_true(sender()->streams.n_ending >= 1);
	for (i = 1; i < STREAMS; i++)
		assert_int_equal(sender()->slot[i].retries, 0); /* no failure: a new connection need not wait */
	assert_int_equal(sf.starter.connected, 1);
	assert_string_equal(sf.starter.streams, "the test");
	streams_activate(receiver(), 1, "the peer's");
	while (receiver()->streams.n_connected + receiver()->streams.n_ending >= STREAMS)
		loop_run_once(sf.control, true);
	for (i = 1; i < STREAMS; i++)
		assert_int_equal(receiver()->slot[i].retries, 0);
	assert_int_equal(receiver()->streams.join_why.code, 0);
}

/* A receiver resets nothing. */
static void a_receiver_lets_them_drain(void **state)
{
	unsigned reports;

	(void)state;
	begin("2Mbit/s");
	sf_until(some_are_slow);
	reports = sf.acceptor.n_streams;
	streams_activate(receiver(), 3, NULL); /* one after the other: one report */
	streams_activate(receiver(), 2, NULL);
	assert_int_equal(sf.acceptor.n_streams, reports);
	streams_activate(receiver(), 1, "the test");
	assert_int_equal(sf.acceptor.n_streams, reports + 1);
	assert_int_equal(connected(receiver()), 0xf);
	assert_int_equal(receiver()->streams.n_ending, 0);
	assert_int_equal(sf.acceptor.connected, 1); /* active ones */
	streams_activate(receiver(), STREAMS, "the test");
	assert_int_equal(sf.acceptor.connected, STREAMS);
}

/* What the sender has withdrawn is no failure of the connection; the loss of an active stream is. */
static void reset_streams_have_left(void **state)
{
	struct ptcp_err why = { .code = PTCP_ECONNECT, .msg = "reset" };

	(void)state;
	begin("8Mbit/s");
	streams_activate(receiver(), 1, "the test");
	streams_lost(receiver(), receiver()->slot[3].stream, &why);
	assert_int_equal(connected(receiver()), 0x7);
	assert_int_equal(receiver()->slot[3].retries, 0);
	assert_int_equal(receiver()->streams.join_why.code, 0);
	streams_lost(receiver(), receiver()->slot[0].stream, &why);
	assert_int_equal(receiver()->slot[0].retries, 1);
	assert_int_equal(receiver()->streams.join_why.code, PTCP_ECONNECT);
	assert_string_equal(sf.acceptor.streams, "reset");
	assert_int_equal(streams_connected(receiver()), 0);
}

/* A number below those granted, in a session that runs. */
static void accepts(void **state)
{
	static const struct ptcp_err why = { .code = PTCP_ECANCELED, .msg = "enough" };

	(void)state;
	begin("8Mbit/s");
	assert_true(streams_accepts(receiver(), 0) && streams_accepts(receiver(), STREAMS - 1));
	assert_false(streams_accepts(receiver(), STREAMS));
	assert_int_equal(session_path(receiver(), 0).streams, STREAMS);
	assert_false(session_is_striped(receiver()));
	session_cancel(receiver(), &why);
	assert_false(streams_accepts(receiver(), 0));
}

/* A connection of the same number replaces the one whose death this end has not noticed. */
static void a_stream_is_replaced_by_the_peer(void **state)
{
	uint32_t before;

	(void)state;
	begin("8Mbit/s");
	before = receiver()->slot[2].generation;
	streams_lost(sender(), sender()->slot[2].stream, &(struct ptcp_err){ .code = PTCP_EPEER, .msg = "lost" });
	while (receiver()->slot[2].generation == before || receiver()->slot[2].stream == NULL)
		loop_run_once(sf.control, true);
	assert_int_equal(receiver()->slot[2].generation, before + 1);
	while (!all_connected())
		loop_run_once(sf.control, true);
	assert_int_equal(sf.n_joins, STREAMS + 1);
}

/* The connections are new ones after an outage, and do not wait for their turn. */
static void revived(void **state)
{
	unsigned i;

	(void)state;
	begin("8Mbit/s");
	for (i = 0; i < STREAMS; i++)
		streams_retry_later(sender(), i);
	assert_int_equal(sender()->slot[1].retries, 1);
	streams_revive(sender());
	for (i = 0; i < STREAMS; i++) {
		assert_int_equal(sender()->slot[i].retries, 0);
		assert_true(sender()->slot[i].retry_at.ns <= mono_now().ns);
	}
	assert_int_equal(connected(sender()), 0xf); /* their peer is not silent */
}

/* ---- Descriptors ---- */

/* At most half of the room, so that the next session finds some; a session that is alone has one stream in any case. */
static void descriptors(void **state)
{
	unsigned left = fd_budget_left(), fds, rest, n;

	(void)state;
	assert_int_equal(session_take_fds(&fds, 3, 2, false), 3);
	assert_int_equal(fds, SESSION_FDS + 3 * 2);
	assert_int_equal(fd_budget_left(), left - fds);
	fd_budget_count(-(int)fds);
	n = session_take_fds(&fds, left, 1, false);
	assert_in_range(n, left / 2 - SESSION_FDS, left / 2);
	fd_budget_count(-(int)fds);
	assert_true(fd_budget_reserve(left));
	assert_int_equal(session_take_fds(&rest, 3, 1, false), 0);
	assert_int_equal(rest, 0);
	assert_int_equal(session_take_fds(&rest, 3, 1, true), 1);
	assert_int_equal(rest, SESSION_FDS + 1);
	fd_budget_count(-(int)(left + rest));
	assert_int_equal(fd_budget_left(), left);
}

/* ---- Streams of movers ---- */

static struct {
	struct session s;
	struct context context;
	unsigned pumped;
} fx;

static void pump(struct session *sess)
{
	assert_ptr_equal(sess, &fx.s);
	fx.pumped++;
}

static void on_due(struct msg *m)
{
	(void)m;
	fx.s.due_posted = false;
	pump(&fx.s);
}

/* Reports of movers wait for the end of the turn of the loop. */
static void reports_of_movers_gather(void **state)
{
	static const struct stream_kind kind = { .send = NULL };
	struct stream_opts o = { .context = &fx.context, .kind = &kind };
	struct stream *s[2];
	unsigned turn;

	(void)state;
	memset(&fx, 0, sizeof fx);
	assert_int_equal(stream_new(&s[0], &o, NULL), 0);
	assert_int_equal(stream_new(&s[1], &o, NULL), 0);
	assert_int_equal(loop_new(&fx.context.control, NULL), 0);
	fx.s.o.context = &fx.context;
	fx.s.pump = pump;
	fx.s.due.run = on_due;
	for (turn = 1; turn <= 2; turn++) {
		session_reported(&fx.s, s[0]);
		session_reported(&fx.s, s[1]);
		session_reported(&fx.s, s[0]);
		assert_int_equal(fx.pumped, turn - 1);
		loop_run_once(fx.context.control, true);
		assert_int_equal(fx.pumped, turn);
	}
	loop_free(fx.context.control);
	free(s[0]);
	free(s[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sf_test(slow_streams_are_reset), sf_test(a_receiver_lets_them_drain), sf_test(reset_streams_have_left),
		sf_test(accepts),
		sf_test(a_stream_is_replaced_by_the_peer), sf_test(revived), cmocka_unit_test(descriptors),
		cmocka_unit_test(reports_of_movers_gather),
	};

	return cmocka_run_group_tests_name("session/stream_set", tests, NULL, NULL);
}
