/* Measurements between two real ends: levels with and without an end, in both directions, streams that are lost or
 * refused, and the limits of the acceptor. */
#include "core/units.h"
#include "fixture.h"

#define STREAMS 3
#define BYTES (1u << 20)
#define EVER UINT64_MAX

static struct {
	unsigned n_started, n_ended, n_lost, n_cleared;
	unsigned ended;            /* a bit for each stream */
	uint64_t ns;               /* of the streams that have transferred all */
	struct ptcp_err why;
} seen;

static void on_started(void *arg)
{
	assert_ptr_equal(arg, &seen);
	/* a fast stream has ended, and its end is on the way */
	assert_true(session_progress(sf.starter.session).streams + seen.n_ended <= STREAMS);
	assert_int_equal(sf.n_joins % STREAMS, 0);
	seen.n_started++;
}

static void on_ended(void *arg, unsigned number, const struct probe_run *run, const struct ptcp_err *why)
{
	assert_ptr_equal(arg, &seen);
	if (why != NULL) {
		seen.n_lost++;
		seen.why = *why;
		return;
	}
	assert_true(number < STREAMS && (seen.ended >> number & 1) == 0);
	assert_true(run->until.ns > run->from.ns);
	seen.ended |= 1u << number;
	seen.n_ended++;
	seen.ns += mono_diff_ns(run->until, run->from);
}

static void on_cleared(void *arg)
{
	assert_ptr_equal(arg, &seen);
	seen.n_cleared++;
}

static const struct probe_session_ops ops = { on_started, on_ended, on_cleared };

static void starts(struct session *sess)
{
	struct ptcp_err e;

	assert_int_equal(session_probe(sess, &ops, &seen, &e), 0);
}

static void serves(struct session *sess)
{
	struct ptcp_err e;
	bool generates = engine_open(sess->engine)->role == WIRE_ACCEPTOR_GENERATES;

	assert_int_equal((generates ? session_generate : session_discard)(sess, &e), 0);
}

static bool started(void) { return seen.n_started == 1; }
static bool all_ended(void) { return seen.n_ended + seen.n_lost >= STREAMS; }
static bool one_lost(void) { return seen.n_lost > 0; }
static bool cleared(void) { return seen.n_cleared == 1; }
static bool no_streams(void) { return session_progress(sf.acceptor.session).streams == 0; }

static void begin(uint8_t role)
{
	memset(&seen, 0, sizeof seen);
	sf.starts = starts;
	sf.serves = serves;
	sf.starter.o.linger_ns = 0;
	sf.open.flags = 0;
	sf.open.preserve = 0;
	sf_begin(role, STREAMS);
	sf_until(sf_both_run);
	assert_int_equal(probe_session_granted(sf.starter.session), STREAMS);
	assert_int_equal(sf.n_joins, 0); /* before a level */
}

static void clear(void)
{
	probe_session_clear(sf.starter.session);
	sf_until(cleared);
	sf_until(no_streams);
	memset(&seen, 0, sizeof seen);
}

static void finish(void)
{
	probe_session_finish(sf.starter.session);
	sf_finish();
	sf_failed(&sf.starter, 0, "");
	sf_failed(&sf.acceptor, 0, "");
}

/* One level after the other, each of new connections. */
static void levels_with_an_end(void **state)
{
	uint8_t role;
	unsigned level;

	(void)state;
	for (role = WIRE_ACCEPTOR_DISCARDS; role <= WIRE_ACCEPTOR_GENERATES; role++) {
		begin(role);
		for (level = 1; level <= 2; level++) {
			probe_session_level(sf.starter.session, STREAMS + 5, BYTES); /* more than granted */
			sf_until(all_ended);
			assert_int_equal(seen.n_started, 1);
			assert_int_equal(seen.n_lost, 0);
			assert_int_equal(seen.ended, (1u << STREAMS) - 1);
			assert_true(seen.ns > 0);
			assert_int_equal(sf.n_joins, STREAMS * level);
			clear();
		}
		finish();
		sf_again();
	}
}

static bool megabytes_moved(void)
{
	struct tcpinfo at;
	unsigned i;

	for (i = 0; i < STREAMS; i++)
		if (!probe_session_tcpinfo(sf.starter.session, i, &at) || at.acked_bytes < BYTES)
			return false;
	return true;
}

/* Of the direction of the data, in the view of the starter. */
static void a_level_without_end(void **state)
{
	struct limit_times times;
	uint64_t retransmits;
	struct tcpinfo at;
	uint8_t role;

	(void)state;
	for (role = WIRE_ACCEPTOR_DISCARDS; role <= WIRE_ACCEPTOR_GENERATES; role++) {
		begin(role);
		assert_false(probe_session_tcpinfo(sf.starter.session, 0, &at));
		probe_session_level(sf.starter.session, STREAMS, EVER);
		sf_until(started);
		sf_until(megabytes_moved);
		assert_int_equal(seen.n_ended + seen.n_lost, 0);
		assert_int_equal(probe_session_reported(sf.starter.session, &times, &retransmits),
		    role == WIRE_ACCEPTOR_GENERATES);
		assert_true(probe_session_tcpinfo(sf.starter.session, 0, &at));
		if (role == WIRE_ACCEPTOR_GENERATES) { /* this end's kernel knows only what has arrived */
			assert_int_equal(at.sent_segments + at.retransmits, 0);
			assert_true(at.acked_bytes == at.received_bytes);
		} else {
			assert_true(at.sent_segments > 0);
		}
		clear();
		finish();
		sf_again();
	}
}

/* A level without end has further streams: those that run go on. */
static void a_level_grows(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_DISCARDS);
	sf.granted = STREAMS;
	probe_session_level(sf.starter.session, STREAMS, EVER);
	sf_until(megabytes_moved);
	assert_int_equal(sf.n_joins, STREAMS);
	probe_session_level(sf.starter.session, STREAMS, EVER);
	assert_int_equal(sf.n_joins, STREAMS);
	assert_true(megabytes_moved());
	clear();
	finish();
}

static void lost_streams(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_DISCARDS);
	probe_session_level(sf.starter.session, STREAMS, EVER);
	sf_until(megabytes_moved);
	assert_int_equal(sf_cut_streams() % STREAMS, 0);
	sf_until(all_ended);
	assert_int_equal(seen.n_lost, STREAMS);
	assert_int_equal(sf.n_joins, STREAMS); /* none is replaced */
	clear();
	finish();
}

static void too_few_streams(void **state)
{
	(void)state;
	sf.starter.o.timeout_ns = NS_PER_S;
	sf.refuses = UINT32_MAX;
	begin(WIRE_ACCEPTOR_DISCARDS);
	assert_int_equal(probe_session_timeout_ns(sf.starter.session), NS_PER_S);
	probe_session_level(sf.starter.session, STREAMS, BYTES);
	sf_until(one_lost);
	assert_int_equal(seen.why.code, PTCP_ECONNECT);
	assert_non_null(strstr(seen.why.msg, "only 0 of 3 streams could be connected"));
	assert_int_equal(seen.n_started, 0);
}

/* A stream of an acceptor has its time, which begins when it is connected. */
static void a_stream_has_its_time(void **state)
{
	struct session *sess;
	struct mono first, late;
	unsigned i;

	(void)state;
	begin(WIRE_ACCEPTOR_DISCARDS);
	probe_session_level(sf.starter.session, STREAMS, EVER);
	sf_until(megabytes_moved);
	sess = sf.acceptor.session;
	first = sess->slot[0].since;
	for (i = 1; i < STREAMS; i++)
		first = mono_min(first, sess->slot[i].since);
	late = mono_add_ns(first, PROBE_SESSION_STREAM_NS);
	assert_int_equal(probe_session_deadline(sess).ns, late.ns);
	probe_session_pump(sess, (struct mono){ late.ns - 1 });
	assert_int_equal(sess->streams.n_connected, STREAMS);
	probe_session_pump(sess, late);
	assert_true(sess->streams.n_connected < STREAMS);
	sf_until(one_lost);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { sf_test(levels_with_an_end), sf_test(a_level_without_end),
		sf_test(a_level_grows), sf_test(lost_streams), sf_test(too_few_streams),
		sf_test(a_stream_has_its_time) };

	return cmocka_run_group_tests_name("session/probe_session", tests, NULL, NULL);
}
