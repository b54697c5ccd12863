/* The receiving half by hand: what is here of an earlier session, holes, and files that are compared. */
#include "one.h"

#include <stdlib.h>
#include <time.h>

#include "core/bitmap.h"
#include "core/err.h"

#define BLOCK (256u << 10)
#define ID ((uint64_t)7 << 16 | 5)
#define MANY (1u << 20)

static struct rcv *rcv_of(struct one *o) { return engine_rcv(o->s); }

static void put(struct one *o, uint64_t id, uint64_t size_bytes)
{
	static const uint8_t sparse[] = { 0, 2, 0, 0 };
	struct wire_entry f = one_entry(WIRE_FILE, id, 0, size_bytes);

	f.attrs = (struct span){ sparse, sizeof sparse };
	ONE_PUT(o, entry, &f);
}

static void hole(struct one *o, uint64_t id, uint32_t first, uint32_t count)
{
	struct wire_blocks f = { .id = id, .first = first, .count = count };

	ONE_PUT(o, hole, &f);
}

/* A file of which every `step`th block is claimed. */
static void claimed(struct one *o, uint32_t n_blocks, uint32_t step)
{
	uint32_t i;

	one_run(o, false, true);
	o->prep = RCV_PARTS;
	o->claimed = bitmap_new(n_blocks);
	for (i = 0; i < n_blocks; i += step)
		bitmap_add(o->claimed, i);
	put(o, ID, (uint64_t)n_blocks * BLOCK);
}

static struct digest sum_of(uint32_t first, uint32_t count)
{
	struct digest d = { 0, 0 };

	for (; count > 0; count--)
		d.lo += ++first;
	return d;
}

static void verified(struct one *o, uint32_t first, uint32_t count, bool good)
{
	rcv_verified(rcv_of(o), ID, first, count, good, sum_of(first, count));
}

static void written(struct one *o, uint32_t block)
{
	rcv_block(rcv_of(o), ID, block, RCV_BLOCK_WRITTEN, sum_of(block, 1), NULL);
}

/* The next frame is this one. */
static void assert_says(struct one *o, unsigned type, uint32_t first, uint32_t count)
{
	struct wire_blocks b;
	struct span p;

	assert_int_equal(one_said(o, &p), type);
	assert_int_equal((type == WIRE_NEED ? wire_need_decode : wire_have_decode)(&b, p, NULL), 0);
	assert_true(b.id == ID && b.first == first && b.count == count);
	if (type == WIRE_HAVE)
		assert_true(digest_equal(b.digest, sum_of(first, count)));
}

static uint8_t verdict_said(struct one *o)
{
	struct wire_answer a;
	struct span p;

	assert_int_equal(one_said(o, &p), WIRE_ANSWER);
	assert_int_equal(wire_answer_decode(&a, p, NULL), 0);
	return a.verdict;
}

static void file_end(struct one *o, struct digest d)
{
	struct wire_file_end f = { ID, d };

	ONE_PUT(o, file_end, &f);
}

/* ---- Claims ---- */

static void from_claims_to_commit(void **state)
{
	struct span p;
	struct one o;

	(void)state;
	claimed(&o, 9, 3); /* 0, 3, 6 */
	assert_int_equal(verdict_said(&o), WIRE_SEND_PARTS);
	assert_true(o.accepted == 1 && o.accepted_parts == 1);
	assert_says(&o, WIRE_NEED, 1, 2);
	assert_says(&o, WIRE_NEED, 4, 2);
	assert_says(&o, WIRE_NEED, 7, 2);
	assert_int_equal(one_said(&o, &p), 0);
	verified(&o, 3, 1, true);
	assert_says(&o, WIRE_HAVE, 3, 1);
	verified(&o, 3, 1, true);  /* again, and what nobody claimed */
	verified(&o, 3, 1, false);
	verified(&o, 3, 2, true);
	verified(&o, 4, 1, true);
	verified(&o, 6, UINT32_MAX, true);
	verified(&o, 9, 1, false);
	written(&o, 6);            /* not asked for */
	assert_int_equal(one_said(&o, &p), 0);
	verified(&o, 6, 1, false);
	assert_says(&o, WIRE_NEED, 6, 1);
	verified(&o, 6, 1, true);  /* too late */
	assert_int_equal(one_said(&o, &p), 0);
	hole(&o, ID, 6, 3);
	assert_int_equal(o.holes, 3);
	written(&o, 1);
	written(&o, 2);
	written(&o, 4);
	written(&o, 5);
	assert_int_equal(o.commits, 0);
	verified(&o, 0, 1, true);
	file_end(&o, sum_of(0, 6)); /* holes have no term */
	assert_int_equal(o.commits, 1);
	assert_true(rcv_stats(rcv_of(&o)).done.bytes == 9 * BLOCK && rcv_stats(rcv_of(&o)).done.resumed_bytes == 2 * BLOCK);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

static void all_is_claimed_or_nothing(void **state)
{
	struct span p;
	struct one o;

	(void)state;
	claimed(&o, 100, 1);
	assert_int_equal(verdict_said(&o), WIRE_SEND_PARTS);
	assert_int_equal(one_said(&o, &p), 0);
	verified(&o, 0, 100, true);
	assert_says(&o, WIRE_HAVE, 0, 100);
	file_end(&o, sum_of(0, 100));
	assert_int_equal(o.commits, 1);
	one_fini(&o);

	claimed(&o, 100, 1);
	one_forget(&o);
	verified(&o, 0, 100, false);
	assert_says(&o, WIRE_NEED, 0, 100);
	one_fini(&o);

	claimed(&o, 100, 1000);
	one_forget(&o);
	verified(&o, 0, 1, true);
	assert_says(&o, WIRE_HAVE, 0, 1);
	one_fini(&o);

	claimed(&o, 1, 1); /* one block needs no FILE_END */
	verified(&o, 0, 1, true);
	assert_int_equal(o.commits, 1);
	one_fini(&o);
}

/* All that it asks for now, in order; the first block that has not been. */
static uint32_t asks(struct one *o, uint32_t from, uint32_t *frames)
{
	struct wire_blocks b;
	struct span p;
	unsigned type;

	while ((type = one_said(o, &p)) != 0) {
		if (type != WIRE_NEED)
			continue;
		assert_int_equal(wire_need_decode(&b, p, NULL), 0);
		assert_true(b.first == from && b.count == 1);
		from += 2;
		(*frames)++;
	}
	one_forget(o);
	return from;
}

/* Every second block of many: neither fills the outbox nor the sender's memory, and none is left out. */
static void as_fragmented_as_can_be(void **state)
{
	uint32_t next, frames = 0, done = 1;
	struct one o;

	(void)state;
	claimed(&o, MANY, 2);
	assert_in_range(buf_len(&engine_outbox(o.s)->b), 1u << 20, (1u << 20) + 200);
	assert_true(engine_deadline(o.s).ns > o.now_ns);
	next = asks(&o, 1, &frames);
	assert_int_equal(engine_deadline(o.s).ns, 0); /* there is room: at once */
	while (one_tick(&o, 0), buf_len(&engine_outbox(o.s)->b) > 0)
		next = asks(&o, next, &frames);
	assert_in_range(frames, 1u << 17, 1u << 17);
	assert_true(engine_deadline(o.s).ns > o.now_ns); /* nothing to do until some have come */
	for (; done < MANY; done += 2) {
		assert_true(done < next);
		written(&o, done);
		one_tick(&o, 0);
		next = asks(&o, next, &frames);
	}
	assert_int_equal(frames, MANY / 2);
	verified(&o, 1000, 1, false); /* after all have been asked for */
	assert_says(&o, WIRE_NEED, 1000, 1);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

/* Bad ones that have not been passed yet are asked for in their turn, once. */
static void bad_before_their_turn(void **state)
{
	struct wire_blocks b;
	uint32_t last = 0;
	struct span p;
	struct one o;

	(void)state;
	claimed(&o, MANY, 2);
	one_forget(&o);
	verified(&o, MANY - 2, 1, false);
	assert_int_equal(one_said(&o, &p), 0);
	for (last = 1; last < MANY - 3;) {
		written(&o, last);
		one_tick(&o, 0);
		while (one_said(&o, &p) != 0)
			if (p.n == WIRE_NEED_MAX_BYTES - WIRE_HEADER_BYTES && wire_need_decode(&b, p, NULL) == 0 &&
			    b.count == 3)
				goto found;
		one_forget(&o);
		last += 2;
	}
	fail_msg("it was not asked for");
found:
	assert_int_equal(b.first, MANY - 3);
	one_fini(&o);
}

static void claims_beyond_the_budget_are_void(void **state)
{
	struct one o;
	unsigned i;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_PARTS;
	for (i = 1; i <= 3; i++) { /* each needs twice 16 MiB, of 64 */
		o.claimed = bitmap_new(1u << 27);
		put(&o, one_id(i, i), WIRE_FILE_MAX);
	}
	assert_true(o.accepted == 3 && o.accepted_parts == 2);
	one_fail(&o, one_id(1, 1), PTCP_EIO);
	o.claimed = bitmap_new(1u << 27);
	put(&o, one_id(4, 4), WIRE_FILE_MAX);
	assert_int_equal(o.accepted_parts, 3);
	o.claimed = NULL; /* none */
	put(&o, one_id(5, 5), BLOCK);
	o.claimed = bitmap_new(0);
	put(&o, one_id(6, 6), 0);
	assert_true(o.accepted == 6 && o.accepted_parts == 3 && o.ended == 0);
	one_fini(&o);
}

/* ---- Holes ---- */

static void a_hole_of_many_blocks_is_quick(void **state)
{
	struct timespec from, to;
	struct one o;

	(void)state;
	one_run(&o, false, true);
	put(&o, ID, WIRE_FILE_MAX);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	hole(&o, ID, 1, (1u << 27) - 2);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	assert_in_range((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000, 0, 200);
	assert_int_equal(o.holes, (1u << 27) - 2);
	assert_int_equal(rcv_stats(rcv_of(&o)).done.bytes, WIRE_FILE_MAX - 2 * WIRE_BLOCK_MAX);
	hole(&o, ID, 0, 1);
	hole(&o, ID, (1u << 27) - 1, 1);
	assert_int_equal(o.ended, 0);
	file_end(&o, (struct digest){ 0, 0 });
	assert_int_equal(o.commits, 1);
	one_fini(&o);
}

static void a_file_that_is_one_hole(void **state)
{
	struct one o;

	(void)state;
	one_run(&o, false, true);
	put(&o, ID, 100);
	hole(&o, ID, 0, 1);
	assert_int_equal(o.commits, 1);
	assert_int_equal(rcv_stats(rcv_of(&o)).done.bytes, 100);
	one_fini(&o);
}

/* ---- Comparing ---- */

static void comparing(struct one *o)
{
	one_run(o, false, true);
	o->prep = RCV_COMPARE;
	put(o, ID, 3 * BLOCK);
	assert_int_equal(verdict_said(o), WIRE_COMPARE);
	assert_int_equal(o->accepted, 0);
}

static void the_same_file_is_skipped(void **state)
{
	struct span p;
	struct one o;
	int first;

	(void)state;
	for (first = 0; first < 2; first++) {
		comparing(&o);
		if (first)
			rcv_compared(rcv_of(&o), ID, sum_of(0, 3), NULL);
		file_end(&o, sum_of(0, 3));
		if (!first)
			rcv_compared(rcv_of(&o), ID, sum_of(0, 3), NULL);
		assert_true(o.same == 1 && one_said(&o, &p) == 0); /* once its mode is right, too */
		rcv_prepared(rcv_of(&o), ID, RCV_UP_TO_DATE, NULL, NULL);
		assert_int_equal(verdict_said(&o), WIRE_SEND_NONE);
		assert_true(o.skipped == 1 && o.differs == 0 && rcv_idle(rcv_of(&o)));
		assert_int_equal(rcv_stats(rcv_of(&o)).done.resumed_bytes, 3 * BLOCK);
		rcv_compared(rcv_of(&o), ID, sum_of(0, 3), NULL);
		one_fini(&o);
	}
}

static void another_file_is_received(void **state)
{
	struct ptcp_err why;
	struct span p;
	struct one o;
	int unreadable;

	(void)state;
	err_set(&why, PTCP_EIO, "cannot be read");
	for (unreadable = 0; unreadable < 2; unreadable++) {
		comparing(&o);
		rcv_compared(rcv_of(&o), ID, sum_of(unreadable ? 0 : 1, 3), unreadable ? &why : NULL);
		rcv_compared(rcv_of(&o), ID, sum_of(0, 3), NULL); /* once is enough */
		file_end(&o, sum_of(0, 3));
		assert_int_equal(o.differs, 1);
		assert_int_equal(one_said(&o, &p), 0);
		rcv_prepared(rcv_of(&o), ID, RCV_ACCEPT, NULL, NULL);
		assert_int_equal(verdict_said(&o), WIRE_SEND_ALL);
		written(&o, 0);
		written(&o, 1);
		written(&o, 2);
		assert_int_equal(o.commits, 0);
		file_end(&o, sum_of(0, 3));
		assert_int_equal(o.commits, 1);
		assert_int_equal(rcv_stats(rcv_of(&o)).done.resumed_bytes, 0);
		one_fini(&o);
	}
}

/* ---- Blocks of another version ---- */

static void hashes(struct one *o, uint32_t first, uint16_t n)
{
	static const uint8_t hash[WIRE_HASH_BYTES * WIRE_HASHES_MAX];
	struct wire_hashes f = { ID, first, n, { hash, n * WIRE_HASH_BYTES } };

	ONE_PUT(o, hashes, &f);
}

/* Two requests at a time; the answers come in pieces, in order. What is equal counts, the rest is requested. */
static void blocks_are_matched(void **state)
{
	struct wire_blocks b;
	struct span p;
	struct one o;

	(void)state;
	claimed(&o, 6, 1);
	assert_int_equal(verdict_said(&o), WIRE_SEND_PARTS);
	rcv_match(rcv_of(&o), ID, 0, 2);
	rcv_match(rcv_of(&o), ID, 3, 3);
	assert_int_equal(one_said(&o, &p), WIRE_MATCH);
	assert_int_equal(wire_match_decode(&b, p, NULL), 0);
	assert_true(b.id == ID && b.first == 0 && b.count == 2);
	assert_int_equal(one_said(&o, &p), WIRE_MATCH);
	hashes(&o, 0, 1);
	hashes(&o, 1, 1);
	assert_true(o.hashes == 2 && o.hash_first == 1 && o.hash_count == 1);
	hashes(&o, 3, 3);
	assert_true(o.hashes == 3 && o.hash_first == 3 && o.hash_count == 3);
	verified(&o, 0, 2, true);
	assert_says(&o, WIRE_HAVE, 0, 2);
	verified(&o, 2, 1, false); /* given up */
	assert_says(&o, WIRE_NEED, 2, 1);
	verified(&o, 3, 3, true);
	assert_says(&o, WIRE_HAVE, 3, 3);
	written(&o, 2);
	file_end(&o, sum_of(0, 6));
	assert_int_equal(o.commits, 1);
	rcv_match(rcv_of(&o), ID, 5, 1); /* too late: without effect */
	assert_int_equal(one_said(&o, &p), WIRE_ACK);
	assert_int_equal(one_said(&o, &p), 0);
	one_fini(&o);
}

static void pieces(struct one *o, uint32_t block, uint16_t n)
{
	static const uint8_t hash[WIRE_HASH_BYTES * WIRE_PIECES_MAX];
	struct wire_hashes f = { ID, block, n, { hash, n * WIRE_HASH_BYTES } };

	ONE_PUT(o, pieces, &f);
}

static void assert_patch(struct one *o, uint32_t block, uint64_t omit)
{
	struct wire_patch f;
	struct span p;

	assert_int_equal(one_said(o, &p), WIRE_PATCH);
	assert_int_equal(wire_patch_decode(&f, p, NULL), 0);
	assert_true(f.id == ID && f.block == block && f.omit == omit);
}

/* Of blocks that are not equal pieces may be: the rest is requested. */
static void blocks_are_split(void **state)
{
	struct wire_blocks b;
	struct span p;
	struct one o;

	(void)state;
	claimed(&o, 6, 1);
	assert_int_equal(verdict_said(&o), WIRE_SEND_PARTS);
	rcv_split(rcv_of(&o), ID, 1, 2);
	assert_int_equal(one_said(&o, &p), WIRE_SPLIT);
	assert_int_equal(wire_split_decode(&b, p, NULL), 0);
	assert_true(b.id == ID && b.first == 1 && b.count == 2);
	assert_false(rcv_split(rcv_of(&o), ID, 2, 1)); /* once only */
	assert_int_equal(one_said(&o, &p), 0);
	rcv_split(rcv_of(&o), ID, 4, 1);
	assert_int_equal(one_said(&o, &p), WIRE_SPLIT);
	pieces(&o, 1, WIRE_PIECES_MAX);
	pieces(&o, 2, WIRE_PIECES_MAX);
	pieces(&o, 4, WIRE_PIECES_MAX);
	assert_true(o.splits == 3 && o.hash_first == 4 && o.hash_count == WIRE_PIECES_MAX);
	one_tick(&o, 0);
	rcv_patch(rcv_of(&o), ID, 1, 0xff00);
	assert_patch(&o, 1, 0xff00);
	rcv_patch(rcv_of(&o), ID, 1, 0xff); /* requested already */
	assert_int_equal(one_said(&o, &p), 0);
	rcv_patch(rcv_of(&o), ID, 2, 0);
	assert_says(&o, WIRE_NEED, 2, 1);
	written(&o, 1);
	assert_int_equal(one_said(&o, &p), WIRE_ACK);
	rcv_block(rcv_of(&o), ID, 2, RCV_BLOCK_BAD, (struct digest){ 0, 0 }, NULL);
	assert_says(&o, WIRE_NEED, 2, 1);
	one_fini(&o);
}

/* Not requested, not next, more of it, or not all pieces. */
static void pieces_that_were_not_requested(void **state)
{
	static const struct { uint32_t block; uint16_t n; } bad[] = { { 0, 64 }, { 2, 64 }, { 3, 64 }, { 6, 64 },
		{ 1, 63 } };
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		claimed(&o, 6, 1);
		rcv_split(rcv_of(&o), ID, 1, 2);
		pieces(&o, bad[i].block, bad[i].n);
		assert_true(one_broke(&o) && o.splits == 0);
		one_fini(&o);
	}
	claimed(&o, 6, 1);
	rcv_split(rcv_of(&o), ID, 1, 1);
	rcv_split(rcv_of(&o), ID, 3, 1);
	pieces(&o, 1, 64);
	assert_int_equal(o.ended, 0);
	pieces(&o, 1, 64);
	assert_true(one_broke(&o) && o.splits == 1);
	one_fini(&o);
}

/* Not what was requested, not next, or more of it. */
static void hashes_that_were_not_requested(void **state)
{
	static const struct { uint32_t first; uint16_t n; } bad[] = { { 1, 1 }, { 0, 3 }, { 3, 1 }, { 2, 1 }, { 6, 1 } };
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		claimed(&o, 6, 1);
		rcv_match(rcv_of(&o), ID, 0, 2);
		rcv_match(rcv_of(&o), ID, 3, 3);
		hashes(&o, bad[i].first, bad[i].n);
		assert_true(one_broke(&o) && o.hashes == 0);
		one_fini(&o);
	}
}

static void the_source_cannot_be_compared(void **state)
{
	struct one o;

	(void)state;
	comparing(&o);
	one_fail(&o, ID, PTCP_ECHANGED);
	assert_true(o.rcv_ended == 1 && o.rcv_why.code == PTCP_ECHANGED && o.ended == 0);
	rcv_compared(rcv_of(&o), ID, sum_of(0, 3), NULL);
	one_fini(&o);
}

/* Of the failures of a source, only one that vanished does not count. */
static void failures_of_the_source(void **state)
{
	static const int codes[] = { PTCP_ECHANGED, PTCP_EVANISHED };
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof codes / sizeof *codes; i++) {
		comparing(&o);
		one_fail(&o, ID, codes[i]);
		assert_true(o.rcv_ended == 1 && o.rcv_why.code == codes[i]);
		assert_int_equal(rcv_stats(rcv_of(&o)).done.failed, codes[i] == PTCP_ECHANGED);
		one_fini(&o);
	}
}

/* Claims that come for what has failed meanwhile. */
static void prepared_too_late(void **state)
{
	struct one o;

	(void)state;
	one_run(&o, false, true);
	rcv_prepared(rcv_of(&o), ID, RCV_PARTS, bitmap_new(3), NULL);
	assert_int_equal(o.accepted, 0);
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_claims_to_commit),
		cmocka_unit_test(all_is_claimed_or_nothing),
		cmocka_unit_test(as_fragmented_as_can_be),
		cmocka_unit_test(bad_before_their_turn),
		cmocka_unit_test(claims_beyond_the_budget_are_void),
		cmocka_unit_test(a_hole_of_many_blocks_is_quick),
		cmocka_unit_test(a_file_that_is_one_hole),
		cmocka_unit_test(the_same_file_is_skipped),
		cmocka_unit_test(another_file_is_received), cmocka_unit_test(blocks_are_matched),
		cmocka_unit_test(hashes_that_were_not_requested), cmocka_unit_test(blocks_are_split),
		cmocka_unit_test(pieces_that_were_not_requested),
		cmocka_unit_test(the_source_cannot_be_compared), cmocka_unit_test(failures_of_the_source),
		cmocka_unit_test(prepared_too_late),
	};
	return cmocka_run_group_tests_name("engine/receiver_blocks", tests, NULL, NULL);
}
