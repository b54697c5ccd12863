/* The lines that an ephemeral server exchanges with the client behind ssh, and when the server ends. Pipes stand for
 * ssh. */
#include "fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn/ssh_hello.h"
#include "core/fd.h"
#include "server/server_impl.h"

#define KEY "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define OTHER "SHA256:BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static struct {
	struct ptcp_server *s;
	int to, from;           /* the test's ends of the pipes */
	int in, out;            /* the server's */
	struct ptcp_err e;
	int r;                  /* of the last step: 1: the server runs */
	char got[2000];
} t;

static void begin(void)
{
	struct ptcp_server_opts o;
	int a[2], b[2];

	memset(&t, 0, sizeof t);
	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	assert_int_equal(fcntl(b[0], F_SETFL, O_NONBLOCK), 0);
	t.in = a[0];
	t.to = a[1];
	t.from = b[0];
	t.out = b[1];
	ptcp_server_opts_init(&o);
	o.config_dir = fx_path("config");
	o.ephemeral = true;
	o.in = t.in;
	o.out = t.out;
	if (ptcp_server_new(&t.s, &o, &t.e) < 0)
		fail_msg("%s", t.e.msg);
	assert_int_equal(ptcp_server_start(t.s, &t.e), 0);
	t.r = 1;
}

static void finish(void)
{
	ptcp_server_free(t.s);
	fd_close(&t.to);
	fd_close(&t.from);
	fd_close(&t.in);
	fd_close(&t.out);
}

static void turn(void)
{
	struct pollfd p[2] = { { ptcp_server_fd(t.s), POLLIN, 0 }, { t.from, POLLIN, 0 } };
	int ms = ptcp_server_timeout_ms(t.s);
	size_t n = strlen(t.got);
	ssize_t got;

	poll(p, 2, ms >= 0 && ms < 100 ? ms : 100);
	t.r = ptcp_server_step(t.s, &t.e);
	got = read(t.from, t.got + n, sizeof t.got - 1 - n);
	t.got[n + (got > 0 ? (size_t)got : 0)] = '\0';
}

/* The next line of the server, without its newline; forgets it at the next call. */
static const char *line(void)
{
	static char out[1000];
	char *end;

	while ((end = strchr(t.got, '\n')) == NULL) {
		if (t.r <= 0)
			fail_msg("the server has ended: %s", t.e.msg);
		turn();
	}
	snprintf(out, sizeof out, "%.*s", (int)(end - t.got), t.got);
	memmove(t.got, end + 1, strlen(end + 1) + 1);
	return out;
}

static void put(const char *text) { assert_int_equal(write(t.to, text, strlen(text)), strlen(text)); }

static void ends(void)
{
	while (t.r > 0)
		turn();
}

/* A port of every address, in use with `keep` until *fd is closed. */
static unsigned free_port(bool keep, int *fd)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };
	socklen_t n = sizeof sa;

	*fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(listen(*fd, 1), 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&sa, &n), 0);
	if (!keep)
		fd_close(fd);
	return ntohs(sa.sin6_port);
}

/* The server greets before it knows the client, and then admits this client and no other. */
static void greets(void **state)
{
	struct ssh_hello_answer first, last;

	(void)state;
	begin();
	assert_int_equal(ssh_hello_answer_parse(&first, line(), &t.e), 0);
	assert_string_equal(first.fingerprint, ptcp_server_fingerprint(t.s));
	assert_int_equal(first.port, ptcp_server_port(t.s));
	assert_false(first.final);
	assert_false(ssh_server_admits(t.s->ssh, KEY));
	assert_false(ssh_server_admits(t.s->ssh, ""));
	put("ptcp-ssh 1 " KEY " 0 direct\n");
	while (!ssh_server_admits(t.s->ssh, KEY))
		turn();
	assert_false(ssh_server_admits(t.s->ssh, OTHER));
	assert_true(t.s->o.direct_io);
	assert_int_equal(t.got[0], '\0'); /* the port of the first line is the port */
	fd_close(&t.to); /* ssh has ended */
	ends();
	assert_int_equal(t.r, 0);
	finish();
	begin(); /* another run has another identity */
	assert_int_equal(ssh_hello_answer_parse(&last, line(), &t.e), 0);
	assert_string_not_equal(last.fingerprint, first.fingerprint);
	finish();
}

/* The client requests a port: the server listens there, or, if the client permits, on any other. */
static void ports(void **state)
{
	struct ssh_hello_answer a;
	char text[200];
	unsigned port;
	int fd;

	(void)state;
	begin();
	line();
	port = free_port(false, &fd);
	snprintf(text, sizeof text, "ptcp-ssh 1 " KEY " %u\n", port);
	put(text);
	assert_int_equal(ssh_hello_answer_parse(&a, line(), &t.e), 0);
	assert_true(a.final);
	assert_int_equal(a.port, port);
	finish();
	begin();
	line();
	port = free_port(true, &fd);
	snprintf(text, sizeof text, "ptcp-ssh 1 " KEY " %u or-any\n", port);
	put(text);
	assert_int_equal(ssh_hello_answer_parse(&a, line(), &t.e), 0);
	assert_true(a.final && a.port != port && a.port > 0);
	finish();
	begin();
	line();
	snprintf(text, sizeof text, "ptcp-ssh 1 " KEY " %u\n", port);
	put(text);
	assert_memory_equal(line(), SSH_HELLO_ERROR " ", strlen(SSH_HELLO_ERROR) + 1);
	ends();
	assert_int_equal(t.r, 0); /* the client reports the failure */
	finish();
	fd_close(&fd);
}

/* Another version gets the own version in answer; all other lines end the server. */
static void faults(void **state)
{
	static const char *const first[] = { "ptcp-ssh 2 " KEY " 0\n", "hello\n", "ptcp-ssh 1 SHA256:short 0\n",
		"ptcp-ssh 1 " KEY " x\n", "back 7811 127.0.0.1\n", "pipe\n" };
	static const char *const second[] = { "ptcp-ssh 1 " OTHER " 0\n", "hello\n", "back\n",
		"back x 127.0.0.1\n", "\n" };
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof first / sizeof *first; i++) {
		begin();
		line();
		put(first[i]);
		assert_string_equal(line(), SSH_HELLO_WORD " 1 " PTCP_VERSION);
		ends();
		assert_int_equal(t.r, PTCP_EPROTO);
		assert_non_null(strstr(t.e.msg, i == 0 ? "version 2" : "malformed greeting"));
		assert_false(ssh_server_admits(t.s->ssh, KEY));
		finish();
	}
	for (i = 0; i < sizeof second / sizeof *second; i++) {
		begin();
		line();
		put("ptcp-ssh 1 " KEY " 0\n");
		put(second[i]);
		ends();
		if (t.r != PTCP_EPROTO)
			fail_msg("accepted after the greeting: %s", second[i]);
		if (i == 0)
			assert_non_null(strstr(t.e.msg, "unknown line"));
		assert_false(ssh_server_admits(t.s->ssh, OTHER));
		finish();
	}
}

/* No address of the client can be reached: the server says so, and the client may take the pipe. */
static void no_way_back(void **state)
{
	char text[200];
	int fd;

	(void)state;
	begin();
	line();
	put("ptcp-ssh 1 " KEY " 0\n");
	snprintf(text, sizeof text, "back %u 127.0.0.1 ::1\n", free_port(false, &fd));
	put(text);
	assert_string_equal(line(), "cannot");
	put("pipe\n");
	assert_string_equal(line(), "pipe");
	put("this is no TLS");
	fd_close(&t.to);
	ends();
	assert_int_equal(t.r, 0);
	finish();
}

/* The server names the address at which the client has reached it, and tries ssh's source address first. */
static void addresses_of_ssh(void **state)
{
	struct ssh_hello_answer a;

	(void)state;
	setenv("SSH_CONNECTION", "192.0.2.7 1234 192.0.2.8 22", 1);
	begin();
	assert_int_equal(ssh_hello_answer_parse(&a, line(), &t.e), 0);
	assert_string_equal(a.address, "192.0.2.8");
	finish();
	setenv("SSH_CONNECTION", "192.0.2.7 1234 not-an-address 22", 1);
	begin();
	assert_int_equal(ssh_hello_answer_parse(&a, line(), &t.e), 0);
	assert_string_equal(a.address, "");
	finish();
	unsetenv("SSH_CONNECTION");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		vf_test(greets), vf_test(ports), vf_test(faults), vf_test(no_way_back), vf_test(addresses_of_ssh),
	};

	return cmocka_run_group_tests_name("server/ssh_server", tests, NULL, NULL);
}
