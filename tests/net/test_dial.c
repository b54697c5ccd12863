#include "net/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/fd.h"
#include "fixture.h"

/* "both.test" is ::1 and 127.0.0.1, in this order, wherever the test runs. The C library frees each answer of a
 * list by itself, so two lists may be joined. */
static atomic_uint n_lookups;

static int fake(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	int r;

	n_lookups++;
	if (strcmp(host, "both.test") != 0)
		return getaddrinfo(host, service, hints, out);
	if ((r = getaddrinfo("::1", service, hints, out)) != 0)
		return r;
	return getaddrinfo("127.0.0.1", service, hints, &(*out)->ai_next);
}

/* Sockets of the other side, made without the code under test. */
static int listen_on(int family, int backlog, unsigned *port)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)*port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
		.sin6_port = htons((uint16_t)*port) };
	struct sockaddr *sa = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	socklen_t n = family == AF_INET ? sizeof four : sizeof six;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -1;
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (bind(fd, sa, n) < 0 || (backlog >= 0 && listen(fd, backlog) < 0) ||
	    getsockname(fd, sa, &n) < 0) {
		close(fd);
		return -1;
	}
	*port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
	return fd;
}

/* A port on which connections get no answer: its backlog is full. Fills fds[0..*n). */
static unsigned deaf_port(int fds[16], int *n)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned port = 0;

	fds[0] = listen_on(AF_INET, 0, &port);
	assert_true(fds[0] >= 0);
	sa.sin_port = htons((uint16_t)port);
	for (*n = 1; *n < 5; ++*n) {
		fds[*n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(connect(fds[*n], (struct sockaddr *)&sa, sizeof sa) == 0 || errno == EINPROGRESS);
		nf_sleep_ms(5);
	}
	return port;
}

static void close_all(int fds[], int n)
{
	while (n > 0)
		close(fds[--n]);
}

struct answer {
	bool came;
	int fd;
	unsigned n;
	char address[SOCK_TEXT_BYTES];
	struct ptcp_err why;
	struct mono at;
};

static void on_done(void *arg, int *fd, const char *address, const struct ptcp_err *why)
{
	struct answer *a = arg;

	a->came = true;
	a->n++;
	assert_true((*fd >= 0) == (why == NULL));
	a->fd = fd_take(fd);
	a->at = mono_now();
	snprintf(a->address, sizeof a->address, "%s", address);
	if (why != NULL)
		a->why = *why;
}

static struct loop *loop;
static struct resolver *names;

static void begin(void)
{
	struct ptcp_err e;

	assert_int_equal(loop_new(&loop, &e), 0);
	assert_int_equal(resolver_new(&names, loop, fake, &e), 0);
}

static void end(void)
{
	resolver_free(names);
	loop_free(loop);
}

static struct dial *start(const char *host, unsigned port, struct sock_opts sock, struct answer *a)
{
	const struct dial_opts o = { .names = names, .host = host, .port = port, .sock = sock,
		.done = on_done, .arg = a };
	struct ptcp_err e;
	struct dial *d;

	assert_int_equal(dial_start(&d, loop, &o, &e), 0);
	assert_false(a->came); /* never from within */
	return d;
}

static struct answer dial(const char *host, unsigned port, int family, unsigned timeout_ms)
{
	struct answer a = { .fd = -1 };

	begin();
	start(host, port, (struct sock_opts){ .family = family, .timeout_ns = timeout_ms * NS_PER_MS }, &a);
	assert_true(nf_run_until(loop, &a.came, timeout_ms + 10000));
	nf_run_for(loop, 2);
	assert_int_equal(a.n, 1);
	end();
	return a;
}

static void reaches_a_listener(void **state)
{
	unsigned port = 0;
	int s = listen_on(AF_INET, 8, &port), peer;
	struct answer a = dial("127.0.0.1", port, 0, 5000);
	char want[SOCK_TEXT_BYTES];

	(void)state;
	snprintf(want, sizeof want, "127.0.0.1:%u", port);
	assert_string_equal(a.address, want);
	assert_int_equal(n_lookups, 0); /* numbers need none */
	assert_true((fcntl(a.fd, F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(a.fd, F_GETFD) & FD_CLOEXEC) != 0);
	peer = accept(s, NULL, NULL);
	assert_true(peer >= 0);
	assert_int_equal(write(peer, "x", 1), 1);
	close(peer);
	close(a.fd);
	close(s);
}

static void closed_port(void **state)
{
	unsigned port = 0;
	int s = listen_on(AF_INET, -1, &port); /* bound, so that nobody else listens there */
	struct answer a = dial("127.0.0.1", port, 0, 5000);

	(void)state;
	assert_int_equal(a.fd, -1);
	assert_int_equal(a.why.code, PTCP_ECONNECT);
	assert_int_equal(a.why.sys, ECONNREFUSED);
	assert_non_null(strstr(a.why.msg, ": Connection refused (is "));
	assert_null(strstr(a.why.msg, "(127.0.0.1")); /* it was named so */
	close(s);
}

/* Without its interface a link-local address leads nowhere; the kernel's "Invalid argument" says nothing. */
static void link_local(void **state)
{
	struct answer a = dial("fe80::1", 7811, 0, 5000);

	(void)state;
	assert_int_equal(a.fd, -1);
	if (a.why.sys == EINVAL)
		assert_non_null(strstr(a.why.msg,
		    "(a link-local address needs the name of its interface, as in fe80::1%eth0)"));
	else
		skip(); /* no IPv6 */
}

static void no_answer(void **state)
{
	int fds[16], n;
	unsigned port = deaf_port(fds, &n);
	struct mono start = mono_now();
	struct answer a = dial("127.0.0.1", port, 0, 400);

	(void)state;
	assert_int_equal(a.fd, -1);
	assert_int_equal(a.why.code, PTCP_ECONNECT);
	assert_non_null(strstr(a.why.msg, "no response for 0.4 s"));
	assert_true(mono_diff_ns(a.at, start) >= 400 * NS_PER_MS);
	assert_true(mono_diff_ns(a.at, start) < 3000 * NS_PER_MS);
	close_all(fds, n);
}

static void no_such_name(void **state)
{
	struct answer a = dial("no-such-host.invalid", 1, 0, 8000);

	(void)state;
	assert_int_equal(a.fd, -1);
	assert_int_equal(a.why.code, PTCP_ECONNECT);
	assert_non_null(strstr(a.why.msg, "no-such-host.invalid"));
	a = dial("bad\033[31mname", 1, 0, 8000);
	assert_int_equal(a.fd, -1);
	assert_null(strchr(a.why.msg, '\033'));
}

static void of_one_family(void **state)
{
	unsigned port = 0;
	int s = listen_on(AF_INET, 8, &port);
	struct answer a = dial("127.0.0.1", port, 6, 5000);

	(void)state;
	assert_int_equal(a.fd, -1);
	assert_int_equal(a.why.code, PTCP_ECONNECT);
	a = dial("127.0.0.1", port, 4, 5000);
	assert_true(a.fd >= 0);
	close(a.fd);
	close(s);
}

static bool have_both(void)
{
	unsigned port = 0;
	int six = listen_on(AF_INET6, 1, &port);

	if (six < 0) {
		print_message("# no IPv6 here, not tested\n");
		return false;
	}
	close(six);
	return true;
}

static void whichever_family_listens(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct answer a;
	unsigned port;
	int i, s;

	(void)state;
	if (!have_both())
		return;
	for (i = 0; i < 2; i++) {
		port = 0;
		s = listen_on(families[i], 8, &port);
		assert_true(s >= 0);
		a = dial("both.test", port, 0, 5000);
		assert_true(a.fd >= 0);
		assert_int_equal(strncmp(a.address, families[i] == AF_INET ? "127.0" : "[::1]", 5), 0);
		close(a.fd);
		close(s);
	}
	port = 0;
	s = listen_on(AF_INET, -1, &port);
	a = dial("both.test", port, 0, 5000); /* neither */
	assert_int_equal(a.fd, -1);
	assert_int_equal(a.why.sys, ECONNREFUSED);
	close(s);
}

/* One family does not answer: the other is tried before the time is over (RFC 8305). */
static void a_silent_family_does_not_delay(void **state)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fds[16], n, s;
	unsigned port = 0;
	struct mono start;
	struct answer a;

	(void)state;
	if (!have_both())
		return;
	s = listen_on(AF_INET, 8, &port);
	fds[0] = listen_on(AF_INET6, 0, &port); /* ::1 is tried first */
	assert_true(fds[0] >= 0);
	sa.sin6_port = htons((uint16_t)port);
	for (n = 1; n < 5; n++) {
		fds[n] = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(connect(fds[n], (struct sockaddr *)&sa, sizeof sa) == 0 || errno == EINPROGRESS);
		nf_sleep_ms(5);
	}
	start = mono_now();
	a = dial("both.test", port, 0, 20000);
	close_all(fds, n);
	close(s);
	assert_true(a.fd >= 0);
	close(a.fd);
	assert_int_equal(strncmp(a.address, "127.0", 5), 0);
	assert_true(mono_diff_ns(a.at, start) >= 200 * NS_PER_MS);
	assert_true(mono_diff_ns(a.at, start) < 5 * NS_PER_S);
}

static void congestion_control(void **state)
{
	struct sock_opts o = { .timeout_ns = 5 * NS_PER_S, .congestion = "no-such-thing" };
	unsigned port = 0;
	int s = listen_on(AF_INET, 8, &port);
	struct answer a = { .fd = -1 };

	(void)state;
	begin();
	start("127.0.0.1", port, o, &a);
	assert_true(nf_run_until(loop, &a.came, 5000));
	assert_int_equal(a.fd, -1);
	assert_int_equal(a.why.code, PTCP_EUSAGE);
	end();
	close(s);
}

static void without_descriptors(void **state)
{
	struct rlimit old, none;
	unsigned port = 0;
	int s = listen_on(AF_INET, 8, &port);
	struct sock_opts o = { .timeout_ns = 5 * NS_PER_S };
	struct answer a = { .fd = -1 };

	(void)state;
	begin();
	nf_run_for(loop, 2);
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	start("127.0.0.1", port, o, &a);
	assert_true(nf_run_until(loop, &a.came, 5000));
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(a.fd, -1);
	assert_int_equal(a.why.sys, EMFILE);
	end();
	close(s);
}

/* ---- Giving up ---- */

/* After so many milliseconds: while resolving, while connecting, when there may be an answer. */
static void canceled_at_any_time(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "localhost", "no-such-host.invalid" };
	struct sock_opts o = { .timeout_ns = 5 * NS_PER_S };
	int fds[16], n;
	unsigned port = deaf_port(fds, &n), ms, i;
	struct dial *d;

	(void)state;
	for (i = 0; i < 3; i++)
		for (ms = 0; ms < 12; ms += 3) {
			struct answer a = { .fd = -1 };

			begin();
			d = start(hosts[i], port, o, &a);
			if (ms > 0)
				nf_run_for(loop, ms);
			if (!a.came)
				dial_cancel(d);
			nf_run_for(loop, 3);
			assert_int_equal(a.n, a.came ? 1 : 0);
			if (a.fd >= 0)
				close(a.fd);
			end();
		}
	dial_cancel(NULL);
	close_all(fds, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(reaches_a_listener), nf_test(closed_port), nf_test(link_local),
		nf_timed_test(no_answer), nf_test(no_such_name),
		nf_test(of_one_family), nf_test(whichever_family_listens),
		nf_timed_test(a_silent_family_does_not_delay), nf_test(congestion_control),
		nf_test(without_descriptors), nf_test(canceled_at_any_time),
	};
	return cmocka_run_group_tests_name("net/dial", tests, NULL, NULL);
}
