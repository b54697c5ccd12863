#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "core/text.h"
#include "fs/fd_budget.h"
#include "store/source.h"
#include "store/hash.h"

#define BIG 300000

static uint8_t data[BIG], got[BIG];

static int setup(void **state)
{
	uint32_t x = 7;
	size_t i;

	for (i = 0; i < BIG; i++)
		data[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	if (fx_tree_setup(state) != 0)
		return -1;
	return 0;
}

#define source_test(f) cmocka_unit_test_setup_teardown(f, setup, fx_tree_teardown)

/* Skips a test of reads that never wait where the file system has none: tmpfs, some overlays. */
static void needs_nowait(void)
{
	uint8_t byte;
	ssize_t n;
	int fd;

	fx_needs_linux();
	fx_write("probe", data, 1);
	fd = open(fx_path("probe"), O_RDONLY);
	assert_true(fd >= 0);
	n = preadv2(fd, &(struct iovec){ &byte, 1 }, 1, 0, RWF_NOWAIT);
	close(fd);
	remove(fx_path("probe"));
	if (n != 1)
		skip();
}

/* The tree anew, with these system calls. */
static void reopen(const struct sys *sys)
{
	dir_unref(fx_root);
	tree_unref(fx_tree);
	assert_int_equal(tree_open(&fx_tree, fx_path(""), sys, NULL), 0);
	fx_root = tree_root(fx_tree);
}

/* The file t/f of n bytes, listed. */
static struct source *make(size_t n)
{
	struct dir *t = dir_child(fx_root, "t");
	struct walk_entry e;
	struct source *s;
	struct walk *w;

	if (!fx_exists("t"))
		fx_mkdir("t");
	fx_write("t/f", data, n);
	assert_int_equal(walk_new(&w, NULL, NULL), 0);
	assert_int_equal(walk_add(w, t, "f", NULL), 0);
	assert_int_equal(walk_next(w, &e, NULL), 1);
	s = source_new(&e);
	assert_non_null(s);
	assert_null(e.dir);
	assert_null(e.name);
	walk_free(w);
	dir_unref(t);
	return s;
}

static void whole(void **state)
{
	static const size_t sizes[] = { 0, 1, 4096, 10240, BIG };
	char text[40];
	struct source *s;
	size_t i;
	int fds;

	(void)state;
	needs_nowait();
	for (i = 0; i < 5; i++) {
		s = make(sizes[i]);
		assert_int_equal(source_size_bytes(s), sizes[i]);
		assert_string_equal(source_path_text(s, text, sizeof text), "t/f");
		fds = fx_open_fds();
		memset(got, 0, sizeof got);
		assert_int_equal(source_read(s, got, sizes[i], 0, true, NULL), 0);
		assert_memory_equal(got, data, sizes[i]);
		memset(got, 0, sizeof got);
		assert_int_equal(source_read(s, got, sizes[i], 0, false, NULL), 0); /* cached */
		assert_memory_equal(got, data, sizes[i]);
		assert_int_equal(fx_open_fds(), fds);
		assert_int_equal(source_check(s, NULL), 0);
		source_unref(s);
	}
	source_unref(NULL);
}

static void blocks(void **state)
{
	struct source *s;
	size_t off, n;
	int fds;

	(void)state;
	needs_nowait();
	s = make(BIG);
	fds = fx_open_fds();
	fx_short_io(999); /* the kernel may give less than it was asked for */
	for (off = 0; off < BIG; off += n) {
		n = BIG - off < 65536 ? BIG - off : 65536;
		assert_int_equal(source_read(s, got + off, n, off, off % 131072 == 0, NULL), 0);
	}
	assert_memory_equal(got, data, BIG);
	assert_int_equal(fx_open_fds(), fds + 1);
	assert_int_equal(source_check(s, NULL), 0);
	assert_int_equal(fx_open_fds(), fds);
	/* A block may be wanted once more after that. */
	memset(got, 0, sizeof got);
	assert_int_equal(source_read(s, got, 5000, 70000, true, NULL), 0);
	assert_memory_equal(got, data + 70000, 5000);
	assert_int_equal(fx_open_fds(), fds + 1);
	source_unref(s);
	assert_int_equal(fx_open_fds(), fds - 1); /* its directory too */
}

/* What may happen to a file after it was listed. */
static void grow(void) { fx_write("t/f", data, 20001); }
static void shrink(void) { assert_int_equal(truncate(fx_path("t/f"), 100), 0); }
static void touch(void)
{
	struct timespec ts[2] = { { 0, UTIME_OMIT }, { 1000, 5 } };

	assert_int_equal(utimensat(AT_FDCWD, fx_path("t/f"), ts, 0), 0);
}
/* Written to, and the time put back: ctime tells. */
static void hide(void)
{
	struct timespec ts[2];
	struct stat st;

	assert_int_equal(stat(fx_path("t/f"), &st), 0);
	usleep(20000); /* the kernel's clock for files ticks at 4 to 10 ms */
	fx_write("t/f", data + 1, 20000);
	ts[0] = st.st_atim;
	ts[1] = st.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, fx_path("t/f"), ts, 0), 0);
}
static void vanish(void) { assert_int_equal(unlink(fx_path("t/f")), 0); }
static void replace(void)
{
	fx_write("t/g", data, 20000);
	assert_int_equal(rename(fx_path("t/g"), fx_path("t/f")), 0);
}
static void become_link(void)
{
	assert_int_equal(rename(fx_path("t/f"), fx_path("t/g")), 0);
	assert_int_equal(symlink("g", fx_path("t/f")), 0);
}
static void become_fifo(void)
{
	vanish();
	assert_int_equal(mkfifo(fx_path("t/f"), 0600), 0);
}
static void become_dir(void)
{
	vanish();
	fx_mkdir("t/f");
}

/* What a change makes of the file. */
static int outcome_of(void (*how)(void)) { return how == vanish ? PTCP_EVANISHED : PTCP_ECHANGED; }

/* Where no file may stay open, it is opened for each block. */
static void none_kept(void **state)
{
	struct source *s = make(BIG);
	unsigned taken = 0;
	int fds;

	(void)state;
	while (fd_budget_take(1))
		taken++;
	assert_int_equal(source_read(s, got, 1, 0, true, NULL), 0); /* opens its directory */
	fds = fx_open_fds();
	assert_int_equal(source_read(s, got, 2, BIG - 2, true, NULL), 0);
	assert_memory_equal(got, data + BIG - 2, 2);
	assert_int_equal(fx_open_fds(), fds);
	fd_budget_give(taken);
	assert_int_equal(source_read(s, got, 1, 0, true, NULL), 0);
	assert_int_equal(fx_open_fds(), fds + 1);
	assert_int_equal(source_check(s, NULL), 0);
	assert_int_equal(fx_open_fds(), fds);
	source_unref(s);
}

static void changes(void **state)
{
	static void (*const how[])(void) = {
		grow, shrink, touch, hide, vanish, replace, become_link, become_fifo, become_dir,
	};
	struct ptcp_err e;
	struct source *s;
	size_t i;
	int way;

	(void)state;
	needs_nowait();
	for (i = 0; i < sizeof how / sizeof *how; i++) {
		for (way = 0; way < 4; way++) {
			remove(fx_path("t/f"));
			s = make(20000);
			how[i]();
			e.code = 0;
			switch (way) {
			case 0: assert_int_equal(source_read(s, got, 20000, 0, true, &e), outcome_of(how[i])); break;
			case 1: assert_int_equal(source_read(s, got, 20000, 0, false, &e), outcome_of(how[i])); break;
			case 2: assert_int_equal(source_read(s, got, 99, 100, true, &e), outcome_of(how[i])); break;
			case 3: assert_int_equal(source_check(s, &e), outcome_of(how[i])); break;
			}
			assert_int_equal(e.code, outcome_of(how[i]));
			assert_non_null(strstr(e.msg, "t/f: "));
			source_unref(s);
		}
	}
}

static void change_between_blocks(void **state)
{
	static void (*const how[])(void) = { grow, shrink, touch, hide, vanish, replace };
	struct source *s;
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < sizeof how / sizeof *how; i++) {
		s = make(20000);
		assert_int_equal(source_read(s, got, 10000, 0, true, NULL), 0);
		how[i]();
		r = source_read(s, got + 10000, 10000, 10000, true, NULL);
		if (how[i] == shrink)
			assert_int_equal(r, PTCP_ECHANGED); /* the end came too early */
		else
			assert_int_equal(r, 0);
		assert_int_equal(source_check(s, NULL), outcome_of(how[i]));
		source_unref(s);
	}
}

/* A file that is written to just while its only block is read. */
static void (*on_read)(void);

static void before_read(enum fx_call call)
{
	void (*f)(void) = on_read;

	if (call == FX_preadv2 && f != NULL) {
		on_read = NULL;
		f();
	}
}

static void change_while_read(void **state)
{
	static void (*const how[])(void) = { grow, shrink, touch, hide, vanish, replace };
	struct source *s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof how / sizeof *how; i++) {
		s = make(20000);
		on_read = how[i];
		fx_before(before_read);
		assert_int_equal(source_read(s, got, 20000, 0, true, NULL), outcome_of(how[i]));
		assert_null(on_read);
		source_unref(s);
	}
}

/* Written to once more, after the file was found to have grown. */
static void grow_and_rewrite(void)
{
	uint8_t more[20002];

	memcpy(more, data, sizeof more);
	more[19999] ^= 1;
	fx_write("t/f", more, sizeof more);
}

/* Of a file that may grow, what was listed is read, if it is the same when read again. */
static void growth(void **state)
{
	struct file_digest sum;
	struct source *s;
	int whole;

	(void)state;
	for (whole = 0; whole < 2; whole++) {
		s = make(20000);
		source_permit_growth(s);
		on_read = grow;
		fx_before(before_read);
		assert_int_equal(source_read(s, got, whole ? 20000 : 10000, 0, true, NULL), 0);
		assert_memory_equal(got, data, whole ? 20000 : 10000);
		assert_int_equal(source_has_grown(s), whole);
		assert_int_equal(source_check(s, NULL), SOURCE_GREW);
		sum = (struct file_digest){ .block_bytes = 4096 };
		while (file_digest_next(&sum, s, NULL) == 1)
			;
		assert_true(source_has_grown(s));
		source_unref(s);
	}
}

/* Between the two reads of a whole file that has grown. */
static unsigned reads;

static void before_second_read(enum fx_call call)
{
	if (call == FX_preadv2 && ++reads == 2)
		grow_and_rewrite();
}

static void growth_is_no_rewriting(void **state)
{
	static void (*const how[])(void) = { shrink, touch, hide, vanish, replace };
	struct source *s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof how / sizeof *how; i++) {
		s = make(20000);
		source_permit_growth(s);
		on_read = how[i];
		fx_before(before_read);
		assert_int_equal(source_read(s, got, 20000, 0, true, NULL), outcome_of(how[i]));
		assert_false(source_has_grown(s));
		source_unref(s);
	}
	s = make(20000);
	source_permit_growth(s);
	grow();
	reads = 0;
	fx_before(before_second_read);
	assert_int_equal(source_read(s, got, 20000, 0, true, NULL), PTCP_ECHANGED);
	assert_true(reads >= 2);
	assert_false(source_has_grown(s));
	source_unref(s);
}

/* Checked, hence to be closed, while a block is read once more. */
static struct source *checked;

static void check(void)
{
	int fds = fx_open_fds();

	assert_int_equal(source_check(checked, NULL), 0);
	assert_int_equal(fx_open_fds(), fds);
}

static void check_while_read(void **state)
{
	int fds;

	(void)state;
	checked = make(20000);
	fds = fx_open_fds();
	on_read = check;
	fx_before(before_read);
	assert_int_equal(source_read(checked, got, 5000, 5000, true, NULL), 0);
	assert_null(on_read);
	assert_memory_equal(got, data + 5000, 5000);
	assert_int_equal(fx_open_fds(), fds);
	source_unref(checked);
}

/* A parent becomes a link to somewhere else, before the file is opened. */
static void parent_swapped(void **state)
{
	struct source *s = make(100);
	struct ptcp_err e;

	(void)state;
	reopen(&fx_sys); /* only the source keeps a file open */
	source_unref(s);
	s = make(100);
	source_unref(s);
	fx_mkdir("other");
	struct dir *t = dir_child(fx_root, "t");
	struct walk_entry entry = { .type = WALK_FILE, .dir = t, .name = strdup("f"), .size_bytes = 100 };
	assert_int_equal(rename(fx_path("t"), fx_path("u")), 0);
	assert_int_equal(symlink("u", fx_path("t")), 0);
	s = source_new(&entry);
	assert_int_equal(source_read(s, got, 100, 0, true, &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOTDIR);
	source_unref(s);
}

static void again(void **state)
{
	struct source *s;

	(void)state;
	needs_nowait();
	s = make(BIG);
	/* Opening would wait. */
	fx_fail_always(FX_openat2, EAGAIN);
	assert_int_equal(source_read(s, got, BIG, 0, false, NULL), STORE_AGAIN);
	assert_int_equal(source_read(s, got, 10, 0, false, NULL), STORE_AGAIN);
	assert_int_equal(source_read(s, got, 10, 0, true, NULL), 0);
	/* Reading would wait, at once or half way. */
	fx_heal();
	fx_fail_always(FX_preadv2, EAGAIN);
	assert_int_equal(source_read(s, got, 10, 0, false, NULL), STORE_AGAIN);
	assert_int_equal(source_read(s, got, BIG, 0, false, NULL), STORE_AGAIN);
	fx_heal();
	fx_short_io(1000);
	fx_fail_nth(3, EAGAIN);
	assert_int_equal(source_read(s, got, 5000, 0, false, NULL), STORE_AGAIN);
	/* Interrupted: goes on. */
	fx_heal();
	fx_fail_nth(1, EINTR);
	assert_int_equal(source_read(s, got, 5000, 100, false, NULL), 0);
	assert_memory_equal(got, data + 100, 5000);
	source_unref(s);
}

/* Sends the n bytes at `from` through a socket, by pieces, into `got`. */
static void send_through(struct source *s, size_t from, size_t n)
{
	size_t sent = 0, taken = 0;
	int fd[2], full = 0, room = 40000;
	ssize_t r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
	assert_int_equal(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
	memset(got, 0, sizeof got);
	while (taken < n) {
		if (sent < n) {
			r = source_send(s, fd[0], n - sent, from + sent);
			assert_true(r >= 0);
			sent += (size_t)r;
			full += r == 0;
		}
		if (sent == n || full > 0) {
			r = read(fd[1], got + from + taken, 20000);
			assert_true(r > 0);
			taken += (size_t)r;
		}
	}
	assert_int_equal(read(fd[1], got, 1), -1); /* no more than that */
	assert_true(full > 0 || n < 100000);
	close(fd[0]);
	close(fd[1]);
}

/* The same bytes as by reading, wherever they begin and end. */
static void sent_without_copying(void **state)
{
	static const size_t at[] = { 0, 1, 4095, 4096, 65536, BIG - 1 };
	struct source *s = make(BIG);
	size_t i, n;

	(void)state;
	fx_before(NULL);
	for (i = 0; i < sizeof at / sizeof *at; i++) {
		n = BIG - at[i] - (at[i] == 0);
		if (!source_in_memory(s, n, at[i])) { /* an older kernel, or an overlay */
			source_unref(s);
			skip();
		}
		send_through(s, at[i], n);
		assert_memory_equal(got + at[i], data + at[i], n);
		assert_true(at[i] == 0 || got[at[i] - 1] == 0);
	}
	assert_true(fx_calls_of(FX_sendfile) > 0);
	assert_int_equal(source_check(s, NULL), 0);
	source_unref(s);
}

static void shrink(void);

static void shrink_before_sending(enum fx_call call)
{
	if (call == FX_sendfile)
		shrink();
}

/* Whatever is not known to be in memory, and sent by the kernel, is read. */
static void not_sent_without_copying(void **state)
{
	static const struct {
		enum fx_call call;
		int sys;
	} faults[] = { { FX_cachestat, ENOSYS }, { FX_cachestat, EPERM }, { FX_preadv2, EAGAIN }, { FX_sendfile, EINVAL },
		{ FX_sendfile, EIO }, { FX_fstat, EIO }, { FX_openat2, EAGAIN } };
	struct source *s = make(BIG);
	struct ptcp_err e;
	bool asked;
	int fd[2];
	size_t i;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
	assert_false(source_in_memory(s, BIG, 0)); /* the whole file: to be read and checked at once */
	fx_heal();
	if (!source_in_memory(s, BIG - 1, 0)) { /* an older kernel, or an overlay */
		source_unref(s);
		close(fd[0]);
		close(fd[1]);
		skip();
	}
	asked = fx_calls_of(FX_cachestat) > 0; /* tmpfs need not be */
	for (i = 0; i < sizeof faults / sizeof *faults; i++) {
		if (faults[i].call == FX_cachestat && !asked)
			continue;
		source_unref(s);
		fx_heal();
		s = make(BIG);
		fx_fail_always(faults[i].call, faults[i].sys);
		assert_int_equal(source_send(s, fd[0], 100000, 0), -1);
		assert_true(faults[i].call == FX_sendfile || !source_in_memory(s, 100000, 0));
	}
	fx_heal();
	source_unref(s);
	/* The end comes too early, also between the two calls. */
	s = make(BIG);
	assert_true(source_send(s, fd[0], 1000, 100000) > 0);
	fx_before(shrink_before_sending);
	assert_int_equal(source_send(s, fd[0], 1000, 100000), -1);
	fx_before(NULL);
	assert_int_equal(source_send(s, fd[0], 1000, 100000), -1);
	assert_int_equal(source_read(s, got, 1000, 100000, true, &e), PTCP_ECHANGED);
	assert_int_equal(source_check(s, &e), PTCP_ECHANGED);
	source_unref(s);
	close(fd[0]);
	close(fd[1]);
}

static long fs_type;

static int tell_fs(int fd, struct statfs *st)
{
	(void)fd;
	*st = (struct statfs){ .f_type = fs_type };
	return 0;
}

static atomic_int waits;

static ssize_t no_nowait(int fd, const struct iovec *v, int n, off_t off, int flags)
{
	if (flags != 0) {
		atomic_fetch_add(&waits, 1);
		errno = EOPNOTSUPP;
		return -1;
	}
	return preadv2(fd, v, n, off, 0);
}

/* Where the file system cannot tell what is cached, only I/O threads read, and it
 * is asked once; but what lives in memory is just read. */
static void without_nowait(void **state)
{
	struct sys sys = sys_real;
	struct source *s;

	(void)state;
	sys.preadv2 = no_nowait;
	sys.fstatfs = tell_fs;
	for (int i = 0; i < 2; i++) {
		fs_type = i == 0 ? EXT4_SUPER_MAGIC : TMPFS_MAGIC;
		atomic_store(&waits, 0);
		reopen(&sys); /* it has learnt nothing yet */
		s = make(BIG);
		assert_int_equal(source_read(s, got, 10, 0, false, NULL), i == 0 ? STORE_AGAIN : 0);
		assert_int_equal(source_read(s, got, 10, 9, false, NULL), i == 0 ? STORE_AGAIN : 0);
		assert_int_equal(atomic_load(&waits), 1);
		memset(got, 0, sizeof got);
		assert_int_equal(source_read(s, got, 1000, 77, true, NULL), 0);
		assert_memory_equal(got, data + 77, 1000);
		source_unref(s);
		s = make(BIG); /* the next file of the file system: not asked again */
		assert_int_equal(source_read(s, got, BIG, 0, false, NULL), i == 0 ? STORE_AGAIN : 0);
		assert_int_equal(atomic_load(&waits), 1);
		source_unref(s);
	}
	/* The table is on this stack. */
	reopen(&fx_sys);
}

/* Each call fails in turn: an error (or "again", where nothing may wait), and no
 * descriptor stays open; when all is well again so is the source. */
static void faults(void **state)
{
	static const int why[] = { EIO, EMFILE, ENOMEM };
	struct ptcp_err e;
	struct source *s;
	int n, w, fds, r, way;

	(void)state;
	needs_nowait();
	for (w = 0; w < 3; w++) {
		for (way = 0; way < 4; way++) {
			for (n = 1;; n++) {
				s = make(20000);
				fds = fx_open_fds();
				fx_heal();
				fx_fail_nth(n, why[w]);
				r = source_read(s, got, way < 2 ? 20000 : 7000, 0, way % 2, &e);
				if (r == 0 && way >= 2)
					r = source_check(s, &e);
				if (r != 0) {
					assert_int_equal(fx_failed(), 1);
					assert_int_equal(r, why[w] == ENOMEM ? PTCP_ENOMEM : PTCP_EIO);
					assert_int_equal(e.sys, why[w]);
				}
				if (fx_failed() == 0)
					break;
				assert_int_equal(source_read(s, got, 20000, 0, true, NULL), 0);
				assert_memory_equal(got, data, 20000);
				source_check(s, NULL);
				assert_int_equal(fx_open_fds(), fds);
				source_unref(s);
			}
			source_unref(s);
			assert_true(n > 4);
		}
	}
}

/* ---- Versions, holes, digests ---- */

static void versions(void **state)
{
	static void (*const how[])(void) = { grow, shrink, touch, hide, replace };
	uint8_t before[SOURCE_VERSION_BYTES], after[SOURCE_VERSION_BYTES];
	struct source *s;
	struct walk_entry e;
	struct walk *w;

	(void)state;
	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		s = make(20000);
		source_version(s, before);
		source_unref(s);
		for (int changed = 0; changed < 2; changed++) {
			if (changed)
				how[i]();
			assert_int_equal(walk_new(&w, NULL, NULL), 0);
			struct dir *t = dir_child(fx_root, "t");
			assert_int_equal(walk_add(w, t, "f", NULL), 0);
			dir_unref(t);
			assert_int_equal(walk_next(w, &e, NULL), 1);
			s = source_new(&e);
			source_version(s, after);
			assert_int_equal(memcmp(before, after, sizeof after) != 0, changed);
			source_unref(s);
			walk_free(w);
		}
	}
}

#define BLOCK 65536

/* The file t/f of n bytes with data at some places only, listed. */
static struct source *make_sparse(uint64_t n, const uint64_t *at, size_t places)
{
	struct walk_entry e;
	struct source *s;
	struct walk *w;
	int fd;

	if (!fx_exists("t"))
		fx_mkdir("t");
	fd = open(fx_path("t/f"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	for (size_t i = 0; i < places; i++)
		assert_int_equal(pwrite(fd, "data", 4, (off_t)at[i]), 4);
	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	close(fd);
	assert_int_equal(walk_new(&w, NULL, NULL), 0);
	struct dir *t = dir_child(fx_root, "t");
	assert_int_equal(walk_add(w, t, "f", NULL), 0);
	dir_unref(t);
	assert_int_equal(walk_next(w, &e, NULL), 1);
	s = source_new(&e);
	assert_non_null(s);
	walk_free(w);
	return s;
}

/* Exactly the blocks without any of the places are holes, found without reading. */
static void map_of(uint64_t n, const uint64_t *at, size_t places)
{
	uint32_t blocks = (uint32_t)((n + BLOCK - 1) / BLOCK), b;
	struct source *s = make_sparse(n, at, places);
	uint64_t *holes = bitmap_new(blocks);
	struct ptcp_err e;
	bool hole;

	fx_heal();
	if (source_map(s, BLOCK, holes, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(fx_calls_of(FX_preadv2), 0);
	assert_true((uint32_t)fx_calls_of(FX_lseek) <= 2 * blocks + 1);
	for (b = 0; b < blocks; b++) {
		hole = true;
		for (size_t i = 0; i < places; i++)
			hole &= at[i] / BLOCK != b && (at[i] + 3) / BLOCK != b;
		if (bitmap_has(holes, b) != hole)
			fail_msg("block %u of %u: %d", b, blocks, !hole);
	}
	assert_int_equal(source_sparse(s), places * BLOCK < n);
	free(holes);
	source_unref(s);
}

static void maps(void **state)
{
	uint64_t at[40];
	uint32_t x = 11;
	size_t i, k;

	(void)state;
	struct source *probe = make_sparse(1 << 20, NULL, 0);
	uint64_t *holes = bitmap_new(16);
	assert_int_equal(source_map(probe, BLOCK, holes, NULL), 0);
	source_unref(probe);
	if (!bitmap_has(holes, 0)) {
		free(holes);
		skip(); /* no holes on this file system */
	}
	free(holes);
	map_of(0, NULL, 0);
	map_of(1 << 20, NULL, 0);
	map_of((1 << 20) + 5, NULL, 0); /* the last short block, too */
	at[0] = (1 << 20) + 1;
	map_of((1 << 20) + 5, at, 1);
	at[0] = BLOCK - 2; /* two blocks share it */
	map_of(1 << 20, at, 1);
	at[0] = 0;
	at[1] = 4 * BLOCK;
	map_of(5 * BLOCK, at, 2);
	at[0] = UINT64_C(6) << 30;
	map_of((UINT64_C(6) << 30) + 100, at, 1);
	for (i = 0; i < 30; i++) {
		size_t places = i % 20;
		uint64_t n = 40 * BLOCK + i * 1000;

		for (k = 0; k < places; k++)
			at[k] = (x = x * 1664525 + 1013904223) % (n - 4);
		map_of(n, at, places);
	}
}

/* The same on a file system in memory and where this was built. */
static int setup_at(void **state, const char *where)
{
	const char *tmp = getenv("TMPDIR");
	char *before = tmp != NULL ? strdup(tmp) : NULL;
	int r;

	setenv("TMPDIR", access(where, W_OK) == 0 ? where : "/tmp", 1);
	r = setup(state);
	if (before != NULL)
		setenv("TMPDIR", before, 1);
	else
		unsetenv("TMPDIR");
	free(before);
	return r;
}

static int setup_memory(void **state) { return setup_at(state, "/dev/shm"); }
static int setup_build(void **state)
{
	return setup_at(state, getenv("BUILD") != NULL ? getenv("BUILD") : "/tmp");
}

static off_t no_seek(int fd, off_t off, int whence)
{
	(void)fd, (void)off, (void)whence;
	errno = EINVAL;
	return -1;
}

static void map_without_seek(void **state)
{
	struct sys sys = sys_real;
	uint64_t holes = 0;
	struct source *s;

	(void)state;
	sys.lseek = no_seek;
	reopen(&sys);
	s = make_sparse(1 << 20, NULL, 0);
	assert_int_equal(source_map(s, BLOCK, &holes, NULL), 0);
	assert_int_equal(holes, 0);
	source_unref(s);
	reopen(&fx_sys);
}

/* What is mapped must still be what was listed; each call fails in turn. */
static void map_faults(void **state)
{
	static void (*const how[])(void) = { grow, shrink, touch, vanish, replace };
	uint64_t holes = 0;
	struct ptcp_err e;
	struct source *s;
	int n, fds;

	(void)state;
	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		remove(fx_path("t/f"));
		s = make_sparse(1 << 20, NULL, 0);
		how[i]();
		assert_int_equal(source_map(s, BLOCK, &holes, &e), outcome_of(how[i]));
		source_unref(s);
		remove(fx_path("t/f"));
		s = make_sparse(1 << 20, NULL, 0);
		assert_int_equal(source_map(s, BLOCK, &holes, &e), 0);
		how[i]();
		assert_int_equal(source_map(s, BLOCK, &holes, &e), outcome_of(how[i])); /* still open */
		source_unref(s);
	}
	for (n = 1;; n++) {
		s = make_sparse(1 << 20, (uint64_t[]){ 100, 500000 }, 2);
		fds = fx_open_fds();
		fx_heal();
		fx_fail_nth(n, EIO);
		if (source_map(s, BLOCK, &holes, &e) != 0) {
			assert_int_equal(e.sys, EIO);
			assert_true(fx_open_fds() <= fds + 1);
		}
		source_unref(s);
		if (fx_failed() == 0)
			break;
	}
	assert_true(n > 6);
}

/* In one go from memory, every block read. */
static struct digest plain_sum(const uint8_t *p, size_t n, size_t block)
{
	struct digest d = { 0, 0 };

	for (size_t off = 0; off < n; off += block) {
		size_t len = n - off < block ? n - off : block;
		digest_add(&d, hash_term(off / block, len, hash_content(p + off, len)));
	}
	return d;
}

static void sums(void **state)
{
	static const size_t sizes[] = { 0, 1, 4096, BLOCK, BLOCK + 1, BIG };
	struct source *s;
	struct file_digest sum;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int fds;

		s = make(sizes[i]);
		fds = fx_open_fds();
		sum = (struct file_digest){ .block_bytes = BLOCK, .holes = NULL };
		assert_int_equal(file_digest_next(&sum, s, NULL), 0);
		assert_int_equal(fx_open_fds(), fds);
		assert_true(digest_equal(sum.digest, plain_sum(data, sizes[i], BLOCK)));
		source_unref(s);
	}
}

/* Holes count as zeros, whether they are read or not; a step reads so much and no more. */
static void sums_of_holes(void **state)
{
	uint64_t size = 2 * (uint64_t)FILE_DIGEST_STEP_BYTES + 1000, at[] = { 10, 20 * BLOCK };
	uint32_t blocks = (uint32_t)(size / BLOCK) + 1;
	uint64_t *holes = bitmap_new(blocks);
	uint8_t *all = calloc(1, size);
	struct source *s = make_sparse(size, at, 2);
	struct file_digest read, skipped;
	struct digest want;
	int steps = 1;

	(void)state;
	assert_non_null(all);
	memcpy(all + at[0], "data", 4);
	memcpy(all + at[1], "data", 4);
	want = plain_sum(all, size, BLOCK);
	read = (struct file_digest){ .block_bytes = BLOCK, .holes = NULL };
	for (; file_digest_next(&read, s, NULL) == 1; steps++)
		assert_int_equal(read.next, (uint32_t)steps * (FILE_DIGEST_STEP_BYTES / BLOCK));
	assert_int_equal(steps, 3);
	assert_true(digest_equal(read.digest, want));
	assert_int_equal(source_map(s, BLOCK, holes, NULL), 0);
	if (bitmap_has(holes, 1)) {
		fx_heal();
		skipped = (struct file_digest){ .block_bytes = BLOCK, .holes = holes };
		assert_int_equal(file_digest_next(&skipped, s, NULL), 0);
		assert_int_equal(fx_calls_of(FX_preadv2), 2);
		assert_true(digest_equal(skipped.digest, want));
	}
	source_unref(s);
	free(holes);
	free(all);
}

static void sums_of_changes(void **state)
{
	static void (*const how[])(void) = { grow, shrink, touch, hide, vanish, replace };
	struct source *s;
	struct file_digest sum;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof how / sizeof *how; i++) {
		s = make(20000);
		on_read = how[i];
		fx_before(before_read);
		sum = (struct file_digest){ .block_bytes = 4096, .holes = NULL };
		assert_int_equal(file_digest_next(&sum, s, NULL), outcome_of(how[i]));
		assert_null(on_read);
		source_unref(s);
	}
}

static void *read_randomly(void *arg)
{
	struct source *s = arg;
	uint8_t buf[3000];
	uint32_t x = (uint32_t)(uintptr_t)buf;
	int i;

	for (i = 0; i < 2000; i++) {
		x = x * 1664525 + 1013904223;
		uint64_t off = x / 16 % (BIG - sizeof buf);
		int r = source_read(s, buf, sizeof buf, off, x >> 31, NULL);
		if (r < 0 || (r == 0 && memcmp(buf, data + off, sizeof buf) != 0))
			return "read wrong";
		if (i % 50 == 0 && source_check(s, NULL) != 0)
			return "check failed";
	}
	source_unref(s);
	return NULL;
}

static void threads(void **state)
{
	struct source *s = make(BIG);
	pthread_t t[4];
	void *bad;
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, read_randomly, source_ref(s)), 0);
	source_unref(s);
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
}

/* A read of the whole file compares its digest; a read of a part does not know it. */
static void expected_digest(void **state)
{
	static const size_t lengths[] = { 0, 1, 10240 };
	struct sums_expected right, wrong;
	char text[100];
	struct ptcp_err e;
	struct source *s;
	uint8_t value[SUMS_BYTES_MAX];
	struct sums *sums;
	size_t i;

	(void)state;
	assert_true(sums_expected_parse(&wrong, "xxh3:0123456789abcdef"));
	for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		assert_int_equal(sums_new(&sums, sums_named("xxh3"), NULL), 0);
		sums_add(sums, data, lengths[i]);
		strcpy(text, "xxh3:");
		text_hex(text + 5, value, sums_end(sums, value));
		sums_free(sums);
		assert_true(sums_expected_parse(&right, text));
		s = make(lengths[i]);
		source_expect(s, &right);
		assert_int_equal(source_read(s, got, lengths[i], 0, true, NULL), 0);
		source_expect(s, &wrong);
		assert_int_equal(source_read(s, got, lengths[i], 0, true, &e), PTCP_EVERIFY);
		if (lengths[i] > 1)
			assert_int_equal(source_read(s, got, 1, 0, true, NULL), 0);
		source_unref(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		source_test(expected_digest),
		source_test(whole), source_test(blocks), source_test(none_kept), source_test(changes),
		source_test(change_between_blocks), source_test(change_while_read), source_test(growth), source_test(growth_is_no_rewriting), source_test(check_while_read),
		source_test(parent_swapped), source_test(again), source_test(sent_without_copying),
		source_test(not_sent_without_copying), source_test(without_nowait),
		source_test(faults), source_test(versions), source_test(maps),
		cmocka_unit_test_setup_teardown(maps, setup_memory, fx_tree_teardown),
		cmocka_unit_test_setup_teardown(maps, setup_build, fx_tree_teardown),
		source_test(map_without_seek), source_test(map_faults), source_test(sums),
		source_test(sums_of_holes), source_test(sums_of_changes), source_test(threads),
	};

	fx_on_disk();
	return cmocka_run_group_tests_name("store/source", tests, NULL, NULL);
}
