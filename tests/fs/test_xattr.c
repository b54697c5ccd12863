#include "store/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/xattr.h"

static struct xattrs list;

static int setup(void **state)
{
	if (fx_tree_setup(state) != 0)
		return -1;
	list = XATTRS_INIT;
	fx_text("f", "x");
	return 0;
}

static int teardown(void **state)
{
	xattrs_fini(&list);
	return fx_tree_teardown(state);
}

#define xattr_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void give(const char *file, const char *name, const void *value, size_t n)
{
	if (setxattr(fx_path(file), name, value, n, 0) == 0)
		return;
	if (errno == EOPNOTSUPP)
		skip(); /* this file system has none */
	fail_msg("%s: %s", name, strerror(errno));
}

/* Asserts that this attribute is in the list. */
static void has(const char *name, const void *value, size_t n)
{
	struct xattr a;
	size_t at = 0;

	while (xattrs_next(&list, &at, &a))
		if (strcmp(a.name, name) == 0) {
			assert_int_equal(a.name_n, strlen(name));
			assert_int_equal(a.n, n);
			assert_memory_equal(a.value, value, n);
			return;
		}
	fail_msg("no %s", name);
}

static void names(void **state)
{
	char longest[257];

	(void)state;
	memset(longest, 'x', sizeof longest);
	memcpy(longest, "user.", 5);
	assert_true(xattr_name_ok("user.a", 6, XATTR_USER));
	assert_true(xattr_name_ok("user.\xff\n", 7, XATTR_USER));
	assert_true(xattr_name_ok(longest, 255, XATTR_USER));
	assert_false(xattr_name_ok(longest, 256, XATTR_USER));
	assert_false(xattr_name_ok("user.", 5, XATTR_USER));
	assert_false(xattr_name_ok("user", 4, XATTR_USER));
	assert_false(xattr_name_ok("", 0, XATTR_USER));
	assert_false(xattr_name_ok("user.a\0b", 8, XATTR_USER));
	assert_false(xattr_name_ok("User.a", 6, XATTR_USER));
	assert_false(xattr_name_ok("security.capability", 19, XATTR_USER));
	assert_false(xattr_name_ok("system.posix_acl_access", 23, XATTR_USER));
	assert_false(xattr_name_ok("trusted.x", 9, XATTR_USER));
	assert_true(xattr_name_ok("trusted.x", 9, XATTR_PRIVILEGED));
	assert_true(xattr_name_ok("security.x", 10, XATTR_PRIVILEGED));
	assert_false(xattr_name_ok("security.capability", 19, XATTR_USER | XATTR_PRIVILEGED | XATTR_ACL));
	assert_true(xattr_name_ok("security.capability", 19, XATTR_CAPABILITY));
	assert_false(xattr_name_ok("security.selinux", 16, ~0u));
	assert_false(xattr_name_ok("security.SMACK64EXEC", 20, ~0u));
	assert_false(xattr_name_ok("security.ima", 12, ~0u));
	assert_false(xattr_name_ok("system.posix_acl_access", 23, XATTR_USER | XATTR_PRIVILEGED | XATTR_CAPABILITY));
	assert_true(xattr_name_ok("system.posix_acl_access", 23, XATTR_ACL));
	assert_false(xattr_name_ok("system.posix_acl_access2", 24, ~0u));
	assert_false(xattr_name_ok("system.nfs4_acl", 15, ~0u));
}

static void bounds(void **state)
{
	static char value[XATTRS_MAX_BYTES + 1];
	struct xattr a;
	size_t at = 0, used = 0, n = 0;
	char name[20];

	(void)state;
	assert_int_equal(xattrs_add(&list, "user.a", 6, value, sizeof value, NULL), PTCP_ERANGE);
	assert_int_equal(xattrs_add(&list, "user.a", 6, value, XATTRS_MAX_BYTES - 13, NULL), PTCP_ERANGE);
	assert_int_equal(list.n, 0);
	assert_int_equal(xattrs_add(&list, "user.a", 6, value, XATTRS_MAX_BYTES - 14, NULL), 0);
	assert_int_equal(xattrs_add(&list, "user.b", 6, value, 0, NULL), PTCP_ERANGE);
	xattrs_fini(&list);
	assert_false(xattrs_next(&list, &at, &a));
	do
		snprintf(name, sizeof name, "user.%zu", n++);
	while (xattrs_add(&list, name, strlen(name), "v", 1, NULL) == 0);
	assert_int_equal(list.n, n - 1);
	for (n = 0; xattrs_next(&list, &at, &a); n++) {
		snprintf(name, sizeof name, "user.%zu", n);
		assert_string_equal(a.name, name);
		assert_memory_equal(a.value, "v", 1);
		used += a.name_n + a.n + 8;
	}
	assert_int_equal(n, list.n);
	assert_true(used <= XATTRS_MAX_BYTES && used > XATTRS_MAX_BYTES - 30);
}

/* Of a file and of a directory, there and back. */
static void copies(void **state)
{
	struct ptcp_err e;
	char got[20];
	int fd;

	(void)state;
	fx_needs_linux();
	fx_mkdir("d");
	for (int i = 0; i < 2; i++) {
		const char *from = i == 0 ? "f" : "d";

		give(from, "user.a", "one\0two", 7);
		give(from, "user.empty", "", 0);
		give(from, "user.\xff\n", "x", 1);
		if (fx_is_root())
			setxattr(fx_path(from), "trusted.secret", "x", 1, 0);
		if (xattrs_read(&list, fx_root, from, XATTR_USER, &e) != 0)
			fail_msg("%s", e.msg);
		assert_int_equal(list.n, 3);
		has("user.a", "one\0two", 7);
		has("user.empty", "", 0);
		has("user.\xff\n", "x", 1);
		fx_text("g", "");
		fd = open(fx_path("g"), O_RDONLY | O_CLOEXEC);
		assert_int_equal(xattrs_set(&list, fx_root, "g", fd, XATTR_USER, &e), 0);
		close(fd);
		assert_int_equal(getxattr(fx_path("g"), "user.a", got, sizeof got), 7);
		assert_memory_equal(got, "one\0two", 7);
		assert_int_equal(getxattr(fx_path("g"), "user.empty", got, sizeof got), 0);
		assert_int_equal(getxattr(fx_path("g"), "user.\xff\n", got, sizeof got), 1);
		assert_int_equal(unlink(fx_path("g")), 0);
		xattrs_fini(&list);
	}
	assert_int_equal(symlink("f", fx_path("l")), 0);
	assert_true(xattrs_read(&list, fx_root, "l", XATTR_USER, NULL) < 0); /* not followed */
	assert_int_equal(list.n, 0);
}

/* What costs a file without any: one question. */
static void none(void **state)
{
	(void)state;
	fx_heal();
	assert_int_equal(xattrs_read(&list, fx_root, "f", XATTR_USER, NULL), 0);
	assert_int_equal(fx_calls_of(FX_flistxattr), 1);
	fx_fail_always(FX_flistxattr, EOPNOTSUPP);
	assert_int_equal(xattrs_read(&list, fx_root, "f", XATTR_USER, NULL), 0);
	assert_int_equal(list.n, 0);
}

/* ---- Played by the table, whatever this file system can do ---- */

static ssize_t many_list(int fd, char *names_, size_t n)
{
	static const char all[] = "user.big\0security.x\0user.small\0user.gone\0user.huge";

	(void)fd;
	if (n > 0)
		memcpy(names_, all, sizeof all);
	return sizeof all;
}

static ssize_t many_get(int fd, const char *name, void *value, size_t n)
{
	size_t len = strcmp(name, "user.small") == 0 ? 3 : strcmp(name, "user.big") == 0 ? 50000 : 65536;

	(void)fd;
	assert_string_not_equal(name, "security.x");
	if (strcmp(name, "user.gone") == 0) {
		errno = ENODATA;
		return -1;
	}
	assert_true(n >= len);
	memset(value, 'v', len);
	return (ssize_t)len;
}

static unsigned taken;

static int picky_set(int fd, const char *name, const void *value, size_t n, int flags)
{
	(void)fd, (void)value, (void)n, (void)flags;
	if (strcmp(name, "user.big") == 0) {
		errno = ENOSPC;
		return -1;
	}
	taken++;
	return 0;
}

static void left_out(void **state)
{
	struct sys sys = sys_real;
	struct ptcp_err e;
	struct tree *t;
	struct dir *d;

	(void)state;
	sys.flistxattr = many_list;
	sys.fgetxattr = many_get;
	sys.fsetxattr = picky_set;
	assert_int_equal(tree_open(&t, fx_path(""), &sys, NULL), 0);
	d = tree_root(t);
	assert_int_equal(xattrs_read(&list, d, "f", XATTR_USER, &e), 1);
	assert_non_null(strstr(e.msg, "f: extended attribute user.huge: "));
	assert_int_equal(list.n, 2);
	has("user.small", "vvv", 3);
	taken = 0;
	assert_int_equal(xattrs_set(&list, d, "f", -1, XATTR_USER, &e), 1);
	assert_int_equal(taken, 1);
	assert_non_null(strstr(e.msg, "f: extended attribute user.big: "));
	dir_unref(d);
	tree_unref(t);
}

static void faults(void **state)
{
	struct ptcp_err e;
	int n, r, fds = fx_open_fds();

	(void)state;
	fx_needs_linux();
	give("f", "user.a", "x", 1);
	for (n = 1;; n++) {
		fx_heal();
		fx_fail_nth(n, EIO);
		xattrs_fini(&list);
		r = xattrs_read(&list, fx_root, "f", XATTR_USER, &e);
		assert_int_equal(fx_open_fds(), fds);
		if (fx_failed() == 0)
			break;
		if (r < 0)
			assert_int_equal(e.sys, EIO);
	}
	assert_int_equal(r, 0);
	assert_true(n >= 5);
	fx_fail_always(FX_fsetxattr, EIO);
	assert_int_equal(xattrs_set(&list, fx_root, "f", -1, XATTR_USER, &e), PTCP_EIO);
}

/* What getxattrat() tells of the file, its link, the directory itself and a missing name; of short and missing
 * values. */
static void ask_all(int dirfd, long answer[9])
{
	static const char *const name[] = { "user.a", "user.b" };
	static const char *const file[] = { "f", "link", ".", "none" };
	char value[8] = "";
	unsigned i, j;
	ssize_t n;

	for (i = 0; i < 4; i++)
		for (j = 0; j < 2; j++) {
			n = sys_real.getxattrat(dirfd, file[i], name[j], value, sizeof value);
			answer[2 * i + j] = n < 0 ? -errno : n + value[0] * 256;
		}
	n = sys_real.getxattrat(dirfd, "f", "user.a", value, 1);
	answer[8] = n < 0 ? -errno : n;
}

/* From here on, the calling process lacks the system call, as older kernels do, or a filter refuses it. */
static bool lose_getxattrat(int error)
{
	struct sock_filter rule[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 464, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog all = { .len = sizeof rule / sizeof *rule, .filter = rule };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

static void without_the_call(void **state)
{
	static const int errors[] = { ENOSYS, EPERM };
	long with[9], without[9];
	unsigned i;
	int dirfd, status;
	pid_t child;

	(void)state;
	fx_needs_linux();
	give("f", "user.a", "xyz", 3);
	give("", "user.b", "of the", 6);
	assert_int_equal(symlink("f", fx_path("link")), 0);
	dirfd = open(fx_path(""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ask_all(dirfd, with);
	assert_int_equal(with[0], 3 + 'x' * 256);
	assert_int_equal(with[1], -ENODATA);
	assert_true(with[2] < 0); /* not followed */
	assert_int_equal(with[8], -ERANGE);
	for (i = 0; i < 2; i++) {
		if ((child = fork()) == 0) {
			if (!lose_getxattrat(errors[i]))
				_exit(77);
			ask_all(dirfd, without);
			_exit(memcmp(with, without, sizeof with) != 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skip();
		assert_int_equal(status, 0);
	}
	close(dirfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		xattr_test(names), xattr_test(bounds), xattr_test(copies), xattr_test(none),
		xattr_test(left_out), xattr_test(faults), xattr_test(without_the_call),
	};
	return cmocka_run_group_tests_name("fs/xattr", tests, NULL, NULL);
}
