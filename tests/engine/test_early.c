/* Early entries: a starter that sends offers its first entries right behind OPEN; the acceptor looks at them once it
 * has authorized the session. */
#include "one.h"

#include <string.h>

#include "core/err.h"

/* ---- The starter ---- */

static void early_entries_follow_open(void **state)
{
	struct wire_entry f;
	struct span p;
	struct one o;
	uint64_t id;

	(void)state;
	one_init(&o, true, true);
	id = one_offer(&o, WIRE_FILE, 1000);
	assert_int_equal(one_said(&o, &p), WIRE_HELLO);
	assert_int_equal(one_said(&o, &p), WIRE_OPEN);
	assert_int_equal(one_said(&o, &p), WIRE_ENTRY);
	assert_int_equal(wire_entry_decode(&f, p, NULL), 0);
	assert_true(f.id == id && f.size_bytes == 1000);
	one_hello(&o);
	one_opened(&o);
	one_answer(&o, id, WIRE_SEND_ALL);
	assert_int_equal(o.ended, 0);
	assert_int_equal(snd_stats(one_snd(&o)).live, 1);
	one_fini(&o);
}

/* In slots that every acceptor has; the others come with OPENED. */
static void no_more_than_every_acceptor_takes(void **state)
{
	struct one o;
	unsigned i;

	(void)state;
	one_init(&o, true, true);
	for (i = 0; i < WIRE_EARLY_ENTRIES; i++) {
		assert_true(snd_early_room(one_snd(&o), WIRE_ENTRY_BYTES(0)));
		assert_true(wire_slot(one_offer(&o, WIRE_FILE, 1000)) < WIRE_EARLY_ENTRIES);
	}
	assert_int_equal(snd_room(one_snd(&o)), 0);
	assert_false(snd_early_room(one_snd(&o), 0));
	assert_true(snd_levels(one_snd(&o)) > WIRE_EARLY_ENTRIES);
	one_hello(&o);
	assert_int_equal(snd_room(one_snd(&o)), 0);
	one_opened(&o);
	assert_int_equal(snd_room(one_snd(&o)), WIRE_SLOTS - WIRE_EARLY_ENTRIES);
	assert_int_equal(snd_levels(one_snd(&o)), WIRE_SLOTS - 64);
	assert_int_equal(wire_slot(one_offer(&o, WIRE_FILE, 1000)), WIRE_EARLY_ENTRIES);
	one_fini(&o);
}

static void no_more_bytes_than_every_acceptor_takes(void **state)
{
	static uint8_t target[WIRE_PATH_MAX];
	struct wire_entry f = one_entry(WIRE_SYMLINK, 0, 0, 0);
	size_t n = 0, before;
	struct one o;

	(void)state;
	memset(target, 't', sizeof target);
	f.target = (struct span){ target, sizeof target };
	one_init(&o, true, true);
	before = buf_len(&engine_outbox(o.s)->b);
	while (snd_early_room(one_snd(&o), WIRE_ENTRY_BYTES(0))) {
		one_offer_as(&o, &f);
		n++;
	}
	assert_int_equal(n, 3);
	assert_true(buf_len(&engine_outbox(o.s)->b) - before <= WIRE_EARLY_BYTES);
	one_fini(&o);
}

/* ---- The acceptor ---- */

static void early(struct one *o, uint64_t count, size_t target_bytes)
{
	static uint8_t target[WIRE_PATH_MAX];
	struct wire_entry f = one_entry(target_bytes > 0 ? WIRE_SYMLINK : WIRE_FILE, one_id(count, (unsigned)count - 1),
	    0, 0);

	memset(target, 't', sizeof target);
	f.size_bytes = target_bytes > 0 ? 0 : 1000;
	f.target = (struct span){ target, target_bytes };
	ONE_PUT(o, entry, &f);
}

static void authorizing(struct one *o)
{
	one_init(o, false, false);
	one_hello(o);
	one_open(o, false, true);
	one_forget(o);
}

/* Nothing happens before; then OPENED, and an answer to each in order. */
static void entries_wait_for_the_authorization(void **state)
{
	struct wire_answer a;
	struct span p;
	struct one o;
	uint64_t i;

	(void)state;
	authorizing(&o);
	for (i = 1; i <= WIRE_EARLY_ENTRIES; i++)
		early(&o, i, 0);
	assert_true(o.ended == 0 && o.cookies == 0 && engine_rcv(o.s) == NULL);
	assert_int_equal(one_said(&o, &p), 0);
	one_accept(&o);
	assert_true(o.ended == 0 && o.cookies == WIRE_EARLY_ENTRIES);
	assert_int_equal(one_said(&o, &p), WIRE_OPENED);
	for (i = 1; i <= WIRE_EARLY_ENTRIES; i++) {
		assert_int_equal(one_said(&o, &p), WIRE_ANSWER);
		assert_int_equal(wire_answer_decode(&a, p, NULL), 0);
		assert_int_equal(a.id, one_id(i, (unsigned)i - 1));
	}
	early(&o, i, 0); /* from now on without a limit */
	assert_true(o.ended == 0 && o.cookies == i);
	one_fini(&o);
}

/* As a whole, in pieces of every size: the starter's own frames. */
static void open_and_entries_in_pieces(void **state)
{
	struct one starter, o;
	const uint8_t *bytes;
	size_t n, at, piece;

	(void)state;
	for (piece = 1; piece < 400; piece += 7) {
		one_init(&starter, true, true);
		one_offer(&starter, WIRE_DIR, 0);
		one_offer(&starter, WIRE_FILE, 1000);
		one_init(&o, false, false);
		bytes = buf_head(&engine_outbox(starter.s)->b);
		n = buf_len(&engine_outbox(starter.s)->b);
		for (at = 0; at < n; at += piece)
			one_input(&o, bytes + at, n - at < piece ? n - at : piece);
		assert_true(o.opened == 1 && o.cookies == 0);
		one_accept(&o);
		assert_true(o.ended == 0 && o.cookies == 2);
		one_fini(&o);
		one_fini(&starter);
	}
}

static void too_many_entries(void **state)
{
	struct span p;
	struct one o;
	uint64_t i;

	(void)state;
	authorizing(&o);
	for (i = 1; i <= WIRE_EARLY_ENTRIES + 1; i++) {
		assert_int_equal(o.ended, 0);
		early(&o, i, 0);
	}
	assert_true(one_broke(&o) && o.cookies == 0);
	assert_true(one_found(&o, WIRE_ERROR, &p));
	one_fini(&o);
}

/* 4 frames that fill the room to the byte, or exceed it by one. */
static void too_many_bytes(void **state)
{
	size_t bytes = WIRE_EARLY_BYTES / 4 - 8 - 49 - 4;
	struct one o;
	unsigned more;
	uint64_t i;

	(void)state;
	for (more = 0; more <= 1; more++) {
		authorizing(&o);
		for (i = 1; i <= 4; i++)
			early(&o, i, i < 4 ? bytes : bytes + more);
		assert_int_equal(one_broke(&o), more);
		one_accept(&o);
		assert_int_equal(o.cookies, more ? 0 : 4);
		one_fini(&o);
	}
}

static void a_refused_session_drops_its_entries(void **state)
{
	struct ptcp_err why;
	struct span p;
	struct one o;

	(void)state;
	authorizing(&o);
	early(&o, 1, 0);
	err_set(&why, PTCP_EREFUSED, "no");
	engine_fail(o.s, &why);
	early(&o, 2, 0);
	one_accept(&o);
	assert_true(o.ended == 1 && o.cookies == 0 && o.running == 0);
	assert_true(one_said(&o, &p) == WIRE_ERROR && one_said(&o, &p) == 0);
	one_fini(&o);
}

/* What an ENTRY says counts once the session is authorized: malformed, or a slot twice. */
static void wrong_entries_break_the_session_later(void **state)
{
	static const uint8_t junk[WIRE_HEADER_BYTES + 3] = { WIRE_ENTRY, WIRE_CRITICAL, 0, 0, 0, 0, 0, 3, 1, 2, 3 };
	struct one o;
	unsigned i;

	(void)state;
	for (i = 0; i <= 1; i++) {
		authorizing(&o);
		early(&o, 1, 0);
		if (i == 0)
			one_input(&o, junk, sizeof junk);
		else
			early(&o, 1, 0);
		early(&o, 2, 0);
		assert_int_equal(o.ended, 0);
		one_accept(&o);
		assert_true(one_broke(&o) && o.cookies == 1);
		one_fini(&o);
	}
}

/* An hour in the queue: the PINGs behind early entries show that the starter lives. */
static void pings_behind_early_entries(void **state)
{
	struct wire_ping ping = { WIRE_IDLE, 0 };
	struct one o;
	int i;

	(void)state;
	authorizing(&o);
	early(&o, 1, 0);
	for (i = 0; i < 360; i++) {
		one_tick(&o, 10 * NS_PER_S);
		ping.tick++;
		ONE_PUT(&o, ping, &ping);
		assert_int_equal(o.ended, 0);
	}
	one_accept(&o);
	assert_true(o.ended == 0 && o.cookies == 1);
	one_fini(&o);
}

/* Early entries do not move the session: a starter that is silent since is given up as soon as without them. */
static void early_entries_are_no_sign_of_life_later(void **state)
{
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 1000, .quiet_ms = 1000,
		.linger_ms = 3600000, .max_entries = WIRE_SLOTS, .max_streams = 8 };
	struct one o;
	uint64_t i;

	(void)state;
	one_init_lingering(&o, false, 3600 * NS_PER_S);
	ONE_PUT(&o, hello, &h);
	one_open(&o, false, false);
	early(&o, 1, 0);
	one_accept(&o);
	assert_true(o.ended == 0 && o.cookies == 1);
	for (i = 0; i < ONE_TIMEOUT_NS / NS_PER_S; i++) {
		assert_int_equal(o.ended, 0);
		one_tick(&o, NS_PER_S);
	}
	assert_true(o.ended == 1 && o.why.code == PTCP_ETIMEOUT);
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(early_entries_follow_open),
		cmocka_unit_test(no_more_than_every_acceptor_takes),
		cmocka_unit_test(no_more_bytes_than_every_acceptor_takes),
		cmocka_unit_test(entries_wait_for_the_authorization),
		cmocka_unit_test(open_and_entries_in_pieces),
		cmocka_unit_test(too_many_entries),
		cmocka_unit_test(too_many_bytes),
		cmocka_unit_test(a_refused_session_drops_its_entries),
		cmocka_unit_test(wrong_entries_break_the_session_later),
		cmocka_unit_test(pings_behind_early_entries),
		cmocka_unit_test(early_entries_are_no_sign_of_life_later),
	};

	return cmocka_run_group_tests_name("engine/early", tests, NULL, NULL);
}
