/* Files that blocks may be written to: look-ups by the ids of a peer, and the time to sync. */
#include "fixture.h"

#include <string.h>

#define CHUNK WIRE_CHUNK_BYTES

static const struct wire_grid grid = { 3 * CHUNK + 5, CHUNK }, single = { 5, CHUNK };
static struct open_files files;
static struct sink *a, *b;

static int setup(void **state)
{
	if (fx_tree_setup(state) != 0)
		return -1;
	memset(&files, 0, sizeof files);
	open_files_init(&files);
	a = sf_sink("a", grid);
	b = sf_sink("b", single);
	return 0;
}

static int teardown(void **state)
{
	sink_discard(a);
	sink_discard(b);
	sink_unref(a);
	sink_unref(b);
	open_files_fini(&files);
	return fx_tree_teardown(state);
}

#define files_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct sink *found(uint64_t id, uint64_t offset, uint32_t n, bool *ok, struct wire_chunk *c)
{
	const struct wire_block f = { id, offset, n, 0, false };
	struct sink *s = open_files_find(&files, &f, c, ok);

	sink_unref(s); /* the table has references of its own */
	return s;
}

/* Only the exact id finds a file: not that of an earlier file in the same slot, nor one beyond the slots. */
static void ids(void **state)
{
	static const uint64_t strangers[] = { 0, SF_ID + 1, SF_ID + (UINT64_C(1) << 16), 1, SF_ID | WIRE_SLOTS,
		SF_ID | 0xffff, UINT64_MAX };
	struct wire_chunk c;
	unsigned i;
	bool ok;

	(void)state;
	assert_null(found(SF_ID, 0, CHUNK, &ok, &c));
	assert_true(ok);
	open_files_set(&files, SF_ID, a, grid);
	assert_ptr_equal(found(SF_ID, CHUNK, CHUNK, &ok, &c), a);
	assert_int_equal(c.block, 1);
	for (i = 0; i < sizeof strangers / sizeof *strangers; i++) {
		assert_null(found(strangers[i], 0, CHUNK, &ok, &c));
		assert_true(ok);
		assert_null(open_files_get(&files, strangers[i], NULL));
		open_files_clear(&files, strangers[i] == UINT64_MAX ||
		    wire_slot(strangers[i]) >= WIRE_SLOTS ? 0 : strangers[i]);
	}
	assert_ptr_equal(found(SF_ID, 0, CHUNK, &ok, &c), a);
	open_files_clear(&files, SF_ID);
	assert_null(found(SF_ID, 0, CHUNK, &ok, &c));
	open_files_set(&files, SF_ID + (UINT64_C(1) << 16), b, single); /* the slot is free for the next file */
	assert_ptr_equal(found(SF_ID + (UINT64_C(1) << 16), 0, 5, &ok, &c), b);
	open_files_clear(&files, SF_ID + (UINT64_C(1) << 16));
}

static void frames_outside_the_grid(void **state)
{
	struct wire_chunk c;
	bool ok = true;

	(void)state;
	open_files_set(&files, SF_ID, a, grid);
	assert_null(found(SF_ID, 3 * CHUNK, 6, &ok, &c));
	assert_false(ok);
	assert_ptr_equal(found(SF_ID, 3 * CHUNK, 5, &ok, &c), a);
	assert_true(ok && c.last);
	open_files_clear(&files, SF_ID);
}

/* The size of a file that was unknown becomes known: the same file has a new grid. */
static void a_new_grid(void **state)
{
	struct wire_grid got;
	struct wire_chunk c;
	bool ok;

	(void)state;
	open_files_set(&files, SF_ID, a, (struct wire_grid){ 10 * CHUNK, CHUNK });
	assert_ptr_equal(found(SF_ID, 5 * CHUNK, CHUNK, &ok, &c), a);
	open_files_set(&files, SF_ID, a, grid);
	assert_null(found(SF_ID, 5 * CHUNK, CHUNK, &ok, &c));
	assert_false(ok);
	assert_ptr_equal(open_files_get(&files, SF_ID, &got), a);
	sink_unref(a);
	assert_int_equal(got.size_bytes, grid.size_bytes);
	open_files_clear(&files, SF_ID);
}

static struct sink *wrote(uint64_t id, uint32_t block, bool sync, uint64_t now_ns)
{
	struct sink *s = open_files_wrote(&files, id, block, sync, 2 * CHUNK, 1000, (struct mono){ now_ns });

	sink_unref(s);
	return s;
}

/* A sync is due after so many bytes, or so long after the first unsynced block, and then only after as many again. */
static void syncs(void **state)
{
	(void)state;
	open_files_set(&files, SF_ID, a, grid);
	open_files_set(&files, SF_ID + 1, b, single);
	assert_null(wrote(SF_ID, 0, true, 100));
	assert_ptr_equal(wrote(SF_ID, 1, true, 101), a);  /* bytes */
	assert_null(wrote(SF_ID, 2, true, 5000));         /* counted from here */
	assert_null(wrote(SF_ID, 3, true, 5999));
	assert_ptr_equal(wrote(SF_ID, 3, true, 6000), a); /* time */
	assert_null(wrote(SF_ID, 0, true, 6001));
	assert_null(wrote(SF_ID, 1, false, 9000));        /* not now: another sync is in progress */
	assert_ptr_equal(wrote(SF_ID, 3, true, 9001), a);
	assert_null(wrote(SF_ID + 1, 0, true, 0));        /* without a journal nothing is lost */
	assert_null(wrote(SF_ID + 1, 0, true, 100000));
	assert_null(wrote(SF_ID + 2, 0, true, 100000));
	open_files_clear(&files, SF_ID);
	assert_null(wrote(SF_ID, 0, true, UINT64_C(1) << 60));
	open_files_clear(&files, SF_ID + 1);
}

/* The part of an open file is recognized by its inode, while the file is open. */
static void contains(void **state)
{
	uint64_t dev = 0, ino = 0, dev_b = 0, ino_b = 0;

	(void)state;
	open_files_set(&files, SF_ID, a, grid);
	assert_int_equal(sink_open(a, NULL), 0);
	assert_int_equal(sink_open(b, NULL), 0);
	assert_true(sink_part_id(a, &dev, &ino));
	assert_true(sink_part_id(b, &dev_b, &ino_b));
	assert_true(open_files_contains(&files, dev, ino));
	assert_false(open_files_contains(&files, dev_b, ino_b));
	assert_false(open_files_contains(&files, dev + 1, ino));
	open_files_clear(&files, SF_ID);
	assert_false(open_files_contains(&files, dev, ino));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		files_test(ids), files_test(frames_outside_the_grid), files_test(a_new_grid), files_test(syncs),
		files_test(contains),
	};

	return cmocka_run_group_tests_name("stream/open_files", tests, NULL, NULL);
}
