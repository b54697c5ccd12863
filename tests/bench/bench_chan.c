/* Gbit/s and CPU seconds per GiB of a channel (src/net/chan.h), over TLS and raw, on a TCP connection of
 * loopback; and beside each the plain way: blocking SSL_write() and SSL_read() of 16 KiB on the socket
 * itself, blocking send() and recv() of 64 KiB. What makes the difference are records gathered into one send of
 * 256 KiB and read in place out of one receive of 256 KiB.
 *
 *   bench_chan [MIB [ROUNDS]]      (default: 1024, 5) */
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/list.h"
#include "net/chan.h"

#define STEP (256u << 10)
#define PLAIN_TLS_STEP (16u << 10)
#define PLAIN_STEP (64u << 10)
#define ROUNDS_MAX 101

static SSL_CTX *client_tls, *server_tls;
static uint64_t total = UINT64_C(1024) << 20;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void must(int r, const struct ptcp_err *e)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_chan: %s\n", e->msg);
	exit(1);
}

/* A connection of loopback. */
static void connected(int fd[2], int flags)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&a, n) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &n) != 0 ||
	    (fd[0] = socket(AF_INET, SOCK_STREAM, 0)) < 0 ||
	    connect(fd[0], (struct sockaddr *)&a, n) != 0 ||
	    (fd[1] = accept4(listener, NULL, NULL, flags)) < 0)
		die("loopback");
	close(listener);
}

/* ---- Ours ---- */

struct end {
	struct chan *c;
	struct loop *loop;
	uint64_t moved;
	bool tls, sends;
	sem_t *done;
	uint8_t *buf;
	struct msg step;
};

static void end_done(struct end *n)
{
	sem_post(n->done);
}

static void send_more(void *arg)
{
	struct end *n = arg;
	size_t step, took;

	if (!n->sends)
		return;
	while (n->moved < total) {
		step = total - n->moved < STEP ? (size_t)(total - n->moved) : STEP;
		took = chan_write(n->c, n->buf, step);
		n->moved += took;
		if (took < step)
			return;
	}
	chan_flush(n->c);
	if (n->moved == total) {
		n->moved++; /* once */
		end_done(n);
	}
}

static void receive_more(void *arg)
{
	struct end *n = arg;
	size_t got = chan_read(n->c, n->buf, STEP); /* it calls again for the rest, as a stream asks it to */

	if (n->sends)
		return;
	n->moved += got;
	if (got > 0 && n->moved == total)
		end_done(n);
}

static void closed(void *arg, const struct ptcp_err *why)
{
	const struct end *n = arg;

	if (n->moved >= total) /* the other end has been freed first */
		return;
	fprintf(stderr, "bench_chan: closed: %s\n", why != NULL ? why->msg : "in good order");
	exit(1);
}

static const struct chan_ops ops = { send_more, receive_more, send_more, closed };

/* On the end's loop: only there a channel may be freed. */
static void free_end(struct msg *m)
{
	struct end *n = CONTAINER_OF(m, struct end, step);

	chan_free(n->c);
	end_done(n);
}

static void start_end(struct msg *m)
{
	struct end *n = CONTAINER_OF(m, struct end, step);
	struct ptcp_err e;

	must(chan_attach(n->c, n->loop, &ops, n, &e), &e);
	if (!n->tls)
		send_more(n);
}

static void ours(bool tls)
{
	struct end end[2] = { { .sends = true }, { .sends = false } };
	struct ptcp_err e;
	sem_t done;
	int fd[2], i;

	sem_init(&done, 0, 0);
	connected(fd, SOCK_NONBLOCK);
	if (fcntl(fd[0], F_SETFL, O_NONBLOCK) != 0)
		die("socket");
	for (i = 0; i < 2; i++) {
		struct chan_opts o = { .server = i == 1, .alpn = ALPN_DATA, .ops = &ops,
			.arg = &end[i] };

		end[i].tls = tls;
		end[i].done = &done;
		end[i].buf = calloc(1, STEP);
		must(loop_new(&end[i].loop, &e), &e);
		must(chan_new(&end[i].c, end[i].loop, !tls ? NULL : i == 1 ? server_tls : client_tls, &fd[i], &o, &e),
		    &e);
		chan_detach(end[i].c);
	}
	for (i = 0; i < 2; i++) {
		must(loop_start_thread(end[i].loop, &e), &e);
		end[i].step.run = start_end;
		loop_post(end[i].loop, &end[i].step);
	}
	for (i = 0; i < 2; i++)
		sem_wait(&done);
	for (i = 0; i < 2; i++) {
		end[i].step.run = free_end;
		loop_post(end[i].loop, &end[i].step);
		sem_wait(&done);
		loop_free(end[i].loop);
		free(end[i].buf);
	}
	sem_destroy(&done);
}

static void ours_tls(void) { ours(true); }
static void ours_raw(void) { ours(false); }

/* ---- The plain ways ---- */

struct plain {
	SSL *ssl; /* or NULL */
	int fd;
};

static void *plain_send(void *arg)
{
	struct plain *p = arg;
	size_t step = p->ssl != NULL ? PLAIN_TLS_STEP : PLAIN_STEP;
	uint8_t *buf = calloc(1, step);
	uint64_t sent = 0;
	ssize_t n;

	while (sent < total) {
		n = p->ssl != NULL ? SSL_write(p->ssl, buf, (int)step) : send(p->fd, buf, step, 0);
		if (n <= 0)
			die("send");
		sent += (uint64_t)n;
	}
	free(buf);
	return NULL;
}

static void plain_receive(struct plain *p)
{
	size_t step = p->ssl != NULL ? PLAIN_TLS_STEP : PLAIN_STEP;
	uint8_t *buf = malloc(step);
	uint64_t got = 0;
	ssize_t n;

	while (got < total) {
		n = p->ssl != NULL ? SSL_read(p->ssl, buf, (int)step) : recv(p->fd, buf, step, 0);
		if (n <= 0)
			die("receive");
		got += (uint64_t)n;
	}
	free(buf);
}

static void *plain_connect(void *arg)
{
	struct plain *p = arg;

	if (SSL_connect(p->ssl) != 1)
		die("handshake");
	return NULL;
}

static void plain(bool tls)
{
	struct plain end[2] = { { NULL, -1 }, { NULL, -1 } };
	pthread_t sender;
	int fd[2], i;

	connected(fd, 0);
	for (i = 0; i < 2; i++) {
		end[i].fd = fd[i];
		if (tls && ((end[i].ssl = SSL_new(i == 1 ? server_tls : client_tls)) == NULL ||
		    SSL_set_fd(end[i].ssl, fd[i]) != 1))
			die("TLS");
	}
	if (tls) {
		SSL_set_alpn_protos(end[0].ssl, (const uint8_t *)"\x0b" ALPN_DATA, 12);
		pthread_create(&sender, NULL, plain_connect, &end[0]);
		if (SSL_accept(end[1].ssl) != 1)
			die("handshake");
		pthread_join(sender, NULL);
	}
	pthread_create(&sender, NULL, plain_send, &end[0]);
	plain_receive(&end[1]);
	pthread_join(sender, NULL);
	for (i = 0; i < 2; i++) {
		SSL_free(end[i].ssl);
		close(fd[i]);
	}
}

static void plain_tls(void) { plain(true); }
static void plain_raw(void) { plain(false); }

/* ---- Rounds ---- */

static const struct { const char *name; void (*run)(void); } ways[] = {
	{ "TLS, channel", ours_tls }, { "TLS, plain", plain_tls },
	{ "raw, channel", ours_raw }, { "raw, plain", plain_raw },
};
#define WAYS (sizeof ways / sizeof *ways)

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, by_size);
	return v[n / 2];
}

static void make_contexts(void)
{
	char dir[] = "/tmp/bench-chan-XXXXXX", command[64];
	struct identity id;
	struct ptcp_err e;

	if (mkdtemp(dir) == NULL)
		die(dir);
	must(identity_load(&id, dir, false, &e), &e);
	must(tls_new(&client_tls, &id, false, 1u << PTCP_CIPHER_AES128GCM, &e), &e);
	must(tls_new(&server_tls, &id, true, 1u << PTCP_CIPHER_AES128GCM, &e), &e);
	identity_fini(&id);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	if (system(command) != 0)
		die(dir);
}

int main(int argc, char **argv)
{
	static double rate[WAYS][ROUNDS_MAX], cpu[WAYS][ROUNDS_MAX];
	int rounds = argc > 2 ? atoi(argv[2]) : 5, r;
	struct mono start;
	double before, gib;
	size_t w;

	if (argc > 1)
		total = strtoull(argv[1], NULL, 10) << 20;
	if (total == 0 || rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	gib = (double)total / (1 << 30);
	make_contexts();
	for (r = 0; r < rounds; r++)
		for (w = 0; w < WAYS; w++) {
			before = cpu_s();
			start = mono_now();
			ways[w].run();
			rate[w][r] = (double)total * 8 / (double)mono_diff_ns(mono_now(), start);
			cpu[w][r] = (cpu_s() - before) / gib;
		}
	printf("%-14s %8s %10s   medians of %d\n", "", "Gbit/s", "CPU s/GiB", rounds);
	for (w = 0; w < WAYS; w++)
		printf("%-14s %8.2f %10.2f\n", ways[w].name, median(rate[w], rounds), median(cpu[w], rounds));
	SSL_CTX_free(client_tls);
	SSL_CTX_free(server_tls);
	return 0;
}
