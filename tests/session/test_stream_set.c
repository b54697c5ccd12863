/* The number of active streams falls: which connections are reset, and which may deliver their blocks. The test plays the
 * engine and the streams. */
#include "session/session_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STREAMS 4

struct stream {
	unsigned number;
	const struct stream_kind *kind;
};

static struct {
	struct session s;
	struct context host;
	struct stream stream[STREAMS];
	uint64_t drains_ns[STREAMS];
	unsigned stopped, reset, requeued, reported; /* stopped, reset, requeued: a bit for each stream */
	unsigned pumped;
	bool sends, spooled, closing;
} fx;

struct snd *engine_snd(struct engine *e) { return e == NULL && fx.sends ? (struct snd *)&fx.drains_ns : NULL; }
const struct wire_open *engine_open(const struct engine *e) { (void)e; return NULL; }
bool engine_spooled(const struct engine *e) { return e == NULL && fx.spooled; }
bool engine_closing(const struct engine *e) { return e == NULL && fx.closing; }
void engine_fail(struct engine *e, const struct ptcp_err *why) { (void)e; fail_msg("%s", why->msg); }
uint64_t engine_linger_ns(const struct engine *e) { (void)e; return 0; }

uint64_t snd_stream_drains_ns(const struct snd *s, unsigned stream, struct mono now)
{
	(void)now;
	assert_ptr_equal(s, &fx.drains_ns);
	return fx.drains_ns[stream];
}

void snd_share(struct snd *s, unsigned stream, unsigned rate) { (void)s; (void)stream; (void)rate; }

void peer_suspect(struct session *sess, const struct mtu_lost *lost) { (void)sess; (void)lost; }

/* ---- Streams ---- */

uint32_t remote_mover(const struct remote_stream *r) { return r != NULL; }
void *stream_remote(const struct stream *s) { assert_non_null(s); return NULL; }

const struct stream_kind remote_stream_kind;
void remote_attach(struct remote_stream *r, struct stream *s) { (void)r; (void)s; }
void remote_cancel(struct remote_stream *r) { (void)r; }

unsigned stream_number(const struct stream *s) { return s->number; }

void stream_stop(struct stream *s, bool reset)
{
	fx.stopped |= 1u << s->number;
	fx.reset |= (unsigned)reset << s->number;
}

uint32_t remote_peer(const struct remote_stream *r) { (void)r; return 0; }
void stream_free(struct stream *s) { (void)s; }
uint64_t stream_retransmits(struct stream *s) { (void)s; return 0; }
unsigned stream_path(const struct stream *s) { (void)s; return 0; }
void stream_share(struct stream *s, struct pacer *p) { (void)s; (void)p; }
void stream_check(struct stream *s, uint64_t silent_ns, bool unacked) { (void)s; (void)silent_ns; (void)unacked; }
const struct mtu_lost *stream_lost(const struct stream *s) { (void)s; return NULL; }
bool stream_tcpinfo(const struct stream *s, struct tcpinfo *out) { (void)s; (void)out; return false; }
const struct stream_kind *stream_kind_of(const struct stream *s) { return s->kind; }

int stream_new(struct stream **out, const struct stream_opts *o, struct ptcp_err *e)
{
	(void)o; (void)e;
	*out = NULL;
	return -1;
}

static void on_lost(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	(void)sess;
	assert_true(why == NULL || why->code == PTCP_ECONNECT);
	fx.requeued |= 1u << s->number;
}

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	(void)arg;
	assert_true(from == STREAMS ? strcmp(why, "the test") == 0 : from == 1 && strcmp(why, "reset") == 0);
	fx.reported = to;
}

static void pump(struct session *sess)
{
	(void)sess;
	fx.pumped++;
}

/* ---- Tests ---- */

/* Four streams that need 3, 3, 0.5 and 3 s for what they carry. */
static void begin(bool sends)
{
	static const struct payload_ops payload = { .lost = on_lost };
	static const struct session_ops ops = { .streams = on_streams };
	unsigned i;

	memset(&fx, 0, sizeof fx);
	fx.sends = sends;
	fx.s.o.host = &fx.host;
	fx.s.o.ops = &ops;
	fx.s.payload = &payload;
	fx.s.pump = pump;
	fx.s.running = fx.s.adapt.adapts_streams = true;
	fx.s.streams.n_granted = fx.s.streams.n_active = fx.s.streams.n_connected = fx.s.streams.n_reported = STREAMS;
	for (i = 0; i < STREAMS; i++) {
		fx.stream[i].number = i;
		slot_init(&fx.s.slot[i], &fx.s, i, NULL);
		slot_connected(&fx.s.slot[i], &fx.stream[i], 0, mono_now());
		fx.drains_ns[i] = i == 2 ? NS_PER_S / 2 : 3 * NS_PER_S;
	}
}

static void slow_streams_are_reset(void **state)
{
	(void)state;
	begin(true);
	streams_activate(&fx.s, 1, "the test");
	assert_int_equal(fx.stopped, 1 << 1 | 1 << 3);
	assert_int_equal(fx.reset, fx.stopped);
	assert_int_equal(fx.requeued, fx.stopped);
	assert_int_equal(fx.reported, 1);
	assert_null(fx.s.slot[1].stream);
	assert_non_null(fx.s.slot[2].stream);
	assert_int_equal(fx.s.streams.n_connected, 2);
	assert_int_equal(fx.s.streams.n_ending, 2);
	assert_int_equal(fx.s.slot[1].retries + fx.s.slot[3].retries, 0); /* no failure: a new connection need not wait */
}

/* The receiver, a sender into a relay's storage, and a session that is closing reset nothing. */
static void other_sessions_drain(void **state)
{
	(void)state;
	begin(false);
	streams_activate(&fx.s, 1, "the test");
	assert_int_equal(fx.stopped, 0);
	begin(true);
	fx.spooled = true;
	streams_activate(&fx.s, 1, "the test");
	assert_int_equal(fx.stopped, 0);
	begin(true);
	fx.closing = true;
	streams_activate(&fx.s, 1, "the test");
	assert_int_equal(fx.stopped, 0);
	assert_int_equal(fx.s.streams.n_connected, STREAMS);
}

/* At the receiver: the stream that the sender has reset is no failure of the connection. */
static void reset_streams_have_left(void **state)
{
	struct ptcp_err why = { PTCP_ECONNECT, 0, "reset" };

	(void)state;
	begin(false);
	fx.s.streams.n_active = fx.s.streams.n_reported = 1;
	streams_lost(&fx.s, &fx.stream[3], &why);
	assert_int_equal(fx.stopped, 1 << 3);
	assert_int_equal(fx.s.slot[3].retries, 0);
	assert_int_equal(fx.s.streams.join_why.code, 0);
	streams_lost(&fx.s, &fx.stream[0], &why);
	assert_int_equal(fx.s.slot[0].retries, 1);
	assert_int_equal(fx.s.streams.join_why.code, PTCP_ECONNECT);
}

static void on_due(struct msg *m)
{
	(void)m;
	fx.s.due_posted = false;
	pump(&fx.s);
}

/* Reports of movers wait for the end of the turn of the loop, those of streams of this host do not. */
static void reports_of_movers_gather(void **state)
{
	static const struct stream_kind kind = { .send = NULL };
	unsigned turn;

	(void)state;
	begin(true);
	assert_int_equal(loop_new(&fx.host.control, NULL), 0);
	fx.s.due.run = on_due;
	session_reported(&fx.s, &fx.stream[0]);
	session_reported(&fx.s, &fx.stream[1]);
	assert_int_equal(fx.pumped, 2);
	fx.stream[2].kind = fx.stream[3].kind = &kind;
	for (turn = 1; turn <= 2; turn++) {
		session_reported(&fx.s, &fx.stream[2]);
		session_reported(&fx.s, &fx.stream[3]);
		session_reported(&fx.s, &fx.stream[2]);
		assert_int_equal(fx.pumped, 2 + turn - 1);
		loop_run_once(fx.host.control, true);
		assert_int_equal(fx.pumped, 2 + turn);
	}
	loop_free(fx.host.control);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(slow_streams_are_reset),
		cmocka_unit_test(other_sessions_drain), cmocka_unit_test(reset_streams_have_left),
		cmocka_unit_test(reports_of_movers_gather) };

	return cmocka_run_group_tests_name("session/stream_set", tests, NULL, NULL);
}
