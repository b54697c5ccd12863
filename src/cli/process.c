#include "cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

static atomic_int signals;
static _Atomic(void *) stop_handle;
static void (*_Atomic stop_fn)(void *);
static atomic_bool state_asked;
static int exit_second;
static const char *line_second;

/* Keys are in memory. One byte is too little for a file, and tells Linux not to start the program of
 * core_pattern either (fs/coredump.c), which a limit of none does not. */
static void forbid_core(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_CORE, &r) == 0 && r.rlim_cur > 1) {
		r.rlim_cur = 1;
		(void)setrlimit(RLIMIT_CORE, &r);
	}
}

void process_prepare(void)
{
	struct rlimit r;
	int fd;

	/* a socket must never become "standard error" */
	while ((fd = open("/dev/null", O_RDONLY)) >= 0 && fd <= STDERR_FILENO)
		; /* read-only: who writes to a closed standard output is told so */
	if (fd > STDERR_FILENO)
		close(fd);
	signal(SIGPIPE, SIG_IGN);
	forbid_core();
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r); /* fewer streams and files then */
	}
}

static void say_last_line(void)
{
	ssize_t r;

	if (line_second == NULL)
		return;
	r = write(STDERR_FILENO, line_second, strlen(line_second));
	(void)r;
}

static void on_signal(int sig)
{
	int saved = errno;
	void (*stop)(void *) = atomic_load(&stop_fn);

	(void)sig;
	if (atomic_fetch_add(&signals, 1) > 0) {
		say_last_line();
		_exit(exit_second);
	}
	if (stop != NULL)
		stop(atomic_load(&stop_handle));
	errno = saved;
}

static void on_ask(int sig)
{
	(void)sig;
	atomic_store(&state_asked, true);
}

void process_catch(int second_status, const char *second_line)
{
	struct sigaction sa, old, ask = { .sa_handler = on_ask, .sa_flags = SA_RESTART };

	exit_second = second_status;
	line_second = second_line;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = on_signal;
	sigemptyset(&sa.sa_mask);
	/* both at once count as two only after the first has been dealt with */
	sigaddset(&sa.sa_mask, SIGINT);
	sigaddset(&sa.sa_mask, SIGTERM);
	sigaddset(&sa.sa_mask, SIGHUP);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	sigemptyset(&ask.sa_mask);
	sigaction(SIGUSR1, &ask, NULL);
}

bool process_state_asked(void)
{
	return atomic_exchange(&state_asked, false);
}

int process_signal_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int process_signal(int fd)
{
	struct signalfd_siginfo si;

	return read(fd, &si, sizeof si) == (ssize_t)sizeof si ? (int)si.ssi_signo : 0;
}

void process_set_stop(void (*stop)(void *handle), void *handle)
{
	atomic_store(&stop_handle, handle);
	atomic_store(&stop_fn, stop);
	if (stop != NULL && process_stopping())
		stop(handle); /* idempotent: the handler may have called it too */
}

bool process_stopping(void)
{
	return atomic_load(&signals) > 0;
}
