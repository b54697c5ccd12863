#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/userdir.h"
#include "patience.h"

static char dir[] = "/tmp/ptcp-userdir-XXXXXX", path[64], lock[72];

static int setup(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/file", dir);
	snprintf(lock, sizeof lock, "%s.lock", path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void where_they_are(void **state)
{
	char out[USERDIR_BYTES], *long_dir;

	(void)state;
	assert_int_equal(userdir_config(out, "given", NULL), 0);
	assert_string_equal(out, "given");
	setenv("XDG_CONFIG_HOME", "/xdg", 1);
	setenv("XDG_STATE_HOME", "/state", 1);
	setenv("HOME", "/home/x", 1);
	assert_int_equal(userdir_config(out, NULL, NULL), 0);
	assert_string_equal(out, "/xdg/ptcp");
	assert_int_equal(userdir_state(out, NULL, NULL), 0);
	assert_string_equal(out, "/state/ptcp");
	setenv("XDG_CONFIG_HOME", "relative", 1); /* to be ignored, says its specification */
	unsetenv("XDG_STATE_HOME");
	assert_int_equal(userdir_config(out, NULL, NULL), 0);
	assert_string_equal(out, "/home/x/.config/ptcp");
	assert_int_equal(userdir_state(out, NULL, NULL), 0);
	assert_string_equal(out, "/home/x/.local/state/ptcp");
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
	assert_int_equal(userdir_config(out, NULL, NULL), PTCP_ECONFIG);
	assert_int_equal(userdir_state(out, NULL, NULL), PTCP_ECONFIG);
	assert_int_equal(userdir_state(out, "", NULL), PTCP_ECONFIG);
	long_dir = malloc(USERDIR_BYTES + 1);
	memset(long_dir, 'x', USERDIR_BYTES);
	long_dir[USERDIR_BYTES] = '\0';
	assert_int_equal(userdir_config(out, long_dir, NULL), PTCP_ECONFIG);
	long_dir[USERDIR_BYTES - 1] = '\0';
	assert_int_equal(userdir_config(out, long_dir, NULL), 0);
	free(long_dir);
}

static void made_private_with_those_above(void **state)
{
	char deep[80];
	struct stat st;

	(void)state;
	snprintf(deep, sizeof deep, "%s/a/b", dir);
	assert_int_equal(userdir_make(deep, NULL), 0);
	assert_int_equal(userdir_make(deep, NULL), 0); /* is there */
	assert_int_equal(stat(deep, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	rmdir(deep);
	*strrchr(deep, '/') = '\0';
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(userdir_make("/dev/null/x", NULL), PTCP_ECONFIG);
}

/* The status of a process that takes the lock within two seconds: 0, or that of the alarm. */
static int lock_elsewhere(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(patience_s(2));
		_exit(userdir_lock(path, NULL) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void one_has_the_lock(void **state)
{
	int fd;

	(void)state;
	assert_true((fd = userdir_lock(path, NULL)) >= 0);
	assert_int_not_equal(lock_elsewhere(), 0);
	close(fd);
	assert_int_equal(lock_elsewhere(), 0);
	unlink(lock);
}

static void what_cannot_be_a_lock_is_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(lock, 0600), 0);
	assert_int_equal(lock_elsewhere(), 0);
	unlink(lock);
	assert_int_equal(userdir_lock("/nowhere/file", NULL), PTCP_ECONFIG);
}

/* A directory made by userdir_private() is locked, and the user's only; anything else is refused. */
static void private_directories(void **state)
{
	char other[80];
	struct stat st;
	int fd, i;

	(void)state;
	assert_int_equal(userdir_private(path, false, NULL), PTCP_ECONFIG);
	assert_true((fd = userdir_private(path, true, NULL)) >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(userdir_private(path, true, NULL), PTCP_ECONFIG); /* locked */
	close(fd);
	snprintf(other, sizeof other, "%s/link", dir);
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(userdir_private(other, true, NULL), PTCP_ECONFIG);
	unlink(other);
	for (i = 0; i < 6; i++) {
		assert_int_equal(chmod(path, 0700 | 1u << i), 0);
		if ((1u << i & 022) != 0) {
			assert_int_equal(userdir_private(path, true, NULL), PTCP_ECONFIG);
			continue;
		}
		assert_true((fd = userdir_private(path, true, NULL)) >= 0); /* made private */
		close(fd);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0700);
	}
	assert_int_equal(chmod(path, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(userdir_private(path, true, NULL), PTCP_ECONFIG);
		assert_int_equal(chown(path, 0, 0), 0);
	}
	userdir_private_remove(path);
	assert_int_not_equal(stat(path, &st), 0);
}

static void runtime_directories(void **state)
{
	char out[USERDIR_RUNTIME][USERDIR_RUNTIME_BYTES], want[USERDIR_RUNTIME_BYTES], *long_dir;
	unsigned n;

	(void)state;
	assert_int_equal(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
	assert_int_equal(setenv("XDG_STATE_HOME", "/state", 1), 0);
	n = userdir_runtime(out);
	assert_string_equal(out[n - 1], "/state/ptcp/run"); /* the last choice, as /tmp is open to all */
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	assert_int_equal(userdir_runtime(out), n - 1);
	n--;
	assert_in_range(n, 2, USERDIR_RUNTIME);
	snprintf(want, sizeof want, "%s/ptcp", dir);
	assert_string_equal(out[0], want);
	snprintf(want, sizeof want, "/tmp/ptcp-%u", (unsigned)geteuid());
	assert_string_equal(out[n - 1], want);
	if (geteuid() == 0) { /* su and sudo leave the variable of another user */
		assert_int_equal(chown(dir, 65534, 65534), 0);
		assert_int_equal(userdir_runtime(out), n - 1);
		assert_int_equal(chown(dir, 0, 0), 0);
	}
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "relative", 1), 0);
	assert_int_equal(userdir_runtime(out), n - 1);
	assert_non_null(long_dir = malloc(5000));
	memset(long_dir, '/', 4999);
	long_dir[4999] = '\0';
	assert_int_equal(setenv("XDG_RUNTIME_DIR", long_dir, 1), 0);
	assert_int_equal(userdir_runtime(out), n - 1);
	free(long_dir);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(userdir_runtime(out), n - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_they_are), cmocka_unit_test(made_private_with_those_above),
		cmocka_unit_test(one_has_the_lock), cmocka_unit_test(what_cannot_be_a_lock_is_not_waited_for),
		cmocka_unit_test(private_directories), cmocka_unit_test(runtime_directories),
	};
	return cmocka_run_group_tests_name("core/userdir", tests, setup, teardown);
}
