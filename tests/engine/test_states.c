/* Every state, role and frame: what PROTOCOL.md lists is taken, anything else ends the session with PTCP_EPROTO and a
 * reason for the peer. */
#include "one.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "wire/block.h"

#define BLOCK (256u << 10)

/* What a peer may send, as rows of the tables below name it. */
#define FRAMES(X) \
	X(HELLO) X(OPEN) X(OPENED) X(ERROR) X(PING) X(JOIN) X(JOINED) X(BLOCK) \
	X(SET_STREAMS) X(TCP_REPORT) X(CONTROL_ACK) X(RATE) X(LOAD) X(LEFTOVERS) X(SELECT) X(DELETED) \
	    X(WAITING) X(END) \
	    X(TOTALS) X(WARNING) X(WARNING_FAILED) \
	X(ALL) X(NONE) X(PARTS) X(COMPARE) X(NO_LINK) X(NEED) X(NEED_ACKED) X(NEED_BEYOND) X(HAVE) X(HAVE_PAST) \
	    X(HAVE_BEYOND) X(MATCH) X(MATCH_BEYOND) X(SPLIT) X(SPLIT_BEYOND) X(PATCH) X(PATCH_BEYOND) X(ACK) \
	    X(ACK_BEYOND) \
	X(ACK_AGAIN) X(DONE) X(FAIL) \
	X(ENTRY_NEW) X(ENTRY_SAME) X(ENTRY_NEXT) X(ENTRY_INSIDE) X(ENTRY_LINK) X(DIR_END) X(FILE_END) \
	X(HOLE) X(HOLE_HERE) X(HOLE_PAST) X(HOLE_BEYOND) X(HASHES) X(HASHES_PAST) X(PIECES) X(PIECES_FEW) \
	    X(SIZE) X(UNKNOWN)

enum frame {
#define X(name) F_##name,
	FRAMES(X)
#undef X
	N_FRAMES
};

static const char *const names[] = {
#define X(name) #name,
	FRAMES(X)
#undef X
};

static void put_blocks(struct one *o, uint64_t id, bool need, uint32_t first, uint32_t count)
{
	struct wire_blocks f = { .id = id, .first = first, .count = count };

	if (need)
		ONE_PUT(o, need, &f);
	else
		ONE_PUT(o, have, &f);
}

static void put_hole(struct one *o, uint64_t id, uint32_t first, uint32_t count)
{
	struct wire_blocks f = { .id = id, .first = first, .count = count };

	ONE_PUT(o, hole, &f);
}

static void put_match(struct one *o, uint64_t id, uint32_t first, uint32_t count)
{
	struct wire_blocks f = { .id = id, .first = first, .count = count };

	ONE_PUT(o, match, &f);
}

static void put_hashes(struct one *o, uint64_t id, uint32_t first)
{
	static const uint8_t hash[WIRE_HASH_BYTES];

	ONE_PUT(o, hashes, (&(struct wire_hashes){ id, first, 1, { hash, sizeof hash } }));
}

static void put_split(struct one *o, uint64_t id, uint32_t first, uint32_t count)
{
	ONE_PUT(o, split, (&(struct wire_blocks){ .id = id, .first = first, .count = count }));
}

static void put_pieces(struct one *o, uint64_t id, uint16_t n)
{
	static const uint8_t hash[WIRE_HASH_BYTES * WIRE_PIECES_MAX];

	ONE_PUT(o, pieces, (&(struct wire_hashes){ id, 0, n, { hash, n * WIRE_HASH_BYTES } }));
}

static void put_link(struct one *o, uint64_t id, uint64_t parent, uint64_t link_id)
{
	struct wire_entry f = one_link(id, parent, link_id);

	ONE_PUT(o, entry, &f);
}

static void put_entry(struct one *o, uint8_t type, uint64_t id, uint64_t parent)
{
	struct wire_entry f = one_entry(type, id, parent, 0);

	ONE_PUT(o, entry, &f);
}

static void put_start(struct one *o, enum frame f)
{
	static const uint8_t unknown[] = { 200, 0, 0, 0, 0, 0, 0, 1, 7 };
	static uint8_t block[WIRE_BLOCK_HEAD_BYTES + 5 + WIRE_BLOCK_END_BYTES];
	struct wire_error error = { { 5, 0, { (const uint8_t *)"no", 2 } } };
	struct wire_block b = { .id = one_id(1, 0), .length_bytes = 5 };
	struct wire_ping ping = { 0, 1 };
	struct wire_join join = { .stream = 1 };

	switch (f) {
	case F_HELLO:  one_hello(o); break;
	case F_OPEN:   one_open(o, engine_snd(o->s) != NULL, true); break;
	case F_OPENED: one_opened(o); break;
	case F_ERROR:  ONE_PUT(o, error, &error); break;
	case F_PING:   ONE_PUT(o, ping, &ping); break;
	case F_JOIN:   ONE_PUT(o, join, &join); break;
	case F_BLOCK:
		wire_block_encode(block, &b);
		one_input(o, block, sizeof block);
		break;
	case F_UNKNOWN: one_input(o, unknown, sizeof unknown); break;
	default: {
		uint8_t joined[WIRE_JOINED_MAX_BYTES];

		one_input(o, joined, wire_joined_encode(joined));
	}
	}
}

/* About the entry `id`, a file of three blocks where it has any. */
static void put(struct one *o, enum frame f, uint64_t id)
{
	struct wire_set_streams use = { .streams = 2 };
	struct wire_tcp_report seen = { .elapsed_us = 7 };
	struct wire_rate rate = { .n = 1, .m = 1, .bps = { 1 }, .of = { 1 } };
	struct wire_control_ack control_ack = { 1 };
	struct wire_load load = { 900, 1000 };
	struct wire_waiting waiting = { 3 };
	struct wire_deleted deleted = { { (const uint8_t *)"x", 1 } };
	struct wire_select selected = { .final = 1 };
	struct wire_leftovers left = { 3, 1, 1 };
	struct wire_end end = { 0, 0 };
	struct wire_totals totals = { 0, 0, 1 };
	struct wire_warning note = { .kind = f == F_WARNING_FAILED ? WIRE_WARNING_FAILED : WIRE_WARNING_ONLY };
	struct wire_done done = { id };
	struct wire_file_end file_end = { id, { 0, 0 } };

	switch (f) {
	case F_SET_STREAMS:          ONE_PUT(o, set_streams, &use); break;
	case F_TCP_REPORT:         ONE_PUT(o, tcp_report, &seen); break;
	case F_CONTROL_ACK:  ONE_PUT(o, control_ack, &control_ack); break;
	case F_RATE:         ONE_PUT(o, rate, &rate); break;
	case F_LOAD:         ONE_PUT(o, load, &load); break;
	case F_LEFTOVERS:    ONE_PUT(o, leftovers, &left); break;
	case F_WAITING:      ONE_PUT(o, waiting, &waiting); break;
	case F_DELETED:      ONE_PUT(o, deleted, &deleted); break;
	case F_SELECT:       ONE_PUT(o, select, &selected); break;
	case F_END:          ONE_PUT(o, end, &end); break;
	case F_TOTALS:       ONE_PUT(o, totals, &totals); break;
	case F_WARNING:
	case F_WARNING_FAILED:  ONE_PUT(o, warning, &note); break;
	case F_ALL:          one_answer(o, id, WIRE_SEND_ALL); break;
	case F_NONE:         one_answer(o, id, WIRE_SEND_NONE); break;
	case F_PARTS:        one_answer(o, id, WIRE_SEND_PARTS); break;
	case F_COMPARE:      one_answer(o, id, WIRE_COMPARE); break;
	case F_NO_LINK:      one_answer(o, id, WIRE_NO_LINK); break;
	case F_NEED:         put_blocks(o, id, true, 1, 1); break;
	case F_NEED_ACKED:   put_blocks(o, id, true, 0, 2); break;
	case F_NEED_BEYOND:  put_blocks(o, id, true, 2, 2); break;
	case F_HAVE:         put_blocks(o, id, false, 1, 1); break;
	case F_HAVE_PAST:    put_blocks(o, id, false, 2, 2); break;
	case F_HAVE_BEYOND:  put_blocks(o, id, false, 0, UINT32_MAX - 1); break;
	case F_MATCH:        put_match(o, id, 1, 1); break;
	case F_MATCH_BEYOND: put_match(o, id, 2, 2); break;
	case F_SPLIT:        put_split(o, id, 1, 1); break;
	case F_SPLIT_BEYOND: put_split(o, id, 2, 2); break;
	case F_PATCH:        ONE_PUT(o, patch, (&(struct wire_patch){ id, 1, 3 })); break;
	case F_PATCH_BEYOND: ONE_PUT(o, patch, (&(struct wire_patch){ id, 3, 3 })); break;
	case F_ACK:          one_ack(o, id, 1); break;
	case F_ACK_BEYOND:   one_ack(o, id, 3); break;
	case F_ACK_AGAIN:    one_ack(o, id, 0); break;
	case F_DONE:         ONE_PUT(o, done, &done); break;
	case F_FAIL:         one_fail(o, id, PTCP_EIO); break;
	case F_ENTRY_NEW:    put_entry(o, WIRE_FILE, one_id(100, 100), 0); break;
	case F_ENTRY_SAME:   put_entry(o, WIRE_FILE, id, 0); break;
	case F_ENTRY_NEXT:   put_entry(o, WIRE_FILE, one_id(100, wire_slot(id)), 0); break;
	case F_ENTRY_INSIDE: put_entry(o, WIRE_FILE, one_id(100, 100), id); break;
	case F_ENTRY_LINK:   put_link(o, one_id(100, 100), 0, id); break;
	case F_HOLE:         put_hole(o, id, 1, 2); break;
	case F_HOLE_HERE:    put_hole(o, id, 0, 2); break;
	case F_HOLE_PAST:    put_hole(o, id, 2, 2); break;
	case F_HOLE_BEYOND:  put_hole(o, id, 1, UINT32_MAX - 1); break;
	case F_HASHES:       put_hashes(o, id, 0); break;
	case F_HASHES_PAST:  put_hashes(o, id, 1); break;
	case F_PIECES:       put_pieces(o, id, WIRE_PIECES_MAX); break;
	case F_PIECES_FEW:   put_pieces(o, id, WIRE_PIECES_MAX - 1); break;
	case F_SIZE:         ONE_PUT(o, size, (&(struct wire_size){ id, 5 })); break;
	case F_DIR_END:      put_entry(o, WIRE_DIR_END, id, 0); break;
	case F_FILE_END:     ONE_PUT(o, file_end, &file_end); break;
	default:             put_start(o, f);
	}
}

/* A word of `list`, which is " A B C ". */
static bool listed(const char *list, const char *word)
{
	char spaced[32];

	strcpy(spaced, " ");
	strcat(strcat(spaced, word), " ");
	return strstr(list, spaced) != NULL;
}

/* A frame in a state where it is taken, or not; `over`: nothing is, and nothing more is said. */
static void check(struct one *o, int f, uint64_t id, bool takes, const char *where)
{
	bool over = o->ended > 0;
	struct span p;

	takes |= f == F_PING || f == F_UNKNOWN;
	one_forget(o);
	put(o, (enum frame)f, id);
	if (over)
		check_that(o->ended == 1 && !one_found(o, WIRE_ERROR, &p), "%s in %s", names[f], where);
	else if (f == F_ERROR)
		check_that(o->ended == 1 && o->why.code == PTCP_EREFUSED && one_said(o, &p) == 0, "ERROR in %s", where);
	else if (takes)
		check_that(o->ended == 0 || (f == F_END && o->why.code == 0), "%s is not taken in %s: %s", names[f],
		    where, o->why.msg);
	else
		check_that(one_broke(o) && one_found(o, WIRE_ERROR, &p), "%s is taken in %s", names[f], where);
}

/* One state of an entry in a session that is RUNNING: how to enter it, and the frames taken there. Returns the entry's
 * id. */
struct state {
	const char *name;
	uint64_t (*enter)(struct one *o);
	const char *takes;
};

/* `always`: taken in each of the states. */
static void walk(const struct state *st, size_t n, const char *always)
{
	struct one o;
	uint64_t id;
	size_t i;
	int f;

	for (i = 0; i < n; i++)
		for (f = 0; f < N_FRAMES; f++) {
			id = st[i].enter(&o);
			check(&o, f, id, listed(st[i].takes, names[f]) || listed(always, names[f]), st[i].name);
			one_fini(&o);
		}
}

/* ---- The session ---- */

#define PHASES(X) X(HELLO) X(OPENING) X(AWAIT_OPEN) X(AUTHORIZING) X(RUNNING) X(CLOSING) X(ENDED) X(FAILED)

enum phase {
#define X(name) P_##name,
	PHASES(X)
#undef X
	N_PHASES
};

/* A side of a session with that role in OPEN, and what it takes once that is agreed. */
static const struct end_of {
	const char *name;
	bool starter;
	uint8_t role;
	const char *running, *closing; /* NULL: it is never CLOSING */
} sides[] = {
	{ "starter that sends", true, WIRE_ACCEPTOR_RECEIVES, " CONTROL_ACK LOAD LEFTOVERS WARNING ",
	    " CONTROL_ACK LOAD LEFTOVERS WARNING END " },
	{ "starter that receives", true, WIRE_ACCEPTOR_SENDS,
	    " CONTROL_ACK LOAD TCP_REPORT END TOTALS WARNING WARNING_FAILED ENTRY_NEW ENTRY_SAME ENTRY_NEXT ", NULL },
	{ "starter that measures by sending", true, WIRE_ACCEPTOR_DISCARDS, " CONTROL_ACK LOAD ",
	    " CONTROL_ACK LOAD END " },
	{ "starter that measures by receiving", true, WIRE_ACCEPTOR_GENERATES, " CONTROL_ACK LOAD TCP_REPORT ",
	    " CONTROL_ACK LOAD TCP_REPORT END " },
	{ "acceptor that receives", false, WIRE_ACCEPTOR_RECEIVES,
	    " CONTROL_ACK SET_STREAMS END TOTALS WARNING WARNING_FAILED ENTRY_NEW ENTRY_SAME ENTRY_NEXT ", NULL },
	{ "acceptor that sends", false, WIRE_ACCEPTOR_SENDS, " CONTROL_ACK SET_STREAMS RATE WARNING ",
	    " CONTROL_ACK SET_STREAMS RATE WARNING END " },
	{ "acceptor that discards", false, WIRE_ACCEPTOR_DISCARDS, " CONTROL_ACK SET_STREAMS END ", NULL },
	{ "acceptor that generates", false, WIRE_ACCEPTOR_GENERATES, " CONTROL_ACK SET_STREAMS END ", NULL }
};

static bool measures(const struct end_of *x)
{
	return x->role == WIRE_ACCEPTOR_DISCARDS || x->role == WIRE_ACCEPTOR_GENERATES;
}

/* What is taken in that phase; NULL: there is none such. */
static const char *expected(const struct end_of *x, enum phase at)
{
	switch (at) {
	case P_HELLO:       return " HELLO ";
	case P_OPENING:     return x->starter ? " CONTROL_ACK OPENED LOAD WAITING " : NULL;
	case P_AWAIT_OPEN:  return x->starter ? NULL : " CONTROL_ACK OPEN ";
	case P_AUTHORIZING: return x->starter ? NULL :
		x->role == WIRE_ACCEPTOR_RECEIVES ?
		    " CONTROL_ACK ENTRY_NEW ENTRY_SAME ENTRY_NEXT ENTRY_INSIDE ENTRY_LINK DIR_END " : " CONTROL_ACK ";
	case P_RUNNING:     return x->running;
	case P_CLOSING:     return x->closing;
	default:            return "";
	}
}

static void reach(struct one *o, const struct end_of *x, enum phase at)
{
	struct ptcp_err why;

	one_as(o, x->starter, x->role);
	if (at == P_HELLO)
		return;
	one_hello(o);
	if (at == P_OPENING || at == P_AWAIT_OPEN)
		return;
	if (x->starter)
		one_opened(o);
	else
		one_open_as(o, x->role);
	if (at == P_AUTHORIZING)
		return;
	if (!x->starter)
		one_accept(o);
	assert_int_equal(o->running, 1);
	if (at == P_FAILED) {
		err_set(&why, PTCP_EIO, "x");
		engine_fail(o->s, &why);
	} else if (x->closing != NULL && at >= P_CLOSING) {
		if (measures(x))
			engine_finish(o->s);
		else
			snd_listed(engine_snd(o->s), 0, 0, true);
		one_tick(o, 0);
	}
	if (at == P_ENDED)
		put(o, F_END, 0);
	assert_int_equal(o->ended, at >= P_ENDED);
}

/* An empty payload is that of no frame here: of any type it is malformed, or not for this channel. */
static void check_empty(const struct end_of *x, enum phase at, uint8_t type, const char *where)
{
	struct wire_header h = { .type = type, .flags = WIRE_CRITICAL };
	uint8_t bytes[WIRE_HEADER_BYTES];
	struct one o;

	reach(&o, x, at);
	wire_header_encode(bytes, &h);
	one_input(&o, bytes, sizeof bytes);
	if (at == P_AUTHORIZING)
		one_accept(&o); /* an early ENTRY waits for it */
	check_that(at >= P_ENDED || one_broke(&o), "an empty %s is taken in %s", wire_type_name(type), where);
	one_fini(&o);
}

static void sessions(void **state)
{
	static const char *const phases[] = {
#define X(name) #name,
		PHASES(X)
#undef X
	};
	static const uint8_t types[] = {
#define X(name, number, max) number,
		WIRE_FRAMES(X)
#undef X
	};
	const struct end_of *x;
	char where[100];
	struct one o;
	size_t i;
	int at, f;

	(void)state;
	for (x = sides; x < sides + sizeof sides / sizeof *sides; x++)
		for (at = 0; at < N_PHASES; at++) {
			const char *takes = expected(x, (enum phase)at);

			if (takes == NULL)
				continue;
			snprintf(where, sizeof where, "%s of a %s", phases[at], x->name);
			for (f = 0; f < N_FRAMES; f++) {
				reach(&o, x, (enum phase)at);
				check(&o, f, one_id(1, 0), listed(takes, names[f]), where);
				one_fini(&o);
			}
			for (i = 0; i < sizeof types; i++)
				check_empty(x, (enum phase)at, types[i], where);
		}
}

/* ---- Entries at the sender ---- */

static uint64_t offered_file(struct one *o)
{
	one_run(o, true, true);
	return one_offer(o, WIRE_FILE, 3 * BLOCK);
}

static uint64_t offered_dir(struct one *o) { one_run(o, true, true); return one_offer(o, WIRE_DIR, 0); }
static uint64_t offered_link(struct one *o) { one_run(o, true, true); return one_offer(o, WIRE_SYMLINK, 0); }

static uint64_t send_all(struct one *o)
{
	uint64_t id = offered_file(o);

	one_answer(o, id, WIRE_SEND_ALL);
	one_ack(o, id, 0);
	return id;
}

static uint64_t send_parts(struct one *o)
{
	uint64_t id = offered_file(o);

	one_answer(o, id, WIRE_SEND_PARTS);
	one_ack(o, id, 0);
	return id;
}

/* Each block is hashed once. */
static uint64_t parts_hashed(struct one *o)
{
	uint64_t id = send_parts(o);

	put_match(o, id, 0, 2);
	assert_true(o->hashes == 1 && o->hash_first == 0 && o->hash_count == 2);
	return id;
}

/* The pieces of each block are hashed once. */
static uint64_t parts_split(struct one *o)
{
	uint64_t id = send_parts(o);

	put_split(o, id, 0, 2);
	assert_true(o->splits == 1 && o->hash_first == 0);
	return id;
}

/* Block 1 is on its way. */
static uint64_t sending_part(struct one *o)
{
	uint64_t id = send_parts(o);

	put_blocks(o, id, true, 1, 1);
	snd_stream_up(engine_snd(o->s), 0, one_now(o));
	assert_int_equal(one_take(o, 0), 1);
	return id;
}

static uint64_t part_read(struct one *o)
{
	uint64_t id = sending_part(o);

	snd_read(engine_snd(o->s), 0, id, 1, (struct digest){ 0, 2 }, NULL, one_now(o));
	return id;
}

static uint64_t part_acked_early(struct one *o)
{
	uint64_t id = sending_part(o);

	one_ack(o, id, 1);
	return id;
}

static uint64_t checking(struct one *o)
{
	uint64_t id;

	one_run(o, true, true);
	id = one_offer(o, WIRE_FILE, 0);
	one_answer(o, id, WIRE_SEND_ALL);
	assert_int_equal(o->checks, 1);
	return id;
}

/* A file of one block whose ACK has come and maybe its DONE, while the news that it was read is still on its way from
 * another thread. */
static uint64_t acked_early(struct one *o)
{
	struct snd_job job;
	uint64_t id;

	one_run(o, true, true);
	id = one_offer(o, WIRE_FILE, 1000);
	one_answer(o, id, WIRE_SEND_ALL);
	snd_stream_up(engine_snd(o->s), 0, (struct mono){ o->now_ns });
	assert_true(snd_take(engine_snd(o->s), 0, (struct mono){ o->now_ns }, &job));
	one_ack(o, id, 0);
	return id;
}

static uint64_t finishing(struct one *o)
{
	uint64_t id = checking(o);

	snd_checked(engine_snd(o->s), id, NULL);
	return id;
}

static uint64_t failing(struct one *o)
{
	uint64_t id = checking(o);
	struct ptcp_err why;

	err_set(&why, PTCP_ECHANGED, "x");
	snd_checked(engine_snd(o->s), id, &why);
	return id;
}

static uint64_t made(struct one *o)
{
	uint64_t id = offered_dir(o);

	one_answer(o, id, WIRE_SEND_ALL);
	return id;
}

static uint64_t finishing_dir(struct one *o)
{
	uint64_t id = made(o);

	snd_leave(engine_snd(o->s));
	return id;
}

static uint64_t finishing_link(struct one *o)
{
	uint64_t id = offered_link(o);

	one_answer(o, id, WIRE_SEND_ALL);
	return id;
}

static uint64_t lost(struct one *o)
{
	uint64_t id = made(o);

	one_fail(o, id, PTCP_EIO);
	return id;
}

static uint64_t comparing(struct one *o)
{
	uint64_t id = offered_file(o);

	one_answer(o, id, WIRE_COMPARE);
	assert_int_equal(o->compares, 1);
	return id;
}

static uint64_t compared(struct one *o)
{
	uint64_t id = comparing(o);

	snd_compared(engine_snd(o->s), id, (struct digest){ 1, 2 }, NULL);
	return id;
}

static uint64_t offered_unverified(struct one *o)
{
	one_run(o, true, false);
	return one_offer(o, WIRE_FILE, 3 * BLOCK);
}

static uint64_t offered_hardlink(struct one *o)
{
	struct wire_entry f = one_link(0, 0, offered_file(o));
	void *cookie = malloc(1);

	return snd_offer(engine_snd(o->s), &f, cookie);
}

static uint64_t hardlink_again(struct one *o)
{
	uint64_t id = offered_hardlink(o);

	one_answer(o, id, WIRE_NO_LINK);
	assert_true(o->again == id);
	return id;
}

static uint64_t finishing_hardlink(struct one *o)
{
	uint64_t id = offered_hardlink(o);

	one_answer(o, id, WIRE_SEND_ALL);
	return id;
}

/* Sparse, and not known yet where: it takes what any other file does. */
static uint64_t unmapped(struct one *o)
{
	uint64_t id;

	one_run(o, true, true);
	id = one_offer_sparse(o, 3 * BLOCK);
	one_answer(o, id, WIRE_SEND_PARTS);
	assert_int_equal(o->maps, 1);
	return id;
}

static uint64_t holes_sent(struct one *o)
{
	uint64_t *holes = bitmap_new(3), id = unmapped(o);

	put_blocks(o, id, true, 0, 1);
	bitmap_set(holes, true, 0, 1);
	snd_mapped(engine_snd(o->s), id, holes, NULL);
	one_tick(o, 0);
	return id;
}

static uint64_t dry_file(struct one *o) { one_run_dry(o, true); return one_offer(o, WIRE_FILE, 3 * BLOCK); }
static uint64_t dry_link(struct one *o) { one_run_dry(o, true); return one_offer(o, WIRE_SYMLINK, 0); }
static uint64_t dry_dir(struct one *o) { one_run_dry(o, true); return one_offer(o, WIRE_DIR, 0); }

static uint64_t dry_compared(struct one *o)
{
	uint64_t id = dry_file(o);

	one_answer(o, id, WIRE_COMPARE);
	snd_compared(engine_snd(o->s), id, (struct digest){ 1, 2 }, NULL);
	return id;
}

static uint64_t retired(struct one *o)
{
	uint64_t id = offered_file(o);

	one_answer(o, id, WIRE_SEND_NONE);
	return id;
}

static void sent_entries(void **state)
{
	static const struct state states[] = {
		{ "OFFERED, a file", offered_file, " ALL NONE PARTS COMPARE FAIL " },
		{ "OFFERED, a file, without VERIFY", offered_unverified, " ALL NONE PARTS FAIL " },
		{ "OFFERED, a hard link", offered_hardlink, " ALL NONE NO_LINK FAIL " },
		{ "AGAIN, a hard link", hardlink_again, "" },
		{ "OFFERED, a file in a dry run", dry_file, " NONE COMPARE DONE FAIL " },
		{ "OFFERED, a link in a dry run", dry_link, " NONE DONE FAIL " },
		{ "OFFERED, a directory in a dry run", dry_dir, " ALL FAIL " },
		{ "COMPARING", comparing, " FAIL " },
		{ "COMPARED", compared, " ALL NONE PARTS FAIL " },
		{ "COMPARED, in a dry run", dry_compared, " NONE DONE FAIL " },
		{ "SENDING, holes not known", unmapped, " NEED NEED_ACKED HAVE MATCH SPLIT PATCH ACK ACK_AGAIN FAIL " },
		{ "SENDING, a hole told", holes_sent, " NEED HAVE MATCH SPLIT PATCH ACK FAIL " },
		{ "OFFERED, a directory", offered_dir, " ALL FAIL " },
		{ "OFFERED, a link", offered_link, " ALL NONE FAIL " },
		{ "SENDING all", send_all, " NEED ACK FAIL " },
		{ "SENDING parts", send_parts, " NEED HAVE MATCH SPLIT PATCH ACK FAIL " },
		{ "SENDING parts, two split", parts_split, " NEED HAVE MATCH PATCH ACK FAIL " },
		{ "SENDING parts, two hashed", parts_hashed, " NEED HAVE SPLIT PATCH ACK FAIL " },
		{ "SENDING parts, the block read", part_read, " NEED MATCH SPLIT PATCH ACK FAIL " },
		{ "SENDING parts, before the news of reading", part_acked_early, " MATCH SPLIT FAIL " },
		{ "FINISHING, before the news of reading", acked_early, " DONE FAIL " },
		{ "CHECKING", checking, " FAIL " },
		{ "FINISHING, a file", finishing, " DONE FAIL " },
		{ "FINISHING, a directory", finishing_dir, " DONE FAIL " },
		{ "FINISHING, a link", finishing_link, " DONE FAIL " },
		{ "FINISHING, a hard link", finishing_hardlink, " DONE NO_LINK FAIL " },
		{ "FAILING", failing,
		    " NEED NEED_ACKED NEED_BEYOND HAVE HAVE_PAST HAVE_BEYOND MATCH MATCH_BEYOND SPLIT SPLIT_BEYOND "
		    "PATCH PATCH_BEYOND ACK "
		    "ACK_BEYOND ACK_AGAIN DONE FAIL " },
		{ "MADE", made, " FAIL " },
		{ "LOST", lost, "" },
		{ "retired", retired, "" },
	};

	(void)state;
	walk(states, sizeof states / sizeof *states, " WARNING SET_STREAMS RATE CONTROL_ACK ");
}

/* ---- Entries at the receiver ---- */

#define ID ((uint64_t)7 << 16 | 5)
#define DIR ((uint64_t)6 << 16 | 4)

static void put_file(struct one *o, uint64_t parent, uint64_t size_bytes)
{
	struct wire_entry f = one_entry(WIRE_FILE, ID, parent, size_bytes);

	ONE_PUT(o, entry, &f);
}

static uint64_t waiting(struct one *o)
{
	one_run(o, false, true);
	o->prep = RCV_LATER;
	put_entry(o, WIRE_DIR, DIR, 0);
	put_file(o, DIR, 3 * BLOCK);
	return ID;
}

static uint64_t waiting_dir(struct one *o)
{
	one_run(o, false, true);
	o->prep = RCV_LATER;
	put_entry(o, WIRE_DIR, DIR, 0);
	put_entry(o, WIRE_DIR, ID, DIR);
	return ID;
}

static uint64_t preparing(struct one *o)
{
	one_run(o, false, true);
	o->prep = RCV_LATER;
	put_file(o, 0, 3 * BLOCK);
	return ID;
}

static uint64_t receiving(struct one *o)
{
	one_run(o, false, true);
	put_file(o, 0, 3 * BLOCK);
	return ID;
}

static void put_sparse(struct one *o)
{
	static const uint8_t sparse[] = { 0, 2, 0, 0 };
	struct wire_entry f = one_entry(WIRE_FILE, ID, 0, 3 * BLOCK);

	f.attrs = (struct span){ sparse, sizeof sparse };
	ONE_PUT(o, entry, &f);
}

static uint64_t preparing_sparse(struct one *o)
{
	one_run(o, false, true);
	o->prep = RCV_LATER;
	put_sparse(o);
	return ID;
}

static void put_unsized(struct one *o)
{
	static const uint8_t unsized[] = { 0x80, 1, 0, 0 };
	struct wire_entry f = one_entry(WIRE_FILE, ID, 0, 0);

	f.attrs = (struct span){ unsized, sizeof unsized };
	ONE_PUT(o, entry, &f);
}

static uint64_t preparing_unsized(struct one *o)
{
	one_run(o, false, true);
	o->prep = RCV_LATER;
	put_unsized(o);
	return ID;
}

static uint64_t receive_unsized(struct one *o)
{
	one_run(o, false, true);
	put_unsized(o);
	return ID;
}

static uint64_t sized(struct one *o)
{
	receive_unsized(o);
	put(o, F_SIZE, ID);
	return ID;
}

static uint64_t receive_sparse(struct one *o)
{
	one_run(o, false, true);
	put_sparse(o);
	rcv_block(engine_rcv(o->s), ID, 0, RCV_BLOCK_WRITTEN, (struct digest){ 0, 0 }, NULL);
	return ID;
}

/* Block 0 is claimed, the others have been asked for. */
static uint64_t receive_parts(struct one *o)
{
	one_run(o, false, true);
	o->prep = RCV_PARTS;
	o->claimed = bitmap_new(3);
	bitmap_add(o->claimed, 0);
	put_sparse(o);
	o->prep = RCV_ACCEPT;
	assert_int_equal(o->accepted_parts, 1);
	return ID;
}

static uint64_t receive_matched(struct one *o)
{
	receive_parts(o);
	rcv_match(engine_rcv(o->s), ID, 0, 1);
	return ID;
}

static uint64_t receive_split(struct one *o)
{
	receive_parts(o);
	rcv_split(engine_rcv(o->s), ID, 0, 1);
	return ID;
}

/* The blocks were requested all the same, and are here before the hashes. */
static uint64_t committing_matched(struct one *o)
{
	struct digest d = { 0, 0 };
	uint32_t i;

	receive_matched(o);
	rcv_verified(engine_rcv(o->s), ID, 0, 1, false, d);
	one_tick(o, 0);
	for (i = 0; i < 3; i++)
		rcv_block(engine_rcv(o->s), ID, i, RCV_BLOCK_WRITTEN, d, NULL);
	put(o, F_FILE_END, ID);
	assert_int_equal(o->commits, 1);
	return ID;
}

static uint64_t comparing_here(struct one *o)
{
	one_run(o, false, true);
	o->prep = RCV_COMPARE;
	put_file(o, 0, 3 * BLOCK);
	o->prep = RCV_ACCEPT;
	return ID;
}

/* The sender has told its digest, we have not come to ours. */
static uint64_t comparing_told(struct one *o)
{
	put(o, F_FILE_END, comparing_here(o));
	return ID;
}

static uint64_t prepared_anew(struct one *o)
{
	comparing_told(o);
	rcv_compared(engine_rcv(o->s), ID, (struct digest){ 0, 1 }, NULL);
	assert_int_equal(o->differs, 1);
	return ID;
}

static uint64_t waiting_link(struct one *o)
{
	receiving(o);
	put_link(o, one_id(8, 8), 0, ID);
	return one_id(8, 8);
}

static uint64_t complete(struct one *o)
{
	one_run(o, false, true);
	put_file(o, 0, 0);
	return ID;
}

static uint64_t committing(struct one *o)
{
	struct digest d = { 0, 0 };

	one_run(o, false, true);
	put_file(o, 0, 5);
	rcv_block(engine_rcv(o->s), ID, 0, RCV_BLOCK_WRITTEN, d, NULL);
	assert_int_equal(o->commits, 1);
	return ID;
}

static uint64_t committing_link(struct one *o)
{
	one_run(o, false, true);
	put_entry(o, WIRE_SYMLINK, ID, 0);
	assert_int_equal(o->commits, 1);
	return ID;
}

static uint64_t open_dir(struct one *o)
{
	one_run(o, false, true);
	put_entry(o, WIRE_DIR, ID, 0);
	return ID;
}

static uint64_t open_with_child(struct one *o)
{
	struct wire_entry f = one_entry(WIRE_FILE, one_id(8, 8), ID, 10);

	open_dir(o);
	ONE_PUT(o, entry, &f);
	return ID;
}

static uint64_t committing_dir(struct one *o)
{
	open_dir(o);
	put_entry(o, WIRE_DIR_END, ID, 0);
	assert_int_equal(o->commits, 1);
	return ID;
}

static uint64_t retired_file(struct one *o)
{
	committing(o);
	rcv_committed(engine_rcv(o->s), ID, NULL);
	assert_int_equal(o->rcv_ended, 1);
	return ID;
}

static uint64_t unheard(struct one *o)
{
	retired_file(o);
	return one_id(90, 90);
}

static void received_entries(void **state)
{
	static const struct state states[] = {
		{ "WAITING, a file", waiting, " ENTRY_LINK " },
		{ "WAITING, a directory", waiting_dir, " ENTRY_INSIDE " },
		{ "PREPARING", preparing, " ENTRY_LINK " },
		{ "RECEIVING", receiving, " ENTRY_LINK FAIL " },
		{ "PREPARING, sparse", preparing_sparse, " ENTRY_LINK " },
		{ "PREPARING, of unknown size", preparing_unsized, " ENTRY_LINK " },
		{ "RECEIVING, of unknown size", receive_unsized, " ENTRY_LINK FAIL SIZE " },
		{ "RECEIVING, the size told", sized, " ENTRY_LINK FAIL " },
		{ "RECEIVING, sparse", receive_sparse, " ENTRY_LINK FAIL HOLE " },
		{ "RECEIVING parts", receive_parts, " ENTRY_LINK FAIL HOLE " },
		{ "RECEIVING parts, hashes requested", receive_matched, " ENTRY_LINK FAIL HOLE HASHES " },
		{ "RECEIVING parts, pieces requested", receive_split, " ENTRY_LINK FAIL HOLE PIECES " },
		{ "COMMITTING, hashes requested", committing_matched, " ENTRY_LINK FAIL HASHES " },
		{ "COMPARING", comparing_here, " ENTRY_LINK FAIL FILE_END " },
		{ "COMPARING, told", comparing_told, " ENTRY_LINK FAIL " },
		{ "PREPARING again", prepared_anew, " ENTRY_LINK " },
		{ "WAITING, a hard link", waiting_link, "" },
		{ "COMPLETE", complete, " ENTRY_LINK FAIL FILE_END " },
		{ "COMMITTING, a file", committing, " ENTRY_LINK FAIL " },
		{ "COMMITTING, a symbolic link", committing_link, " ENTRY_LINK " },
		{ "COMMITTING, a directory", committing_dir, "" },
		{ "OPEN", open_dir, " ENTRY_INSIDE DIR_END " },
		{ "OPEN, not empty", open_with_child, " ENTRY_INSIDE " },
		/* Frames about the retired entry were in flight; the engine no longer knows whether it was a
		 * directory. END: the number of files differs. */
		{ "retired", retired_file,
		    " ENTRY_NEXT ENTRY_INSIDE ENTRY_LINK DIR_END FILE_END FAIL HOLE HOLE_HERE HOLE_PAST HOLE_BEYOND "
		    "HASHES HASHES_PAST PIECES PIECES_FEW SIZE " },
		{ "never heard of", unheard, " ENTRY_SAME ENTRY_NEXT " },
	};

	(void)state;
	walk(states, sizeof states / sizeof *states,
	    " TOTALS WARNING WARNING_FAILED SET_STREAMS CONTROL_ACK ENTRY_NEW ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions),
		cmocka_unit_test(sent_entries),
		cmocka_unit_test(received_entries),
	};
	return cmocka_run_group_tests_name("engine/states", tests, NULL, NULL);
}
