/* The control connection's successors: what the peer may not have got is kept, and sent again on the next connection,
 * nothing twice and nothing out of order. What lies around it (channels, engine, party) is played here. */
#include "session/session_impl.h"

#include "core/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST (9u << 20)
#define KEPT_MOST (8u << 20)
#define TELL (32u << 10)
#define SECOND NS_PER_S

/* ---- What it works with ---- */

struct chan {
	uint8_t *out;
	size_t out_n, room;      /* what it was given; of which it takes so much more */
	uint8_t in[64];
	size_t in_n, in_at;
	bool freed, departed, lame;
	const struct chan_ops *ops;
	void *arg;
};

struct engine {
	struct outbox out;
	bool returns;
	struct mono heard;
};

static struct {
	struct session p;
	struct context host;
	struct engine engine;
	struct paths paths;
	struct wire_open open;
	struct send_side snd;
	struct receive_side rcv;
	struct chan chan[4];
	unsigned n_chans, n_pumps, n_joins;
	struct ptcp_err failed;
} fx;

const struct chan_ops session_control_ops;

void chan_free(struct chan *c)
{
	if (c != NULL) {
		assert_false(c->freed);
		c->freed = true;
	}
}

void chan_detach(struct chan *c) { c->departed = true; }

int chan_attach(struct chan *c, struct loop *l, const struct chan_ops *ops, void *arg, struct ptcp_err *e)
{
	(void)l;
	assert_true(c->departed && !c->freed);
	if (c->lame)
		return err_set(e, PTCP_EIO, "no loop for it");
	c->departed = false;
	c->ops = ops;
	c->arg = arg;
	return 0;
}

size_t chan_read(struct chan *c, void *buf, size_t n)
{
	n = n < c->in_n - c->in_at ? n : c->in_n - c->in_at;
	memcpy(buf, c->in + c->in_at, n);
	c->in_at += n;
	return n;
}

size_t chan_write(struct chan *c, const void *p, size_t n)
{
	assert_true(!c->freed && !c->departed);
	n = n < c->room ? n : c->room;
	assert_true(c->out_n + n <= MOST);
	memcpy(c->out + c->out_n, p, n);
	c->out_n += n;
	c->room -= n;
	return n;
}

void chan_flush(struct chan *c) { assert_false(c->freed); }

bool engine_replays(const struct engine *s) { return s->returns; }
struct outbox *engine_outbox(struct engine *s) { return &s->out; }
struct mono engine_last_heard(const struct engine *s) { return s->heard; }

void session_pump(struct session *p)
{
	assert_ptr_equal(p, &fx.p);
	fx.n_pumps++;
}

void session_fail(struct session *p, const struct ptcp_err *why)
{
	assert_int_equal(fx.failed.code, 0);
	fx.failed = *why;
	p->failed = true;
}

void stream_connect_control(struct session *p, struct mono now)
{
	(void)now;
	assert_null(p->control);
	fx.n_joins++;
}

/* ---- A party that runs ---- */

static struct chan *new_chan(void)
{
	struct chan *c = &fx.chan[fx.n_chans++];

	c->out = malloc(MOST);
	c->room = MOST;
	return c;
}

static int setup(void **state)
{
	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.engine.returns = true;
	fx.engine.heard = mono_now();
	fx.paths.n = 3;
	fx.p.o = (struct session_opts){ .host = &fx.host, .connects = true, .open = &fx.open, .paths = &fx.paths };
	fx.p.engine = &fx.engine;
	fx.p.running = true;
	fx.p.control = new_chan();
	fx.p.control_replay.since = mono_now();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	control_replay_fini(&fx.p);
	buf_fini(&fx.engine.out.b);
	while (fx.n_chans > 0)
		free(fx.chan[--fx.n_chans].out);
	return 0;
}

/* Byte i of all that the party sends. */
static uint8_t byte_at(size_t i) { return (uint8_t)(i % 253); }

static size_t send_bytes(size_t from, size_t n)
{
	uint8_t *p = malloc(n);
	size_t i, took;

	for (i = 0; i < n; i++)
		p[i] = byte_at(from + i);
	took = control_replay_write(&fx.p, p, n);
	free(p);
	return took;
}

static void was_sent(const struct chan *c, size_t at, size_t from, size_t n)
{
	size_t i;

	assert_true(c->out_n >= at + n);
	for (i = 0; i < n; i++)
		assert_int_equal(c->out[at + i], byte_at(from + i));
}

static void heard_frame(struct chan *c, uint64_t bytes)
{
	struct wire_control_ack f = { bytes };

	c->in_n += wire_control_ack_encode(c->in + c->in_n, &f);
}

/* The next connection, on which the peer says how far it has heard. */
static struct chan *comes_back(uint64_t peer_heard)
{
	struct chan *c = new_chan();

	control_replay_take(&fx.p, c);
	assert_ptr_equal(fx.p.control_replay.chan, c);
	heard_frame(c, peer_heard);
	c->ops->readable(c->arg);
	return c;
}

static uint64_t heard_in(const uint8_t *p, size_t n)
{
	struct wire_header h;
	struct wire_control_ack f;

	assert_int_equal(n, WIRE_CONTROL_ACK_MAX_BYTES);
	assert_int_equal(wire_header_decode(&h, p, NULL), 0);
	assert_int_equal(h.type, WIRE_CONTROL_ACK);
	assert_int_equal(wire_control_ack_decode(&f, (struct span){ p + WIRE_HEADER_BYTES, h.length }, NULL), 0);
	return f.bytes;
}

/* ---- Keeping ---- */

static void not_agreed(void **state)
{
	(void)state;
	fx.engine.returns = false;
	assert_false(control_replay_may(&fx.p));
	assert_int_equal(send_bytes(0, 1000), 1000);
	assert_int_equal(buf_len(&fx.p.control_replay.kept), 0);
	control_replay_heard(&fx.p, 10 * TELL);
	assert_int_equal(buf_len(&fx.engine.out.b), 0);
}

static void kept_until_heard(void **state)
{
	struct control_replay *r = &fx.p.control_replay;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(send_bytes(0, 1000), 1000);
	fx.chan[0].room = 500;
	assert_int_equal(send_bytes(1000, 800), 500);
	was_sent(&fx.chan[0], 0, 0, 1500);
	assert_int_equal(buf_len(&r->kept), 1500);
	assert_int_equal(control_replay_told(&fx.p, 600, NULL), 0);
	assert_int_equal(buf_len(&r->kept), 900);
	assert_int_equal(*(const uint8_t *)buf_head(&r->kept), byte_at(600));
	assert_int_equal(control_replay_told(&fx.p, 599, &e), PTCP_EPROTO);  /* it has gone back */
	assert_int_equal(control_replay_told(&fx.p, 1501, &e), PTCP_EPROTO); /* that was never sent */
	assert_int_equal(control_replay_told(&fx.p, UINT64_MAX, &e), PTCP_EPROTO);
	assert_int_equal(buf_len(&r->kept), 900);
	assert_int_equal(control_replay_told(&fx.p, 1500, NULL), 0);
	assert_int_equal(buf_len(&r->kept), 0);
}

/* A peer that never says what it has heard costs so much memory and no more. */
static void kept_no_further(void **state)
{
	(void)state;
	assert_int_equal(send_bytes(0, MOST), KEPT_MOST);
	assert_int_equal(send_bytes(KEPT_MOST, 1), 0);
	assert_int_equal(control_replay_told(&fx.p, 10, NULL), 0);
	assert_int_equal(send_bytes(KEPT_MOST, 100), 10);
	was_sent(&fx.chan[0], 0, 0, KEPT_MOST + 10);
}

static void tells(void **state)
{
	struct buf *b = &fx.engine.out.b;

	(void)state;
	fx.p.running = false;
	control_replay_heard(&fx.p, TELL); /* counted from the beginning, told once it runs */
	assert_int_equal(buf_len(b), 0);
	fx.p.running = true;
	control_replay_heard(&fx.p, 1);
	assert_int_equal(heard_in(buf_head(b), buf_len(b)), TELL + 1);
	buf_consume(b, buf_len(b));
	control_replay_heard(&fx.p, TELL - 1);
	assert_int_equal(buf_len(b), 0);
	control_replay_heard(&fx.p, 1);
	assert_int_equal(heard_in(buf_head(b), buf_len(b)), 2 * TELL + 1);
}

/* ---- The next connection ---- */

static void goes_on(void **state)
{
	struct chan *c;

	(void)state;
	send_bytes(0, 1000);
	assert_int_equal(control_replay_told(&fx.p, 300, NULL), 0);
	control_replay_heard(&fx.p, 77);
	c = comes_back(400);
	assert_true(fx.chan[0].freed);
	assert_ptr_equal(fx.p.control, c);
	assert_null(fx.p.control_replay.chan);
	assert_ptr_equal(c->ops, &session_control_ops);
	assert_int_equal(heard_in(c->out, c->out_n), 77);
	c->out_n = 0;
	c->room = 250; /* what is to be sent again comes first, however little is taken at a time */
	assert_int_equal(send_bytes(1000, 50), 0);
	c->room = 360;
	assert_int_equal(send_bytes(1000, 50), 10);
	c->room = MOST;
	assert_int_equal(send_bytes(1010, 40), 40);
	was_sent(c, 0, 400, 650);
	assert_int_equal(c->out_n, 650);
	assert_int_equal(control_replay_told(&fx.p, 1050, NULL), 0);
	assert_int_equal(fx.failed.code, 0);
}

/* While it sends again, the peer cannot have heard what has not been sent again yet. */
static void not_heard_yet(void **state)
{
	struct ptcp_err e;
	struct chan *c;

	(void)state;
	send_bytes(0, 1000);
	c = comes_back(0);
	c->room = 100;
	assert_int_equal(control_replay_write(&fx.p, NULL, 0), 0);
	assert_int_equal(control_replay_told(&fx.p, 101, &e), PTCP_EPROTO);
	assert_int_equal(control_replay_told(&fx.p, 100, NULL), 0);
}

/* It is lost as well, before all has been sent again. */
static void again_and_again(void **state)
{
	struct chan *c;

	(void)state;
	send_bytes(0, 1000);
	c = comes_back(100);
	c->room = 300;
	assert_int_equal(send_bytes(1000, 10), 0);
	c = comes_back(250);
	c->out_n = 0;
	assert_int_equal(send_bytes(1000, 10), 10);
	was_sent(c, 0, 250, 760);
}

static void in_pieces(void **state)
{
	struct chan *c = new_chan();
	size_t whole, i;

	(void)state;
	send_bytes(0, 10);
	control_replay_take(&fx.p, c);
	heard_frame(c, 10);
	for (whole = c->in_n, i = 1; i <= whole; i++) {
		assert_ptr_equal(fx.p.control_replay.chan, c);
		c->in_n = i;
		c->ops->readable(c->arg);
	}
	assert_ptr_equal(fx.p.control, c);
	assert_int_equal(buf_len(&fx.p.control_replay.kept), 0);
}

static void lies(void **state)
{
	(void)state;
	send_bytes(0, 1000);
	comes_back(1001);
	assert_int_equal(fx.failed.code, PTCP_EPROTO);
}

/* Another one may come in its place. */
static void nonsense(void **state)
{
	struct chan *c = new_chan();

	(void)state;
	send_bytes(0, 1000);
	control_replay_take(&fx.p, c);
	heard_frame(c, 10);
	c->in[0] = WIRE_PING;
	c->ops->readable(c->arg);
	assert_true(c->freed);
	assert_null(fx.p.control);
	assert_int_equal(fx.failed.code, 0);
	c = new_chan();
	control_replay_take(&fx.p, c);
	c->ops->closed(c->arg, NULL);
	assert_true(c->freed);
	c = comes_back(1000);
	assert_ptr_equal(fx.p.control, c);
}

static void without_a_loop(void **state)
{
	struct chan *c = new_chan();

	(void)state;
	control_replay_take(&fx.p, c);
	c->lame = true;
	heard_frame(c, 0);
	c->ops->readable(c->arg);
	assert_true(c->freed);
	assert_int_equal(fx.failed.code, PTCP_EIO);
}

/* ---- Who may ---- */

static void refused(struct chan *c)
{
	assert_false(control_replay_may(&fx.p));
	control_replay_take(&fx.p, c);
	assert_true(c->freed);
	assert_null(fx.p.control_replay.chan);
	assert_false(fx.chan[0].freed);
	c->freed = false;
}

static void whoever_may_not(void **state)
{
	struct chan *c = new_chan();

	(void)state;
	assert_true(control_replay_may(&fx.p));
	fx.p.running = false;
	refused(c);
	fx.p.running = true;
	fx.p.failed = true;
	refused(c);
	fx.p.failed = false;
	fx.p.told_gone = true;
	refused(c);
	fx.p.told_gone = false;
	fx.p.over = true;
	fx.p.send = &fx.snd;
	refused(c); /* a sender that is over has heard the last word; */
	fx.p.send = NULL;
	fx.p.receive = &fx.rcv;
	assert_true(control_replay_may(&fx.p)); /* who receives may not have been heard */
	fx.p.receive = NULL;
}

/* ---- The starter ---- */

static void silence(void **state)
{
	struct mono from = mono_now(), late;

	(void)state;
	fx.engine.heard = fx.p.control_replay.since = from;
	late = mono_add_ns(from, SESSION_QUIET_NS);
	assert_int_equal(control_replay_deadline(&fx.p).ns, late.ns);
	control_replay_pump(&fx.p, mono_add_ns(from, SESSION_QUIET_NS - 1));
	assert_false(fx.chan[0].freed);
	fx.engine.heard = mono_add_ns(from, SECOND); /* any sign of life puts it off */
	control_replay_pump(&fx.p, late);
	assert_false(fx.chan[0].freed);
	control_replay_pump(&fx.p, mono_add_ns(late, SECOND));
	assert_true(fx.chan[0].freed);
	assert_int_equal(fx.n_joins, 1);
	assert_int_equal(fx.p.control_replay.path, 1);
	assert_int_equal(control_replay_deadline(&fx.p).ns, MONO_NEVER.ns);
	control_replay_pump(&fx.p, mono_add_ns(late, SECOND));
	assert_int_equal(fx.n_joins, 2); /* as often as it is asked: stream_connect.c keeps the time */
}

/* One that is there, but whose peer does not say where to go on. */
static void mute(void **state)
{
	struct chan *c = new_chan();

	(void)state;
	control_replay_take(&fx.p, c);
	fx.p.control_replay.since = (struct mono){ 1000 };
	assert_int_equal(control_replay_deadline(&fx.p).ns, 1000 + 3 * SECOND);
	control_replay_pump(&fx.p, (struct mono){ 999 + 3 * SECOND });
	assert_false(c->freed);
	assert_int_equal(fx.n_joins, 0);
	control_replay_pump(&fx.p, (struct mono){ 1000 + 3 * SECOND });
	assert_true(c->freed);
	assert_int_equal(fx.n_joins, 1);
}

static void path_by_path(void **state)
{
	struct ptcp_err why = { .code = PTCP_ECONNECT };

	(void)state;
	control_replay_lost(&fx.p, "cut");
	control_replay_failed(&fx.p, &why, false);
	assert_int_equal(fx.p.control_replay.path, 2);
	control_replay_failed(&fx.p, &why, false);
	assert_int_equal(fx.p.control_replay.path, 0);
	assert_true(control_replay_may(&fx.p));
	assert_int_equal(fx.failed.code, 0);
	control_replay_failed(&fx.p, &why, true); /* the peer is there, and the session is not */
	assert_int_equal(fx.failed.code, PTCP_EPEER);
	fx.p.failed = false;
	assert_false(control_replay_may(&fx.p)); /* nor will it be */
}

/* An acceptor waits for who comes. */
static void the_acceptor_waits(void **state)
{
	(void)state;
	fx.p.o.open = NULL;
	fx.p.o.connects = false;
	control_replay_pump(&fx.p, mono_add_ns(mono_now(), 3600 * SECOND));
	assert_false(fx.chan[0].freed);
	assert_int_equal(fx.n_joins, 0);
	assert_int_equal(control_replay_deadline(&fx.p).ns, MONO_NEVER.ns);
	control_replay_lost(&fx.p, "cut");
	assert_int_equal(fx.p.control_replay.path, 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(not_agreed), test(kept_until_heard), test(kept_no_further), test(tells),
		test(goes_on), test(not_heard_yet), test(again_and_again), test(in_pieces), test(lies), test(nonsense),
		test(without_a_loop), test(whoever_may_not),
		test(silence), test(mute), test(path_by_path), test(the_acceptor_waits),
	};

	return cmocka_run_group_tests_name("lib/returning", tests, NULL, NULL);
}
