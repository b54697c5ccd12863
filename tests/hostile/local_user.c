/* A user of the host, at the local interfaces of ptcp: every kind of message with every kind of descriptor, floods, and
 * the other end of each interface. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/err.h"
#include "core/local_sock.h"
#include "hostile.h"

#define MANY 253       /* SCM_MAX_FD of the kernel */
#define LONG_BYTES 65536
#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* ---- Descriptors ---- */

enum odd { ODD_NONE, ODD_ITSELF, ODD_DEVICE, ODD_DIRECTORY, ODD_PATH, ODD_EPOLL, ODD_EVENT, ODD_MEMORY, ODD_BROKEN_PIPE,
	ODD_UNIX, ODD_UDP, ODD_UNCONNECTED, ODD_LISTENER, ODD_MANY, ODD_N };

static int broken_pipe(void)
{
	int end[2];

	if (pipe(end) < 0)
		return -1;
	close(end[1]);
	return end[0];
}

static int half_of_a_pair(void)
{
	int end[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, end) < 0)
		return -1;
	close(end[1]);
	return end[0];
}

static int connected_udp(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(9),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0 ? fd : -1;
}

static int listening(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd >= 0 && listen(fd, 8) == 0 ? fd : -1;
}

/* A descriptor of this kind, or -1 for none; `s`: the socket that carries the descriptor. */
static int make_odd(enum odd kind, int s)
{
	switch (kind) {
	case ODD_ITSELF: return dup(s);
	case ODD_DEVICE: case ODD_MANY: return open("/dev/zero", O_RDWR);
	case ODD_DIRECTORY: return open("/", O_RDONLY | O_DIRECTORY);
	case ODD_PATH: return open("/", O_PATH);
	case ODD_EPOLL: return epoll_create1(0);
	case ODD_EVENT: return eventfd(1, 0);
	case ODD_MEMORY: return memfd_create("odd", 0);
	case ODD_BROKEN_PIPE: return broken_pipe();
	case ODD_UNIX: return half_of_a_pair();
	case ODD_UDP: return connected_udp();
	case ODD_UNCONNECTED: return socket(AF_INET, SOCK_STREAM, 0);
	case ODD_LISTENER: return listening();
	default: return -1;
	}
}

/* ---- Messages ---- */

struct message {
	const char *text;
	size_t n;
	bool valid;
};

#define MESSAGE(literal) { literal, sizeof literal - 1, false }

static char longest[LONG_BYTES];

/* To register with the service; the last one is right. */
static const struct message registrations[] = {
	MESSAGE(""), MESSAGE("\0"), MESSAGE("\0\0\0\0"), MESSAGE("x"), MESSAGE("\xff\xfe\x1b[31m\n\r\t"),
	MESSAGE("ptcp-share"),
	MESSAGE("ptcp-share 1"), MESSAGE("ptcp-share 1 "), MESSAGE("ptcp-share 2 " KEY), MESSAGE("ptcp-share -1 " KEY),
	MESSAGE("ptcp-share 1 0"), MESSAGE("ptcp-share 1 " KEY "0"), MESSAGE("ptcp-share 1 " KEY "\n"),
	MESSAGE("ptcp-share 1 " KEY "\0"), MESSAGE("ptcp-share 1 " KEY "\0more"), MESSAGE("ptcp-share 1  " KEY),
	MESSAGE("PTCP-SHARE 1 " KEY), MESSAGE("connection"), MESSAGE("ptcp-share-error no"),
	MESSAGE("ptcp-share 1 7811"),
	{ longest, sizeof longest, false }, { "ptcp-share 1 " KEY, sizeof "ptcp-share 1 " KEY - 1, true },
};

/* To a running command; the last one is right. */
static const struct message requests[] = {
	MESSAGE(""), MESSAGE("\0"), MESSAGE("x"), MESSAGE("\xff\xfe\x1b[31m\n"), MESSAGE("status "),
	MESSAGE("status\0more"),
	MESSAGE("STATUS"), MESSAGE("cancel "), MESSAGE("cancel\n"), MESSAGE("cancel\0"), MESSAGE("rate"),
	MESSAGE("rate "),
	MESSAGE("rate -1"), MESSAGE("rate \x1b[31m"), MESSAGE("rate 1Mbit/s,"),
	MESSAGE("rate 99999999999999999999Gbit/s"),
	{ longest, sizeof longest, false }, { "status", 6, true },
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* False: the other end takes nothing. */
static bool send_with(int s, const struct message *m, const int *fd, size_t n_fd)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(MANY * sizeof(int))];
	} control;
	struct iovec io = { (void *)(uintptr_t)m->text, m->n };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };

	if (n_fd > 0) {
		memset(&control, 0, sizeof control);
		control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n_fd * sizeof(int)), .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.h), fd, n_fd * sizeof(int));
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(n_fd * sizeof(int));
	}
	return sendmsg(s, &h, MSG_NOSIGNAL) >= 0;
}

static bool send_odd(int s, const struct message *m, enum odd kind)
{
	int one = make_odd(kind, s), fd[MANY], i;
	bool sent;

	if (kind != ODD_NONE && one < 0)
		die("cannot make a descriptor of kind %d: %s", kind, strerror(errno));
	for (i = 0; i < MANY; i++)
		fd[i] = one;
	sent = send_with(s, m, fd, kind == ODD_NONE ? 0 : kind == ODD_MANY ? MANY : 1);
	if (one >= 0)
		close(one);
	return sent;
}

static int connect_to(const char *path)
{
	struct timeval patience = { patience_s(15), 0 };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
	if (s < 0 || connect(s, (struct sockaddr *)&sa, sizeof sa) < 0)
		die("%s: %s", path, strerror(errno));
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	return s;
}

/* The answer, as a string; "": the other end has closed. */
static const char *answer(int s)
{
	static char text[1 << 18];
	ssize_t n = recv(s, text, sizeof text - 1, 0);

	if (n < 0 && errno != ECONNRESET)
		die("no answer, and no end: %s", strerror(errno));
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Sends the message over a connection of its own, again while the user has too many; returns the answer. */
static const char *ask(const char *path, const struct message *m, enum odd kind)
{
	const struct timespec rest = { 0, 100000000 };
	const char *text;
	unsigned i;
	int s;

	for (i = 0; i < 10 * patience_s(15); i++) {
		s = connect_to(path);
		send_odd(s, m, kind);
		text = answer(s);
		close(s);
		/* a refusal at once is lost if our message arrives before the end: then the kernel reports a reset
		 * first */
		if (strstr(text, "too many sessions") == NULL && (text[0] != '\0' || !m->valid))
			return text;
		nanosleep(&rest, NULL);
	}
	die("too many sessions, for ever");
}

/* Every message: every fourth with each kind of descriptor, the others with three kinds. `right` begins the answers to
 * valid messages, `wrong` all other answers that are not the end. */
static void converse(const char *path, const struct message *m, size_t n, const char *right, const char *wrong)
{
	const char *text;
	size_t i, asked = 0;
	int kind;

	memset(longest, 'x', sizeof longest);
	for (i = 0; i < n; i++)
		for (kind = 0; kind < ODD_N; kind++) {
			if (i % 4 != 0 && !m[i].valid && (size_t)kind % 5 != i % 5)
				continue;
			text = ask(path, &m[i], (enum odd)kind);
			asked++;
			if (m[i].valid ? strncmp(text, right, strlen(right)) != 0 : text[0] != '\0' &&
			    strncmp(text, wrong, strlen(wrong)) != 0)
				die("message %zu with descriptor %d: the answer is %s", i, kind,
				    text[0] != '\0' ? text : "the end");
		}
	printf("%zu\n", asked);
}

/* ARGUMENTS: the socket of a service that shares its port. */
static void share_messages(unsigned port, char **arguments)
{
	(void)port;
	converse(arguments[0], registrations, COUNT(registrations), "ptcp-share 1 ", "ptcp-share-error ");
}

/* ARGUMENTS: the socket of a running command. */
static void running_messages(unsigned port, char **arguments)
{
	(void)port;
	converse(arguments[0], requests, COUNT(requests), "{\"event\":\"status\"", "{\"error\":");
}

/* Ends the connection at each step, with more behind that nobody reads. */
static void vanish(unsigned port, char **arguments)
{
	const struct message *right = &registrations[COUNT(registrations) - 1], *wrong = &registrations[0];
	int i, s;

	(void)port;
	for (i = 0; i < 200; i++) {
		s = connect_to(arguments[0]);
		if (i % 5 > 0)
			send_odd(s, i % 2 == 0 ? right : wrong, (enum odd)(i % ODD_N));
		if (i % 5 > 1)
			send_odd(s, right, (enum odd)((i / 3) % ODD_N));
		if (i % 5 == 3)
			shutdown(s, i % 2 == 0 ? SHUT_WR : SHUT_RD);
		if (i % 5 == 4)
			answer(s);
		close(s);
	}
}

static volatile sig_atomic_t over;

static void on_term(int sig)
{
	(void)sig;
	over = 1;
}

/* Connects as often as possible, with messages and descriptors of all kinds, until SIGTERM; waits for no answer. */
static void flood(unsigned port, char **arguments)
{
	const struct timespec rest = { 0, 1000000 };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	unsigned long n = 0;
	int s;

	(void)port;
	snprintf(sa.sun_path, sizeof sa.sun_path, "%s", arguments[0]);
	signal(SIGTERM, on_term);
	puts("open");
	fflush(stdout);
	for (; !over; n++) {
		s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (connect(s, (struct sockaddr *)&sa, sizeof sa) < 0)
			nanosleep(&rest, NULL); /* the backlog is full */
		else if (n % 4 == 0)
			send_odd(s, &registrations[n / 4 % COUNT(registrations)], (enum odd)(n / 3 % ODD_N));
		else
			/* no byte, and descriptors */
			send_odd(s, &registrations[0], n % 2 == 0 ? ODD_DEVICE : ODD_MANY);
		close(s);
	}
	printf("%lu\n", n);
}

/* Connections without a word, and connections that drip messages of a byte, until our stdin ends. */
static void silent(unsigned port, char **arguments)
{
	const struct message byte = MESSAGE("p");
	int s[48], i;

	(void)port;
	for (i = 0; i < 48; i++) {
		s[i] = connect_to(arguments[0]);
		if (i % 2 == 0)
			send_odd(s[i], &byte, (enum odd)(i % ODD_N));
	}
	hold();
	for (i = 0; i < 48; i++)
		close(s[i]);
}

/* ---- The other end ---- */

/* The answers of a process in the place of a service, each followed by connections that are none. */
static const struct message services[] = {
	MESSAGE(""), MESSAGE("\0"), MESSAGE("ptcp-share 1"), MESSAGE("ptcp-share 1 0"), MESSAGE("ptcp-share 1 65536"),
	MESSAGE("ptcp-share 1 99999999999999"), MESSAGE("ptcp-share 2 7811"), MESSAGE("ptcp-share 1 7811 more"),
	MESSAGE("ptcp-share-error \x1b[31mred\n"), MESSAGE("ptcp-share-error "), { longest, sizeof longest, false },
	{ "ptcp-share 1 9", 14, true },
};

static const struct message commands[] = {
	MESSAGE(""), MESSAGE("\0"), MESSAGE("x"), MESSAGE("{"), MESSAGE("[]"), MESSAGE("null"), MESSAGE("{}"),
	MESSAGE("{\"error\":1}"),
	MESSAGE("{\"error\":\"\\u001b[31mred\\n\",\"code\":7}"), MESSAGE("{\"error\":\"e\",\"code\":-99999999999}"),
	MESSAGE("{\"error\":\"e\",\"code\":\"c\"}"),
	MESSAGE("{\"event\":\"status\",\"name\":1,\"command\":[],\"pid\":{}}"),
	MESSAGE("{\"event\":\"status\",\"name\":\"\\u001b[31m\",\"command\":\"\\u0007\",\"state\":\"\\u009b\",\"source\":\"\\n\","
	    "\"destination\":\"\\r\",\"bytes\":-1,\"total_bytes\":1e308,\"files\":0,\"seconds\":-1e308,\"limit\":\"\\u001b\","
	    "\"rate_bps\":-1,\"eta_s\":1e308,\"streams\":\"many\",\"sources\":-5,\"movers\":[1,{},null]}"),
	MESSAGE("{\"event\":\"status\",\"name\":\"n\",\"command\":\"serve\",\"state\":\"running\",\"sessions\":{},\"listen\":5,"
	    "\"root\":[],\"bytes\":\"\"}"),
	MESSAGE("{\"event\":\"status\",\"name\":\"n\",\"command\":\"collect\",\"state\":\"running\",\"hosts\":[[]],\"bytes\":1}"),
	{ longest, sizeof longest, false },
};

/* Takes what comes, answers with message number `which`, and sends descriptors of all kinds behind the answer. */
static void serve_one(int s, const struct message *m, const struct message *after)
{
	char text[4096];
	int kind;

	if (recv(s, text, sizeof text, 0) > 0 && send_odd(s, m, (enum odd)(m->n % ODD_N)) && after != NULL)
		for (kind = 0; kind < 3 * ODD_N; kind++)
			send_odd(s, after, (enum odd)(kind % ODD_N));
}

static void serve(const char *path, const struct message *m, const struct message *after)
{
	struct pollfd p = { .events = POLLIN };
	struct ptcp_err e;
	int s;

	memset(longest, 'x', sizeof longest);
	if (local_sock_listen(&p.fd, path, 0666, &e) < 0)
		die("%s", e.msg);
	signal(SIGTERM, on_term);
	puts("open");
	fflush(stdout);
	while (!over)
		if (poll(&p, 1, 100) == 1 && (s = accept(p.fd, NULL, NULL)) >= 0) {
			serve_one(s, m, after);
			close(s);
		}
	unlink(path);
}

static const struct message *chosen(const struct message *m, size_t n, const char *which)
{
	if ((size_t)atoi(which) >= n)
		exit(77); /* the script has tried all */
	return &m[atoi(which)];
}

/* ARGUMENTS: a path, and the number of an answer. Status 77: there is no such answer. */
static void share_service(unsigned port, char **arguments)
{
	static const struct message connection = MESSAGE("connection");

	(void)port;
	serve(arguments[0], chosen(services, COUNT(services), arguments[1]), &connection);
}

static void running_command(unsigned port, char **arguments)
{
	(void)port;
	serve(arguments[0], chosen(commands, COUNT(commands), arguments[1]), NULL);
}

/* ---- Sockets of a service manager ---- */

/* ARGUMENTS: a kind of descriptor, or "-" for none; LISTEN_FDS; a command, which is run with such descriptors from 3
 * on. */
static void listen_fds(unsigned port, char **arguments)
{
	int kind = strcmp(arguments[0], "-") == 0 ? ODD_NONE : atoi(arguments[0]), s, one, fd;
	char pid[24];

	(void)port;
	if (kind >= ODD_N)
		exit(77);
	if ((s = half_of_a_pair()) < 0 || ((one = make_odd((enum odd)kind, s)) < 0 && kind != ODD_NONE))
		die("cannot make descriptors: %s", strerror(errno));
	if (one >= 0 && (one = fcntl(one, F_DUPFD, 20)) < 0)
		die("cannot move a descriptor: %s", strerror(errno));
	for (fd = 3; fd < 20; fd++)
		close(fd);
	if (one >= 0 && dup2(one, 3) < 0)
		die("cannot pass a descriptor: %s", strerror(errno));
	for (fd = 20; fd < 40; fd++)
		close(fd);
	snprintf(pid, sizeof pid, "%ld", (long)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", arguments[1], 1);
	execvp(arguments[2], arguments + 2);
	die("%s: %s", arguments[2], strerror(errno));
}

const struct hostile hostile_local_user[] = {
	{ "share-messages", share_messages }, { "running-messages", running_messages }, { "vanish", vanish },
	    { "flood", flood },
	{ "silent", silent }, { "share-service", share_service }, { "running-command", running_command },
	{ "listen-fds", listen_fds }, { NULL, NULL }
};
