/* against: access */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/trusted_file.h"
#include "patience.h"

static char dir[] = "/tmp/ptcp-trusted-XXXXXX", path[64];

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
	return rmdir(dir);
}

static void opens_regular_files_only(void **state)
{
	int fd;

	(void)state;
	alarm(patience_s(10)); /* ends a test that waits for the other end */
	assert_int_equal(trusted_file_open(path), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(trusted_file_open(path), -1);
	assert_int_equal(errno, EINVAL);
	unlink(path);
	assert_int_equal(trusted_file_open(dir), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(trusted_file_open("/dev/null"), -1);
	assert_int_equal(errno, EINVAL);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	fd = trusted_file_open(path);
	assert_true(fd >= 0);
	close(fd);
	alarm(0);
}

static const char *fault_of(mode_t file, mode_t above, const char *name)
{
	const char *why;
	int fd;

	assert_int_equal(chmod(path, file), 0);
	assert_int_equal(chmod(dir, above), 0);
	fd = trusted_file_open(path);
	assert_true(fd >= 0);
	why = trusted_file_fault(fd, name);
	close(fd);
	return why;
}

static void judges_who_can_write(void **state)
{
	static const mode_t bad[] = { 0620, 0602, 0666, 0660 }, good[] = { 0600, 0644, 0755 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_non_null(strstr(fault_of(bad[i], 0700, path), "others can write it"));
	for (i = 0; i < sizeof good / sizeof *good; i++)
		assert_null(fault_of(good[i], 0755, path));
	assert_non_null(strstr(fault_of(0600, 0770, path), "others can write its directory"));
	assert_null(fault_of(0600, 01777, path)); /* as /tmp: others cannot replace the file */
	assert_int_equal(chdir(dir), 0);
	assert_non_null(strstr(fault_of(0600, 0707, "file"), "others can write its directory"));
	assert_null(fault_of(0600, 0700, "file"));
	assert_int_equal(chdir("/"), 0);
	if (geteuid() != 0)
		return; /* only root can give the file to another user */
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_non_null(strstr(fault_of(0600, 0700, path), "belongs to another user"));
}

/* The file is in dir/above/below. */
static const char *fault_below(const char *name, mode_t above, uid_t owner)
{
	char up[64];
	const char *why;
	int fd;

	snprintf(up, sizeof up, "%s/above", dir);
	assert_int_equal(chmod(up, above), 0);
	assert_int_equal(chown(up, owner, (gid_t)-1), 0);
	fd = trusted_file_open(name);
	assert_true(fd >= 0);
	why = trusted_file_fault(fd, name);
	close(fd);
	return why;
}

static void judges_all_directories_above(void **state)
{
	char up[64], below[80], file[96], link[64], up_link[96];
	uid_t own = geteuid();
	const char *why;

	(void)state;
	assert_int_equal(chmod(dir, 0700), 0);
	snprintf(up, sizeof up, "%s/above", dir);
	snprintf(below, sizeof below, "%s/below", up);
	snprintf(file, sizeof file, "%s/file", below);
	snprintf(link, sizeof link, "%s/link", dir);
	snprintf(up_link, sizeof up_link, "%s/link", up);
	assert_int_equal(mkdir(up, 0700), 0);
	assert_int_equal(mkdir(below, 0700), 0);
	close(open(file, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(symlink(file, link), 0);
	assert_null(fault_below(file, 0755, own));
	assert_null(fault_below(link, 0755, own));
	assert_null(fault_below(file, 01777, own));
	assert_non_null(strstr(fault_below(file, 0770, own), "others can write a directory above"));
	assert_non_null(strstr(fault_below(link, 0707, own), "others can write a directory above"));
	assert_int_equal(symlink("below/file", up_link), 0);
	assert_non_null(strstr(fault_below(up_link, 0707, own), "others can write its directory"));
	assert_int_equal(setenv("HOME", below, 1), 0);
	assert_null(fault_below(file, 0777, own)); /* above the home */
	assert_int_equal(unsetenv("HOME"), 0);
	if (own == 0) {
		assert_non_null(why = fault_below(file, 0755, 12345));
		assert_non_null(strstr(why, "a directory above belongs to another user"));
		assert_non_null(strstr(fault_below(up_link, 01755, 12345), "its directory belongs to another user"));
		assert_null(fault_below(file, 0755, 0));
	}
	unlink(link);
	unlink(up_link);
	unlink(file);
	rmdir(below);
	rmdir(up);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_regular_files_only), cmocka_unit_test(judges_who_can_write),
		cmocka_unit_test(judges_all_directories_above),
	};
	return cmocka_run_group_tests_name("core/trusted_file", tests, setup, teardown);
}
