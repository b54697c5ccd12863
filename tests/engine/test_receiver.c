/* The receiving half by hand: its limits, and what a sender of ours never does.
 * against: arithmetic */
#include "one.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"

#define BLOCK (256u << 10)

static struct rcv *rcv_of(struct one *o) { return engine_rcv(o->s); }

static void put(struct one *o, uint8_t type, uint64_t id, uint64_t parent, uint64_t size_bytes)
{
	struct wire_entry f = one_entry(type, id, parent, size_bytes);

	ONE_PUT(o, entry, &f);
}

static void block(struct one *o, uint64_t id, uint32_t index, enum rcv_block_result what)
{
	struct digest d = { 0, index + 1 };
	struct ptcp_err why;

	err_set(&why, PTCP_EIO, "cannot be written");
	rcv_block(rcv_of(o), id, index, what, d, what == RCV_BLOCK_FAILED ? &why : NULL);
}

/* The code of the FAIL that it has said last, of that entry. */
static int failed_with(struct one *o, uint64_t id)
{
	struct wire_fail f;
	struct span p;

	if (!one_found(o, WIRE_FAIL, &p) || wire_fail_decode(&f, p, NULL) < 0 || f.id != id)
		return 0;
	return -(int)f.why.code;
}

static void file_end(struct one *o, uint64_t id, uint64_t lo)
{
	struct wire_file_end f = { id, { 0, lo } };

	ONE_PUT(o, file_end, &f);
}

static void from_entry_to_done(void **state)
{
	uint64_t id = one_id(1, 3);
	struct span p;
	struct one o;

	(void)state;
	one_run(&o, false, true);
	put(&o, WIRE_FILE, id, 0, 3 * BLOCK);
	assert_true(o.accepted == 1 && one_said(&o, &p) == WIRE_ANSWER);
	block(&o, id, 2, RCV_BLOCK_WRITTEN);
	assert_int_equal(one_said(&o, &p), WIRE_ACK);
	block(&o, id, 2, RCV_BLOCK_WRITTEN); /* copies, good, bad and of no block */
	block(&o, id, 2, RCV_BLOCK_BAD);
	block(&o, id, 2, RCV_BLOCK_FAILED);
	block(&o, id, 3, RCV_BLOCK_WRITTEN);
	block(&o, one_id(2, 3), 0, RCV_BLOCK_WRITTEN);
	assert_int_equal(one_said(&o, &p), 0);
	block(&o, id, 0, RCV_BLOCK_BAD);
	assert_int_equal(one_said(&o, &p), WIRE_NEED);
	block(&o, id, 0, RCV_BLOCK_WRITTEN);
	block(&o, id, 1, RCV_BLOCK_WRITTEN);
	assert_int_equal(o.commits, 0);
	file_end(&o, id, 6);
	assert_int_equal(o.commits, 1);
	one_forget(&o);
	rcv_committed(rcv_of(&o), id, NULL);
	assert_int_equal(one_said(&o, &p), WIRE_DONE);
	rcv_committed(rcv_of(&o), id, NULL);
	assert_int_equal(one_said(&o, &p), 0);
	assert_true(rcv_stats(rcv_of(&o)).done.files == 1 && rcv_stats(rcv_of(&o)).done.bytes == 3 * BLOCK);
	assert_true(rcv_idle(rcv_of(&o)));
	one_fini(&o);
}

static void a_digest_that_differs(void **state)
{
	uint64_t id = one_id(1, 3);
	struct one o;
	int verify;

	(void)state;
	for (verify = 0; verify < 2; verify++) {
		one_run(&o, false, verify);
		put(&o, WIRE_FILE, id, 0, 2 * BLOCK);
		block(&o, id, 0, RCV_BLOCK_WRITTEN);
		block(&o, id, 1, RCV_BLOCK_WRITTEN);
		file_end(&o, id, 4);
		assert_int_equal(failed_with(&o, id), verify ? PTCP_EVERIFY : 0);
		assert_int_equal(o.commits, !verify);
		assert_int_equal(engine_failed(o.s), verify);
		one_fini(&o);
	}
}

/* The sender's FAIL comes back as it was; too late, it is ignored. */
static void the_senders_fail(void **state)
{
	uint64_t id = one_id(1, 3);
	struct wire_fail f;
	struct span p;
	struct one o;

	(void)state;
	one_run(&o, false, true);
	put(&o, WIRE_FILE, id, 0, 2 * BLOCK);
	one_forget(&o);
	one_fail(&o, id, PTCP_EUSAGE);
	assert_int_equal(one_said(&o, &p), WIRE_FAIL);
	assert_int_equal(wire_fail_decode(&f, p, NULL), 0);
	assert_true(f.id == id && f.why.code == -PTCP_EUSAGE && f.why.text.n == 3 && memcmp(f.why.text.p, "why",
	    3) == 0);
	assert_int_equal(o.rcv_why.code, PTCP_EPEER);
	assert_string_equal(o.rcv_why.msg, "why");
	assert_int_equal(engine_failed(o.s), 1);
	one_fail(&o, id, PTCP_EIO);
	put(&o, WIRE_FILE, one_id(2, 3), 0, 10);
	block(&o, one_id(2, 3), 0, RCV_BLOCK_WRITTEN);
	one_forget(&o);
	one_fail(&o, one_id(2, 3), PTCP_EIO);
	assert_int_equal(one_said(&o, &p), 0);
	rcv_committed(rcv_of(&o), one_id(2, 3), NULL);
	assert_int_equal(one_said(&o, &p), WIRE_DONE);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

/* Files of 2^27 blocks need bitmaps of 16 MiB: four at once, and when one is over another. */
/* Its first block is here. */
static void begin(struct one *o, uint64_t id)
{
	rcv_block(engine_rcv(o->s), id, 0, RCV_BLOCK_WRITTEN, (struct digest){ 0, 1 }, NULL);
}

static void bitmaps_have_a_limit(void **state)
{
	struct one o;
	unsigned i;

	(void)state;
	one_run(&o, false, true);
	for (i = 1; i <= 100; i++) { /* any number may wait */
		put(&o, WIRE_FILE, one_id(i, i), 0, WIRE_FILE_MAX);
		assert_int_equal(failed_with(&o, one_id(i, i)), 0);
	}
	for (i = 1; i <= 4; i++)
		begin(&o, one_id(i, i));
	assert_int_equal(failed_with(&o, one_id(4, 4)), 0);
	begin(&o, one_id(5, 5));
	assert_int_equal(failed_with(&o, one_id(5, 5)), PTCP_ENOMEM);
	put(&o, WIRE_FILE, one_id(206, 206), 0, 64 * BLOCK); /* needs none */
	begin(&o, one_id(206, 206));
	assert_int_equal(failed_with(&o, one_id(206, 206)), 0);
	put(&o, WIRE_FILE, one_id(207, 207), 0, 65 * BLOCK);
	begin(&o, one_id(207, 207));
	assert_int_equal(failed_with(&o, one_id(207, 207)), PTCP_ENOMEM);
	one_fail(&o, one_id(2, 2), PTCP_EIO);
	begin(&o, one_id(8, 8));
	assert_int_equal(failed_with(&o, one_id(8, 8)), 0);
	assert_int_equal(o.cookies, 99);
	one_fini(&o);
}

/* ENTRY frames wait for their directory, 16 MiB of them. */
static void waiting_frames_have_a_limit(void **state)
{
	static uint8_t attrs[60000];
	struct wire_entry f;
	uint64_t i, waits = 0;
	struct one o;

	(void)state;
	attrs[0] = attrs[1] = 1; /* a tag of no meaning, of the length that is left */
	attrs[2] = (sizeof attrs - 4) >> 8;
	attrs[3] = (sizeof attrs - 4) & 0xff;
	one_run(&o, false, true);
	o.prep = RCV_LATER;
	put(&o, WIRE_DIR, one_id(1, 0), 0, 0);
	for (i = 2; i < 600; i++) {
		f = one_entry(WIRE_FILE, one_id(i, (unsigned)i), one_id(1, 0), 0);
		f.attrs = (struct span){ attrs, sizeof attrs };
		ONE_PUT(&o, entry, &f);
		waits += failed_with(&o, f.id) == 0;
	}
	assert_in_range(waits, (16u << 20) / 60100, (16u << 20) / 60000);
	assert_int_equal(o.ended, 0);
	assert_int_equal(rcv_stats(rcv_of(&o)).done.failed, 598 - waits);
	assert_false(engine_failed_unplaced(o.s));
	f.id = one_id(600, 600);
	f.parent = 0; /* at the top: nobody knows which name failed */
	ONE_PUT(&o, entry, &f);
	assert_true(failed_with(&o, f.id) != 0 && engine_failed_unplaced(o.s));
	f.parent = one_id(1, 0);
	/* The directory is there: all are prepared, and there is room again. */
	o.prep = RCV_ACCEPT;
	rcv_prepared(rcv_of(&o), one_id(1, 0), RCV_ACCEPT, NULL, NULL);
	assert_int_equal(o.accepted, waits);
	f.id = one_id(700, 700);
	ONE_PUT(&o, entry, &f);
	assert_int_equal(o.accepted, waits + 1);
	one_fini(&o);
}

static void ids_rise_and_slots_are_few(void **state)
{
	static const struct { uint64_t id, parent; bool fits; } of[] = {
		{ (uint64_t)6 << 16 | 2, 0, true }, { (uint64_t)5 << 16 | 2, 0, false },
		{ (uint64_t)4 << 16 | 2, 0, false }, { (uint64_t)9 << 16 | 1, 0, false },
		{ (uint64_t)9 << 16 | 2, (uint64_t)9 << 16 | 3, false }, /* a parent not yet heard of */
		{ (uint64_t)9 << 16 | 2, (uint64_t)5 << 16 | 1, false }, /* a file */
		{ (uint64_t)9 << 16 | 2, (uint64_t)4 << 16 | 3, true },  /* one that failed, perhaps */
	};
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		one_run(&o, false, true);
		put(&o, WIRE_FILE, one_id(5, 1), 0, 10);
		put(&o, WIRE_FILE, of[i].id, of[i].parent, 10);
		assert_int_equal(one_broke(&o), !of[i].fits);
		one_fini(&o);
	}
}

/* The destination's description has no content: what is in the destination is at the top. */
static void nothing_is_below_the_destination_itself(void **state)
{
	static const struct { const char *name; bool fits; } of[] = { { ".", false }, { "d", true } };
	struct wire_entry dir = one_entry(WIRE_DIR, one_id(5, 1), 0, 0);
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		one_run(&o, false, true);
		dir.name = (struct span){ (const uint8_t *)of[i].name, 1 };
		ONE_PUT(&o, entry, &dir);
		put(&o, WIRE_FILE, one_id(6, 2), one_id(5, 1), 10);
		assert_int_equal(one_broke(&o), !of[i].fits);
		one_fini(&o);
	}
}

/* Fewer slots than the protocol has: the number is told in HELLO. */
static void no_slot_beyond_those_told(void **state)
{
	static const struct rcv_ops none = { .prepare = NULL };
	const struct rcv_opts few = { .max_entries = 16, .ops = &none };
	struct wire_entry f = one_entry(WIRE_FILE, one_id(5, 16), 0, 10);
	struct outbox out = { BUF_INIT, false };
	struct rcv *r;

	(void)state;
	assert_int_equal(rcv_new(&r, &few, &out, NULL), 0);
	assert_int_equal(rcv_on_entry(r, &f, NULL), PTCP_EPROTO);
	rcv_free(r);
	buf_fini(&out.b);
}

/* A directory fails: what waits for it fails with it, each with its own word to the sender. */
static void what_waits_fails_with_its_directory(void **state)
{
	struct ptcp_err why;
	struct wire_fail f;
	struct span p;
	struct one o;
	unsigned i, fails = 0;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_LATER;
	for (i = 1; i <= 100; i++) {
		put(&o, WIRE_DIR, one_id(2 * i, 2 * i), i == 1 ? 0 : one_id(2 * i - 2, 2 * i - 2), 0);
		put(&o, WIRE_FILE, one_id(2 * i + 1, 2 * i + 1), one_id(2 * i, 2 * i), 0);
	}
	one_forget(&o);
	err_set(&why, PTCP_EIO, "cannot be made");
	rcv_prepared(rcv_of(&o), one_id(2, 2), RCV_REFUSE, NULL, &why);
	while (one_said(&o, &p) == WIRE_FAIL) {
		assert_int_equal(wire_fail_decode(&f, p, NULL), 0);
		assert_int_equal(f.why.code, f.id == one_id(2, 2) ? -PTCP_EIO : -PTCP_EPARENT);
		assert_int_equal(f.id == one_id(2, 2), fails == 0); /* the cause comes first */
		fails++;
	}
	assert_int_equal(fails, 200);
	assert_true(rcv_idle(rcv_of(&o)) && rcv_stats(rcv_of(&o)).done.failed == 200);
	/* And what was on its way there. */
	put(&o, WIRE_FILE, one_id(500, 2), one_id(200, 200), 0);
	assert_int_equal(failed_with(&o, one_id(500, 2)), PTCP_EPARENT);
	one_fini(&o);
}

/* ---- Directories that lack something ---- */

static void end_dir(struct one *o, uint64_t id, uint64_t lacks)
{
	struct wire_entry end = one_entry(WIRE_DIR_END, id, 0, 0);

	end.size_bytes = lacks;
	ONE_PUT(o, entry, &end);
}

/* The sender says so, or an entry fails whose name the caller was never told; a file that failed is known, and a link
 * to that file is offered again. */
static void incomplete_directories(void **state)
{
	struct one o;
	int how;

	(void)state;
	for (how = 0; how < 4; how++) {
		one_run(&o, false, true);
		o.prep = RCV_ACCEPT;
		put(&o, WIRE_DIR, one_id(1, 1), 0, 0);
		put(&o, WIRE_FILE, one_id(2, 2), one_id(1, 1), 10);
		if (how < 3)
			one_fail(&o, one_id(2, 2), PTCP_EIO);
		if (how == 2) { /* a link to the file */
			struct wire_entry f = one_link(one_id(3, 3), one_id(1, 1), one_id(2, 2));

			ONE_PUT(&o, entry, &f);
		}
		if (how == 3) {
			block(&o, one_id(2, 2), 0, RCV_BLOCK_WRITTEN);
			rcv_committed(rcv_of(&o), one_id(2, 2), NULL);
		}
		end_dir(&o, one_id(1, 1), how == 1);
		assert_int_equal(o.incomplete, how == 1);
		assert_false(engine_failed_unplaced(o.s));
		assert_int_equal(o.ended, 0);
		one_fini(&o);
	}
}

/* The content of a directory was left out, and so was an entry, of which only the name arrives: neither is counted, or
 * fails. */
static void left_out(void **state)
{
	struct one o;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_ACCEPT;
	put(&o, WIRE_DIR, one_id(1, 1), 0, 0);
	o.prep = RCV_UP_TO_DATE;
	put(&o, WIRE_NAME, one_id(2, 2), one_id(1, 1), 0);
	assert_int_equal(rcv_stats(rcv_of(&o)).live, 1);
	end_dir(&o, one_id(1, 1), WIRE_DIR_CLOSED);
	assert_int_equal(o.closed, 1);
	assert_int_equal(o.incomplete, 0);
	rcv_committed(rcv_of(&o), one_id(1, 1), NULL);
	assert_int_equal(rcv_stats(rcv_of(&o)).done.others, 1);
	assert_int_equal(rcv_stats(rcv_of(&o)).done.files, 0);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

/* At the top, nobody knows where. */
static void failures_without_a_place(void **state)
{
	struct wire_warning n = { .kind = WIRE_WARNING_ONLY };
	struct one o;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_ACCEPT;
	put(&o, WIRE_FILE, one_id(2, 2), 0, 10);
	one_fail(&o, one_id(2, 2), PTCP_EIO);
	ONE_PUT(&o, warning, &n);
	n.kind = WIRE_WARNING_INSIDE;
	ONE_PUT(&o, warning, &n);
	assert_true(engine_failed(o.s) == 2 && !engine_failed_unplaced(o.s));
	one_fini(&o);
	one_run(&o, false, true);
	n.kind = WIRE_WARNING_FAILED;
	ONE_PUT(&o, warning, &n);
	assert_true(engine_failed(o.s) == 1 && engine_failed_unplaced(o.s));
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_entry_to_done),
		cmocka_unit_test(a_digest_that_differs),
		cmocka_unit_test(the_senders_fail),
		cmocka_unit_test(bitmaps_have_a_limit),
		cmocka_unit_test(waiting_frames_have_a_limit),
		cmocka_unit_test(nothing_is_below_the_destination_itself),
		cmocka_unit_test(ids_rise_and_slots_are_few),
		cmocka_unit_test(no_slot_beyond_those_told),
		cmocka_unit_test(what_waits_fails_with_its_directory),
		cmocka_unit_test(incomplete_directories), cmocka_unit_test(left_out),
		cmocka_unit_test(failures_without_a_place),
	};
	return cmocka_run_group_tests_name("engine/receiver", tests, NULL, NULL);
}
