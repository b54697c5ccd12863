/* Every pair of a state and a frame: what PROTOCOL.md lists is taken, anything else ends the
 * session with PTCP_EPROTO and a reason for the peer. */
#include "one.h"

#include <stdlib.h>
#include <string.h>

#include "core/bitmap.h"
#include "core/err.h"

#define BLOCK (256u << 10)

/* What a peer may send, as rows of the tables below name it. */
#define FRAMES(X) \
	X(HELLO) X(OPEN) X(OPENED) X(ERROR) X(PING) X(JOIN) X(JOINED) X(BLOCK) \
	X(USE) X(SEEN) X(RATE) X(LOAD) X(END) X(TOTALS) X(NOTE) X(NOTE_FAILED) \
	X(ALL) X(NONE) X(PARTS) X(COMPARE) X(NEED) X(NEED_ACKED) X(NEED_BEYOND) X(HAVE) X(HAVE_BEYOND) X(ACK) X(ACK_BEYOND) \
	X(ACK_AGAIN) X(DONE) X(FAIL) \
	X(ENTRY_NEW) X(ENTRY_SAME) X(ENTRY_NEXT) X(ENTRY_INSIDE) X(ENTRY_LINK) X(DIR_END) X(FILE_END) \
	X(HOLE) X(HOLE_HERE) X(HOLE_BEYOND) X(UNKNOWN)

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
	struct wire_error error = { 5, { (const uint8_t *)"no", 2 } };
	struct wire_block b = { one_id(1, 0), 0, 5 };
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
	struct wire_load load = { 900, 1000 };
	struct wire_end end = { 0, 0 };
	struct wire_totals totals = { 0, 0, 1 };
	struct wire_warning note = { .kind = f == F_NOTE_FAILED ? WIRE_WARNING_FAILED : WIRE_WARNING_ONLY };
	struct wire_done done = { id };
	struct wire_file_end file_end = { id, { 0, 0 } };

	switch (f) {
	case F_USE:          ONE_PUT(o, set_streams, &use); break;
	case F_SEEN:         ONE_PUT(o, tcp_report, &seen); break;
	case F_RATE:         ONE_PUT(o, rate, &rate); break;
	case F_LOAD:         ONE_PUT(o, load, &load); break;
	case F_END:          ONE_PUT(o, end, &end); break;
	case F_TOTALS:       ONE_PUT(o, totals, &totals); break;
	case F_NOTE:
	case F_NOTE_FAILED:  ONE_PUT(o, warning, &note); break;
	case F_ALL:          one_answer(o, id, WIRE_SEND_ALL); break;
	case F_NONE:         one_answer(o, id, WIRE_SEND_NONE); break;
	case F_PARTS:        one_answer(o, id, WIRE_SEND_PARTS); break;
	case F_COMPARE:      one_answer(o, id, WIRE_COMPARE); break;
	case F_NEED:         put_blocks(o, id, true, 1, 1); break;
	case F_NEED_ACKED:   put_blocks(o, id, true, 0, 2); break;
	case F_NEED_BEYOND:  put_blocks(o, id, true, 2, 2); break;
	case F_HAVE:         put_blocks(o, id, false, 1, 1); break;
	case F_HAVE_BEYOND:  put_blocks(o, id, false, 0, UINT32_MAX - 1); break;
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
	case F_HOLE_BEYOND:  put_hole(o, id, 1, UINT32_MAX - 1); break;
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

/* One state: how to come there, and what is taken there. Returns the entry's id. */
struct state {
	const char *name;
	uint64_t (*enter)(struct one *o);
	const char *takes;
};

static void walk(const struct state *st, size_t n)
{
	struct span p;
	struct one o;
	uint64_t id;
	size_t i;
	int f;

	for (i = 0; i < n; i++)
		for (f = 0; f < N_FRAMES; f++) {
			bool over, takes = listed(st[i].takes, names[f]) || f == F_PING || f == F_UNKNOWN;

			id = st[i].enter(&o);
			over = o.ended > 0;
			one_forget(&o);
			put(&o, (enum frame)f, id);
			if (over) {
				check_that(o.ended == 1 && !one_found(&o, WIRE_ERROR, &p), "%s in %s", names[f], st[i].name);
			} else if (f == F_ERROR) {
				check_that(o.ended == 1 && o.why.code == PTCP_EREFUSED &&
				    one_said(&o, &p) == 0, "ERROR in %s", st[i].name);
			} else if (takes) {
				check_that(o.ended == 0 || (f == F_END && o.why.code == 0),
				    "%s is not taken in %s: %s", names[f], st[i].name, o.why.msg);
			} else {
				check_that(one_broke(&o) && one_found(&o, WIRE_ERROR, &p), "%s is taken in %s",
				    names[f], st[i].name);
			}
			one_fini(&o);
		}
}

/* ---- The session ---- */

static uint64_t none(struct one *o) { (void)o; return one_id(1, 0); }
static uint64_t at_hello(struct one *o) { one_init(o, false, true); return none(o); }
static uint64_t at_hello_starter(struct one *o) { one_init(o, true, true); return none(o); }
static uint64_t at_opening(struct one *o) { one_init(o, true, true); one_hello(o); return none(o); }
static uint64_t at_asked(struct one *o) { one_init(o, false, true); one_hello(o); return none(o); }
static uint64_t at_judging(struct one *o) { at_asked(o); one_open(o, true, true); return none(o); }
static uint64_t at_sending(struct one *o) { one_run(o, true, true); return none(o); }
static uint64_t at_receiving(struct one *o) { one_run(o, false, true); return none(o); }
static uint64_t starter_sending(struct one *o) { one_run_as(o, true, true); return none(o); }
static uint64_t starter_receiving(struct one *o) { one_run_as(o, true, false); return none(o); }

static uint64_t at_ending(struct one *o)
{
	struct span p;

	one_run(o, true, true);
	snd_listed(engine_snd(o->s), 0, 0, true);
	one_tick(o, 0);
	assert_true(one_found(o, WIRE_END, &p));
	return none(o);
}

static uint64_t at_ended(struct one *o)
{
	at_ending(o);
	put(o, F_END, 0);
	assert_true(o->ended == 1 && o->why.code == 0);
	return none(o);
}

static uint64_t at_failed(struct one *o)
{
	struct ptcp_err why;

	one_run(o, true, true);
	err_set(&why, PTCP_EIO, "x");
	engine_fail(o->s, &why);
	return none(o);
}

static void sessions(void **state)
{
	static const struct state states[] = {
		{ "HELLO of the acceptor", at_hello, " HELLO " },
		{ "HELLO of the starter", at_hello_starter, " HELLO " },
		{ "OPENING", at_opening, " OPENED LOAD " },
		{ "ASKED", at_asked, " OPEN " },
		{ "JUDGING", at_judging, "" },
		{ "RUNNING, sending", at_sending, " NOTE USE RATE " },
		{ "RUNNING, receiving", at_receiving, " END TOTALS NOTE NOTE_FAILED ENTRY_NEW ENTRY_SAME ENTRY_NEXT USE " },
		{ "RUNNING, the starter sends", starter_sending, " NOTE LOAD " },
		{ "RUNNING, the starter receives", starter_receiving,
		    " END TOTALS NOTE NOTE_FAILED ENTRY_NEW ENTRY_SAME ENTRY_NEXT SEEN LOAD " },
		{ "ENDING", at_ending, " END NOTE USE RATE " },
		{ "ENDED", at_ended, "" },
		{ "FAILED", at_failed, "" },
	};

	(void)state;
	walk(states, sizeof states / sizeof *states);
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
		{ "OFFERED, a file", offered_file, " ALL NONE PARTS COMPARE FAIL NOTE USE RATE " },
		{ "OFFERED, a file, without VERIFY", offered_unverified, " ALL NONE PARTS FAIL NOTE USE RATE " },
		{ "OFFERED, a hard link", offered_hardlink, " ALL NONE FAIL NOTE USE RATE " },
		{ "OFFERED, a file in a dry run", dry_file, " NONE COMPARE DONE FAIL NOTE USE RATE " },
		{ "OFFERED, a link in a dry run", dry_link, " NONE DONE FAIL NOTE USE RATE " },
		{ "OFFERED, a directory in a dry run", dry_dir, " ALL FAIL NOTE USE RATE " },
		{ "COMPARING", comparing, " FAIL NOTE USE RATE " },
		{ "COMPARED", compared, " ALL NONE PARTS FAIL NOTE USE RATE " },
		{ "COMPARED, in a dry run", dry_compared, " NONE DONE FAIL NOTE USE RATE " },
		{ "SENDING, holes not known", unmapped, " NEED NEED_ACKED HAVE ACK ACK_AGAIN FAIL NOTE USE RATE " },
		{ "SENDING, a hole told", holes_sent, " NEED HAVE ACK FAIL NOTE USE RATE " },
		{ "OFFERED, a directory", offered_dir, " ALL FAIL NOTE USE RATE " },
		{ "OFFERED, a link", offered_link, " ALL NONE FAIL NOTE USE RATE " },
		{ "SENDING all", send_all, " NEED ACK FAIL NOTE USE RATE " },
		{ "SENDING parts", send_parts, " NEED HAVE ACK FAIL NOTE USE RATE " },
		{ "FINISHING, before the news of reading", acked_early, " DONE FAIL NOTE USE RATE " },
		{ "CHECKING", checking, " FAIL NOTE USE RATE " },
		{ "FINISHING, a file", finishing, " DONE FAIL NOTE USE RATE " },
		{ "FINISHING, a directory", finishing_dir, " DONE FAIL NOTE USE RATE " },
		{ "FINISHING, a link", finishing_link, " DONE FAIL NOTE USE RATE " },
		{ "FAILING", failing, " NEED NEED_ACKED NEED_BEYOND HAVE HAVE_BEYOND ACK ACK_BEYOND ACK_AGAIN DONE FAIL NOTE USE RATE " },
		{ "MADE", made, " FAIL NOTE USE RATE " },
		{ "LOST", lost, " NOTE USE RATE " },
		{ "retired", retired, " NOTE USE RATE " },
	};

	(void)state;
	walk(states, sizeof states / sizeof *states);
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
		{ "WAITING, a file", waiting, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK " },
		{ "WAITING, a directory", waiting_dir, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_INSIDE " },
		{ "PREPARING", preparing, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK " },
		{ "RECEIVING", receiving, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK FAIL " },
		{ "RECEIVING, sparse", receive_sparse, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK FAIL HOLE " },
		{ "RECEIVING parts", receive_parts, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK FAIL HOLE " },
		{ "COMPARING", comparing_here, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK FAIL FILE_END " },
		{ "COMPARING, told", comparing_told, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK FAIL " },
		{ "PREPARING again", prepared_anew, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK " },
		{ "WAITING, a hard link", waiting_link, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW " },
		{ "COMPLETE", complete, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK FAIL FILE_END " },
		{ "COMMITTING, a file", committing, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_LINK FAIL " },
		{ "COMMITTING, a link", committing_link, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW " },
		{ "COMMITTING, a directory", committing_dir, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW " },
		{ "OPEN", open_dir, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_INSIDE DIR_END " },
		{ "OPEN, not empty", open_with_child, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_INSIDE " },
		/* What it is told of it was on its way; whether it was a directory is forgotten. END: its
		 * count of files is another. */
		{ "retired", retired_file, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_NEXT ENTRY_INSIDE ENTRY_LINK DIR_END FILE_END FAIL HOLE HOLE_HERE HOLE_BEYOND " },
		{ "never heard of", unheard, " TOTALS NOTE NOTE_FAILED USE ENTRY_NEW ENTRY_SAME ENTRY_NEXT " },
	};

	(void)state;
	walk(states, sizeof states / sizeof *states);
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
