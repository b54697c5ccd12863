#include "store/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "fs/file_system.h"

/* ---- A file system that lacks one thing after the other ---- */

static struct {
	bool foreign; /* of a type that is not known */
	uint32_t lacks;
	long time_ns;
	int64_t first_s;
	unsigned tried; /* files made */
} odd;

static struct sys sys;

static bool without(enum ability a)
{
	errno = EOPNOTSUPP;
	return (odd.lacks >> a & 1) != 0;
}

static int odd_fstatfs(int fd, struct statfs *st)
{
	int r = sys_real.fstatfs(fd, st);

	st->f_type = odd.foreign ? 0x65735546 : 0xef53; /* FUSE, ext4 */
	return r;
}

static int odd_openat(int at, const char *path, int flags, mode_t mode)
{
	odd.tried += (flags & O_CREAT) != 0;
	if (strchr(path, ':') != NULL) {
		errno = EINVAL;
		return -1;
	}
	return sys_real.openat(at, path, flags, mode);
}

static int odd_fchmod(int fd, mode_t mode) { return without(ABILITY_MODES) ? -1 : sys_real.fchmod(fd, mode); }
static int odd_flock(int fd, int op) { return without(ABILITY_LOCKS) ? -1 : sys_real.flock(fd, op); }
static int odd_fsync(int fd) { return without(ABILITY_SYNC) ? -1 : sys_real.fsync(fd); }

static int odd_fchownat(int at, const char *path, uid_t uid, gid_t gid, int flags)
{
	return without(ABILITY_OWNERS) ? -1 : sys_real.fchownat(at, path, uid, gid, flags);
}

static int odd_linkat(int at, const char *path, int to, const char *name, int flags)
{
	return without(ABILITY_HARD_LINKS) ? -1 : sys_real.linkat(at, path, to, name, flags);
}

static int odd_symlinkat(const char *target, int at, const char *path)
{
	return without(ABILITY_SYMLINKS) ? -1 : sys_real.symlinkat(target, at, path);
}

static int odd_fsetxattr(int fd, const char *name, const void *value, size_t n, int flags)
{
	return without(strncmp(name, "user.", 5) == 0 ? ABILITY_XATTRS : ABILITY_ACLS) ? -1 :
	    sys_real.fsetxattr(fd, name, value, n, flags);
}

static int odd_renameat2(int at, const char *path, int to, const char *name, unsigned flags)
{
	return flags != 0 && without(ABILITY_NO_REPLACE) ? -1 : sys_real.renameat2(at, path, to, name, flags);
}

static int odd_futimens(int fd, const struct timespec ts[2])
{
	struct timespec rounded[2] = { ts[0], ts[1] };

	if (without(ABILITY_TIMES))
		return -1;
	rounded[1].tv_nsec -= rounded[1].tv_nsec % (odd.time_ns < 1000000000 ? odd.time_ns : 1000000000);
	if (odd.time_ns > 1000000000)
		rounded[1].tv_sec -= rounded[1].tv_sec % (odd.time_ns / 1000000000);
	if (rounded[1].tv_sec < odd.first_s)
		rounded[1] = (struct timespec){ .tv_sec = odd.first_s };
	return sys_real.futimens(fd, rounded);
}

static int setup(void **state)
{
	memset(&odd, 0, sizeof odd);
	odd.foreign = true;
	odd.time_ns = 1;
	odd.first_s = INT64_MIN;
	sys = sys_real;
	sys.fstatfs = odd_fstatfs;
	sys.openat = odd_openat;
	sys.fchmod = odd_fchmod;
	sys.flock = odd_flock;
	sys.fsync = odd_fsync;
	sys.fchownat = odd_fchownat;
	sys.linkat = odd_linkat;
	sys.symlinkat = odd_symlinkat;
	sys.fsetxattr = odd_fsetxattr;
	sys.renameat2 = odd_renameat2;
	sys.futimens = odd_futimens;
	return fx_tree_setup(state);
}

static struct dir *root_of(struct tree **t)
{
	assert_int_equal(tree_open(t, fx_path(""), &sys, NULL), 0);
	return tree_root(*t);
}

static uint32_t found(void)
{
	struct file_system is;
	struct ptcp_err e;
	struct tree *t;
	struct dir *d = root_of(&t);

	if (file_system_try(d, &is, &e) != 0)
		fail_msg("%s", e.msg);
	dir_unref(d);
	tree_unref(t);
	return is.lacks;
}

/* ---- Tests ---- */

/* Each lack is found, and nothing else; no file stays. */
static void lacks(void **state)
{
	const uint32_t here = found(); /* of the file system of the test */
	static const enum ability each[] = { ABILITY_MODES, ABILITY_OWNERS, ABILITY_XATTRS, ABILITY_ACLS,
		ABILITY_HARD_LINKS, ABILITY_SYMLINKS, ABILITY_TIMES, ABILITY_LOCKS, ABILITY_SYNC, ABILITY_NO_REPLACE };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof each / sizeof *each; i++) {
		odd.lacks = UINT32_C(1) << each[i];
		assert_int_equal(found(), here | odd.lacks);
	}
	assert_int_equal(fx_count("."), 0);
}

static void times(void **state)
{
	static const long steps[] = { 1, 100, 1000, 1000000, 10000000, 1000000000, 2000000000 };
	struct file_system is;
	struct tree *t;
	struct dir *d = root_of(&t);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof steps / sizeof *steps; i++) {
		odd.time_ns = steps[i];
		assert_int_equal(file_system_try(d, &is, NULL), 0);
		assert_int_equal(is.time_ns, steps[i]);
		assert_int_equal(is.first_s, INT64_MIN);
		assert_int_equal(file_system_lacks(&is, ABILITY_TIMES), i > 0);
	}
	odd.first_s = 315532800; /* 1980 */
	assert_int_equal(file_system_try(d, &is, NULL), 0);
	assert_int_equal(is.first_s, 315532800);
	assert_string_equal(is.refused, ":");
	dir_unref(d);
	tree_unref(t);
}

/* The directory keeps its time. */
static void once(void **state)
{
	const struct file_system *first;
	struct stat before, after;
	struct tree *t;
	struct dir *d = root_of(&t);

	(void)state;
	assert_null(file_system_known(d));
	assert_false(file_system_known_lacks(d, ABILITY_MODES));
	odd.lacks = UINT32_C(1) << ABILITY_MODES;
	assert_int_equal(stat(fx_path(""), &before), 0);
	assert_false(file_system_of(d)->tried);
	assert_int_equal(odd.tried, 0);
	assert_false(file_system_known_lacks(d, ABILITY_MODES));
	first = file_system_tried(d);
	assert_non_null(first);
	assert_true(first->tried);
	assert_true(file_system_lacks(first, ABILITY_MODES));
	assert_true(file_system_known_lacks(d, ABILITY_MODES));
	assert_int_equal(stat(fx_path(""), &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
	odd.tried = 0;
	assert_ptr_equal(file_system_tried(d), first);
	assert_ptr_equal(file_system_of(d), first);
	assert_int_equal(odd.tried, 0);
	dir_unref(d);
	tree_unref(t);
}

static void local_is_not_tried(void **state)
{
	const struct file_system *is;
	struct tree *t;
	struct dir *d = root_of(&t);

	(void)state;
	odd.foreign = false;
	odd.lacks = UINT32_MAX;
	is = file_system_tried(d);
	assert_true(is->local);
	assert_string_equal(is->type, "ext4");
	assert_int_equal(is->lacks, 0);
	assert_int_equal(odd.tried, 0);
	dir_unref(d);
	tree_unref(t);
}

static void text(void **state)
{
	struct file_system is = { .type = "exfat", .time_ns = 10000000, .first_s = 315532800, .last_s = INT64_MAX,
		.lacks = 1 << ABILITY_MODES | 1 << ABILITY_OWNERS | 1 << ABILITY_HARD_LINKS | 1 << ABILITY_TIMES };
	char out[FILE_SYSTEM_TEXT_BYTES];

	(void)state;
	assert_true(file_system_text(&is, UINT32_MAX, out));
	assert_string_equal(out, "exfat: no modes, owners or hard links, times to 10 ms, times from 1980 on");
	assert_true(file_system_text(&is, 1 << ABILITY_OWNERS, out));
	assert_string_equal(out, "exfat: no owners");
	assert_false(file_system_text(&is, 1 << ABILITY_LOCKS, out));
	is = (struct file_system){ .time_ns = 0, .first_s = INT64_MIN, .last_s = INT64_MAX,
		.lacks = 1 << ABILITY_TIMES | 1 << ABILITY_CASE };
	assert_true(file_system_text(&is, UINT32_MAX, out));
	assert_string_equal(out, "this file system: no times, case is ignored");
}

#define file_system_test(f) cmocka_unit_test_setup_teardown(f, setup, fx_tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { file_system_test(lacks), file_system_test(times), file_system_test(once),
		file_system_test(local_is_not_tried), cmocka_unit_test(text) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
