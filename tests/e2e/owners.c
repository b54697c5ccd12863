/* To be preloaded: every descriptor has one owner, who closes the descriptor once. A close of a descriptor that is not
 * open ends the process, with the calls that led there: the second of two closes may hit the file that another thread
 * has opened meanwhile. At its end the process has the descriptors with which it began, and three that it keeps on
 * purpose: the event of signals (cli/process.c), and the two ends of libuv's pipe of signals. Both faults are reported
 * on the standard error and abort the process; tests/e2e/lib.sh looks for reports after each case.
 *
 * Only ptcp is examined, and programs of unit tests for second closes, not the programs that these start. A static ptcp
 * is not reached. Nothing is opened: the tests of few descriptors would notice. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 1024 /* descriptors examined */

static bool examined, counted, at_start[MOST];

static void say(int fd, const char *fault)
{
	char text[200];
	int n = snprintf(text, sizeof text, "ptcp, process %ld: descriptor %d %s\n", (long)getpid(), fd, fault);

	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		abort();
}

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

__attribute__((constructor)) static void begin(void)
{
	void *call[1];
	int fd;

	counted = strcmp(program_invocation_short_name, "ptcp") == 0;
	examined = counted || strncmp(program_invocation_short_name, "test_", 5) == 0;
	if (!examined)
		return;
	backtrace(call, 1); /* loads what backtraces need, which a sandbox would prevent later */
	for (fd = 0; fd < MOST; fd++)
		at_start[fd] = is_open(fd);
}

int close(int fd)
{
	static int (*real)(int);
	void *call[16];
	int r;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "close");
	r = real(fd);
	if (r < 0 && errno == EBADF && fd >= 0 && examined) {
		say(fd, "is closed, and was not open");
		backtrace_symbols_fd(call, backtrace(call, 16), STDERR_FILENO);
		abort();
	}
	return r;
}

__attribute__((destructor)) static void end(void)
{
	unsigned events = 1, pipes = 2, faults = 0;
	struct stat st;
	int fd;

	for (fd = STDERR_FILENO + 1; fd < MOST && counted; fd++) { /* ptcp opens those below, if closed at the start */
		if (at_start[fd] || !is_open(fd) || fstat(fd, &st) < 0)
			continue;
		if (S_ISFIFO(st.st_mode) && pipes > 0) {
			pipes--;
		} else if ((st.st_mode & S_IFMT) == 0 && events > 0) {
			events--;
		} else {
			say(fd, S_ISSOCK(st.st_mode) ? "is open at the end, a socket" : S_ISDIR(st.st_mode) ?
			    "is open at the end, a directory" : S_ISREG(st.st_mode) ? "is open at the end, a file" :
			    S_ISFIFO(st.st_mode) ? "is open at the end, a pipe" :
			    "is open at the end, an event, a loop or a device");
			faults++;
		}
	}
	if (faults > 0)
		abort();
}
