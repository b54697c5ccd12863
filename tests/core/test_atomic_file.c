#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/atomic_file.h"

static char dir[] = "/tmp/ptcp-newfile-XXXXXX", path[64];

static int dirs_synced, dir_errno;

/* In place of the C library's: notes whether a directory is synced after the file has its name. */
int fsync(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	if (!S_ISDIR(st.st_mode))
		return (int)syscall(SYS_fsync, fd);
	dirs_synced += access(path, F_OK) == 0;
	errno = dir_errno;
	return dir_errno == 0 ? 0 : -1;
}

static int setup(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/file", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir); /* nothing else may be left */
}

static int entries(void)
{
	DIR *d = opendir(dir);
	int n = -2;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void holds(const char *text)
{
	char got[64];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	got[fread(got, 1, sizeof got - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(got, text);
	assert_int_equal(entries(), 1);
}

static void takes_the_place_of_what_was_there(void **state)
{
	struct atomic_file n;
	struct stat st;

	(void)state;
	assert_true(atomic_file_begin(&n, path));
	fputs("first", n.f);
	assert_int_equal(access(path, F_OK), -1); /* not before it is whole */
	assert_true(atomic_file_end(&n, true, true));
	holds("first");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(atomic_file_begin(&n, path));
	fputs("second", n.f);
	assert_int_equal(entries(), 2);
	assert_true(atomic_file_end(&n, true, false));
	holds("second");
}

/* Else a power cut could bring the old file back: a revoked client. */
static void the_name_is_durable(void **state)
{
	static const struct { int sys; bool good; } cases[] = { { 0, true }, { EINVAL, true }, { EIO, false } };
	struct atomic_file n;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		dirs_synced = 0;
		dir_errno = cases[i].sys;
		assert_true(atomic_file_begin(&n, path));
		fputs("second", n.f);
		assert_int_equal(atomic_file_end(&n, true, true), cases[i].good);
		if (!cases[i].good)
			assert_int_equal(errno, cases[i].sys);
		assert_int_equal(dirs_synced, 1);
		holds("second");
	}
	dir_errno = dirs_synced = 0;
	assert_true(atomic_file_begin(&n, path));
	fputs("second", n.f);
	assert_true(atomic_file_end(&n, true, false));
	assert_int_equal(dirs_synced, 0);
	assert_int_equal(chdir(dir), 0);
	assert_true(atomic_file_begin(&n, "file"));
	fputs("second", n.f);
	assert_true(atomic_file_end(&n, true, true));
	assert_int_equal(dirs_synced, 1);
	assert_int_equal(chdir("/"), 0);
}

static void leaves_what_was_there(void **state)
{
	struct atomic_file n;

	(void)state;
	assert_true(atomic_file_begin(&n, path));
	fputs("third", n.f);
	assert_true(atomic_file_end(&n, false, false));
	holds("second");
	/* What could not be written does not become the file. */
	assert_true(atomic_file_begin(&n, path));
	assert_non_null(freopen("/dev/full", "w", n.f));
	fputs("fourth", n.f);
	assert_false(atomic_file_end(&n, true, false));
	assert_int_equal(errno, ENOSPC);
	holds("second");
}

static void says_why_there_can_be_none(void **state)
{
	struct atomic_file n;

	(void)state;
	assert_false(atomic_file_begin(&n, "/tmp/ptcp-newfile-nowhere/file"));
	assert_int_equal(errno, ENOENT);
	/* A directory is in its place. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(atomic_file_begin(&n, path));
	assert_false(atomic_file_end(&n, true, false));
	assert_int_equal(errno, EISDIR);
	assert_int_equal(entries(), 1);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_place_of_what_was_there),
		cmocka_unit_test(the_name_is_durable),
		cmocka_unit_test(leaves_what_was_there),
		cmocka_unit_test(says_why_there_can_be_none),
	};
	return cmocka_run_group_tests_name("core/atomic_file", tests, setup, teardown);
}
