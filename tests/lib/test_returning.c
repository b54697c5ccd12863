/* The control connection's successors: what the peer may not have got is kept, and sent again on the next connection,
 * nothing twice and nothing out of order. What lies around it (channels, engine, party) is played here. */
#include "lib/party_impl.h"

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

struct session {
	struct outbox out;
	bool returns;
	struct mono heard;
};

static struct {
	struct party p;
	struct host host;
	struct session session;
	struct paths paths;
	struct wire_open open;
	struct sending snd;
	struct receiving rcv;
	struct chan chan[4];
	unsigned n_chans, n_pumps, n_joins;
	struct ptcp_err failed;
} fx;

const struct chan_ops party_control_ops;

void chan_free(struct chan *c)
{
	if (c != NULL) {
		assert_false(c->freed);
		c->freed = true;
	}
}

void chan_depart(struct chan *c) { c->departed = true; }

int chan_arrive(struct chan *c, struct loop *l, const struct chan_ops *ops, void *arg, struct ptcp_err *e)
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

bool session_returns(const struct session *s) { return s->returns; }
struct outbox *session_outbox(struct session *s) { return &s->out; }
struct mono session_heard(const struct session *s) { return s->heard; }

void party_pump(struct party *p)
{
	assert_ptr_equal(p, &fx.p);
	fx.n_pumps++;
}

void party_fail(struct party *p, const struct ptcp_err *why)
{
	assert_int_equal(fx.failed.code, 0);
	fx.failed = *why;
	p->failed = true;
}

void joining_control(struct party *p, struct mono now)
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
	fx.session.returns = true;
	fx.session.heard = mono_now();
	fx.paths.n = 3;
	fx.p.o = (struct party_opts){ .host = &fx.host, .connects = true, .open = &fx.open, .paths = &fx.paths };
	fx.p.session = &fx.session;
	fx.p.running = true;
	fx.p.control = new_chan();
	fx.p.returning.since = mono_now();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	returning_fini(&fx.p);
	buf_fini(&fx.session.out.b);
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
	took = returning_write(&fx.p, p, n);
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
	struct wire_heard f = { bytes };

	c->in_n += wire_heard_encode(c->in + c->in_n, &f);
}

/* The next connection, on which the peer says how far it has heard. */
static struct chan *comes_back(uint64_t peer_heard)
{
	struct chan *c = new_chan();

	returning_take(&fx.p, c);
	assert_ptr_equal(fx.p.returning.chan, c);
	heard_frame(c, peer_heard);
	c->ops->readable(c->arg);
	return c;
}

static uint64_t heard_in(const uint8_t *p, size_t n)
{
	struct wire_header h;
	struct wire_heard f;

	assert_int_equal(n, WIRE_HEARD_MAX_BYTES);
	assert_int_equal(wire_header_decode(&h, p, NULL), 0);
	assert_int_equal(h.type, WIRE_HEARD);
	assert_int_equal(wire_heard_decode(&f, (struct span){ p + WIRE_HEADER_BYTES, h.length }, NULL), 0);
	return f.bytes;
}

/* ---- Keeping ---- */

static void not_agreed(void **state)
{
	(void)state;
	fx.session.returns = false;
	assert_false(returning_may(&fx.p));
	assert_int_equal(send_bytes(0, 1000), 1000);
	assert_int_equal(buf_len(&fx.p.returning.kept), 0);
	returning_heard(&fx.p, 10 * TELL);
	assert_int_equal(buf_len(&fx.session.out.b), 0);
}

static void kept_until_heard(void **state)
{
	struct returning *r = &fx.p.returning;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(send_bytes(0, 1000), 1000);
	fx.chan[0].room = 500;
	assert_int_equal(send_bytes(1000, 800), 500);
	was_sent(&fx.chan[0], 0, 0, 1500);
	assert_int_equal(buf_len(&r->kept), 1500);
	assert_int_equal(returning_told(&fx.p, 600, NULL), 0);
	assert_int_equal(buf_len(&r->kept), 900);
	assert_int_equal(*(const uint8_t *)buf_head(&r->kept), byte_at(600));
	assert_int_equal(returning_told(&fx.p, 599, &e), PTCP_EPROTO);  /* it has gone back */
	assert_int_equal(returning_told(&fx.p, 1501, &e), PTCP_EPROTO); /* that was never sent */
	assert_int_equal(returning_told(&fx.p, UINT64_MAX, &e), PTCP_EPROTO);
	assert_int_equal(buf_len(&r->kept), 900);
	assert_int_equal(returning_told(&fx.p, 1500, NULL), 0);
	assert_int_equal(buf_len(&r->kept), 0);
}

/* A peer that never says what it has heard costs so much memory and no more. */
static void kept_no_further(void **state)
{
	(void)state;
	assert_int_equal(send_bytes(0, MOST), KEPT_MOST);
	assert_int_equal(send_bytes(KEPT_MOST, 1), 0);
	assert_int_equal(returning_told(&fx.p, 10, NULL), 0);
	assert_int_equal(send_bytes(KEPT_MOST, 100), 10);
	was_sent(&fx.chan[0], 0, 0, KEPT_MOST + 10);
}

static void tells(void **state)
{
	struct buf *b = &fx.session.out.b;

	(void)state;
	fx.p.running = false;
	returning_heard(&fx.p, TELL); /* counted from the beginning, told once it runs */
	assert_int_equal(buf_len(b), 0);
	fx.p.running = true;
	returning_heard(&fx.p, 1);
	assert_int_equal(heard_in(buf_head(b), buf_len(b)), TELL + 1);
	buf_consume(b, buf_len(b));
	returning_heard(&fx.p, TELL - 1);
	assert_int_equal(buf_len(b), 0);
	returning_heard(&fx.p, 1);
	assert_int_equal(heard_in(buf_head(b), buf_len(b)), 2 * TELL + 1);
}

/* ---- The next connection ---- */

static void goes_on(void **state)
{
	struct chan *c;

	(void)state;
	send_bytes(0, 1000);
	assert_int_equal(returning_told(&fx.p, 300, NULL), 0);
	returning_heard(&fx.p, 77);
	c = comes_back(400);
	assert_true(fx.chan[0].freed);
	assert_ptr_equal(fx.p.control, c);
	assert_null(fx.p.returning.chan);
	assert_ptr_equal(c->ops, &party_control_ops);
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
	assert_int_equal(returning_told(&fx.p, 1050, NULL), 0);
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
	assert_int_equal(returning_write(&fx.p, NULL, 0), 0);
	assert_int_equal(returning_told(&fx.p, 101, &e), PTCP_EPROTO);
	assert_int_equal(returning_told(&fx.p, 100, NULL), 0);
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
	returning_take(&fx.p, c);
	heard_frame(c, 10);
	for (whole = c->in_n, i = 1; i <= whole; i++) {
		assert_ptr_equal(fx.p.returning.chan, c);
		c->in_n = i;
		c->ops->readable(c->arg);
	}
	assert_ptr_equal(fx.p.control, c);
	assert_int_equal(buf_len(&fx.p.returning.kept), 0);
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
	returning_take(&fx.p, c);
	heard_frame(c, 10);
	c->in[0] = WIRE_PING;
	c->ops->readable(c->arg);
	assert_true(c->freed);
	assert_null(fx.p.control);
	assert_int_equal(fx.failed.code, 0);
	c = new_chan();
	returning_take(&fx.p, c);
	c->ops->closed(c->arg, NULL);
	assert_true(c->freed);
	c = comes_back(1000);
	assert_ptr_equal(fx.p.control, c);
}

static void without_a_loop(void **state)
{
	struct chan *c = new_chan();

	(void)state;
	returning_take(&fx.p, c);
	c->lame = true;
	heard_frame(c, 0);
	c->ops->readable(c->arg);
	assert_true(c->freed);
	assert_int_equal(fx.failed.code, PTCP_EIO);
}

/* ---- Who may ---- */

static void refused(struct chan *c)
{
	assert_false(returning_may(&fx.p));
	returning_take(&fx.p, c);
	assert_true(c->freed);
	assert_null(fx.p.returning.chan);
	assert_false(fx.chan[0].freed);
	c->freed = false;
}

static void whoever_may_not(void **state)
{
	struct chan *c = new_chan();

	(void)state;
	assert_true(returning_may(&fx.p));
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
	fx.p.snd = &fx.snd;
	refused(c); /* a sender that is over has heard the last word; */
	fx.p.snd = NULL;
	fx.p.rcv = &fx.rcv;
	assert_true(returning_may(&fx.p)); /* who receives may not have been heard */
	fx.p.rcv = NULL;
}

/* ---- The starter ---- */

static void silence(void **state)
{
	struct mono from = mono_now(), late;

	(void)state;
	fx.session.heard = fx.p.returning.since = from;
	late = mono_add_ns(from, PARTY_QUIET_NS);
	assert_int_equal(returning_deadline(&fx.p).ns, late.ns);
	returning_pump(&fx.p, mono_add_ns(from, PARTY_QUIET_NS - 1));
	assert_false(fx.chan[0].freed);
	fx.session.heard = mono_add_ns(from, SECOND); /* any sign of life puts it off */
	returning_pump(&fx.p, late);
	assert_false(fx.chan[0].freed);
	returning_pump(&fx.p, mono_add_ns(late, SECOND));
	assert_true(fx.chan[0].freed);
	assert_int_equal(fx.n_joins, 1);
	assert_int_equal(fx.p.returning.path, 1);
	assert_int_equal(returning_deadline(&fx.p).ns, MONO_NEVER.ns);
	returning_pump(&fx.p, mono_add_ns(late, SECOND));
	assert_int_equal(fx.n_joins, 2); /* as often as it is asked: joining.c keeps the time */
}

/* One that is there, but whose peer does not say where to go on. */
static void mute(void **state)
{
	struct chan *c = new_chan();

	(void)state;
	returning_take(&fx.p, c);
	fx.p.returning.since = (struct mono){ 1000 };
	assert_int_equal(returning_deadline(&fx.p).ns, 1000 + 3 * SECOND);
	returning_pump(&fx.p, (struct mono){ 999 + 3 * SECOND });
	assert_false(c->freed);
	assert_int_equal(fx.n_joins, 0);
	returning_pump(&fx.p, (struct mono){ 1000 + 3 * SECOND });
	assert_true(c->freed);
	assert_int_equal(fx.n_joins, 1);
}

static void path_by_path(void **state)
{
	struct ptcp_err why = { .code = PTCP_ECONNECT };

	(void)state;
	returning_lost(&fx.p, "cut");
	returning_failed(&fx.p, &why, false);
	assert_int_equal(fx.p.returning.path, 2);
	returning_failed(&fx.p, &why, false);
	assert_int_equal(fx.p.returning.path, 0);
	assert_true(returning_may(&fx.p));
	assert_int_equal(fx.failed.code, 0);
	returning_failed(&fx.p, &why, true); /* the peer is there, and the session is not */
	assert_int_equal(fx.failed.code, PTCP_EPEER);
	fx.p.failed = false;
	assert_false(returning_may(&fx.p)); /* nor will it be */
}

/* An acceptor waits for who comes. */
static void the_acceptor_waits(void **state)
{
	(void)state;
	fx.p.o.open = NULL;
	fx.p.o.connects = false;
	returning_pump(&fx.p, mono_add_ns(mono_now(), 3600 * SECOND));
	assert_false(fx.chan[0].freed);
	assert_int_equal(fx.n_joins, 0);
	assert_int_equal(returning_deadline(&fx.p).ns, MONO_NEVER.ns);
	returning_lost(&fx.p, "cut");
	assert_int_equal(fx.p.returning.path, 0);
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
