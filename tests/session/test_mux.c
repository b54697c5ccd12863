/* Blocks and control frames on one channel: order, limits, a stream that is slow, one that goes away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/mux.h"
#include "wire/block.h"

#define BLOCK_BYTES WIRE_CHUNK_BYTES

/* One side under test: its mux, its stream's channel, and the peer's end of the control channel. */
static struct {
	struct loop *loop;
	struct mux *mux;
	struct chan *control, *peer, *stream;
	uint8_t heard[4096];       /* of control frames */
	size_t n_heard;
	unsigned pumps;
} fx;

static void on_control(void *arg, const uint8_t *p, size_t n)
{
	(void)arg;
	assert_true(fx.n_heard + n <= sizeof fx.heard);
	memcpy(fx.heard + fx.n_heard, p, n);
	fx.n_heard += n;
}

static void on_pump(void *arg)
{
	(void)arg;
	fx.pumps++;
}

static const struct mux_ops ops = { on_control, on_pump };

static void on_nothing(void *arg)
{
	(void)arg;
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	(void)arg;
	(void)why;
}

static const struct chan_ops quiet = { on_nothing, on_nothing, on_nothing, on_closed };

static int setup(void **state)
{
	struct chan_opts o = { .ops = &quiet };
	int pair[2];

	(void)state;
	memset(&fx, 0, sizeof fx);
	if (loop_new(&fx.loop, NULL) < 0 || mux_new(&fx.mux, fx.loop, &ops, NULL, NULL) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	if (chan_new(&fx.control, fx.loop, NULL, &pair[0], &o, NULL) < 0)
		return -1;
	return chan_new(&fx.peer, fx.loop, NULL, &pair[1], &o, NULL);
}

static int teardown(void **state)
{
	(void)state;
	mux_free(fx.mux);
	chan_free(fx.stream);
	chan_free(fx.control);
	chan_free(fx.peer);
	loop_free(fx.loop);
	return 0;
}

static void turn(void)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		loop_run_once(fx.loop, false);
}

static size_t ping(uint8_t *out, uint64_t tick)
{
	struct wire_ping f = { 0, tick };

	return wire_ping_encode(out, &f);
}

/* A whole BLOCK frame, its length in *n. */
static const uint8_t *block(size_t *n)
{
	static uint8_t frame[WIRE_BLOCK_HEAD_BYTES + BLOCK_BYTES + WIRE_BLOCK_END_BYTES];
	struct wire_block b = { 0x10002, 0, BLOCK_BYTES, 0, false };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 42 };

	wire_block_encode(frame, &b);
	memset(frame + WIRE_BLOCK_HEAD_BYTES, 'x', BLOCK_BYTES);
	wire_block_end_encode(frame + WIRE_BLOCK_HEAD_BYTES + BLOCK_BYTES, &end);
	*n = sizeof frame;
	return frame;
}

static void put(struct chan *c, const uint8_t *p, size_t n)
{
	unsigned patience = 1000;
	size_t done;

	for (; n > 0; p += done, n -= done) {
		done = chan_write(c, p, n);
		chan_flush(c);
		turn();
		assert_true(done > 0 || patience-- > 0);
	}
}

/* ---- From the peer */

static void control_frames_pass(void **state)
{
	uint8_t f[64];
	size_t n = ping(f, 7), i;

	(void)state;
	for (i = 0; i < n; i++) { /* in whatever pieces they come */
		put(fx.peer, f + i, 1);
		mux_input(fx.mux, fx.control);
	}
	assert_int_equal(fx.n_heard, n);
	assert_memory_equal(fx.heard, f, n);
	assert_false(mux_has_pending(fx.mux));
}

/* Until there is a stream a block is no more than any frame: the session judges it. */
static void a_block_too_early_is_the_sessions(void **state)
{
	size_t n;
	const uint8_t *b = block(&n);

	(void)state;
	put(fx.peer, b, 100);
	mux_input(fx.mux, fx.control);
	assert_int_equal(fx.n_heard, 100);
	assert_memory_equal(fx.heard, b, 100);
}

/* A stream that does not read keeps what follows waiting, in bounded memory, and nothing is lost. */
static void blocks_go_to_the_stream(void **state)
{
	static uint8_t got[4 * (BLOCK_BYTES + 100)];
	uint8_t f[64];
	size_t n, n_ping = ping(f, 9), sent = 0, total, at = 0;
	const uint8_t *b = block(&n);
	unsigned i, k;

	(void)state;
	assert_int_equal(mux_open(fx.mux, &fx.stream, NULL), 0);
	total = 4 * n;
	for (i = 0; i < 4 && !mux_has_pending(fx.mux); i++)
		for (k = 0; k < n && !mux_has_pending(fx.mux); k += 10000, sent += 10000) {
			put(fx.peer, b + k, n - k < 10000 ? n - k : 10000);
			mux_input(fx.mux, fx.control);
			if (n - k < 10000)
				sent -= 10000 - (n - k);
		}
	assert_true(mux_has_pending(fx.mux));
	assert_true(sent < total);
	assert_int_equal(fx.n_heard, 0);
	while (at < sent) {
		size_t more = chan_read(fx.stream, got + at, sizeof got - at);

		at += more;
		turn();
		mux_input(fx.mux, fx.control);
	}
	put(fx.peer, b + sent % n, sent % n > 0 ? n - sent % n : 0);
	put(fx.peer, f, n_ping);
	for (i = 0; i < 100 && fx.n_heard < n_ping; i++) {
		mux_input(fx.mux, fx.control);
		turn();
		at += chan_read(fx.stream, got + at, sizeof got - at);
	}
	assert_int_equal(fx.n_heard, n_ping);
	assert_int_equal(at % n, 0);
	for (i = 0; i < at / n; i++)
		assert_memory_equal(got + i * n, b, n);
}

/* ---- To the peer */

static void blocks_go_out_whole(void **state)
{
	static uint8_t got[BLOCK_BYTES + 200];
	size_t n, at = 0, put_in = 0;
	const uint8_t *b = block(&n);
	unsigned i;

	(void)state;
	assert_int_equal(mux_open(fx.mux, &fx.stream, NULL), 0);
	assert_true(mux_is_between(fx.mux));
	assert_false(mux_output(fx.mux, fx.control));
	put(fx.stream, b, 3); /* not even a header: a control frame may still go first */
	assert_false(mux_output(fx.mux, fx.control));
	assert_true(mux_is_between(fx.mux));
	for (put_in = 3, i = 0; i < 1000 && at < n; i++) {
		if (put_in < n)
			put_in += chan_write(fx.stream, b + put_in, n - put_in < 20000 ? n - put_in : 20000);
		chan_flush(fx.stream);
		turn();
		if (mux_output(fx.mux, fx.control))
			assert_true(mux_is_between(fx.mux));
		else
			assert_true(put_in < n || !mux_is_between(fx.mux) || at == n);
		chan_flush(fx.control);
		at += chan_read(fx.peer, got + at, sizeof got - at);
	}
	assert_int_equal(at, n);
	assert_memory_equal(got, b, n);
	assert_true(fx.pumps > 0);
}

/* The stream goes within a block: the frame ends nevertheless, and says that it means nothing. */
static void an_unfinished_block_is_void(void **state)
{
	static const size_t cuts[] = { WIRE_BLOCK_HEAD_BYTES, 100, 200000, WIRE_BLOCK_HEAD_BYTES + BLOCK_BYTES };
	static uint8_t got[BLOCK_BYTES + 200];
	struct wire_block_end end;
	size_t n, at, i;
	const uint8_t *b = block(&n);
	unsigned k;

	for (i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		assert_int_equal(mux_open(fx.mux, &fx.stream, NULL), 0);
		for (at = 0; at < cuts[i]; turn()) {
			at += chan_write(fx.stream, b + at, cuts[i] - at);
			chan_flush(fx.stream);
			mux_output(fx.mux, fx.control);
			chan_flush(fx.control);
			if (at < cuts[i])
				break; /* it takes no more, and that is where it is cut */
		}
		chan_free(fx.stream);
		fx.stream = NULL;
		for (at = 0, k = 0; k < 200 && at < n; k++) {
			turn();
			mux_output(fx.mux, fx.control);
			chan_flush(fx.control);
			at += chan_read(fx.peer, got + at, sizeof got - at);
		}
		assert_int_equal(at, n);
		assert_memory_equal(got, b, WIRE_BLOCK_HEAD_BYTES);
		assert_int_equal(wire_block_end_decode(&end, got + n - WIRE_BLOCK_END_BYTES, NULL), 0);
		assert_int_equal(end.status, WIRE_BLOCK_VOID);
		assert_true(mux_is_between(fx.mux));
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(control_frames_pass),
		T(a_block_too_early_is_the_sessions),
		T(blocks_go_to_the_stream),
		T(blocks_go_out_whole),
		T(an_unfinished_block_is_void),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
