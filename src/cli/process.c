#include "cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/command.h"
#include "core/err.h"
#include "core/fd.h"

#define FIRST_PASSED 3 /* SD_LISTEN_FDS_START */
#define SIGNAL_MS 200  /* time between the signals to a child and to us */

static atomic_int signals, stops = 1;
/* The handler of signals gets a function with its own handle: a change fills the other element, then selects it. */
static struct process_stop {
	void (*fn)(void *handle);
	void *handle;
} stop_pair[2];
static struct process_stop *_Atomic stop_selected = stop_pair;
static atomic_bool state_requested, toggle_requested;
static int wake_fd = -1;
static int exit_second;
static const char *line_second;

/* Memory contains keys. A limit of one byte, unlike 0, also keeps Linux from starting the program in
 * core_pattern (fs/coredump.c). */
static void forbid_core(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_CORE, &r) == 0 && r.rlim_cur > 1) {
		r.rlim_cur = 1;
		(void)setrlimit(RLIMIT_CORE, &r);
	}
}

/* A user without the variable, as in some containers, has a home all the same. */
static void find_home(void)
{
	const struct passwd *pw = getenv("HOME") == NULL ? getpwuid(getuid()) : NULL;

	if (pw != NULL)
		setenv("HOME", pw->pw_dir, 0);
}

void process_prepare(void)
{
	struct rlimit r;
	int fd;

	/* Fill closed descriptors, so that no socket becomes standard error. What was closed cannot be used: standard
	 * input is not an empty file, and writes to standard output fail. */
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			break;
	signal(SIGPIPE, SIG_IGN);
	forbid_core();
	find_home();
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r); /* the library opens fewer streams and files after a failure */
	}
}

static void on_signal(int sig)
{
	int saved = errno;
	const struct process_stop *stop = atomic_load(&stop_selected);
	ssize_t r;

	(void)sig;
	if (atomic_fetch_add(&signals, 1) >= atomic_load(&stops)) {
		r = line_second != NULL ? write(STDERR_FILENO, line_second, strlen(line_second)) : 0;
		(void)r;
		_exit(exit_second);
	}
	if (stop->fn != NULL)
		stop->fn(stop->handle);
	errno = saved;
}

static void on_state_request(int sig)
{
	(void)sig;
	atomic_store(&state_requested, true);
}

static void on_toggle_request(int sig)
{
	int saved = errno;
	uint64_t one = 1;

	(void)sig;
	atomic_store(&toggle_requested, true);
	if (wake_fd >= 0)
		(void)!write(wake_fd, &one, sizeof one);
	errno = saved;
}

void process_catch(int second_status, const char *second_line)
{
	struct sigaction sa, old, request = { .sa_handler = on_state_request, .sa_flags = SA_RESTART };

	exit_second = second_status;
	line_second = second_line;
	if (wake_fd < 0)
		wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = on_signal;
	sigemptyset(&sa.sa_mask);
	/* a second signal waits for the handler of the first */
	sigaddset(&sa.sa_mask, SIGINT);
	sigaddset(&sa.sa_mask, SIGTERM);
	sigaddset(&sa.sa_mask, SIGHUP);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	sigemptyset(&request.sa_mask);
	sigaction(SIGUSR1, &request, NULL);
	request.sa_handler = on_toggle_request;
	sigaction(SIGUSR2, &request, NULL);
}

void process_set_stops(int n) { atomic_store(&stops, n); }

bool process_state_requested(void)
{
	return atomic_exchange(&state_requested, false);
}

int process_wake_fd(void) { return wake_fd; }

bool process_toggle_requested(void)
{
	return atomic_exchange(&toggle_requested, false);
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
	struct process_stop *other = &stop_pair[atomic_load(&stop_selected) == stop_pair];

	*other = (struct process_stop){ .fn = stop, .handle = handle };
	atomic_store(&stop_selected, other);
	if (stop != NULL && process_stopping())
		stop(handle); /* idempotent; the signal handler may have called stop too */
}

void process_end(void *line)
{
	ssize_t r = write(STDERR_FILENO, line, strlen(line));

	(void)r;
	_exit(EXIT_INTERRUPTED);
}

bool process_stopping(void)
{
	return atomic_load(&signals) > 0;
}

static bool lost_peer(int code)
{
	return code == PTCP_ECONNECT || code == PTCP_EPEER || code == PTCP_EPROTO;
}

static bool stopped_within(int ms)
{
	for (; ms > 0 && !process_stopping(); ms -= 10)
		poll(NULL, 0, 10); /* another thread may run the handler */
	return process_stopping();
}

int process_result(int r, struct ptcp_err *e)
{
	if (r >= 0 || r == PTCP_ECANCELED || !(lost_peer(r) ? stopped_within(SIGNAL_MS) : process_stopping()))
		return r;
	return err_set(e, PTCP_ECANCELED, "interrupted (run the same command again)");
}

/* ---- Service manager ---- */

static long env_number(const char *name)
{
	const char *text = getenv(name);

	return text != NULL && *text != '\0' && text[strspn(text, "0123456789")] == '\0' ? atol(text) : -1;
}

int systemd_sockets(int passed[], size_t max, size_t *n, struct ptcp_err *e)
{
	long pid = env_number("LISTEN_PID"), count = env_number("LISTEN_FDS");
	size_t i;

	*n = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (pid != (long)getpid() || count <= 0)
		return 0;
	if ((size_t)count > max)
		return err_set(e, PTCP_ECONFIG,
		    "%ld sockets from the service manager: more than %zu (pass fewer sockets)", count, max);
	for (i = 0; i < (size_t)count; i++) {
		passed[i] = FIRST_PASSED + (int)i;
		if (fcntl(passed[i], F_SETFD, FD_CLOEXEC) < 0)
			return err_set(e, PTCP_ECONFIG, "LISTEN_FDS=%ld: descriptor %d is not open (count the sockets "
			    "that are passed, from descriptor %d on)", count, passed[i], FIRST_PASSED);
	}
	*n = (size_t)count;
	return 0;
}

static int notify_fd = -1; /* connected to NOTIFY_SOCKET */

void systemd_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t n;

	if (path == NULL || (path[0] != '/' && path[0] != '@') || (n = strlen(path)) >= sizeof sa.sun_path)
		return;
	memcpy(sa.sun_path, path, n);
	if (path[0] == '@')
		sa.sun_path[0] = '\0'; /* abstract address, without a final NUL */
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify_fd >= 0 && connect(notify_fd, (struct sockaddr *)&sa,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (path[0] == '/'))) < 0) {
		fd_close(&notify_fd);
	}
}

void systemd_notify(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (notify_fd < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	send(notify_fd, text, strlen(text), MSG_NOSIGNAL);
}

const char *process_own_path(char *out, size_t cap)
{
	ssize_t n = readlink("/proc/self/exe", out, cap - 1);

	if (n <= 0)
		return NULL;
	out[n] = '\0';
	return out;
}
