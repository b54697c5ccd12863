/* A session that only measures: agreed, left in peace, and ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"

#define TIMEOUT_NS (12 * NS_PER_S)

struct side {
	struct engine *s;
	unsigned asked, running, ended;
	struct ptcp_err why; /* of ended; code 0: well */
};
static struct { struct side starter, acceptor; struct mono now; } w;

static void on_open(void *arg, const struct wire_open *o)
{
	struct side *side = arg;
	struct wire_opened granted = { .cipher = o->cipher, .streams = 7 };

	side->asked++;
	assert_int_equal(o->role, WIRE_ACCEPTOR_DISCARDS);
	assert_int_equal(o->streams, 10);
	engine_accept(side->s, &granted, w.now);
}

static void on_running(void *arg, const struct wire_opened *o)
{
	((struct side *)arg)->running++;
	assert_int_equal(o->streams, 7);
}

static void on_note(void *arg, const struct wire_warning *n)
{
	(void)arg;
	(void)n;
	fail();
}

static enum wire_busy on_busy(void *arg)
{
	(void)arg;
	return WIRE_IDLE;
}

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct side *side = arg;

	side->ended++;
	if (why != NULL)
		side->why = *why;
}

static const struct engine_ops ops = { .open = on_open, .running = on_running, .warning = on_note,
	.busy = on_busy, .ended = on_ended };

/* What either has said reaches the other. */
static void exchange(void)
{
	struct side *side[2] = { &w.starter, &w.acceptor };
	struct buf *b;
	int i, idle;

	for (i = idle = 0; idle < 2; i = !i) {
		b = &engine_outbox(side[i]->s)->b;
		idle = buf_len(b) == 0 ? idle + 1 : 0;
		engine_input(side[!i]->s, buf_head(b), buf_len(b), w.now);
		buf_consume(b, buf_len(b));
	}
}

static int agree(void **state)
{
	struct wire_open open = { .role = WIRE_ACCEPTOR_DISCARDS, .streams = 10 };
	struct engine_opts o = { .starter = true, .software = "test", .timeout_ns = TIMEOUT_NS,
		.max_entries = 16, .max_streams = 128, .ops = &ops, .arg = &w.starter };

	(void)state;
	memset(&w, 0, sizeof w);
	w.now.ns = NS_PER_S;
	if (engine_new(&w.starter.s, &o, &open, w.now, NULL) < 0)
		return -1;
	o.starter = false;
	o.arg = &w.acceptor;
	if (engine_new(&w.acceptor.s, &o, NULL, w.now, NULL) < 0)
		return -1;
	exchange();
	return w.starter.running == 1 && w.acceptor.running == 1 ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	engine_free(w.starter.s);
	engine_free(w.acceptor.s);
	return 0;
}

static void tick(uint64_t ns)
{
	w.now = mono_add_ns(w.now, ns);
	engine_tick(w.starter.s, w.now);
	engine_tick(w.acceptor.s, w.now);
	exchange();
}

/* Neither owes the other anything, for however long. */
static void lasts_and_ends(void **state)
{
	unsigned i;

	(void)state;
	assert_null(engine_snd(w.starter.s));
	assert_null(engine_rcv(w.acceptor.s));
	for (i = 0; i < 100; i++)
		tick(TIMEOUT_NS / 4);
	assert_int_equal(w.starter.ended + w.acceptor.ended, 0);
	engine_finish(w.starter.s);
	engine_finish(w.starter.s); /* once */
	exchange();
	assert_int_equal(w.starter.ended, 1);
	assert_int_equal(w.acceptor.ended, 1);
	assert_int_equal(w.starter.why.code, 0);
	assert_int_equal(w.acceptor.why.code, 0);
}

/* Its PINGs tell that a peer is there; without them it is given up. */
static void a_silent_peer(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++) {
		w.now = mono_add_ns(w.now, TIMEOUT_NS / 4);
		engine_tick(w.acceptor.s, w.now);
	}
	assert_int_equal(w.acceptor.ended, 1);
	assert_int_equal(w.acceptor.why.code, PTCP_ETIMEOUT);
}

static void takes_no_end_that_was_not_asked_for(void **state)
{
	struct wire_end f = { 0, 0 };
	uint8_t bytes[WIRE_END_MAX_BYTES];

	(void)state;
	engine_input(w.starter.s, bytes, wire_end_encode(bytes, &f), w.now);
	assert_int_equal(w.starter.why.code, PTCP_EPROTO);
}

static void counts_no_files(void **state)
{
	struct wire_end f = { 1, 0 };
	uint8_t bytes[WIRE_END_MAX_BYTES];

	(void)state;
	engine_input(w.acceptor.s, bytes, wire_end_encode(bytes, &f), w.now);
	assert_int_equal(w.acceptor.why.code, PTCP_EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lasts_and_ends, agree, end),
		cmocka_unit_test_setup_teardown(a_silent_peer, agree, end),
		cmocka_unit_test_setup_teardown(takes_no_end_that_was_not_asked_for, agree, end),
		cmocka_unit_test_setup_teardown(counts_no_files, agree, end),
	};
	return cmocka_run_group_tests_name("engine/measuring", tests, NULL, NULL);
}
