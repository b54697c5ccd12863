/* Direct I/O gives the same bytes as the page cache, leaves nothing there, and gives way where it is refused. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "offer.h"
#include "store/part.h"
#include "store/source.h"

#define KIB 1024u

static struct direct_io direct;

static int setup(void **state)
{
	memset(&direct, 0, sizeof direct);
	offer_direct_io = &direct;
	return fx_tree_setup(state);
}

static int teardown(void **state)
{
	offer_direct_io = NULL;
	fx_heal();
	return fx_tree_teardown(state);
}

#define direct_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* The tree anew, with these system calls. */
static void reopen(const struct sys *sys)
{
	dir_unref(fx_root);
	tree_unref(fx_tree);
	assert_int_equal(tree_open(&fx_tree, fx_path(""), sys, NULL), 0);
	fx_root = tree_root(fx_tree);
}

static struct sink *sink_for(const struct offer *o)
{
	struct sink *s = offer_sink(fx_root, o);

	assert_non_null(s);
	return s;
}

/* In an order that leaves gaps behind. */
static void receive(const struct offer *o)
{
	struct sink *s = sink_for(o);
	uint32_t n = offer_blocks(o), i;

	for (i = 0; i < n; i++)
		if (!offer_hole(o, n - 1 - i))
			assert_int_equal(offer_write(s, o, n - 1 - i, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	offer_holds(o->name, o);
	assert_int_equal(fx_count(""), 1);
}

static const uint64_t sizes[] = { 256 * KIB + 1, 256 * KIB + 4095, 256 * KIB + 4096, 300000, 512 * KIB - 1, 512 * KIB };
#define SIZES (sizeof sizes / sizeof sizes[0])

static void same_bytes(void **state)
{
	struct offer o = { "f", 0, 1, false };
	struct stat st;
	size_t i;

	(void)state;
	fx_needs_linux();
	for (i = 0; i < SIZES; i++) {
		for (o.sparse = false;; o.sparse = true) {
			o.size_bytes = sizes[i];
			fx_heal();
			receive(&o);
			assert_int_equal(fx_calls_of(FX_setdirect), 1);
			assert_int_equal(stat(fx_path("f"), &st), 0);
			assert_true(!o.sparse || (uint64_t)st.st_blocks * 512 < o.size_bytes);
			assert_int_equal(unlink(fx_path("f")), 0);
			if (o.sparse)
				break;
		}
	}
	assert_false(direct_io_report(&direct));
}

static void one_block(void **state)
{
	const struct offer o = { "f", 256 * KIB, 1, false };

	(void)state;
	receive(&o);
	assert_int_equal(fx_calls_of(FX_setdirect), 0);
}

static size_t cached_pages(const char *below)
{
	int fd = open(fx_path(below), O_RDONLY | O_CLOEXEC);
	unsigned char page[256];
	size_t n, i, cached = 0;
	struct stat st;
	void *p;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	n = ((size_t)st.st_size + 4095) / 4096;
	assert_true(n <= sizeof page);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(mincore(p, (size_t)st.st_size, page), 0);
	for (i = 0; i < n; i++)
		cached += page[i] & 1;
	munmap(p, (size_t)st.st_size);
	close(fd);
	return cached;
}

static void not_cached(void **state)
{
	const struct offer o = { "f", 512 * KIB - 1, 1, false };
	struct sink *s = sink_for(&o);
	const bool none[OFFER_BLOCKS] = { false };
	struct statfs fs;

	(void)state;
	assert_int_equal(offer_rest(s, &o, none, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	assert_int_equal(statfs(fx_path(""), &fs), 0);
	if (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC)
		assert_true(cached_pages("f") <= 1);
	offer_holds("f", &o);
}

/* A killed run: the part is longer than what was written of it; damage is found although nothing is cached. */
static void resumed(void **state)
{
	struct offer o = { "f", 512 * KIB - 1, 1, false };
	bool have[OFFER_BLOCKS], same;
	struct sink *s;
	int fd, written;
	uint32_t i;

	(void)state;
	fx_needs_linux();
	for (o.sparse = false;; o.sparse = true) {
		s = sink_for(&o);
		for (i = written = 0; i < offer_blocks(&o); i++)
			if ((i < 20 || i == offer_blocks(&o) - 1) && !offer_hole(&o, i)) {
				assert_int_equal(offer_write(s, &o, i, NULL), 0);
				written++;
			}
		sink_unref(s);
		fd = open(fx_path(part_name((char[PART_NAME_BYTES]){ "" }, "f", PART_SUFFIX)), O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		/* a block with data in both kinds of file */
		assert_int_equal(pwrite(fd, "damage", 6, 5 * OFFER_BLOCK + 4096), 6);
		close(fd);
		s = sink_for(&o);
		assert_int_equal(offer_resume(s, &o, have, &same, NULL), written - 1);
		assert_false(have[5]);
		assert_int_equal(offer_rest(s, &o, have, NULL), 0);
		assert_int_equal(offer_commit(s, NULL), 0);
		sink_unref(s);
		offer_holds("f", &o);
		/* The complete target is compared. */
		s = sink_for(&o);
		fx_heal();
		assert_true(offer_resume(s, &o, have, &same, NULL) >= 0);
		assert_true(same);
		assert_int_equal(fx_calls_of(FX_setdirect), 1);
		sink_unref(s);
		assert_int_equal(unlink(fx_path("f")), 0);
		if (o.sparse)
			break;
	}
	assert_false(direct_io_report(&direct));
}

static void refused_once(const char *path)
{
	assert_true(direct_io_report(&direct));
	assert_string_equal(direct.path, path);
	assert_false(direct_io_report(&direct));
}

static void refused(void **state)
{
	struct offer o = { "f", 300000, 1, false };

	(void)state;
	fx_fail_always(FX_setdirect, EINVAL);
	receive(&o);
	refused_once("f");
	assert_int_equal(unlink(fx_path("f")), 0);
	o.name = "g";
	receive(&o);
	assert_false(direct_io_report(&direct));
}

/* The file system accepts the flag, but no write, as the alignment is unknown. */
static void until_cleared(enum fx_call call)
{
	if (call == FX_setdirect)
		fx_fail_always(FX_pwrite, fx_calls_of(FX_setdirect) == 0 ? EINVAL : 0);
}

static void refused_later(void **state)
{
	const struct offer o = { "f", 300000, 1, false };

	(void)state;
	fx_needs_linux();
	fx_before(until_cleared);
	receive(&o);
	assert_true(fx_failed() > 0);
	assert_int_equal(fx_calls_of(FX_setdirect), 2);
	refused_once("f");
}

static uint32_t memory_need, offset_need;

static int needs(int fd, uint32_t *memory, uint32_t *offset)
{
	(void)fd;
	*memory = memory_need;
	*offset = offset_need;
	return 0;
}

static void alignment(void **state)
{
	static const struct { uint32_t memory, offset; bool ok; } cases[] = {
		{ 0, 0, false }, { 512, 512, true }, { 4, 512, true }, { 4096, 4096, true }, { 512, 16384, false },
		    { 8192, 512, false },
	};
	const struct offer o = { "f", 300000, 1, false };
	struct sys sys = fx_sys;
	size_t i;

	(void)state;
	fx_needs_linux();
	sys.dioalign = needs;
	reopen(&sys);
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		memory_need = cases[i].memory;
		offset_need = cases[i].offset;
		memset(&direct, 0, sizeof direct);
		fx_heal();
		receive(&o);
		assert_int_equal(fx_calls_of(FX_setdirect), cases[i].ok);
		assert_int_equal(direct_io_report(&direct), !cases[i].ok);
		assert_int_equal(unlink(fx_path("f")), 0);
	}
	reopen(&fx_sys);
}

/* Space is allocated ahead where the file system can, and not where a file may have holes. */
static void allocated(void **state)
{
	fx_needs_linux();
	const struct offer dense = { "f", 512 * KIB, 1, false }, sparse = { "g", 512 * KIB, 1, true };
	const char *part = part_name((char[PART_NAME_BYTES]){ "" }, "f", PART_SUFFIX);
	struct sink *s = sink_for(&dense);
	const bool none[OFFER_BLOCKS] = { false };
	struct stat st;

	(void)state;
	assert_int_equal(offer_write(s, &dense, 0, NULL), 0);
	assert_int_equal(stat(fx_path(part), &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 >= dense.size_bytes);
	sink_discard(s);
	sink_unref(s);

	s = sink_for(&dense); /* a file system that cannot allocate */
	fx_heal();
	fx_fail_always(FX_fallocate, EOPNOTSUPP);
	assert_int_equal(offer_write(s, &dense, 0, NULL), 0);
	assert_int_equal(stat(fx_path(part), &st), 0);
	assert_int_equal(st.st_size, OFFER_BLOCK);
	assert_int_equal(offer_rest(s, &dense, none, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	offer_holds("f", &dense);

	fx_heal();
	s = sink_for(&sparse);
	assert_int_equal(offer_write(s, &sparse, 0, NULL), 0);
	assert_int_equal(fx_calls_of(FX_fallocate), 0);
	sink_discard(s);
	sink_unref(s);
}

static void no_space(int r, struct ptcp_err *e)
{
	assert_int_equal(r, PTCP_ENOSPC);
	assert_int_equal(e->sys, ENOSPC);
	assert_non_null(strstr(e->msg, "f: cannot write: No space left on device (make room"));
}

/* A full disk is found before data is written, and takes nothing of an earlier run. */
static void full_disk(void **state)
{
	fx_needs_linux();
	const struct offer o = { "f", 512 * KIB, 1, false };
	const char *part = part_name((char[PART_NAME_BYTES]){ "" }, "f", PART_SUFFIX);
	struct sink *s = sink_for(&o);
	bool have[OFFER_BLOCKS], same;
	struct ptcp_err e;
	struct stat st;

	(void)state;
	fx_heal();
	fx_fail_always(FX_fallocate, ENOSPC);
	no_space(offer_write(s, &o, 0, &e), &e);
	no_space(offer_write(s, &o, 1, &e), &e);
	assert_int_equal(stat(fx_path(part), &st), 0);
	assert_int_equal(st.st_size, 0);
	fx_heal(); /* room was made */
	assert_int_equal(offer_write(s, &o, 0, NULL), 0);
	assert_int_equal(offer_write(s, &o, 1, NULL), 0);
	sink_unref(s);

	s = sink_for(&o);
	fx_fail_always(FX_fallocate, ENOSPC);
	no_space(offer_resume(s, &o, have, &same, &e), &e);
	sink_unref(s);
	assert_int_equal(stat(fx_path(part), &st), 0);
	assert_int_equal(st.st_size, 2 * OFFER_BLOCK);

	fx_heal();
	s = sink_for(&o);
	assert_int_equal(offer_resume(s, &o, have, &same, NULL), 2);
	assert_int_equal(offer_rest(s, &o, have, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	offer_holds("f", &o);
}

/* Another host, which joins, writes the same way, and never changes the length: data of others may be there already. */
static void joined(void **state)
{
	fx_needs_linux();
	const struct offer o = { "f", 512 * KIB - 1, 1, false };
	const struct sink_opts opts = { .block_bytes = OFFER_BLOCK, .has_version = true, .direct_io = &direct };
	const struct meta none = { .set_mode = false };
	char part[SINK_PART_BYTES];
	struct sink *s = sink_for(&o), *other;
	uint64_t dev, ino;
	uint32_t i;

	(void)state;
	assert_int_equal(sink_open(s, NULL), 0);
	assert_true(sink_part_id(s, &dev, &ino));
	for (i = 0; i < 32; i++)
		assert_int_equal(offer_write(s, &o, i, NULL), 0);
	other = sink_new(fx_root, sink_part(s, part), o.size_bytes, &none, &opts);
	fx_heal();
	fx_fail_always(FX_fallocate, ENOSPC);
	sink_join(other, ino);
	assert_int_equal(sink_open(other, NULL), 0);
	assert_true(sink_is_direct(other));
	assert_int_equal(fx_calls_of(FX_fallocate) + fx_calls_of(FX_ftruncate), 0);
	for (; i < offer_blocks(&o); i++)
		assert_int_equal(offer_write(other, &o, i, NULL), 0);
	sink_part_with(other);
	sink_unref(other);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	offer_holds("f", &o);
}

/* ---- Sources ---- */

static struct source *listed(const char *name)
{
	struct walk_entry e;
	struct source *s;
	struct walk *w;

	assert_int_equal(walk_new(&w, NULL, NULL), 0);
	assert_int_equal(walk_add(w, fx_root, name, NULL), 0);
	assert_int_equal(walk_next(w, &e, NULL), 1);
	walk_free(w);
	s = source_new(&e);
	assert_non_null(s);
	source_use_direct_io(s, &direct);
	return s;
}

static uint8_t content[512 * KIB], got[512 * KIB + 1];

static void fill(size_t n)
{
	const struct offer o = { "f", n, 1, false };
	uint32_t i;

	for (i = 0; i < offer_blocks(&o); i++)
		offer_block(&o, i, content + (size_t)i * OFFER_BLOCK);
	fx_write("f", content, n);
}

/* Reads at any place, into memory at any place. */
static void sent(void **state)
{
	uint8_t *aligned = direct_io_memory(sizeof got);
	struct source *s;
	size_t i, off, n;

	(void)state;
	fx_needs_linux();
	for (i = 0; i < SIZES; i++) {
		fill(sizes[i]);
		s = listed("f");
		assert_true(source_is_direct(s));
		assert_int_equal(source_read(s, aligned, 4096, 0, false, NULL), STORE_AGAIN);
		for (off = 0; off < sizes[i]; off += n) {
			n = sizes[i] - off < 64 * KIB ? sizes[i] - off : 64 * KIB;
			assert_int_equal(source_read(s, aligned, n, off, true, NULL), 0);
			assert_memory_equal(aligned, content + off, n);
			assert_int_equal(source_read(s, got + 1, n, off, true, NULL), 0);
			assert_memory_equal(got + 1, content + off, n);
		}
		assert_int_equal(source_read(s, got, 10000, 4000, true, NULL), 0);
		assert_memory_equal(got, content + 4000, 10000);
		assert_false(source_in_memory(s, 64 * KIB, 0));
		assert_int_equal(source_check(s, NULL), 0);
		source_unref(s);
	}
	free(aligned);
	assert_false(direct_io_report(&direct));
}

/* A network file system may read less than requested. */
static ssize_t reads_less(int fd, const struct iovec *v, int n, off_t off, int flags)
{
	ssize_t have = sys_real.preadv2(fd, v, n, off, flags);

	return have < 5000 ? have : 5000;
}

static void sent_short(void **state)
{
	struct sys sys = fx_sys;
	struct source *s;

	(void)state;
	fx_needs_linux();
	sys.preadv2 = reads_less;
	reopen(&sys);
	fill(300000);
	s = listed("f");
	assert_int_equal(source_read(s, got, 300000 - 4096, 4096, true, NULL), 0);
	assert_memory_equal(got, content + 4096, 300000 - 4096);
	assert_true(source_is_direct(s));
	assert_int_equal(truncate(fx_path("f"), 290000), 0);
	assert_int_equal(source_read(s, got, 300000 - 4096, 4096, true, NULL), PTCP_ECHANGED);
	source_unref(s);
	reopen(&fx_sys);
}

static void fail_reads(enum fx_call call)
{
	if (call == FX_setdirect)
		fx_fail_always(FX_preadv2, fx_calls_of(FX_setdirect) == 0 ? EINVAL : 0);
}

static void sending_refused(void **state)
{
	struct source *s;
	int later;

	(void)state;
	fx_needs_linux();
	for (later = 0; later < 2; later++) {
		memset(&direct, 0, sizeof direct);
		fill(300000);
		fx_heal();
		s = listed("f");
		if (later)
			fx_before(fail_reads);
		else
			fx_fail_always(FX_setdirect, EINVAL);
		assert_int_equal(source_read(s, got, 100000, 8192, true, NULL), 0);
		assert_memory_equal(got, content + 8192, 100000);
		assert_false(source_is_direct(s));
		refused_once("f");
		fx_heal();
		assert_int_equal(source_read(s, got, 300000 - 8192, 8192, true, NULL), 0);
		assert_memory_equal(got, content + 8192, 300000 - 8192);
		source_unref(s);
	}
	fill(256 * KIB);
	s = listed("f");
	assert_false(source_is_direct(s)); /* a single block */
	source_unref(s);
}

static void digest(void **state)
{
	const struct offer o = { "f", 512 * KIB - 1, 1, false };
	struct file_digest sum = { .block_bytes = OFFER_BLOCK };
	struct source *s;
	int r;

	(void)state;
	fill(512 * KIB - 1);
	s = listed("f");
	while ((r = file_digest_next(&sum, s, NULL)) == 1)
		;
	assert_int_equal(r, 0);
	assert_true(digest_equal(sum.digest, offer_digest(&o)));
	assert_true(fx_calls_of(FX_setdirect) > 0);
	source_unref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		direct_test(same_bytes), direct_test(one_block), direct_test(not_cached), direct_test(resumed),
		direct_test(refused), direct_test(refused_later), direct_test(alignment), direct_test(allocated),
		direct_test(full_disk), direct_test(joined),
		direct_test(sent), direct_test(sent_short), direct_test(sending_refused), direct_test(digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
