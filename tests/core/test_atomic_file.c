#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/atomic_file.h"

static char dir[] = "/tmp/ptcp-newfile-XXXXXX", path[64];

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
		cmocka_unit_test(leaves_what_was_there),
		cmocka_unit_test(says_why_there_can_be_none),
	};
	return cmocka_run_group_tests_name("core/newfile", tests, setup, teardown);
}
