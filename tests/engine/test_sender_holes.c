/* The sending half by hand: holes that are told instead of sent, and files that are compared. */
#include "one.h"

#include <stdlib.h>

#include "core/bitmap.h"
#include "core/err.h"

#define MANY (1u << 20)

/* A file with holes, answered; where they are has been asked. */
static uint64_t sparse(struct one *o, uint64_t size_bytes, uint8_t verdict)
{
	uint64_t id;

	one_run(o, true, true);
	snd_stream_up(one_snd(o), 0, one_now(o));
	id = one_offer_sparse(o, size_bytes);
	snd_listed(one_snd(o), 1, size_bytes, true);
	one_answer(o, id, verdict);
	assert_int_equal(o->maps, 1);
	one_forget(o);
	return id;
}

/* Holes from `first` on, below `end`. */
static void mapped(struct one *o, uint64_t id, uint32_t n_blocks, uint32_t first, uint32_t end)
{
	uint64_t *holes = bitmap_new(n_blocks);

	bitmap_set(holes, true, first, end);
	snd_mapped(one_snd(o), id, holes, NULL);
	one_tick(o, 0);
}

static void need(struct one *o, uint64_t id, uint32_t first, uint32_t count)
{
	struct wire_blocks f = { .id = id, .first = first, .count = count };

	ONE_PUT(o, need, &f);
}

/* The block that goes next on the stream, read at once; UINT32_MAX when there is none. */
static uint32_t sends(struct one *o, uint64_t id)
{
	struct snd_job job;
	uint32_t block;

	if (!snd_take(one_snd(o), 0, one_now(o), &job))
		return UINT32_MAX;
	assert_int_equal(job.n, 1);
	block = job.extent[0].block;
	snd_read(one_snd(o), 0, id, block, (struct digest){ 0, block + 1 }, NULL, one_now(o));
	return block;
}

static void assert_hole(struct one *o, uint32_t first, uint32_t count)
{
	struct wire_blocks b;
	struct span p;

	assert_int_equal(one_said(o, &p), WIRE_HOLE);
	assert_int_equal(wire_hole_decode(&b, p, NULL), 0);
	assert_true(b.first == first && b.count == count);
}

static void assert_file_end(struct one *o, uint64_t lo)
{
	struct wire_file_end f;
	struct span p;

	assert_true(one_found(o, WIRE_FILE_END, &p));
	assert_int_equal(wire_file_end_decode(&f, p, NULL), 0);
	assert_true(f.digest.hi == 0 && f.digest.lo == lo);
}

/* ---- Holes ---- */

static void between_data(void **state)
{
	struct span p;
	struct one o;
	uint64_t id = sparse(&o, 6 * ONE_BLOCK - 5, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(sends(&o, id), UINT32_MAX); /* not before it is known */
	mapped(&o, id, 6, 1, 4);
	assert_int_equal(one_said(&o, &p), 0);
	assert_int_equal(sends(&o, id), 0);
	assert_hole(&o, 1, 3);
	assert_int_equal(sends(&o, id), 4);
	assert_int_equal(sends(&o, id), 5);
	assert_int_equal(sends(&o, id), UINT32_MAX);
	assert_int_equal(one_said(&o, &p), 0);
	one_ack(&o, id, 0);
	one_ack(&o, id, 4);
	one_ack(&o, id, 5);
	assert_int_equal(o.checks, 1);
	snd_checked(one_snd(&o), id, NULL);
	assert_file_end(&o, 1 + 5 + 6);
	assert_int_equal(snd_stats(one_snd(&o)).done.bytes, 6 * ONE_BLOCK - 5);
	assert_int_equal(snd_stats(one_snd(&o)).done.resumed_bytes, 0);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

/* Without any stream. */
static void nothing_but_holes(void **state)
{
	const uint32_t n = 1u << 27;
	struct one o;
	uint64_t id = sparse(&o, WIRE_FILE_MAX, WIRE_SEND_ALL);

	(void)state;
	mapped(&o, id, n, 0, n);
	assert_hole(&o, 0, n);
	assert_int_equal(o.checks, 1);
	one_fini(&o);

	id = sparse(&o, 100, WIRE_SEND_ALL);
	mapped(&o, id, 1, 0, 1);
	assert_hole(&o, 0, 1);
	assert_int_equal(o.checks, 0); /* one block: the receiver names it */
	ONE_PUT(&o, done, &(struct wire_done){ id });
	assert_int_equal(o.fates[SND_DONE], 1);
	one_fini(&o);
}

static void what_was_asked_for_alone(void **state)
{
	struct wire_blocks have = { 0, 0, 3, { 0, 6 } };
	struct span p;
	struct one o;
	uint64_t id = sparse(&o, 10 * ONE_BLOCK, WIRE_SEND_PARTS);

	(void)state;
	have.id = id;
	need(&o, id, 3, 2);             /* before it is known */
	assert_int_equal(sends(&o, id), UINT32_MAX);
	mapped(&o, id, 10, 2, 8);
	assert_hole(&o, 3, 2);
	assert_int_equal(one_said(&o, &p), 0);
	need(&o, id, 7, 3);
	assert_hole(&o, 7, 1);
	assert_int_equal(sends(&o, id), 8);
	assert_int_equal(sends(&o, id), 9);
	ONE_PUT(&o, have, &have);
	need(&o, id, 5, 2);
	assert_hole(&o, 5, 2);
	one_ack(&o, id, 8);
	one_ack(&o, id, 9);
	assert_int_equal(o.checks, 1);
	snd_checked(one_snd(&o), id, NULL);
	assert_file_end(&o, 6 + 9 + 10);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

/* Every second block of many: HOLEs wait for the outbox, and go on when there is room. */
static void as_fragmented_as_can_be(void **state)
{
	uint64_t *holes = bitmap_new(MANY), id;
	uint32_t i, next = 0, most = 0;
	struct wire_blocks b;
	struct span p;
	struct one o;

	(void)state;
	id = sparse(&o, (uint64_t)MANY * ONE_BLOCK, WIRE_SEND_PARTS);
	bitmap_set(holes, true, 0, MANY);
	for (i = 0; i < MANY; i += 2)
		need(&o, id, i, 1);
	snd_mapped(one_snd(&o), id, holes, NULL);
	one_tick(&o, 0);
	while (buf_len(&engine_outbox(o.s)->b) > 0) {
		if (buf_len(&engine_outbox(o.s)->b) > most)
			most = (uint32_t)buf_len(&engine_outbox(o.s)->b);
		assert_true(engine_deadline(o.s).ns > 0);
		while (one_said(&o, &p) != 0) {
			assert_int_equal(wire_hole_decode(&b, p, NULL), 0);
			assert_true(b.first == next && b.count == 1);
			next += 2;
		}
		one_forget(&o);
		assert_int_equal(engine_deadline(o.s).ns == 0, next < MANY);
		one_tick(&o, 0);
	}
	assert_int_equal(next, MANY);
	assert_in_range(most, 1u << 20, (1u << 20) + 100);
	one_fini(&o);
}

/* Maps take memory: of huge files some at a time are asked for. */
static void few_are_mapped_at_once(void **state)
{
	uint64_t id[100];
	struct one o;
	unsigned i;

	(void)state;
	one_run(&o, true, true);
	for (i = 0; i < 100; i++)
		id[i] = one_offer_sparse(&o, 2 * ONE_BLOCK);
	for (i = 0; i < 100; i++)
		one_answer(&o, id[i], WIRE_SEND_ALL);
	assert_int_equal(o.maps, 64);
	one_fail(&o, id[0], PTCP_EIO);
	one_tick(&o, 0);
	assert_int_equal(o.maps, 64); /* it is still being looked for */
	for (i = 0; i < 64; i++)
		snd_mapped(one_snd(&o), id[i], NULL, NULL);
	one_tick(&o, 0);
	assert_int_equal(o.maps, 100);
	one_fini(&o);
}

static void maps_have_a_limit(void **state)
{
	uint64_t id[6];
	struct one o;
	unsigned i;

	(void)state;
	one_run(&o, true, true);
	for (i = 0; i < 6; i++) {
		id[i] = one_offer_sparse(&o, WIRE_FILE_MAX);
		one_answer(&o, id[i], WIRE_SEND_ALL);
	}
	assert_int_equal(o.maps, 4); /* 16 MiB each */
	snd_mapped(one_snd(&o), id[1], NULL, NULL); /* no holes after all */
	one_tick(&o, 0);
	assert_int_equal(o.maps, 5);
	one_fail(&o, id[4], PTCP_EIO);
	assert_int_equal(o.maps, 6);
	snd_mapped(one_snd(&o), id[4], bitmap_new(1u << 27), NULL); /* it is over */
	snd_mapped(one_snd(&o), id[1], bitmap_new(1u << 27), NULL); /* that has been said */
	one_fini(&o);
}

static void a_map_that_cannot_be_had(void **state)
{
	struct ptcp_err why;
	struct span p;
	struct one o;
	uint64_t id = sparse(&o, 3 * ONE_BLOCK, WIRE_SEND_ALL);

	(void)state;
	err_set(&why, PTCP_EIO, "cannot be read");
	snd_mapped(one_snd(&o), id, NULL, &why);
	assert_true(one_found(&o, WIRE_FAIL, &p));
	assert_int_equal(sends(&o, id), UINT32_MAX);
	one_fail(&o, id, PTCP_EIO);
	assert_int_equal(o.fates[SND_FAILED], 1);
	one_fini(&o);
}

/* All of it is there: no map is needed any more when it comes. */
static void had_before_it_is_mapped(void **state)
{
	struct wire_blocks have = { 0, 0, 3, { 0, 6 } };
	struct one o;
	uint64_t id = sparse(&o, 3 * ONE_BLOCK, WIRE_SEND_PARTS);

	(void)state;
	have.id = id;
	ONE_PUT(&o, have, &have);
	assert_int_equal(o.checks, 1);
	mapped(&o, id, 3, 0, 3);
	assert_int_equal(o.checks, 1);
	assert_int_equal(snd_stats(one_snd(&o)).done.bytes, 3 * ONE_BLOCK);
	one_fini(&o);
}

/* ---- Comparing ---- */

static uint64_t comparing(struct one *o)
{
	uint64_t id;

	one_run(o, true, true);
	snd_stream_up(one_snd(o), 0, one_now(o));
	id = one_offer(o, WIRE_FILE, 2 * ONE_BLOCK);
	one_answer(o, id, WIRE_COMPARE);
	assert_int_equal(o->compares, 1);
	one_forget(o);
	return id;
}

static void the_same_and_another(void **state)
{
	struct one o;
	uint64_t id;

	(void)state;
	id = comparing(&o);
	assert_true(snd_awaits_digest(one_snd(&o), id));
	snd_compared(one_snd(&o), id, (struct digest){ 0, 77 }, NULL);
	assert_file_end(&o, 77);
	assert_false(snd_awaits_digest(one_snd(&o), id));
	snd_compared(one_snd(&o), id, (struct digest){ 0, 78 }, NULL);
	one_answer(&o, id, WIRE_SEND_NONE);
	assert_int_equal(o.fates[SND_SKIPPED], 1);
	assert_int_equal(snd_stats(one_snd(&o)).done.resumed_bytes, 2 * ONE_BLOCK);
	one_fini(&o);

	id = comparing(&o);
	snd_compared(one_snd(&o), id, (struct digest){ 0, 77 }, NULL);
	one_answer(&o, id, WIRE_SEND_ALL);
	assert_int_equal(sends(&o, id), 0);
	assert_int_equal(sends(&o, id), 1);
	one_ack(&o, id, 0);
	one_ack(&o, id, 1);
	snd_checked(one_snd(&o), id, NULL);
	assert_file_end(&o, 3); /* what was compared is forgotten */
	one_fini(&o);
}

static void the_source_has_changed(void **state)
{
	struct ptcp_err why;
	struct one o;
	uint64_t id = comparing(&o);

	(void)state;
	err_set(&why, PTCP_ECHANGED, "it has changed");
	snd_compared(one_snd(&o), id, (struct digest){ 0, 0 }, &why);
	one_fail(&o, id, PTCP_ECHANGED);
	assert_int_equal(o.fates[SND_FAILED], 1);
	assert_string_equal(o.fate_why.msg, "it has changed");
	one_fini(&o);
}

/* ---- Dry runs ---- */

static void would_be_sent(void **state)
{
	struct one o;
	uint64_t file, link, dir;

	(void)state;
	one_run_dry(&o, true);
	dir = one_offer(&o, WIRE_DIR, 0);
	file = one_offer(&o, WIRE_FILE, 2 * ONE_BLOCK);
	link = one_offer(&o, WIRE_SYMLINK, 0);
	snd_leave(one_snd(&o));
	snd_listed(one_snd(&o), 1, 2 * ONE_BLOCK, true);
	one_answer(&o, dir, WIRE_SEND_ALL);
	ONE_PUT(&o, done, &(struct wire_done){ file });
	ONE_PUT(&o, done, &(struct wire_done){ link });
	ONE_PUT(&o, done, &(struct wire_done){ dir });
	assert_int_equal(o.fates[SND_DONE], 3);
	assert_true(snd_finished(one_snd(&o)) && snd_stats(one_snd(&o)).done.files == 1);
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_data),
		cmocka_unit_test(nothing_but_holes),
		cmocka_unit_test(what_was_asked_for_alone),
		cmocka_unit_test(as_fragmented_as_can_be),
		cmocka_unit_test(few_are_mapped_at_once),
		cmocka_unit_test(maps_have_a_limit),
		cmocka_unit_test(a_map_that_cannot_be_had),
		cmocka_unit_test(had_before_it_is_mapped),
		cmocka_unit_test(the_same_and_another),
		cmocka_unit_test(the_source_has_changed),
		cmocka_unit_test(would_be_sent),
	};
	return cmocka_run_group_tests_name("engine/sender_holes", tests, NULL, NULL);
}
