#include "core/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/fixture.h"

static int open_null(int flags)
{
	int fd = open("/dev/null", flags | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void closes_and_clears(void **state)
{
	int fd = open_null(O_RDONLY), number = fd;

	(void)state;
	errno = EDOM;
	assert_int_equal(fd_close(&fd), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, EDOM);
	assert_int_equal(fcntl(number, F_GETFD), -1);
	fd = open_null(O_RDONLY);
	assert_int_equal(fd, number); /* another owner has the number */
	number = -1;
	assert_int_equal(fd_close(&number), 0);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	number = -5; /* an error code in place of a descriptor */
	assert_int_equal(fd_close(&number), 0);
	assert_int_equal(number, -1);
	fd_close(&fd);
}

static void takes(void **state)
{
	int fd = open_null(O_RDONLY), number = fd, taken = fd_take(&fd);

	(void)state;
	assert_int_equal(taken, number);
	assert_int_equal(fd, -1);
	assert_int_equal(fd_take(&fd), -1);
	fd_close(&taken);
}

/* A second close through a copy of the number ends the process. */
static void a_second_close_aborts(void **state)
{
	const struct rlimit none = { 0, 0 };
	int status, fd, copy;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL); /* cmocka catches the signal */
		if (freopen("/dev/null", "w", stderr) == NULL)
			_exit(1);
		fd = copy = open("/dev/null", O_RDONLY | O_CLOEXEC);
		fd_close(&fd);
		fd_close(&copy);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void streams_take_the_descriptor(void **state)
{
	int fd = open_null(O_WRONLY), number = fd;
	FILE *f = fd_file(&fd, "w");
	DIR *d;

	(void)state;
	assert_non_null(f);
	assert_int_equal(fd, -1);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(fcntl(number, F_GETFD), -1);
	fd = open(nf_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(d = fd_dir(&fd));
	assert_int_equal(fd, -1);
	assert_int_equal(closedir(d), 0);
}

static void streams_take_the_descriptor_on_failure(void **state)
{
	int fd = open_null(O_RDONLY), number = fd;

	(void)state;
	assert_null(fd_file(&fd, "no mode"));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(number, F_GETFD), -1);
	fd = open_null(O_RDONLY);
	assert_null(fd_dir(&fd));
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(number, F_GETFD), -1);
}

/* Another open file holds the lock: until it goes, or for good. */
static void locks(void **state)
{
	int fd, holder;
	char path[300];
	pid_t child;

	(void)state;
	snprintf(path, sizeof path, "%s/lock", nf_dir);
	assert_true((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) >= 0);
	assert_true((holder = open(path, O_RDWR | O_CLOEXEC)) >= 0);
	assert_true(fd_lock(holder, 0));
	assert_false(fd_lock(fd, 0));
	assert_int_equal(errno, EWOULDBLOCK);
	assert_false(fd_lock(fd, 20));
	assert_int_equal(errno, EWOULDBLOCK);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(poll(NULL, 0, 20)); /* its copy goes with it */
	assert_int_equal(fd_close(&holder), 0);
	assert_true(fd_lock(fd, -1));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(fd_close(&fd), 0);
	assert_false(fd_lock(fd, -1)); /* closed */
	assert_int_equal(errno, EBADF);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(closes_and_clears), nf_test(takes), nf_test(a_second_close_aborts),
		nf_test(streams_take_the_descriptor), nf_test(streams_take_the_descriptor_on_failure),
		nf_test(locks),
	};

	return cmocka_run_group_tests_name("core/fd", tests, NULL, NULL);
}
