/* What fits, by what the file system says, and who may create names in a directory. */
#include "fs/room.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/err.h"
#include "store/fixture.h"

static struct {
	uint64_t blocks, free, available, unit, entries, free_entries;
	int denied; /* errno of faccessat(); 0: permitted */
} disk;
static struct sys sys;

static int disk_fstatfs(int fd, struct statfs *st)
{
	int r = sys_real.fstatfs(fd, st);

	st->f_blocks = disk.blocks;
	st->f_bfree = disk.free;
	st->f_bavail = disk.available;
	st->f_bsize = st->f_frsize = (long)disk.unit;
	st->f_files = disk.entries;
	st->f_ffree = disk.free_entries;
	return r;
}

static int disk_faccessat(int at, const char *path, int mode, int flags)
{
	(void)at;
	(void)path;
	(void)flags;
	assert_int_equal(mode, W_OK | X_OK);
	errno = disk.denied;
	return disk.denied == 0 ? 0 : -1;
}

static struct room look(const char *below)
{
	struct tree *t;
	struct dir *root, *d;
	struct room r;

	sys = sys_real;
	sys.fstatfs = disk_fstatfs;
	sys.faccessat = disk_faccessat;
	assert_int_equal(tree_open(&t, fx_path(""), &sys, NULL), 0);
	root = tree_root(t);
	d = below != NULL ? dir_child(root, below) : dir_ref(root);
	room_look(&r, d);
	assert_true(r.dev == room_dev(d));
	dir_unref(d);
	dir_unref(root);
	tree_unref(t);
	return r;
}

static int setup(void **state)
{
	memset(&disk, 0, sizeof disk);
	disk.blocks = 1000;
	disk.free = 200;
	disk.available = 150;
	disk.unit = 4096;
	disk.entries = 50;
	disk.free_entries = 7;
	return fx_setup(state);
}
#define room_test(f) cmocka_unit_test_setup_teardown(f, setup, fx_teardown)

static void numbers(void **state)
{
	struct room r;

	(void)state;
	r = look(NULL);
	assert_true(r.free_bytes == (fx_is_root() ? 200 : 150) * UINT64_C(4096)); /* root has what is reserved */
	assert_int_equal(r.free_entries, 7);
	assert_int_equal(r.no_names, 0);
	r = look("missing"); /* that of the directory above */
	assert_int_equal(r.free_entries, 7);
	assert_true(r.dev != 0);
}

/* A tmpfs without a limit, btrfs without a number of inodes, and numbers beyond 64 bits. */
static void no_numbers(void **state)
{
	struct room r;

	(void)state;
	disk.blocks = disk.entries = 0;
	r = look(NULL);
	assert_true(r.free_bytes == ROOM_UNKNOWN);
	assert_true(r.free_entries == ROOM_UNKNOWN);
	disk.blocks = disk.free = disk.available = UINT64_MAX / 2;
	r = look(NULL);
	assert_true(r.free_bytes == ROOM_UNKNOWN);
	assert_int_equal(room_check(&r, UINT64_MAX - 1, UINT64_MAX - 1, false, NULL), 0);
}

static void permission(void **state)
{
	static const struct { int denied, no_names; } table[] = { { EACCES, EACCES }, { EROFS, EROFS },
		{ EPERM, EPERM }, { EIO, 0 }, { ENOSYS, 0 }, { 0, 0 } };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof table / sizeof *table; i++) {
		disk.denied = table[i].denied;
		assert_int_equal(look(NULL).no_names, table[i].no_names);
	}
}

static void limits(void **state)
{
	const struct room r = { .dev = 1, .free_bytes = 1000, .free_entries = 5 };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(room_check(&r, 1000, 5, false, &e), 0);
	assert_int_equal(room_check(&r, 1001, 5, false, &e), PTCP_ENOSPC);
	assert_non_null(strstr(e.msg, "needs 1.00 kB, and 1.00 kB are free ("));
	assert_int_equal(room_check(&r, 1000, 6, true, &e), PTCP_ENOSPC);
	assert_non_null(strstr(e.msg, "needs at least 6 inodes"));
	assert_non_null(strstr(e.msg, " 5 are free ("));
}

int main(void)
{
	const struct CMUnitTest tests[] = { room_test(numbers), room_test(no_numbers), room_test(permission),
		room_test(limits) };

	return cmocka_run_group_tests_name("fs/room", tests, NULL, NULL);
}
