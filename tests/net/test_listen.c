#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/fd.h"
#include "fixture.h"

struct admission {
	struct loop *loop;
	struct listener *listener;
	unsigned n, want;
	bool enough, shut;
	int fd[64];
	char address[SOCK_TEXT_BYTES];
};

static void on_accepted(void *arg, int *fd, const char *address)
{
	struct admission *d = arg;

	if (d->n < 64)
		d->fd[d->n] = fd_take(fd);
	d->n++;
	snprintf(d->address, sizeof d->address, "%s", address);
	d->enough = d->n >= d->want;
	if (d->shut) {
		listener_free(d->listener);
		d->listener = NULL;
	}
}

static struct ptcp_err open_door(struct admission *d, const char *where, unsigned port, int want)
{
	struct ptcp_err e = { 0 };

	*d = (struct admission){ .want = 1 };
	assert_int_equal(loop_new(&d->loop, &e), 0);
	assert_int_equal(listener_new(&d->listener, d->loop, where, port, on_accepted, d, &e), want);
	return e;
}

static void close_door(struct admission *d)
{
	unsigned i;

	for (i = 0; i < d->n; i++)
		close(d->fd[i]);
	listener_free(d->listener);
	loop_free(d->loop);
}

static int connect_to(unsigned port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	return fd;
}

static void on_a_free_port(void **state)
{
	static const char *const where[] = { "127.0.0.1:0", "0", ":0", NULL, "*:0" };
	struct admission d;
	size_t i;
	int c;

	(void)state;
	for (i = 0; i < sizeof where / sizeof *where; i++) {
		open_door(&d, where[i], 0, 0);
		assert_true(listener_port(d.listener) > 0);
		if (i == 0)
			assert_string_equal(listener_address(d.listener), "127.0.0.1");
		c = connect_to(listener_port(d.listener)); /* "::" takes IPv4 as well */
		assert_true(nf_run_until(d.loop, &d.enough, 5000));
		assert_non_null(strstr(d.address, "127.0.0.1"));
		close(c);
		close_door(&d);
	}
	listener_free(NULL);
}

/* A socket that somebody else has made to listen, left blocking; and what is none. */
static void taken(void **state)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), c;
	struct admission d = { .want = 1 };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(loop_new(&d.loop, &e), 0);
	assert_int_equal(listener_take(&d.listener, d.loop, (int[]){ open("/dev/null", O_RDONLY) },
	    on_accepted, &d, &e), PTCP_ECONFIG);
	assert_int_equal(listener_take(&d.listener, d.loop, (int[]){ dup(fd) }, on_accepted, &d, &e), PTCP_ECONFIG);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(listener_take(&d.listener, d.loop, &fd, on_accepted, &d, &e), 0);
	assert_string_equal(listener_address(d.listener), "127.0.0.1");
	c = connect_to(listener_port(d.listener));
	assert_true(nf_run_until(d.loop, &d.enough, 5000));
	close(c);
	close_door(&d);
}

static void cannot_be_had(void **state)
{
	char taken[SOCK_TEXT_BYTES];
	struct ptcp_err e;
	struct admission d, other;

	(void)state;
	open_door(&d, "127.0.0.1:0", 0, 0);
	snprintf(taken, sizeof taken, "127.0.0.1:%u", listener_port(d.listener));
	e = open_door(&other, taken, 0, PTCP_ECONFIG);
	assert_int_equal(e.sys, EADDRINUSE);
	loop_free(other.loop);
	close_door(&d);
	open_door(&d, "192.0.2.1:0", 0, PTCP_ECONFIG); /* nobody's, for documentation */
	loop_free(d.loop);
	open_door(&d, "65536", 0, PTCP_EUSAGE);
	loop_free(d.loop);
	open_door(&d, "99999999999999999999", 0, PTCP_EUSAGE);
	loop_free(d.loop);
	open_door(&d, "127.0.0.1:x", 0, PTCP_EUSAGE);
	loop_free(d.loop);
	e = open_door(&d, "na\033me:0", 0, PTCP_ECONFIG);
	assert_null(strchr(e.msg, '\033'));
	loop_free(d.loop);
}

static void many_at_once(void **state)
{
	struct admission d;
	int c[50], i;

	(void)state;
	open_door(&d, "127.0.0.1:0", 0, 0);
	d.want = 50;
	for (i = 0; i < 50; i++)
		c[i] = connect_to(listener_port(d.listener));
	assert_true(nf_run_until(d.loop, &d.enough, 5000));
	assert_int_equal(d.n, 50);
	for (i = 0; i < 50; i++)
		close(c[i]);
	close_door(&d);
}

static void freed_when_called(void **state)
{
	struct admission d;
	int c[3], i;

	(void)state;
	open_door(&d, "127.0.0.1:0", 0, 0);
	d.shut = true;
	for (i = 0; i < 3; i++)
		c[i] = connect_to(listener_port(d.listener));
	assert_true(nf_run_until(d.loop, &d.enough, 5000));
	nf_run_for(d.loop, 5);
	assert_int_equal(d.n, 1);
	for (i = 0; i < 3; i++)
		close(c[i]);
	close_door(&d);
}

/* ---- No descriptor left ---- */

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool was_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static bool all_closed(void *arg)
{
	const int *c = arg;

	return was_closed(c[0]) && was_closed(c[1]) && was_closed(c[2]);
}

/* The lowest free descriptor becomes the limit: nothing more can be opened. */
static struct rlimit no_more_descriptors(void)
{
	struct rlimit old, none;
	int lowest = dup(0);

	assert_true(lowest >= 0);
	close(lowest);
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return old;
}

static void turned_away_and_welcome_later(void **state)
{
	struct rlimit old;
	struct admission d;
	int c[4], i;

	(void)state;
	open_door(&d, "127.0.0.1:0", 0, 0);
	nf_run_for(d.loop, 1);
	for (i = 0; i < 3; i++)
		c[i] = connect_to(listener_port(d.listener));
	old = no_more_descriptors();
	assert_true(nf_await(d.loop, all_closed, c)); /* they know at once */
	assert_int_equal(d.n, 0);
	setrlimit(RLIMIT_NOFILE, &old);
	c[3] = connect_to(listener_port(d.listener));
	assert_true(nf_run_until(d.loop, &d.enough, 5000));
	assert_int_equal(d.n, 1);
	for (i = 0; i < 4; i++)
		close(c[i]);
	close_door(&d);
}

/* Even the descriptor kept back cannot be had again: the listener rests, it does not spin. */
static void rests_without_a_reserve(void **state)
{
	struct rlimit old, none;
	struct admission d;
	double before;
	int c[3], i;

	(void)state;
	open_door(&d, "127.0.0.1:0", 0, 0);
	nf_run_for(d.loop, 1);
	for (i = 0; i < 3; i++)
		c[i] = connect_to(listener_port(d.listener));
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	before = cpu_s();
	nf_run_for(d.loop, 250);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_true(cpu_s() - before < 0.1);
	assert_int_equal(d.n, 0);
	d.enough = false;
	assert_true(nf_run_until(d.loop, &d.enough, 5000)); /* those who wait are let in */
	for (i = 0; i < 3; i++)
		close(c[i]);
	close_door(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(on_a_free_port), nf_test(taken), nf_test(cannot_be_had), nf_test(many_at_once),
		nf_test(freed_when_called),
		nf_test(turned_away_and_welcome_later), nf_test(rests_without_a_reserve),
	};
	return cmocka_run_group_tests_name("net/listen", tests, NULL, NULL);
}
