/* What a receiving stream makes of the frames of its peer: the test sends them over a connection. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <zstd.h>

#include "core/byteorder.h"
#include "store/hash.h"

#define CHUNK WIRE_CHUNK_BYTES

/* Two blocks of two chunks, and a short one. */
static const struct wire_grid grid = { 4 * CHUNK + 1000, 2 * CHUNK };
static struct sink *sink;

static int setup(void **state)
{
	if (sf_setup(state) != 0)
		return -1;
	sf.o.files = &sf.files;
	sink = sf_sink("to", grid);
	open_files_set(&sf.files, SF_ID, sink, grid);
	return 0;
}

static int teardown(void **state)
{
	sf_stop();
	open_files_clear(&sf.files, SF_ID);
	sink_discard(sink);
	sink_unref(sink);
	return sf_teardown(state);
}

#define recv_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void chunk(unsigned i) { sf_put(SF_ID, (uint64_t)i * CHUNK, i < 4 ? CHUNK : 1000); }

static void expect_result(unsigned i, uint32_t block, enum rcv_block_result what)
{
	assert_in_range(i, 0, sf.n_results - 1);
	assert_int_equal(sf.result[i].id, SF_ID);
	assert_int_equal(sf.result[i].block, block);
	assert_int_equal(sf.result[i].what, what);
}

/* Completes the file, which must have the test's content. */
static void expect_content(void)
{
	static uint8_t got[4 * CHUNK + 1001];
	struct ptcp_err why;
	struct store_item item = { .sink = sink, .why = &why };
	size_t i;

	store_complete(&item, 1, STORE_SYNC_NONE);
	assert_int_equal(item.result, 0);
	assert_int_equal(fx_read("to", got, sizeof got), grid.size_bytes);
	for (i = 0; i < grid.size_bytes; i++)
		if (got[i] != sf_byte(i))
			fail_msg("byte %zu differs", i);
}

/* A block is reported once, with its last chunk; blocks may come in any order. */
static void whole_blocks(void **state)
{
	unsigned i;

	(void)state;
	sf_start();
	chunk(4);
	chunk(2);
	chunk(3);
	chunk(0);
	chunk(1);
	sf_wait(&sf.n_results, 3);
	expect_result(0, 2, RCV_BLOCK_WRITTEN);
	expect_result(1, 1, RCV_BLOCK_WRITTEN);
	expect_result(2, 0, RCV_BLOCK_WRITTEN);
	for (i = 0; i < 3; i++) {
		const uint32_t b = sf.result[i].block;
		const struct digest term = sf_term(grid, b);

		assert_int_equal(sf.result[i].hash, sf_block_hash((uint64_t)b * grid.block_bytes,
		    wire_grid_length(grid, b)));
		assert_memory_equal(&sf.result[i].term, &term, sizeof term);
	}
	expect_content();
}

/* The chunks of a block arrive in order, without other frames between; all else ends the connection. */
static void chunks_out_of_order(void **state)
{
	static const char *const orders[] = { "1", "01" "1", "00" "0" "11", "02" "1", "04" "1", "3", "0" "3" };
	const char *p;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof orders / sizeof *orders; i++) {
		sf_start();
		for (p = orders[i]; *p != '\0'; p++)
			chunk((unsigned)(*p - '0'));
		sf_wait_lost(PTCP_EPROTO, "a block that does not fit its file");
		sf_stop();
		sf.n_lost = 0;
	}
}

/* The sender may abandon a block and begin again, or go on with another block. */
static void abandoned_blocks(void **state)
{
	(void)state;
	sf_start();
	chunk(0);
	chunk(4);
	chunk(0);
	chunk(0);
	chunk(1);
	sf_wait(&sf.n_results, 2);
	expect_result(0, 2, RCV_BLOCK_WRITTEN);
	expect_result(1, 0, RCV_BLOCK_WRITTEN);
	assert_int_equal(sf.result[1].hash, sf_block_hash(0, grid.block_bytes));
}

static void frames_outside_the_grid(void **state)
{
	static const struct { uint64_t offset; uint32_t n; } bad[] = {
		{ 1, CHUNK }, { 0, CHUNK - 1 }, { 4 * CHUNK, 999 }, { 4 * CHUNK, 1001 }, { 6 * CHUNK, 1000 },
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		sf_start();
		sf_put(SF_ID, bad[i].offset, bad[i].n);
		sf_wait_lost(PTCP_EPROTO, "a block that does not fit its file");
		sf_stop();
		sf.n_lost = 0;
	}
	assert_int_equal(sf.n_results, 0);
}

/* Corrupt data never reaches the file: the block is reported once, with its last chunk, and may be sent again. */
static void corrupt_chunks(void **state)
{
	unsigned bad;

	(void)state;
	for (bad = 0; bad < 2; bad++) {
		sf_start();
		sf_put_end(SF_ID, 0, CHUNK, WIRE_BLOCK_GOOD, bad == 0);
		sf_put_end(SF_ID, CHUNK, CHUNK, WIRE_BLOCK_GOOD, bad == 1);
		chunk(4);
		sf_wait(&sf.n_results, 2);
		expect_result(0, 0, RCV_BLOCK_BAD);
		expect_result(1, 2, RCV_BLOCK_WRITTEN);
		sf_stop();
		sf.n_results = 0;
	}
	sf_start();
	sf_put_end(SF_ID, 4 * CHUNK, 1000, WIRE_BLOCK_GOOD, 1);
	chunk(0);
	chunk(1);
	chunk(2);
	chunk(3);
	chunk(4);
	sf_wait(&sf.n_results, 4);
	expect_result(0, 2, RCV_BLOCK_BAD);
	expect_result(3, 2, RCV_BLOCK_WRITTEN);
	expect_content();
}

/* A single write of wrong data would be visible here: the part file stays empty. */
static void corrupt_data_is_not_written(void **state)
{
	(void)state;
	sf_start();
	sf_put_end(SF_ID, 4 * CHUNK, 1000, WIRE_BLOCK_GOOD, 1);
	sf_wait(&sf.n_results, 1);
	expect_result(0, 2, RCV_BLOCK_BAD);
	assert_int_equal(fx_calls_of(FX_pwrite), 0);
}

/* Without verification the peer sends no checks. */
static void unverified(void **state)
{
	(void)state;
	sf.o.verify = false;
	sf_start();
	sf_put_end(SF_ID, 4 * CHUNK, 1000, WIRE_BLOCK_GOOD, 1);
	sf_wait(&sf.n_results, 1);
	expect_result(0, 2, RCV_BLOCK_WRITTEN);
	assert_int_equal(sf.result[0].hash, sf_block_hash(4 * CHUNK, 1000)); /* for the journal */
	assert_int_equal(sf.result[0].term.hi | sf.result[0].term.lo, 0);
}

/* A frame whose data has the compressed form of `form_n` bytes of the test's content, for a chunk of n bytes. */
static void put_packed(uint64_t offset, uint32_t n, uint32_t form_n, uint64_t check_xor)
{
	static uint8_t content[2 * CHUNK], frame[WIRE_BLOCK_HEAD_BYTES + CHUNK];
	struct wire_block b = { .id = SF_ID, .offset = offset, .length_bytes = n };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };
	uint8_t tail[WIRE_BLOCK_END_BYTES];
	uint32_t i;

	for (i = 0; i < 2 * CHUNK; i++)
		content[i] = sf_byte(offset + i);
	b.packed_bytes = (uint32_t)ZSTD_compress(frame + WIRE_BLOCK_HEAD_BYTES, n - 1, content, form_n, 1);
	assert_in_range(b.packed_bytes, 1, n - 1);
	wire_block_encode(frame, &b);
	end.check = hash_check(frame + WIRE_HEADER_BYTES, hash_content(content, n)) ^ check_xor;
	wire_block_end_encode(tail, &end);
	sf_put_raw(frame, WIRE_BLOCK_HEAD_BYTES + b.packed_bytes);
	sf_put_raw(tail, sizeof tail);
}

/* A frame without some pieces of the test's content, the rest compressed or not, `more` bytes longer than it should
 * be. */
static void put_patch(uint64_t offset, uint32_t n, uint64_t omit, bool packed, int more)
{
	static uint8_t content[CHUNK], frame[WIRE_BLOCK_HEAD_BYTES + 2 * CHUNK];
	struct wire_block b = { .id = SF_ID, .offset = offset, .length_bytes = n, .patch = true };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };
	uint8_t tail[WIRE_BLOCK_END_BYTES], *data = frame + WIRE_BLOCK_HEAD_BYTES;
	uint32_t i, rest;

	for (i = 0; i < n; i++)
		content[i] = sf_byte(offset + i);
	memcpy(data, content, n);
	rest = wire_patch_gather(data, n, omit);
	if (packed) {
		memcpy(data + CHUNK, data, rest);
		rest = (uint32_t)ZSTD_compress(data, CHUNK, data + CHUNK, rest, 1);
	}
	b.packed_bytes = (uint32_t)((int)rest + more) + WIRE_OMIT_BYTES;
	put_u64(data + b.packed_bytes - WIRE_OMIT_BYTES, omit);
	wire_block_encode(frame, &b);
	end.check = hash_check(frame + WIRE_HEADER_BYTES, hash_content(content, n));
	wire_block_end_encode(tail, &end);
	sf_put_raw(frame, WIRE_BLOCK_HEAD_BYTES + b.packed_bytes);
	sf_put_raw(tail, sizeof tail);
}

/* The pieces that a patch lacks are taken from the part. */
static void patches(void **state)
{
	static const uint64_t omit[] = { 1, UINT64_C(1) << 63, 0xff00ff, UINT64_MAX, UINT64_MAX - 2 };
	unsigned i;

	(void)state;
	sf_start();
	chunk(0);
	chunk(1);
	chunk(2);
	chunk(3);
	chunk(4);
	sf_wait(&sf.n_results, 3);
	for (i = 0; i < 10; i++) {
		put_patch(0, CHUNK, omit[i / 2], i % 2 && omit[i / 2] != UINT64_MAX, 0);
		chunk(1);
		sf_wait(&sf.n_results, 4 + i);
		expect_result(3 + i, 0, RCV_BLOCK_WRITTEN);
		assert_int_equal(sf.result[3 + i].hash, sf_block_hash(0, grid.block_bytes));
	}
	put_patch(4 * CHUNK, 1000, 1, false, 0);
	sf_wait(&sf.n_results, 14);
	expect_result(13, 2, RCV_BLOCK_WRITTEN);
	assert_int_equal(sf.result[13].omitted_bytes, 1000);
	expect_content();
}

/* Behind so many results: patches of more or less than the chunk has are corrupt chunks. */
static void wrong_forms(unsigned first)
{
	put_patch(4 * CHUNK, 1000, 2, false, -900);
	put_patch(4 * CHUNK, 1000, 0, false, -500);
	sf_put(SF_ID, 0, CHUNK);
	put_patch(CHUNK, CHUNK, 3, false, 1);
	sf_put(SF_ID, 0, CHUNK);
	put_patch(CHUNK, CHUNK, 3, false, -1);
	sf_wait(&sf.n_results, first + 4);
	expect_result(first, 2, RCV_BLOCK_BAD);
	expect_result(first + 1, 2, RCV_BLOCK_BAD);
	expect_result(first + 2, 0, RCV_BLOCK_BAD);
	expect_result(first + 3, 0, RCV_BLOCK_BAD);
}

/* Without verification, too. */
static void wrong_forms_of_patches(void **state)
{
	(void)state;
	sf.o.verify = false;
	sf_start();
	put_patch(4 * CHUNK, 1000, 1, false, 0); /* there is no part */
	chunk(0);
	chunk(1);
	wrong_forms(2);
	expect_result(0, 2, RCV_BLOCK_BAD);
	expect_result(1, 0, RCV_BLOCK_WRITTEN);
}

/* A patch of pieces that are not there, of none, of more than the chunk has, or of another length is a corrupt
 * chunk. */
static void wrong_patches(void **state)
{
	(void)state;
	sf_start();
	put_patch(4 * CHUNK, 1000, 1, false, 0); /* there is no part */
	sf_wait(&sf.n_results, 1);
	expect_result(0, 2, RCV_BLOCK_BAD);
	sf_put(SF_ID, 0, CHUNK);
	put_patch(CHUNK, CHUNK, 2, false, 0); /* not this piece */
	sf_wait(&sf.n_results, 2);
	expect_result(1, 0, RCV_BLOCK_BAD);
	chunk(0);
	chunk(1);
	sf_wait(&sf.n_results, 3);
	wrong_forms(3);
	chunk(0);
	chunk(1);
	chunk(2);
	chunk(3);
	chunk(4);
	sf_wait(&sf.n_results, 10);
	expect_content();
}

/* Compressed chunks beside others, also of files that are not open; the hashes are of the data. */
static void compressed_chunks(void **state)
{
	static uint8_t of_nobody[WIRE_BLOCK_HEAD_BYTES + 5 + WIRE_BLOCK_END_BYTES];

	(void)state;
	wire_block_encode(of_nobody, &(struct wire_block){ .id = SF_ID + 5, .length_bytes = CHUNK, .packed_bytes = 5 });
	sf_start();
	put_packed(0, CHUNK, CHUNK, 0);
	chunk(1);
	sf_put_raw(of_nobody, sizeof of_nobody);
	put_packed(2 * CHUNK, CHUNK, CHUNK, 0);
	put_packed(3 * CHUNK, CHUNK, CHUNK, 0);
	chunk(4);
	sf_wait(&sf.n_results, 3);
	expect_result(0, 0, RCV_BLOCK_WRITTEN);
	assert_int_equal(sf.result[0].hash, sf_block_hash(0, grid.block_bytes));
	expect_content();
}

/* A form of fewer or more bytes than the chunk is a corrupt chunk, with or without verification; so is one of other
 * bytes, with verification. The block is reported, to be sent again. */
static void wrong_compressed_chunks(void **state)
{
	static const uint32_t wrong[] = { CHUNK - 1, CHUNK + 1, 2 * CHUNK, 1 };
	unsigned verify, i;

	(void)state;
	for (verify = 0; verify < 2; verify++) {
		sf.o.verify = verify;
		sf_start();
		for (i = 0; i < 4 + verify; i++) {
			sf_put(SF_ID, 0, CHUNK);
			put_packed(CHUNK, CHUNK, i < 4 ? wrong[i] : CHUNK, i == 4);
		}
		sf_wait(&sf.n_results, i);
		while (i > 0)
			expect_result(--i, 0, RCV_BLOCK_BAD);
		sf.n_results = 0;
		sf_stop();
	}
	sf_start();
	for (i = 0; i < 5; i++)
		chunk(i);
	sf_wait(&sf.n_results, 3);
	expect_content();
}

/* The sender could not read the rest: the receiver ignores the block, and reports nothing. */
static void void_blocks(void **state)
{
	(void)state;
	sf_start();
	chunk(0);
	sf_put_end(SF_ID, CHUNK, CHUNK, WIRE_BLOCK_VOID, 0);
	chunk(4);
	sf_wait(&sf.n_results, 1);
	expect_result(0, 2, RCV_BLOCK_WRITTEN);
	sf_put_end(SF_ID, 0, CHUNK, WIRE_BLOCK_VOID, 0);
	chunk(1); /* nothing follows a void chunk */
	sf_wait_lost(PTCP_EPROTO, "a block that does not fit its file");
	assert_int_equal(sf.n_results, 1);
}

static void malformed_frames(void **state)
{
	uint8_t head[WIRE_BLOCK_HEAD_BYTES];
	const struct wire_block b = { SF_ID, 0, CHUNK, 0, false };

	(void)state;
	wire_block_encode(head, &b);
	head[0] = WIRE_PING;
	sf_start();
	sf_put_raw(head, sizeof head);
	sf_wait(&sf.n_lost, 1);
	assert_int_equal(sf.lost.code, PTCP_EPROTO);
	sf_stop();
	sf.n_lost = 0;
	sf_start();
	sf_put_end(SF_ID, 4 * CHUNK, 1000, 77, 0);
	sf_wait(&sf.n_lost, 1);
	assert_int_equal(sf.lost.code, PTCP_EPROTO);
	assert_int_equal(sf.n_results, 0);
}

static void unknown_files_are_discarded(void **state)
{
	(void)state;
	sf_start();
	sf_put(SF_ID + 1, 0, CHUNK);
	sf_put(SF_ID + 1, CHUNK, 17);
	chunk(4);
	sf_wait(&sf.n_results, 1);
	expect_result(0, 2, RCV_BLOCK_WRITTEN);
	assert_int_equal(sf.n_lost, 0);
}

static void on_unknown(void *arg, struct stream *s, uint64_t id)
{
	(void)arg;
	assert_ptr_equal(s, sf.stream);
	sf.unknown = id;
	sf.n_unknown++;
}

/* The stream asks once for each block, and goes on when the answer is there: with the file, or without. */
static void unknown_files_are_queried(void **state)
{
	struct stream_ops ops = *sf.o.ops;

	(void)state;
	ops.unknown = on_unknown;
	sf.o.ops = &ops;
	open_files_clear(&sf.files, SF_ID);
	sf_start();
	chunk(4);
	sf_wait(&sf.n_unknown, 1);
	assert_int_equal(sf.unknown, SF_ID);
	assert_true(stream_on_disk(sf.stream));
	open_files_set(&sf.files, SF_ID, sink, grid);
	stream_known(sf.stream);
	sf_wait(&sf.n_results, 1);
	expect_result(0, 2, RCV_BLOCK_WRITTEN);
	sf_put(SF_ID + 1, 0, 10);
	sf_wait(&sf.n_unknown, 2);
	assert_int_equal(sf.unknown, SF_ID + 1);
	stream_known(sf.stream);
	chunk(4);
	sf_wait(&sf.n_results, 2);
	assert_int_equal(sf.n_unknown, 2);
	assert_false(stream_on_disk(sf.stream));
	sf_stop();
}

/* A stream of a measurement delivers no more than this host permits. */
static void too_many_bytes(void **state)
{
	struct mono from, until, before = mono_now();

	(void)state;
	sf.o.max_bytes = 2500;
	sf_start();
	sf_put(SF_ID + 1, 0, 1000);
	sf_put(SF_ID + 1, 0, 1500);
	sf_put(SF_ID + 1, 0, 1);
	sf_wait_lost(PTCP_EREFUSED, "exceeded this host's limit of bytes");
	assert_int_equal(stream_received(sf.stream, &from, &until), 2501);
	assert_in_range(from.ns, before.ns, mono_now().ns);
}

/* All bytes count, those of complete blocks and of those that a lost connection cuts. */
static void cut_short(void **state)
{
	uint8_t head[WIRE_BLOCK_HEAD_BYTES];
	const struct wire_block b = { SF_ID, 0, CHUNK, 0, false };
	struct mono from, until;

	(void)state;
	sf_start();
	chunk(4);
	wire_block_encode(head, &b);
	sf_put_raw(head, sizeof head);
	sf_put_raw("xyz", 3);
	shutdown(sf.peer, SHUT_WR);
	sf_wait_lost(PTCP_EPEER, "the peer closed the connection");
	assert_int_equal(sf.n_results, 1);
	assert_int_equal(stream_received(sf.stream, &from, &until), 1000 + CHUNK);
	assert_true(from.ns > 0 && until.ns >= from.ns);
	assert_int_equal(stream_moved(sf.stream), WIRE_BLOCK_HEAD_BYTES + 1000 + WIRE_BLOCK_END_BYTES +
	    sizeof head + 3);
}

/* More blocks than one report holds, and than one turn of the loop takes: none is lost, and the order stays. */
static void many_small_files(void **state)
{
	static const struct wire_grid one = { 10, CHUNK };
	struct sink *s[300];
	char name[16];
	unsigned i;

	(void)state;
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "f%u", i);
		s[i] = sf_sink(name, one);
		open_files_set(&sf.files, SF_ID + 1 + i, s[i], one);
	}
	sf_start();
	for (i = 0; i < 300; i++)
		sf_put(SF_ID + 1 + i, 0, 10);
	sf_wait(&sf.n_results, 300);
	for (i = 0; i < 300; i++) {
		assert_int_equal(sf.result[i].id, SF_ID + 1 + i);
		assert_int_equal(sf.result[i].what, RCV_BLOCK_WRITTEN);
		open_files_clear(&sf.files, SF_ID + 1 + i);
		sink_discard(s[i]);
		sink_unref(s[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		recv_test(whole_blocks), recv_test(chunks_out_of_order), recv_test(abandoned_blocks),
		recv_test(frames_outside_the_grid), recv_test(corrupt_chunks), recv_test(corrupt_data_is_not_written),
		recv_test(unverified), recv_test(compressed_chunks), recv_test(wrong_compressed_chunks),
		recv_test(patches), recv_test(wrong_patches), recv_test(wrong_forms_of_patches),
		recv_test(void_blocks), recv_test(malformed_frames),
		recv_test(unknown_files_are_discarded), recv_test(unknown_files_are_queried), recv_test(too_many_bytes),
		recv_test(cut_short), recv_test(many_small_files),
	};

	return cmocka_run_group_tests_name("stream/stream_recv", tests, NULL, NULL);
}
