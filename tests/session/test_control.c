/* The control connection and its successors: which channel is read, written and freed when. The test plays channels and
 * the engine; tests/engine/test_control_replay.c has the cases of the replay. */
#include "session/session_impl.h"

#include "core/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OUT_BYTES 100000

struct chan {
	uint8_t out[OUT_BYTES], in[64];
	size_t out_n, room, in_n, in_at;
	bool freed, detached, broken;
	const struct chan_ops *ops;
	void *arg;
};

struct engine {
	struct outbox out;
	uint64_t linger_ns;
	struct mono last_input;
	size_t input;
	unsigned closed;
	struct ptcp_err failed;
};

static struct {
	struct session s;
	struct context host;
	struct engine engine;
	struct paths paths;
	struct wire_open open;
	struct chan *chan[4];
	unsigned n_chans, n_pumps;
	unsigned n_lent, n_reclaimed;
	bool reset;
} fx;

/* ---- Channels and engine ---- */

void chan_free(struct chan *c)
{
	if (c == NULL)
		return;
	assert_false(c->freed);
	c->freed = true;
}

void chan_detach(struct chan *c) { c->detached = true; }

int chan_attach(struct chan *c, struct loop *l, const struct chan_ops *ops, void *arg, struct ptcp_err *e)
{
	(void)l;
	assert_false(c->freed);
	if (c->broken)
		return err_set(e, PTCP_EIO, "no loop");
	c->detached = false;
	c->ops = ops;
	c->arg = arg;
	return 0;
}

size_t chan_read(struct chan *c, void *p, size_t n)
{
	n = n < c->in_n - c->in_at ? n : c->in_n - c->in_at;
	memcpy(p, c->in + c->in_at, n);
	c->in_at += n;
	return n;
}

size_t chan_write(struct chan *c, const void *p, size_t n)
{
	assert_true(!c->freed && !c->detached);
	n = n < c->room ? n : c->room;
	memcpy(c->out + c->out_n, p, n);
	c->out_n += n;
	c->room -= n;
	return n;
}

void chan_flush(struct chan *c) { assert_false(c->freed); }
int chan_fd(const struct chan *c) { return c->freed ? -1 : 7; }
void sock_reset_on_close(int fd) { fx.reset = fd == 7; }

uint64_t engine_linger_ns(const struct engine *s) { return s->linger_ns; }
static void on_outage(struct session *sess, bool begins)
{
	assert_ptr_equal(sess, &fx.s);
	fx.n_lent += begins;
	fx.n_reclaimed += !begins;
}

static const struct payload_ops payload = { .outage = on_outage };
int tcpinfo_read(struct tcpinfo *out, int fd) { return out == NULL || fd < 0 ? -1 : -1; }
struct outbox *engine_outbox(struct engine *s) { return &s->out; }
struct mono engine_last_input(const struct engine *s) { return s->last_input; }
void engine_fail(struct engine *s, const struct ptcp_err *why) { s->failed = *why; }

void engine_closed(struct engine *s, const struct ptcp_err *why)
{
	(void)why;
	s->closed++;
}

void engine_input(struct engine *s, const uint8_t *p, size_t n, struct mono now)
{
	(void)p;
	(void)now;
	s->input += n;
}

bool mux_is_between(const struct mux *m) { return m == NULL; }
bool mux_has_pending(const struct mux *m) { return m != NULL; }
void mux_input(struct mux *m, struct chan *c) { (void)m, (void)c; }
bool mux_output(struct mux *m, struct chan *c) { return m == NULL && c == NULL; }

/* The last attempt that was reported. */
static unsigned attempt;
static char attempt_why[100];

static void on_reconnecting(void *arg, unsigned n, uint64_t wait_ns, const char *why)
{
	(void)arg;
	assert_true(wait_ns < 100 * NS_PER_S);
	attempt = n;
	snprintf(attempt_why, sizeof attempt_why, "%s", why);
}

static const struct session_ops session_ops = { .reconnecting = on_reconnecting };

static void pump(struct session *sess)
{
	assert_ptr_equal(sess, &fx.s);
	fx.n_pumps++;
}

/* ---- A running starter over three paths ---- */

static struct chan *new_chan(void)
{
	struct chan *c = calloc(1, sizeof *c);

	c->room = OUT_BYTES;
	return fx.chan[fx.n_chans++] = c;
}

static int setup(void **state)
{
	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.engine.linger_ns = 600 * NS_PER_S;
	fx.engine.last_input = mono_now();
	fx.paths.n = 3;
	fx.s.o = (struct session_opts){ .host = &fx.host, .connects = true, .open = &fx.open, .paths = &fx.paths,
		.ops = &session_ops };
	attempt = 0;
	fx.s.engine = &fx.engine;
	fx.s.pump = pump;
	fx.s.payload = &payload;
	fx.s.running = true;
	fx.s.control.quiet_ns = 3 * NS_PER_S;
	fx.s.control.return_by = MONO_NEVER;
	fx.s.control.chan = new_chan();
	control_replay_init(&fx.s.control.replay, true, 0, 3, fx.engine.last_input);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	control_replay_fini(&fx.s.control.replay);
	buf_fini(&fx.engine.out.b);
	while (fx.n_chans > 0)
		free(fx.chan[--fx.n_chans]);
	return 0;
}

static void sends(size_t n)
{
	memset(outbox_room(&fx.engine.out, n), 'x', n);
	outbox_added(&fx.engine.out, n);
	control_flush(&fx.s);
}

static void answers(struct chan *c, uint64_t bytes)
{
	struct wire_control_ack f = { bytes };

	c->in_n += wire_control_ack_encode(c->in + c->in_n, &f);
	c->ops->readable(c->arg);
}

static struct chan *successor(void)
{
	struct chan *c = new_chan();

	control_take(&fx.s, c);
	return c;
}

/* ---- Cases ---- */

static void without_replay(void **state)
{
	(void)state;
	fx.engine.linger_ns = 0;
	sends(1000);
	assert_int_equal(fx.chan[0]->out_n, 1000);
	assert_int_equal(buf_len(&fx.s.control.replay.retained), 0);
	assert_false(control_may_resume(&fx.s));
}

static void retransmits_on_the_successor(void **state)
{
	struct chan *c;

	(void)state;
	fx.chan[0]->room = 700;
	sends(1000);
	assert_int_equal(buf_len(&fx.engine.out.b), 300); /* for later */
	c = successor();
	assert_true(fx.chan[0]->freed);
	assert_null(fx.s.control.chan);
	assert_ptr_equal(fx.s.control.successor, c);
	assert_int_equal(c->out_n, WIRE_CONTROL_ACK_MAX_BYTES);
	control_flush(&fx.s); /* not before the peer's answer */
	answers(c, 600);
	assert_ptr_equal(fx.s.control.chan, c);
	assert_ptr_equal(c->ops, &control_ops);
	assert_null(fx.s.control.successor);
	control_flush(&fx.s);
	assert_int_equal(c->out_n, WIRE_CONTROL_ACK_MAX_BYTES + 100 + 300);
	assert_int_equal(buf_len(&fx.engine.out.b), 0);
	assert_int_equal(fx.engine.failed.code, 0);
	assert_true(fx.n_pumps > 0);
	assert_int_equal(fx.n_lent, 0);
	assert_int_equal(fx.n_reclaimed, 1);
}

static void answer_in_pieces(void **state)
{
	struct wire_control_ack f = { 0 };
	struct chan *c = successor();
	size_t n = wire_control_ack_encode(c->in, &f);

	(void)state;
	while (c->in_n < n) {
		assert_ptr_equal(fx.s.control.successor, c);
		c->in_n++;
		c->ops->readable(c->arg);
	}
	assert_ptr_equal(fx.s.control.chan, c);
}

/* A close in an outage would arrive after it, and then end the session of a client that is slow to return. */
static void silent_connection_is_reset(void **state)
{
	(void)state;
	control_pump(&fx.s, mono_add_ns(fx.engine.last_input, 4 * NS_PER_S));
	assert_true(fx.chan[0]->freed);
	assert_true(fx.reset);
}

static void wrong_answers(void **state)
{
	struct chan *c = successor();

	(void)state;
	c->in[0] = WIRE_PING;
	c->in_n = WIRE_CONTROL_ACK_MAX_BYTES;
	c->ops->readable(c->arg);
	assert_true(c->freed);
	assert_true(fx.s.control.chan == NULL && fx.s.control.successor == NULL);
	assert_true(control_wants_successor(&fx.s));
	c = successor();
	c->ops->closed(c->arg, NULL);
	assert_true(c->freed);
	assert_int_equal(fx.engine.failed.code, 0);
	c = successor();
	answers(c, 1); /* nothing was sent: the session fails, and the successor carries the reason */
	assert_ptr_equal(fx.s.control.chan, c);
	assert_int_equal(fx.engine.failed.code, PTCP_EPROTO);
}

static void no_loop_takes_it(void **state)
{
	struct chan *c = new_chan();

	(void)state;
	c->broken = true;
	control_take(&fx.s, c);
	assert_true(c->freed);
	assert_null(fx.s.control.successor);
	c = successor();
	c->broken = true;
	answers(c, 0);
	assert_true(c->freed);
	assert_null(fx.s.control.chan);
	assert_int_equal(fx.engine.failed.code, PTCP_EIO);
}

static void not_taken(void **state)
{
	struct chan *c;

	(void)state;
	fx.s.end.failed = true;
	c = successor();
	assert_true(c->freed);
	assert_null(fx.s.control.successor);
	assert_false(fx.chan[0]->freed);
}

static void closed(bool in_good_order)
{
	struct ptcp_err why = { .code = PTCP_EPEER, .msg = "reset" };

	chan_detach(fx.chan[0]);
	chan_attach(fx.chan[0], NULL, &control_ops, &fx.s, NULL);
	control_ops.closed(&fx.s, in_good_order ? NULL : &why);
	assert_true(fx.chan[0]->freed);
	assert_null(fx.s.control.chan);
	assert_int_equal(session_control_fd(&fx.s), -1);
}

static void a_lost_connection(void **state)
{
	(void)state;
	assert_int_equal(session_control_fd(&fx.s), 7);
	closed(false);
	assert_int_equal(fx.engine.closed, 0);
	assert_true(control_wants_successor(&fx.s));
	assert_int_equal(attempt, 1);
	assert_string_equal(attempt_why, "reset");
	assert_int_equal(fx.s.control.replay.path, 1);
	assert_int_equal(fx.n_lent, 1);
	assert_int_equal(fx.n_reclaimed, 0);
}

static void closed_in_good_order(void **state)
{
	(void)state;
	closed(true);
	assert_int_equal(fx.engine.closed, 1);
	assert_false(control_wants_successor(&fx.s));
	assert_int_equal(fx.n_lent, 0);
}

static void a_dead_connection(void **state)
{
	struct mono late = mono_add_ns(fx.engine.last_input, 3 * NS_PER_S);

	(void)state;
	assert_int_equal(control_deadline(&fx.s).ns, late.ns);
	control_pump(&fx.s, (struct mono){ late.ns - 1 });
	assert_false(fx.chan[0]->freed);
	control_pump(&fx.s, late);
	assert_true(fx.chan[0]->freed);
	assert_true(control_wants_successor(&fx.s));
}

static void no_successor(void **state)
{
	struct connect_result r = { .cause = CONNECT_UNREACHABLE, .why = { .code = PTCP_ECONNECT, .msg = "refused" } };

	(void)state;
	closed(false);
	control_failed(&fx.s, &r);
	assert_int_equal(fx.engine.failed.code, 0);
	r.cause = CONNECT_REFUSED;
	control_failed(&fx.s, &r);
	assert_int_equal(fx.engine.failed.code, PTCP_EPEER);
}

/* The address may be another host's by now; the transfer ends once the name, too, leads to another identity. */
static void another_identity(void **state)
{
	struct connect_result r = { .cause = CONNECT_IDENTITY, .why = { .code = PTCP_EREFUSED, .msg = "another" } };

	(void)state;
	fx.s.control.replay.n_paths = 1;
	closed(false);
	fx.s.slot[SLOT_CONTROL].attempt.by_name = true; /* the next attempt */
	control_failed(&fx.s, &r);
	assert_int_equal(fx.engine.failed.code, 0);
	fx.s.slot[SLOT_CONTROL].attempt.by_name = false;
	control_failed(&fx.s, &r);
	assert_int_equal(fx.engine.failed.code, PTCP_EREFUSED);
}

/* An ephemeral server is gone after the session's end. */
static void an_ephemeral_server_is_gone(void **state)
{
	static struct receive_side *receives = (struct receive_side *)1; /* only compared with NULL */
	struct connect_result r = { .cause = CONNECT_UNREACHABLE, .why = { .code = PTCP_ECONNECT, .msg = "refused" } };

	(void)state;
	fx.s.o.once = fx.s.end.over = true;
	fx.s.receive = receives;
	closed(false);
	assert_true(control_wants_successor(&fx.s));
	control_failed(&fx.s, &r);
	assert_false(control_wants_successor(&fx.s));
}

static void counts_what_it_reads(void **state)
{
	(void)state;
	fx.chan[0]->in_n = 40;
	control_ops.readable(&fx.s);
	assert_int_equal(fx.engine.input, 40);
	assert_int_equal(fx.s.control.replay.received, 40);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(without_replay), test(retransmits_on_the_successor), test(answer_in_pieces),
		test(silent_connection_is_reset), test(wrong_answers),
		test(no_loop_takes_it), test(not_taken), test(a_lost_connection), test(closed_in_good_order),
		test(a_dead_connection), test(no_successor), test(another_identity),
		test(an_ephemeral_server_is_gone), test(counts_what_it_reads),
	};

	return cmocka_run_group_tests_name("session/control", tests, NULL, NULL);
}
