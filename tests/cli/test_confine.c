#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/confine.h"

/* Each attempt runs in a separate process, in a directory with "in" (the root), "out" and "config". */
static char top[64];
static const char *roots[3];
static struct ptcp_server_needs needs;
static const struct confine_tool also = { .reads = { "reads", NULL }, .writes = { "writes", NULL } };

static long kernel_abi(void)
{
	return syscall(444, NULL, 0, 1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && write(fd, "x", 1) == 1);
	close(fd);
}

static int setup(void **state)
{
	static const char *const dirs[] = { "in", "in/a", "in/b", "out", "config", "reads", "writes" };
	size_t i;

	(void)state;
	strcpy(top, "/tmp/ptcp-confine-XXXXXX");
	if (mkdtemp(top) == NULL || chdir(top) != 0)
		return -1;
	for (i = 0; i < sizeof dirs / sizeof *dirs; i++)
		mkdir(dirs[i], 0700);
	touch("in/a/file");
	touch("out/file");
	touch("config/file");
	touch("reads/file");
	touch("writes/file");
	roots[0] = "in";
	roots[1] = roots[2] = NULL;
	needs = (struct ptcp_server_needs){ .config_dir = "config", .roots = roots };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return chdir("/") == 0 && nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : -1;
}

/* Runs `what` confined by this version of the ABI; returns its status, or 99 if confining failed. */
static int confined(unsigned abi, int (*what)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(confine(&needs, &also, abi, PTCP_LOG_ERROR, NULL) == 0 ? what() : 99);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* errno of open(), or 0. */
static int opening(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Exits with the line as the status, to locate failures. */
#define TRY(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #cond, strerror(errno)); \
			return 1; \
		} \
	} while (0)

/* ---- What is left and what is not ---- */

static int work_in_root(void)
{
	TRY(opening("in/a/file", O_RDONLY) == 0 && opening("in/a/file", O_RDWR | O_TRUNC) == 0);
	TRY(opening("in/new", O_RDWR | O_CREAT | O_EXCL) == 0 && truncate("in/new", 100) == 0);
	TRY(mkdir("in/dir", 0700) == 0 && opening("in/dir", O_RDONLY | O_DIRECTORY) == 0);
	TRY(rename("in/new", "in/a/moved") == 0 && link("in/a/moved", "in/b/other") == 0);
	TRY(symlink("x", "in/link") == 0 && chmod("in/a/moved", 0640) == 0);
	TRY(unlink("in/b/other") == 0 && rmdir("in/dir") == 0);
	return 0;
}

static int keep_out(void)
{
	TRY(opening("out/file", O_RDONLY) == EACCES && opening("out/file", O_WRONLY) == EACCES);
	TRY(opening("out", O_RDONLY | O_DIRECTORY) == EACCES && opening("in/../out/file", O_RDONLY) == EACCES);
	TRY(opening("out/new", O_WRONLY | O_CREAT) == EACCES);
	TRY(mkdir("out/dir", 0700) < 0 && errno == EACCES);
	TRY(unlink("out/file") < 0 && errno == EACCES);
	TRY(rename("in/a/file", "out/file") < 0 && (errno == EACCES || errno == EXDEV));
	TRY(link("out/file", "in/file") < 0 && (errno == EACCES || errno == EXDEV));
	TRY(opening("config/file", O_RDONLY) == 0 && opening("config/file", O_WRONLY) == EACCES);
	TRY(opening("config/new", O_WRONLY | O_CREAT) == EACCES);
	TRY(mkfifo("in/fifo", 0600) < 0 && errno == EACCES);
	TRY(opening("/etc/shadow", O_RDONLY) != 0);
	TRY(opening("/dev/kmsg", O_RDONLY) != 0);
	TRY(execl("/bin/true", "true", (char *)NULL) < 0 && errno == EACCES);
	return 0;
}

/* What the tool reads and replaces itself: no more than that. */
static int tool_files(void)
{
	TRY(opening("reads/file", O_RDONLY) == 0 && opening("reads/file", O_WRONLY) == EACCES);
	TRY(opening("reads/new", O_WRONLY | O_CREAT) == EACCES);
	TRY(opening("writes/new", O_RDWR | O_CREAT | O_EXCL) == 0 && rename("writes/new", "writes/file") == 0);
	TRY(opening("writes/new", O_RDWR | O_CREAT | O_EXCL) == 0 && unlink("writes/new") == 0);
	TRY(opening("writes", O_RDONLY | O_DIRECTORY) == EACCES);
	TRY(mkdir("writes/dir", 0700) < 0 && errno == EACCES);
	TRY(symlink("x", "writes/link") < 0 && errno == EACCES);
	return 0;
}

static int ask_the_system(void)
{
	TRY(getpwuid(0) != NULL && getpwnam("root") != NULL && getpwnam("nobody of that name") == NULL);
	TRY(opening("/dev/null", O_RDWR) == 0 && opening("/dev/urandom", O_RDONLY) == 0);
	TRY(opening("/proc/self/status", O_RDONLY) == 0);
	return 0;
}

static void files(void **state)
{
	long abi, newest = kernel_abi();

	(void)state;
	if (newest < 2)
		skip();
	for (abi = 2; abi <= newest && abi <= CONFINE_ABI; abi++) {
		assert_int_equal(confined((unsigned)abi, work_in_root), 0);
		teardown(NULL);
		setup(NULL);
		assert_int_equal(confined((unsigned)abi, keep_out), 0);
		assert_int_equal(confined((unsigned)abi, ask_the_system), 0);
		assert_int_equal(confined((unsigned)abi, tool_files), 0);
	}
}

/* Of ABI 1 nothing is taken: it would refuse links between directories. */
static void older_kernels(void **state)
{
	(void)state;
	assert_int_equal(confined(1, work_in_root), 0);
	assert_int_equal(confined(0, ask_the_system), 0);
}

static int try_bind(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	r = bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0 ? 0 : errno;
	close(fd);
	return r;
}

/* To a port where nobody listens. */
static int try_connect(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) },
		.sin_port = htons(1) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	r = connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0 ? 0 : errno;
	close(fd);
	return r;
}

static void tcp(void **state)
{
	(void)state;
	if (kernel_abi() < 4)
		skip();
	assert_int_equal(confined(4, try_bind), EACCES);
	assert_int_equal(confined(4, try_connect), EACCES);
	assert_int_equal(confined(3, try_bind), 0);
	assert_int_equal(confined(3, try_connect), ECONNREFUSED);
	needs.binds = true;
	assert_int_equal(confined(4, try_bind), 0);
	assert_int_equal(confined(4, try_connect), EACCES);
	needs.binds = false;
	needs.connects = true;
	assert_int_equal(confined(4, try_bind), EACCES);
	assert_int_equal(confined(4, try_connect), ECONNREFUSED);
}

static int try_signal(void)
{
	TRY(kill(getpid(), 0) == 0);
	return kill(getppid(), 0) == 0 ? 0 : errno;
}

static void signals(void **state)
{
	(void)state;
	if (kernel_abi() < 6)
		skip();
	assert_int_equal(confined(6, try_signal), EPERM);
	assert_int_equal(confined(5, try_signal), 0);
}

/* ---- Privileges ---- */

static int look_at_privileges(void)
{
	const uint64_t kept = 1ull << CAP_CHOWN | 1ull << CAP_FOWNER | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FSETID;
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2];
	int cap;

	TRY(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
	TRY(prctl(PR_GET_DUMPABLE) == 0);
#endif
	TRY(syscall(SYS_capget, &h, d) == 0);
	TRY((d[0].permitted & ~(uint32_t)kept) == 0 && d[1].permitted == 0 && d[0].effective == d[0].permitted);
	TRY(d[0].inheritable == 0 && d[1].inheritable == 0);
	TRY(geteuid() != 0 || d[0].permitted == kept);
	for (cap = 0; cap < 40 && geteuid() == 0; cap++)
		TRY(prctl(PR_CAPBSET_READ, cap) <= (int)(kept >> cap & 1));
	return 0;
}

static void privileges(void **state)
{
	(void)state;
	assert_int_equal(confined(CONFINE_ABI, look_at_privileges), 0);
	assert_int_equal(confined(0, look_at_privileges), 0);
}

/* The capabilities retained by root suffice to change owners of files and to keep writing to the files. */
static int give_away(void)
{
	struct timespec then[2] = { { 1, 0 }, { 1, 0 } };

	TRY(chown("in/a", 12345, 12345) == 0 && chown("in/a/file", 12345, 12345) == 0);
	TRY(chmod("in/a", 02700) == 0 && chmod("in/a/file", 0600) == 0);
	TRY(opening("in/a/file", O_RDWR) == 0 && opening("in/a/another", O_WRONLY | O_CREAT) == 0);
	TRY(utimensat(AT_FDCWD, "in/a/file", then, 0) == 0);
	return 0;
}

static void owners(void **state)
{
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(confined(CONFINE_ABI, give_away), 0);
	assert_int_equal(stat("in/a", &st), 0);
	assert_int_equal(st.st_mode & 07777, 02700);
}

static void *in_thread(void *arg)
{
	*(int *)arg = keep_out() | look_at_privileges();
	return NULL;
}

static int start_thread(void)
{
	pthread_t t;
	int r = 1;

	TRY(pthread_create(&t, NULL, in_thread, &r) == 0 && pthread_join(t, NULL) == 0);
	return r;
}

static void threads(void **state)
{
	(void)state;
	if (kernel_abi() < 2)
		skip();
	assert_int_equal(confined(CONFINE_ABI, start_thread), 0);
}

/* ---- What is not there ---- */

static void missing(void **state)
{
	(void)state;
	if (kernel_abi() < 2)
		skip();
	roots[0] = "nowhere";
	roots[1] = "in";
	needs.config_dir = "nowhere";
	assert_int_equal(confined(CONFINE_ABI, work_in_root), 0);
}

/* A failed restriction is an error. */
static void out_of_descriptors(void **state)
{
	struct rlimit none = { 0, 0 };
	struct ptcp_err e = { 0 };
	pid_t pid;
	int status;

	(void)state;
	if (kernel_abi() < 2)
		skip();
	if ((pid = fork()) == 0) {
		setrlimit(RLIMIT_NOFILE, &none);
		_exit(confine(&needs, &(struct confine_tool){ 0 }, CONFINE_ABI, PTCP_LOG_ERROR, &e) == PTCP_ECONFIG &&
		    strstr(e.msg, "--no-sandbox") != NULL ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define confine_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		confine_test(files), confine_test(older_kernels), confine_test(tcp), confine_test(signals),
		confine_test(privileges), confine_test(owners), confine_test(threads), confine_test(missing),
		confine_test(out_of_descriptors),
	};
	return cmocka_run_group_tests_name("cli/confine", tests, NULL, NULL);
}
