/* Files whose size is known at their end, and files that are received piece by piece: both halves by hand. */
#include "one.h"

#include <stdlib.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "wire/attrs.h"
#include "wire/block.h"

#define ID ((uint64_t)7 << 16 | 5)
#define TAIL 100u

static const uint8_t unsized[] = { 0x80, 0x01, 0, 0 };

static struct rcv *rcv_of(struct one *o) { return engine_rcv(o->s); }

static struct digest term(uint32_t block) { return (struct digest){ 0, block + 1 }; }

static void need(struct one *o, uint64_t id, uint32_t block)
{
	struct wire_blocks f = { .id = id, .first = block, .count = 1 };

	ONE_PUT(o, need, &f);
}

/* ---- Sending ---- */

static uint64_t offered(struct one *o, unsigned streams)
{
	struct wire_entry f = { .type = WIRE_FILE, .name = { (const uint8_t *)"-", 1 },
		.attrs = { unsized, sizeof unsized } };
	uint64_t id;
	unsigned i;

	one_run(o, true, true);
	id = one_offer_as(o, &f);
	for (i = 0; i < streams; i++)
		snd_stream_up(one_snd(o), i, one_now(o));
	one_forget(o);
	return id;
}

static uint64_t growing(struct one *o, unsigned streams)
{
	uint64_t id = offered(o, streams);

	one_answer(o, id, WIRE_SEND_ALL);
	return id;
}

static void is_read(struct one *o, unsigned stream, uint64_t id, uint32_t block)
{
	snd_read(one_snd(o), stream, id, block, term(block), NULL, one_now(o));
}

static uint64_t size_said(struct one *o)
{
	struct wire_size f;
	struct span p;

	assert_true(one_found(o, WIRE_SIZE, &p));
	assert_int_equal(wire_size_decode(&f, p, NULL), 0);
	return f.size_bytes;
}

static void blocks_follow_the_input(void **state)
{
	struct one o;
	uint64_t id = growing(&o, 2);
	struct wire_file_end end;
	struct wire_done done = { id };
	struct span p;

	(void)state;
	assert_int_equal(one_take(&o, 0), UINT32_MAX);
	snd_grown(one_snd(&o), id, 2);
	assert_int_equal(one_take(&o, 0), 0);
	assert_int_equal(one_take(&o, 1), 1);
	assert_int_equal(one_take(&o, 0), UINT32_MAX);
	is_read(&o, 0, id, 0);
	assert_int_equal(o.released, 0);
	one_ack(&o, id, 0);
	assert_int_equal(o.released, 1);
	one_ack(&o, id, 1); /* before word of its reading */
	assert_int_equal(o.released, 1);
	is_read(&o, 1, id, 1);
	assert_int_equal(o.released, 2);
	assert_int_equal(o.checks, 0); /* more may come */
	assert_true(snd_sized(one_snd(&o), id, 2 * ONE_BLOCK + TAIL));
	assert_int_equal(size_said(&o), 2 * ONE_BLOCK + TAIL);
	assert_int_equal(one_take(&o, 0), UINT32_MAX); /* its last block is requested */
	need(&o, id, 2);
	assert_int_equal(one_take(&o, 0), 2);
	is_read(&o, 0, id, 2);
	one_ack(&o, id, 2);
	assert_int_equal(o.checks, 1);
	snd_checked(one_snd(&o), id, NULL);
	assert_true(one_found(&o, WIRE_FILE_END, &p));
	assert_int_equal(wire_file_end_decode(&end, p, NULL), 0);
	assert_int_equal(end.digest.lo, 1 + 2 + 3);
	ONE_PUT(&o, done, &done);
	assert_int_equal(o.fates[SND_DONE], 1);
	assert_int_equal(snd_stats(one_snd(&o)).done.file_bytes, 2 * ONE_BLOCK + TAIL);
	one_fini(&o);
}

/* The check of a single block does not cover the end of the input. */
static void one_block_and_none_have_an_end(void **state)
{
	static const uint64_t sizes[] = { 0, 1, ONE_BLOCK };
	struct one o;
	struct span p;
	uint64_t id;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		id = growing(&o, 1);
		assert_true(snd_sized(one_snd(&o), id, sizes[i]));
		assert_int_equal(size_said(&o), sizes[i]);
		if (sizes[i] == 1)
			need(&o, id, 0);
		if (sizes[i] > 0) {
			assert_int_equal(one_take(&o, 0), 0);
			is_read(&o, 0, id, 0);
			one_ack(&o, id, 0);
		}
		assert_int_equal(o.checks, 1);
		snd_checked(one_snd(&o), id, NULL);
		assert_true(one_found(&o, WIRE_FILE_END, &p));
		one_fini(&o);
	}
}

static void a_lost_stream_sends_from_memory(void **state)
{
	struct one o;
	uint64_t id = growing(&o, 2);

	(void)state;
	snd_grown(one_snd(&o), id, 3);
	assert_int_equal(one_take(&o, 0), 0);
	assert_int_equal(one_take(&o, 1), 1);
	is_read(&o, 0, id, 0);
	is_read(&o, 1, id, 1);
	one_ack(&o, id, 1);
	snd_stream_lost(one_snd(&o), 0);
	assert_int_equal(o.released, 1);
	assert_int_equal(one_take(&o, 1), 0);
	assert_int_equal(one_take(&o, 1), 2);
	one_ack(&o, id, 0);
	assert_int_equal(o.released, 2);
	one_fini(&o);
}

/* One slow block keeps all others waiting, also while the input goes on. */
static void a_late_block_is_copied(void **state)
{
	struct one o;
	uint64_t id = growing(&o, 2);

	(void)state;
	snd_grown(one_snd(&o), id, 2);
	assert_int_equal(one_take(&o, 0), 0);
	assert_int_equal(one_take(&o, 1), 1);
	is_read(&o, 0, id, 0);
	is_read(&o, 1, id, 1);
	one_ack(&o, id, 1);
	assert_int_equal(one_take(&o, 1), UINT32_MAX);
	one_tick(&o, 3 * NS_PER_S);
	assert_int_equal(one_take(&o, 1), 0);
	one_fini(&o);
}

static void an_input_may_fail(void **state)
{
	struct ptcp_err why;
	struct span p;
	struct one o;
	uint64_t id = offered(&o, 1);

	(void)state;
	err_set(&why, PTCP_EIO, "it has failed");
	assert_false(snd_input_failed(one_snd(&o), id, &why)); /* FAIL follows ANSWER */
	assert_false(snd_sized(one_snd(&o), id, 5));
	assert_false(one_found(&o, WIRE_FAIL, &p));
	one_answer(&o, id, WIRE_SEND_ALL);
	snd_grown(one_snd(&o), id, 4);
	assert_int_equal(one_take(&o, 0), 0);
	assert_true(snd_input_failed(one_snd(&o), id, &why));
	assert_true(one_found(&o, WIRE_FAIL, &p));
	assert_int_equal(one_take(&o, 0), UINT32_MAX);
	assert_true(snd_sized(one_snd(&o), id, 5)); /* too late */
	assert_false(one_found(&o, WIRE_SIZE, &p));
	one_fail(&o, id, PTCP_EIO);
	assert_int_equal(o.fates[SND_FAILED], 1);
	assert_string_equal(o.fate_why.msg, "it has failed");
	one_fini(&o);
}

static void what_a_receiver_may_not_say(void **state)
{
	struct one o;
	uint64_t id;
	unsigned what;

	(void)state;
	for (what = 0; what < 5; what++) {
		id = what < 2 ? offered(&o, 1) : growing(&o, 1);
		snd_grown(one_snd(&o), id, 2);
		if (what == 0)
			one_answer(&o, id, WIRE_SEND_PARTS);
		else if (what == 1)
			one_answer(&o, id, WIRE_COMPARE);
		else if (what == 2)
			one_ack(&o, id, 2); /* has not been read */
		else if (what == 3)
			need(&o, id, 2);
		else {
			assert_int_equal(one_take(&o, 0), 0);
			is_read(&o, 0, id, 0);
			one_ack(&o, id, 0);
			need(&o, id, 0); /* has been released */
		}
		assert_true(one_broke(&o));
		one_fini(&o);
	}
}

/* ---- Receiving ---- */

static void put_unsized(struct one *o)
{
	struct wire_entry f = one_entry(WIRE_FILE, ID, 0, 0);

	one_run(o, false, true);
	o->prep = RCV_ACCEPT;
	f.attrs = (struct span){ unsized, sizeof unsized };
	ONE_PUT(o, entry, &f);
	one_forget(o);
}

static void written(struct one *o, uint32_t block)
{
	rcv_block(rcv_of(o), ID, block, RCV_BLOCK_WRITTEN, term(block), NULL);
}

static void put_size(struct one *o, uint64_t size_bytes)
{
	struct wire_size f = { ID, size_bytes };

	ONE_PUT(o, size, &f);
}

static void put_end(struct one *o, uint64_t lo)
{
	struct wire_file_end f = { ID, { 0, lo } };

	ONE_PUT(o, file_end, &f);
}

static void size_then_the_rest(void **state)
{
	struct wire_blocks b;
	struct span p;
	struct one o;

	(void)state;
	put_unsized(&o);
	written(&o, 1);
	written(&o, 0);
	assert_int_equal(o.commits, 0);
	put_size(&o, 2 * ONE_BLOCK + TAIL);
	assert_int_equal(o.sized_bytes, 2 * ONE_BLOCK + TAIL);
	assert_true(one_found(&o, WIRE_NEED, &p));
	assert_int_equal(wire_need_decode(&b, p, NULL), 0);
	assert_true(b.first == 2 && b.count == 1);
	written(&o, 2);
	assert_int_equal(o.commits, 0);
	put_end(&o, 1 + 2 + 3);
	assert_int_equal(o.commits, 1);
	rcv_committed(rcv_of(&o), ID, NULL);
	assert_int_equal(rcv_stats(rcv_of(&o)).done.file_bytes, 2 * ONE_BLOCK + TAIL);
	one_fini(&o);
}

static void whole_blocks_need_no_rest(void **state)
{
	static const uint32_t counts[] = { 0, 1, 2 };
	struct span p;
	struct one o;
	uint32_t i, k;

	(void)state;
	for (i = 0; i < 3; i++) {
		put_unsized(&o);
		for (k = 0; k < counts[i]; k++)
			written(&o, k);
		put_size(&o, (uint64_t)counts[i] * ONE_BLOCK);
		assert_false(one_found(&o, WIRE_NEED, &p));
		assert_int_equal(o.commits, 0);
		put_end(&o, counts[i] * (counts[i] + 1) / 2);
		assert_int_equal(o.commits, 1);
		one_fini(&o);
	}
}

static void a_wrong_digest_fails(void **state)
{
	struct one o;

	(void)state;
	put_unsized(&o);
	written(&o, 0);
	put_size(&o, ONE_BLOCK);
	put_end(&o, 7);
	assert_int_equal(o.commits, 0);
	assert_int_equal(o.rcv_why.code, PTCP_EVERIFY);
	one_fini(&o);
}

static void what_a_sender_may_not_say(void **state)
{
	struct wire_entry f = one_entry(WIRE_FILE, ID, 0, 5);
	struct wire_blocks hole = { .id = ID, .first = 0, .count = 1 };
	struct one o;
	unsigned what;

	(void)state;
	for (what = 0; what < 6; what++) {
		put_unsized(&o);
		written(&o, 0);
		written(&o, 1);
		if (what == 0)
			put_size(&o, 2 * ONE_BLOCK - 1); /* less than was written */
		else if (what == 1)
			put_end(&o, 3); /* without a size */
		else if (what == 2)
			ONE_PUT(&o, hole, &hole);
		else if (what == 3) {
			put_size(&o, 5 * ONE_BLOCK);
			put_size(&o, 6 * ONE_BLOCK);
		} else if (what == 4) {
			f.id += 1 << 16;
			f.attrs = (struct span){ unsized, sizeof unsized }; /* and a size */
			ONE_PUT(&o, entry, &f);
		} else {
			put_size(&o, 2 * ONE_BLOCK);
			put_size(&o, 2 * ONE_BLOCK);
		}
		assert_true(one_broke(&o));
		one_fini(&o);
	}
}

/* A file of known size has said its size. */
static void a_size_for_a_sized_file(void **state)
{
	struct wire_entry f = one_entry(WIRE_FILE, ID, 0, 5 * ONE_BLOCK);
	struct one o;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_ACCEPT;
	ONE_PUT(&o, entry, &f);
	put_size(&o, 5 * ONE_BLOCK);
	assert_true(one_broke(&o));
	one_fini(&o);
}

static void the_beginning_of_a_failed_file(void **state)
{
	struct one o;

	(void)state;
	put_unsized(&o);
	written(&o, 0);
	written(&o, 1);
	written(&o, 3);
	one_fail(&o, ID, PTCP_EIO);
	assert_int_equal(o.beginning_bytes, 2 * ONE_BLOCK);
	assert_int_equal(o.rcv_ended, 1);
	one_fini(&o);
	put_unsized(&o);
	written(&o, 0);
	put_size(&o, ONE_BLOCK + TAIL);
	written(&o, 1);
	rcv_drop(rcv_of(&o));
	assert_int_equal(o.beginning_bytes, ONE_BLOCK + TAIL);
	one_fini(&o);
}

/* Four bitmaps of 2^27 blocks fit the limit; a further file fails, not the session. */
static void memory_is_limited(void **state)
{
	struct wire_entry f = one_entry(WIRE_FILE, ID, 0, 0);
	struct one o;
	unsigned i;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_ACCEPT;
	f.attrs = (struct span){ unsized, sizeof unsized };
	for (i = 0; i < 5; i++) {
		f.id = one_id(7 + i, 5 + i);
		ONE_PUT(&o, entry, &f);
		rcv_block(rcv_of(&o), f.id, (1u << 27) - 1, RCV_BLOCK_WRITTEN, term(0), NULL);
		assert_int_equal(o.rcv_ended, i == 4);
	}
	assert_int_equal(o.rcv_why.code, PTCP_ENOMEM);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

/* ---- A window of requests ---- */

static void assert_needs(struct one *o, uint32_t first, uint32_t count)
{
	struct wire_blocks b;
	struct span p;

	assert_true(one_found(o, WIRE_NEED, &p));
	assert_int_equal(wire_need_decode(&b, p, NULL), 0);
	assert_true(b.first == first && b.count == count);
	one_forget(o);
}

static void no_request_beyond_the_window(void **state)
{
	struct wire_entry f = one_entry(WIRE_FILE, ID, 0, 9 * ONE_BLOCK);
	struct span p;
	struct one o;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_LATER;
	ONE_PUT(&o, entry, &f);
	rcv_prepared(rcv_of(&o), ID, RCV_PARTS, bitmap_new(9), NULL);
	rcv_limit(rcv_of(&o), ID, 4);
	one_tick(&o, 1);
	assert_needs(&o, 0, 4);
	written(&o, 4); /* not requested: ignored */
	written(&o, 1);
	one_tick(&o, 1);
	assert_false(one_found(&o, WIRE_NEED, &p));
	rcv_limit(rcv_of(&o), ID, 6);
	one_tick(&o, 1);
	assert_needs(&o, 4, 2);
	rcv_limit(rcv_of(&o), ID, 5); /* never less */
	one_tick(&o, 1);
	rcv_limit(rcv_of(&o), ID, 100);
	one_tick(&o, 1);
	assert_needs(&o, 6, 3);
	assert_int_equal(rcv_stats(rcv_of(&o)).done.bytes, ONE_BLOCK);
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_follow_the_input), cmocka_unit_test(one_block_and_none_have_an_end),
		cmocka_unit_test(a_lost_stream_sends_from_memory), cmocka_unit_test(a_late_block_is_copied),
		cmocka_unit_test(an_input_may_fail), cmocka_unit_test(what_a_receiver_may_not_say),
		cmocka_unit_test(size_then_the_rest), cmocka_unit_test(whole_blocks_need_no_rest),
		cmocka_unit_test(a_wrong_digest_fails), cmocka_unit_test(what_a_sender_may_not_say),
		cmocka_unit_test(a_size_for_a_sized_file), cmocka_unit_test(the_beginning_of_a_failed_file),
		cmocka_unit_test(memory_is_limited), cmocka_unit_test(no_request_beyond_the_window),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
