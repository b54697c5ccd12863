#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "patience.h"

char nf_dir[200];
static int fds_before;

int nf_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

int nf_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct loop *l;

	(void)state;
	if (loop_new(&l, NULL) < 0) /* libuv's first loop opens descriptors that stay */
		return -1;
	loop_free(l);
	signal(SIGPIPE, SIG_IGN);
	fds_before = nf_open_fds();
	snprintf(nf_dir, sizeof nf_dir, "%s/ptcp-net.XXXXXX", tmp != NULL ? tmp : "/tmp");
	return mkdtemp(nf_dir) != NULL ? 0 : -1;
}

/* A look-up that was abandoned ends on its thread, and closes its sockets then. */
static int fds_after(void)
{
	struct mono until = mono_add_ns(mono_now(), patience_s(2) * NS_PER_S);
	int now;

	while ((now = nf_open_fds()) > fds_before && mono_now().ns < until.ns)
		nf_sleep_ms(1);
	return now;
}

int nf_teardown(void **state)
{
	char command[500];
	int now = fds_after();

	(void)state;
	snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'", nf_dir, nf_dir);
	if (system(command) != 0)
		return -1;
	if (now != fds_before)
		fprintf(stderr, "# %d descriptors are open, %d were\n", now, fds_before);
	return now == fds_before ? 0 : -1;
}

const char *nf_path(const char *name)
{
	static char path[4][sizeof nf_dir + 100];
	static unsigned i;
	char *p = path[i++ % 4];

	snprintf(p, sizeof path[0], "%s/%s", nf_dir, name);
	return p;
}

void nf_write(const char *name, const char *text, unsigned mode)
{
	int fd = open(nf_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t n = strlen(text);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

const char *nf_read(const char *name)
{
	static char text[65536];
	int fd = open(nf_path(name), O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, sizeof text - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	return text;
}

int nf_count_files(void)
{
	DIR *d = opendir(nf_dir);
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

struct awaited {
	struct loop *loop;
	bool (*is_true)(void *arg);
	void *arg;
	struct mono deadline;
	struct timer *timer;
};

static void look(void *arg)
{
	struct awaited *w = arg;

	if (w->is_true(w->arg) || mono_now().ns >= w->deadline.ns)
		loop_stop(w->loop);
	else
		timer_set(w->timer, mono_add_ns(mono_now(), NS_PER_MS));
}

static void run(struct loop *l, bool (*is_true)(void *arg), void *arg, uint64_t ms)
{
	struct awaited w = { .loop = l, .is_true = is_true, .arg = arg,
		.deadline = mono_add_ns(mono_now(), ms * NS_PER_MS) };
	struct ptcp_err e;

	assert_int_equal(timer_new(&w.timer, l, look, &w, &e), 0);
	loop_reset(l);
	timer_set(w.timer, mono_now());
	loop_run(l);
	timer_free(w.timer);
}

bool nf_await(struct loop *l, bool (*is_true)(void *arg), void *arg)
{
	run(l, is_true, arg, (uint64_t)NF_AWAIT_MS * patience_s(1));
	return is_true(arg);
}

static bool is_set(void *arg) { return *(const volatile bool *)arg; }

bool nf_run_until(struct loop *l, const bool *flag, unsigned ms)
{
	run(l, is_set, (void *)flag, (uint64_t)ms * patience_s(1));
	return *flag;
}

static bool is_idle(struct loop *l)
{
	struct pollfd p = { .fd = loop_fd(l), .events = POLLIN };

	return poll(&p, 1, 0) == 0 && loop_timeout_ms(l) != 0;
}

void nf_settle(struct loop *l)
{
	const struct mono limit = mono_add_ns(mono_now(), patience_s(10) * NS_PER_S);
	unsigned idle = 0;

	loop_reset(l);
	while (idle < 2 && mono_now().ns < limit.ns) {
		loop_run_once(l, false);
		idle = is_idle(l) ? idle + 1 : 0;
	}
	if (idle < 2)
		fail_msg("the loop does not settle: is there an event that nobody takes?");
}

static bool never(void *arg) { return arg != NULL; }

void nf_run_for(struct loop *l, unsigned ms)
{
	run(l, never, NULL, ms);
	nf_settle(l);
}

void nf_sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * (long)NS_PER_MS };

	nanosleep(&t, NULL);
}

bool nf_put(int to, size_t all, size_t *sent)
{
	uint8_t p[20000];
	size_t i, len = all - *sent < sizeof p ? all - *sent : sizeof p;
	ssize_t n;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)((*sent + i) % 251);
	n = len > 0 ? write(to, p, len) : 0;
	*sent += n > 0 ? (size_t)n : 0;
	return n > 0;
}

void nf_take(int from, size_t *got)
{
	uint8_t p[20000];
	ssize_t n = read(from, p, sizeof p), i;

	for (i = 0; i < n; i++)
		assert_int_equal(p[i], (*got + (size_t)i) % 251);
	*got += n > 0 ? (size_t)n : 0;
}

void nf_move(int to, int from, size_t all, size_t *sent, size_t *got)
{
	nf_put(to, all, sent);
	nf_take(from, got);
}
