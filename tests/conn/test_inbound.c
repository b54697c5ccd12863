/* The first bytes of connections to a port that is shared: clients with ClientHellos of OpenSSL, and hostile ones.
 * against: local */
#include "conn/inbound.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fs/fd_budget.h"
#include "net/fixture.h"
#include "patience.h"

#define LABEL "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"
#define SOON_MS 3000

static struct context us;
static struct pending pending;
static struct {
	enum inbound_lend answer;
	unsigned n_asked, n_gone;
	bool asked, gone;
	int fd;                 /* a copy of the last that was lent */
	char label[64];
} seen;

static enum inbound_lend on_lend(void *arg, const char *label, int fd)
{
	(void)arg;
	seen.n_asked++;
	seen.asked = true;
	snprintf(seen.label, sizeof seen.label, "%s", label);
	if (strcmp(label, LABEL) != 0)
		return INBOUND_LEND_UNKNOWN;
	if (seen.answer == INBOUND_LENT)
		seen.fd = dup(fd);
	return seen.answer;
}

static int on_control(void *arg, struct inbound *g, struct ptcp_err *e)
{
	(void)arg;
	(void)g;
	return err_set(e, PTCP_EREFUSED, "not here");
}

static void on_gone(void *arg)
{
	(void)arg;
	seen.n_gone++;
	seen.gone = true;
}

static const struct inbound_ops ops = { .control = on_control, .lend = on_lend, .gone = on_gone };

static void begin(void)
{
	struct pending_opts o = { .context = &us, .timeout_ns = NS_PER_S, .waiting = 64, .sessions = 4,
		.streams = 4, .ops = &ops };
	struct ptcp_err e;

	memset(&seen, 0, sizeof seen);
	memset(&us, 0, sizeof us);
	seen.fd = -1;
	seen.answer = INBOUND_LENT;
	assert_int_equal(loop_new(&us.control, &e), 0);
	assert_int_equal(identity_new(&us.identity, &e), 0);
	assert_int_equal(tls_new(&us.server, &us.identity, true, 1u << PTCP_CIPHER_AES128GCM, &e), 0);
	assert_int_equal(tls_new(&us.client, &us.identity, false, 1u << PTCP_CIPHER_AES128GCM, &e), 0);
	assert_int_equal(pending_init(&pending, &o, &e), 0);
	pending.peeks = true;
}

static void finish(void)
{
	pending_empty(&pending);
	pending_fini(&pending);
	if (seen.fd >= 0)
		close(seen.fd);
	context_fini(&us);
	loop_free(us.control);
}

/* A connection, of which the near end is pending; returns the far end. */
static int connected(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof sa;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), near;

	assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &n), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_true((near = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	close(listener);
	pending_take(&pending, &near, "127.0.0.1:1", false);
	return fd;
}

struct hello {
	uint8_t at[2000];
	size_t n;
};

static struct hello hello_of(const char *name)
{
	static const unsigned char alpn[] = "\x06ptcp/1";
	SSL *ssl = SSL_new(us.client);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	struct hello h;
	int n;

	SSL_set_bio(ssl, in, out);
	SSL_set_connect_state(ssl);
	assert_int_equal(SSL_set_alpn_protos(ssl, alpn, sizeof alpn - 1), 0);
	if (name != NULL)
		assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
	assert_true(SSL_do_handshake(ssl) < 0);
	assert_true((n = BIO_read(out, h.at, sizeof h.at)) > 100);
	h.n = (size_t)n;
	SSL_free(ssl);
	return h;
}

/* A connection that has sent a whole ClientHello with the label. */
static int greeting(struct hello *h)
{
	int fd = connected();

	*h = hello_of(LABEL);
	assert_int_equal(send(fd, h->at, h->n, 0), h->n);
	return fd;
}

static bool is_answered(void *arg)
{
	uint8_t first;

	return recv(*(const int *)arg, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* The first byte with which the server's own TLS answers (22: handshake, 21: alert). */
static int answer_of(int fd)
{
	uint8_t first = 0;

	assert_true(nf_await(us.control, is_answered, &fd));
	assert_int_equal(recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT), 1);
	return first;
}

/* Whole, untouched: what was lent still has all bytes, and an ordinary threshold. */
static void assert_lent(const struct hello *h)
{
	uint8_t got[2048];
	int low = 0;
	socklen_t n = sizeof low;

	assert_true(nf_run_until(us.control, &seen.gone, SOON_MS));
	assert_string_equal(seen.label, LABEL);
	assert_true(seen.fd >= 0);
	assert_int_equal(pending.n, 0);
	assert_int_equal(recv(seen.fd, got, sizeof got, MSG_DONTWAIT), h->n);
	assert_memory_equal(got, h->at, h->n);
	assert_int_equal(getsockopt(seen.fd, SOL_SOCKET, SO_RCVLOWAT, &low, &n), 0);
	assert_int_equal(low, 1);
}

static void whole(void **state)
{
	struct hello h;
	int fd;

	(void)state;
	begin();
	fd = greeting(&h);
	assert_lent(&h);
	assert_int_equal(seen.n_asked, 1);
	close(fd);
	finish();
}

static void in_pieces(void **state)
{
	struct hello h;
	size_t i;
	int fd;

	(void)state;
	begin();
	h = hello_of(LABEL);
	fd = connected();
	for (i = 0; i < h.n; i++) {
		assert_int_equal(seen.n_asked, 0);
		assert_int_equal(send(fd, h.at + i, 1, 0), 1);
		if (i < 8 || i % 50 == 0)
			nf_run_for(us.control, 5);
	}
	assert_lent(&h);
	close(fd);
	finish();
}

/* Waiting for the rest costs no turns of the loop. */
static void pieces_do_not_spin(void **state)
{
	struct hello h;
	uint64_t before;
	int fd;

	(void)state;
	begin();
	h = hello_of(LABEL);
	fd = connected();
	assert_int_equal(send(fd, h.at, 100, 0), 100);
	nf_run_for(us.control, 50);
	before = loop_idle_ns(us.control);
	nf_run_for(us.control, 200);
	assert_true(loop_idle_ns(us.control) - before > 100 * NS_PER_MS);
	close(fd);
	assert_true(nf_run_until(us.control, &seen.gone, SOON_MS));
	finish();
}

/* An unknown label gets the answer of a connection without label: the server's own TLS; so does anything else. */
static void unknown_labels(void **state)
{
	static const char *const names[] = { NULL, OTHER, "example.org" };
	struct hello h;
	size_t i;
	int fd;

	(void)state;
	for (i = 0; i < 3; i++) {
		begin();
		h = hello_of(names[i]);
		fd = connected();
		assert_int_equal(send(fd, h.at, h.n, 0), h.n);
		assert_int_equal(answer_of(fd), 22);
		assert_int_equal(seen.n_asked, i == 1);
		close(fd);
		finish();
	}
}

static void no_tls(void **state)
{
	int fd;

	(void)state;
	begin();
	fd = connected();
	assert_int_equal(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
	assert_true(nf_run_until(us.control, &seen.gone, SOON_MS));
	assert_int_equal(seen.n_asked, 0);
	close(fd);
	finish();
}

/* 64 KiB in the header of the record, and in fact: the server's own TLS refuses it at once. */
static void long_ones(void **state)
{
	static uint8_t much[65536 + 5];
	static const uint8_t header[] = { 22, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xfb };
	int fd;

	(void)state;
	begin();
	memcpy(much, header, sizeof header);
	fd = connected();
	assert_true(send(fd, much, sizeof much, MSG_DONTWAIT) > 5000);
	assert_int_equal(answer_of(fd), 21);
	assert_int_equal(seen.n_asked, 0);
	close(fd);
	finish();
}

/* A client that ends after a part, and one that leaves. */
static void cut_short(void **state)
{
	struct hello h;
	size_t i;
	int fd;

	(void)state;
	for (i = 0; i < 3; i++) {
		begin();
		h = hello_of(LABEL);
		fd = connected();
		if (i > 0)
			assert_int_equal(send(fd, h.at, 5 * i * i * i, 0), 5 * i * i * i);
		nf_run_for(us.control, 20);
		if (i != 1)
			shutdown(fd, SHUT_WR);
		else
			close(fd);
		assert_true(nf_run_until(us.control, &seen.gone, SOON_MS));
		assert_int_equal(seen.n_asked, 0);
		if (i != 1)
			close(fd);
		finish();
	}
}

/* A ClientHello without end has the time of every stranger, and pays as every stranger. */
static void never_ending(void **state)
{
	struct hello h;
	struct mono since = mono_now();
	size_t i;
	int fd;

	(void)state;
	begin();
	h = hello_of(LABEL);
	h.at[3] = 0x0f;
	h.at[4] = 0xf0;
	fd = connected();
	for (i = 0; i < 200 && !seen.gone; i++) {
		send(fd, i < h.n ? h.at + i : h.at, 1, MSG_NOSIGNAL);
		nf_run_for(us.control, 100);
	}
	assert_true(seen.gone);
	assert_in_range(mono_diff_ns(mono_now(), since), 9 * NS_PER_S, patience_s(15) * NS_PER_S);
	assert_int_equal(seen.n_asked, 0);
	close(fd);
	finish();
}

static bool asked_twice(void *arg)
{
	(void)arg;
	return seen.n_asked == 2;
}

static void a_busy_process(void **state)
{
	struct hello h;
	int fd;

	(void)state;
	begin();
	seen.answer = INBOUND_LEND_BUSY;
	fd = greeting(&h);
	assert_true(nf_run_until(us.control, &seen.asked, SOON_MS));
	nf_run_for(us.control, 50);
	assert_int_equal(seen.n_asked, 1);
	pending_lend_again(&pending);
	assert_true(nf_await(us.control, asked_twice, NULL));
	assert_int_equal(seen.n_asked, 2);
	seen.answer = INBOUND_LENT;
	pending_lend_again(&pending);
	assert_lent(&h);
	close(fd);
	finish();
}

static bool none_pending(void *arg)
{
	(void)arg;
	return pending.n == 0;
}

/* Connections in this state are among those that are limited: of 70, with room for 64, the oldest go. */
static void many_silent(void **state)
{
	int fd[70], i;

	(void)state;
	begin();
	for (i = 0; i < 70; i++)
		fd[i] = connected();
	assert_int_equal(pending.n, fd_budget_unauthenticated(64));
	assert_int_equal(seen.n_gone, 70 - pending.n);
	for (i = 0; i < 70; i++)
		close(fd[i]);
	assert_true(nf_await(us.control, none_pending, NULL));
	finish();
}

/* Without labels nothing is examined: the label is not even asked for. */
static void not_shared(void **state)
{
	struct hello h;
	int fd;

	(void)state;
	begin();
	pending.peeks = false;
	fd = greeting(&h);
	assert_int_equal(answer_of(fd), 22);
	assert_int_equal(seen.n_asked, 0);
	close(fd);
	finish();
}

/* Without memory for another connection the oldest goes. */
static void memory(void **state)
{
	enum { N = 16 };
	struct memory_budget *b;
	int fd[N];
	unsigned i;

	(void)state;
	begin();
	assert_int_equal(memory_budget_new(&b, 512 << 10, NULL), 0);
	pending.o.memory = b;
	for (i = 0; i < N; i++) {
		fd[i] = connected();
		assert_true(memory_budget_used(b) <= 256 << 10);
	}
	assert_in_range(pending.n, 3, 6);
	assert_int_equal(seen.n_gone, N - pending.n);
	assert_int_equal(recv(fd[0], &i, 1, 0), 0);
	assert_int_equal(recv(fd[N - 1], &i, 1, MSG_DONTWAIT), -1);
	pending_empty(&pending);
	assert_int_equal(memory_budget_used(b), 0);
	for (i = 0; i < N; i++)
		close(fd[i]);
	finish();
	memory_budget_free(b);
}

int main(void)
{
	unsetenv(ADMISSION_PATIENCE); /* tests wait for the limits */
	const struct CMUnitTest tests[] = {
		nf_test(whole), nf_test(in_pieces), nf_timed_test(pieces_do_not_spin),
		nf_test(unknown_labels), nf_test(no_tls),
		nf_test(long_ones), nf_test(cut_short), nf_timed_test(never_ending), nf_test(a_busy_process),
		nf_test(many_silent), nf_test(not_shared), nf_test(memory),
	};

	return cmocka_run_group_tests_name("conn/inbound", tests, NULL, NULL);
}
