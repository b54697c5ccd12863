/* Paths that have died without a word are given up while others bring something, and only then. What lies around it
 * (streams, engine, party) is played here, and so is the time. */
#include "session/receive_impl.h"
#include "session/send_impl.h"

#include "core/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TICK (NS_PER_S / 2) /* as often as it looks */
#define STREAMS 6           /* 0, 2, 4 on the first path, 1, 3, 5 on the second */

struct stream {
	unsigned number;
	uint64_t moved;
	bool carries;
	struct mono acked;
};

static struct {
	struct session p;
	struct context host;
	struct paths paths;
	struct send_side snd;
	struct stream stream[STREAMS];
	struct mono now;
	uint64_t patience_ns[2];     /* beyond the usual, of paths that keep to a rate */
	unsigned n_lost, looks;
	struct ptcp_err why;
} fx;

uint64_t stream_moved(const struct stream *s)
{
	fx.looks++;
	return s->moved;
}

struct snd *engine_snd(struct engine *s)
{
	(void)s;
	return NULL;
}

bool snd_stream_carries(const struct snd *s, unsigned stream)
{
	(void)s;
	return fx.stream[stream].carries;
}

struct mono snd_stream_acked(const struct snd *s, unsigned stream)
{
	(void)s;
	return fx.stream[stream].acked;
}

uint64_t path_rates_patience_ns(const struct session *p, unsigned path)
{
	assert_ptr_equal(p, &fx.p);
	return fx.patience_ns[path];
}

void session_stream_lost(struct session *p, struct stream *s, const struct ptcp_err *why)
{
	assert_ptr_equal(p->stream[s->number], s);
	p->stream[s->number] = NULL;
	p->n_up--;
	fx.n_lost++;
	fx.why = *why;
}

/* ---- A party with two paths ---- */

static int setup(void **state)
{
	unsigned i;

	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.now = (struct mono){ 1000 * NS_PER_S };
	fx.paths.n = fx.paths.n_places = 2;
	fx.paths.place[1] = 1;
	fx.paths.at[0].candidate = "relay";
	fx.paths.at[0].n_relays = 1;
	paths_deal(&fx.paths, NULL);
	fx.p.o = (struct session_opts){ .host = &fx.host, .connects = true, .paths = &fx.paths };
	fx.p.running = true;
	fx.p.n_wanted = fx.p.n_up = STREAMS;
	for (i = 0; i < STREAMS; i++) {
		fx.stream[i].number = i;
		fx.p.stream[i] = &fx.stream[i];
		fx.p.life[i].at = fx.now;
	}
	return 0;
}

/* Seconds pass; the streams of the mask bring something in each look. */
static void pass(double s, unsigned moving)
{
	struct mono end = mono_add_ns(fx.now, (uint64_t)(s * 1e9));
	unsigned i;

	while (fx.now.ns < end.ns) {
		fx.now = mono_add_ns(fx.now, TICK);
		for (i = 0; i < STREAMS; i++)
			fx.stream[i].moved += moving >> i & 1;
		dead_path_pump(&fx.p, fx.now);
	}
}

#define FIRST 0x15u
#define SECOND 0x2au

static void is_lost(unsigned path)
{
	unsigned i;

	assert_int_equal(fx.n_lost, STREAMS / 2);
	assert_int_equal(fx.why.code, PTCP_ETIMEOUT);
	assert_non_null(strstr(fx.why.msg, path == 0 ? "path relay: " : "path direct: "));
	for (i = 0; i < STREAMS; i++)
		assert_int_equal(fx.p.stream[i] == NULL, paths_of_stream(&fx.paths, i) == path);
}

/* ---- What we receive ---- */

static void the_silent_one(void **state)
{
	(void)state;
	pass(10, FIRST | SECOND);
	pass(2.5, SECOND);
	assert_int_equal(fx.n_lost, 0);
	pass(1, SECOND);
	is_lost(0);
	pass(10, SECOND);
	assert_int_equal(fx.n_lost, STREAMS / 2);
}

static void the_other_one(void **state)
{
	(void)state;
	pass(3.5, FIRST);
	is_lost(1);
}

/* A path lives by any of its streams. */
static void one_stream_is_life(void **state)
{
	(void)state;
	pass(20, FIRST | 1u << 3);
	assert_int_equal(fx.n_lost, 0);
}

/* Then it is not the path, as far as is known. */
static void all_are_silent(void **state)
{
	(void)state;
	pass(5, FIRST | SECOND);
	pass(60, 0);
	assert_int_equal(fx.n_lost, 0);
	pass(0.5, SECOND); /* the first that is back shows that the other is not */
	assert_int_equal(fx.n_lost, STREAMS / 2);
}

static void nobody_watches(void **state)
{
	(void)state;
	fx.p.o.connects = false; /* the other side makes them anew */
	pass(10, SECOND);
	assert_int_equal(dead_path_deadline(&fx.p).ns, MONO_NEVER.ns);
	fx.p.o.connects = true;
	fx.p.over = true;
	pass(10, SECOND);
	fx.p.over = false;
	fx.p.running = false;
	pass(10, SECOND);
	fx.p.running = true;
	fx.paths.n = 1;
	pass(10, SECOND);
	assert_int_equal(fx.looks, 0);
	assert_int_equal(fx.n_lost, 0);
}

static void looks_now_and_then(void **state)
{
	(void)state;
	dead_path_pump(&fx.p, fx.now);
	assert_int_equal(fx.looks, STREAMS);
	assert_int_equal(dead_path_deadline(&fx.p).ns, fx.now.ns + TICK);
	dead_path_pump(&fx.p, mono_add_ns(fx.now, TICK - 1));
	assert_int_equal(fx.looks, STREAMS);
	dead_path_pump(&fx.p, mono_add_ns(fx.now, TICK));
	assert_int_equal(fx.looks, 2 * STREAMS);
	fx.p.n_up = 0;
	assert_int_equal(dead_path_deadline(&fx.p).ns, MONO_NEVER.ns);
}

/* What relays of a path hold comes late. */
static void held(void **state)
{
	(void)state;
	fx.paths.at[0].hold_bytes = 1;
	pass(60, SECOND);
	assert_int_equal(fx.n_lost, 0);
	pass(3.5, FIRST);
	is_lost(1);
}

/* What keeps to a low rate has its time between two blocks. */
static void paced(void **state)
{
	(void)state;
	fx.patience_ns[0] = 10 * NS_PER_S;
	fx.patience_ns[1] = UINT64_MAX; /* to no rate at all: nothing is to come */
	pass(12.5, SECOND);
	assert_int_equal(fx.n_lost, 0);
	pass(60, FIRST);
	assert_int_equal(fx.n_lost, 0);
	pass(13.5, SECOND);
	is_lost(0);
}

/* ---- What we send ---- */

static int setup_sender(void **state)
{
	unsigned i;

	setup(state);
	fx.p.send = &fx.snd;
	for (i = 0; i < STREAMS; i++)
		fx.stream[i].carries = true;
	return 0;
}

/* Who has nothing to send is not silent. */
static void idle_ones(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < STREAMS; i += 2)
		fx.stream[i].carries = false;
	pass(60, SECOND);
	assert_int_equal(fx.n_lost, 0);
	fx.stream[0].carries = true; /* now one has: its time begins */
	pass(2.5, SECOND);
	fx.stream[0].acked = fx.now;
	pass(2.5, SECOND);
	assert_int_equal(fx.n_lost, 0);
}

/* Bytes that are given to the kernel are no sign that the path lives for long; acknowledged blocks are. */
static void acknowledged(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 40; i++) {
		fx.stream[1].acked = fx.stream[2].acked = fx.now;
		pass(0.5, 0);
	}
	assert_int_equal(fx.n_lost, 0);
	for (i = 0; i < 7; i++) {
		fx.stream[1].acked = fx.now;
		pass(0.5, 0);
	}
	is_lost(0);
}

#define test(f) cmocka_unit_test_setup(f, setup)
#define test_sender(f) cmocka_unit_test_setup(f, setup_sender)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_silent_one), test(the_other_one), test(one_stream_is_life), test(all_are_silent),
		test(nobody_watches), test(looks_now_and_then), test(held), test(paced),
		test_sender(idle_ones), test_sender(acknowledged),
	};

	return cmocka_run_group_tests_name("lib/stale", tests, NULL, NULL);
}
