/* What a plain decrypting proxy costs: a process that ends TLS on one side and begins it on the other, with a thread
 * for each connection, blocking SSL_read() and SSL_write() of 16 KiB, as such proxies work. A source and a sink, which
 * are not counted, send through it over loopback.
 *
 *   proxy [MIB [CONNECTIONS]]      (default: 1024, 4)
 *
 * Prints CPU seconds per GiB of the proxy: all, user, system. The cipher is that of transfers, AES-128-GCM.
 *
 *   proxy splice PORT
 *
 * What moving bytes costs at least: connections to the port that it prints are carried on to that PORT of this host, by
 * a thread for each direction, that does nothing but splice() into a pipe of 1 MiB and out of it. Until it is
 * killed. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/tls.h"

#define STEP (16u << 10)
#define CONNECTIONS_MAX 64u
#define PIPE_BYTES (1u << 20)

static SSL_CTX *client_tls, *server_tls;

static void die(const char *what)
{
	fprintf(stderr, "proxy: %s\n", what);
	exit(1);
}

static int listen_here(struct sockaddr_in *a)
{
	socklen_t n = sizeof *a;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*a = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)a, n) != 0 || listen(fd, CONNECTIONS_MAX) != 0 ||
	    getsockname(fd, (struct sockaddr *)a, &n) != 0)
		die("cannot listen");
	return fd;
}

static SSL *accepted(int listener)
{
	SSL *ssl = SSL_new(server_tls);
	int fd = accept(listener, NULL, NULL);

	if (fd < 0 || SSL_set_fd(ssl, fd) != 1 || SSL_accept(ssl) != 1)
		die("no handshake with who came");
	return ssl;
}

static SSL *connected(const struct sockaddr_in *to)
{
	static const unsigned char alpn[] = "\x0bptcp-data/1";
	SSL *ssl = SSL_new(client_tls);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	SSL_set_alpn_protos(ssl, alpn, sizeof alpn - 1);
	if (connect(fd, (const struct sockaddr *)to, sizeof *to) != 0 || SSL_set_fd(ssl, fd) != 1 ||
	    SSL_connect(ssl) != 1)
		die("no handshake with the next");
	return ssl;
}

/* ---- One connection of each of the three ---- */

static struct sockaddr_in proxy_at, sink_at;
static int proxy_listener, sink_listener;
static uint64_t share; /* bytes of one connection */

static void *relay_one(void *arg)
{
	SSL *in = accepted(proxy_listener), *out = connected(&sink_at);
	char buf[STEP];
	int n;

	(void)arg;
	while ((n = SSL_read(in, buf, sizeof buf)) > 0)
		if (SSL_write(out, buf, n) != n)
			die("the sink has gone");
	SSL_shutdown(out);
	return NULL;
}

static void *send_one(void *arg)
{
	SSL *out = connected(&proxy_at);
	static const char junk[STEP];
	uint64_t sent;

	(void)arg;
	for (sent = 0; sent < share; sent += STEP)
		if (SSL_write(out, junk, STEP) != (int)STEP)
			die("the proxy has gone");
	SSL_shutdown(out);
	return NULL;
}

static void *take_one(void *arg)
{
	SSL *in = accepted(sink_listener);
	char buf[STEP];
	uint64_t got = 0;
	int n;

	(void)arg;
	while ((n = SSL_read(in, buf, sizeof buf)) > 0)
		got += (uint64_t)n;
	if (got != share)
		die("not all has come");
	return NULL;
}

/* A process with so many of them. */
static pid_t start(void *(*one)(void *), unsigned connections)
{
	pthread_t t[CONNECTIONS_MAX];
	pid_t pid = fork();
	unsigned i;

	if (pid != 0)
		return pid;
	for (i = 0; i < connections; i++)
		if (pthread_create(&t[i], NULL, one, NULL) != 0)
			die("no thread");
	for (i = 0; i < connections; i++)
		pthread_join(t[i], NULL);
	_exit(0);
}

/* ---- The least ---- */

struct way {
	int from, to;
};

static void *splice_one(void *arg)
{
	struct way w = *(struct way *)arg;
	ssize_t n, m;
	int p[2];

	free(arg);
	if (pipe(p) != 0)
		die("no pipe");
	fcntl(p[1], F_SETPIPE_SZ, PIPE_BYTES);
	while ((n = splice(w.from, NULL, p[1], NULL, PIPE_BYTES, SPLICE_F_MOVE)) > 0)
		for (; n > 0; n -= m)
			if ((m = splice(p[0], NULL, w.to, NULL, (size_t)n, SPLICE_F_MOVE)) <= 0)
				break;
	shutdown(w.from, SHUT_RD);
	shutdown(w.to, SHUT_WR);
	close(p[0]);
	close(p[1]);
	return NULL;
}

static void splice_way(int from, int to)
{
	struct way *w = malloc(sizeof *w);
	pthread_t t;

	if (w == NULL)
		die("no memory");
	*w = (struct way){ from, to };
	if (pthread_create(&t, NULL, splice_one, w) != 0 || pthread_detach(t) != 0)
		die("no thread");
}

/* Sockets stay open until the process ends: neither thread of two knows when the other is done. */
static void splice_all(unsigned port)
{
	struct sockaddr_in at, to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = listen_here(&at), on = 1, in, out;

	printf("%u\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;) {
		if ((in = accept(listener, NULL, NULL)) < 0 || (out = socket(AF_INET, SOCK_STREAM, 0)) < 0 ||
		    connect(out, (struct sockaddr *)&to, sizeof to) != 0)
			die("cannot carry on");
		setsockopt(in, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		splice_way(in, out);
		splice_way(out, in);
	}
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

int main(int argc, char **argv)
{
	uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024;
	unsigned connections = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
	struct rusage cost;
	struct identity id;
	struct ptcp_err e;
	pid_t proxy, others[2];
	int status, i;
	double gib;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "splice") == 0)
		splice_all((unsigned)atoi(argv[2]));
	if (mib == 0 || connections == 0 || connections > CONNECTIONS_MAX)
		die("proxy [MIB [CONNECTIONS]], or proxy splice PORT");
	share = (mib << 20) / connections / STEP * STEP;
	gib = (double)(share * connections) / (1u << 30);
	if (identity_new(&id, &e) < 0 || tls_new(&client_tls, &id, false, 1u << PTCP_CIPHER_AES128GCM, &e) < 0 ||
	    tls_new(&server_tls, &id, true, 1u << PTCP_CIPHER_AES128GCM, &e) < 0)
		die(e.msg);
	proxy_listener = listen_here(&proxy_at);
	sink_listener = listen_here(&sink_at);
	others[0] = start(take_one, connections);
	proxy = start(relay_one, connections);
	others[1] = start(send_one, connections);
	for (i = 0; i < 2; i++)
		if (waitpid(others[i], &status, 0) < 0 || status != 0)
			die("a side has failed");
	if (wait4(proxy, &status, 0, &cost) < 0 || status != 0)
		die("the proxy has failed");
	printf("%.3f %.3f %.3f\n", (seconds(cost.ru_utime) + seconds(cost.ru_stime)) / gib,
	    seconds(cost.ru_utime) / gib, seconds(cost.ru_stime) / gib);
	return 0;
}
