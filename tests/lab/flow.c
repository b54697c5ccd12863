/* Memory-to-memory TCP traffic for the laboratory.
 *
 *   flow sink [-p PORT]
 *       accepts connections and throws away what arrives, until killed
 *   flow source [-p PORT] [-n STREAMS] [-d DELAY_S] [-s SPREAD_S] [-w WARM_S]
 *               [-t TIME_S] [-i INTERVAL_S] [-c CONGESTION_CONTROL] ADDRESS
 *       waits DELAY_S, opens STREAMS connections spread evenly over SPREAD_S,
 *       and measures from WARM_S after the last one's start for TIME_S
 *
 * A source prints one line a stream and one "total" line, key=value. Rates are
 * goodput: bytes the receiver acknowledged (TCP_INFO) in the measured time. With -i
 * it also prints, from the first start to the end, every INTERVAL_S a line of the
 * monotonic time in seconds, the bytes acknowledged so far on each stream, and, of all
 * streams together so far, seconds in which they were busy, and of these held up by the
 * receiver's window and by their own buffers. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"

#define MAX_STREAMS 256
#define CHUNK_BYTES (128 * 1024)
#define DISCARD_BYTES (1 << 20)
#define STATE_SYN_SENT 2 /* TCP_SYN_SENT, which <linux/tcp.h> lacks */

struct opts {
	const char *address, *cc;
	int port, streams;
	double delay_s, spread_s, warm_s, time_s, interval_s; /* interval_s 0: no lines */
};

struct stream {
	int fd;              /* -1: not open, or failed */
	int failed;          /* errno */
	struct tcp_info was; /* at the start of the measured time */
	struct tcp_info is;  /* at its end */
};

static int complain(const char *what)
{
	fprintf(stderr, "flow: %s: %s\n", what, strerror(errno));
	return 1;
}

/* ------------------------------------------------------------------ sink */

static int listen_on(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, MAX_STREAMS) == 0)
		return fd;
	close(fd);
	return -1;
}

static void discard(int fd)
{
	/* MSG_TRUNC on TCP drops the bytes in the kernel, without a copy. */
	ssize_t n = recv(fd, NULL, DISCARD_BYTES, MSG_TRUNC | MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close(fd);
}

static int sink(int port)
{
	struct epoll_event ev = { .events = EPOLLIN }, got[64];
	int ep = epoll_create1(EPOLL_CLOEXEC), l = listen_on(port);

	ev.data.fd = l;
	if (ep < 0 || l < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev) < 0)
		return complain("cannot listen");
	printf("listening port=%d\n", port);
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(ep, got, 64, -1);

		if (n < 0 && errno != EINTR)
			return complain("epoll_wait");
		for (int i = 0; i < n; i++) {
			if (got[i].data.fd != l) {
				discard(got[i].data.fd);
				continue;
			}
			ev.data.fd = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			if (ev.data.fd >= 0)
				epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev);
		}
	}
}

/* ---------------------------------------------------------------- source */

static int open_stream(const struct opts *o, struct stream *s, int ep, int index)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)o->port) };
	struct epoll_event ev = { .events = EPOLLOUT, .data.u32 = (uint32_t)index };
	struct linger none = { 1, 0 }; /* or what is in buffers would go on after the end */

	inet_pton(AF_INET, o->address, &a.sin_addr);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -1;
	setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	if (o->cc && setsockopt(s->fd, IPPROTO_TCP, TCP_CONGESTION, o->cc,
	    (socklen_t)strlen(o->cc)) < 0)
		return -1;
	if (connect(s->fd, (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS)
		return -1;
	return epoll_ctl(ep, EPOLL_CTL_ADD, s->fd, &ev);
}

static void read_info(struct stream *s, struct tcp_info *info)
{
	socklen_t len = sizeof *info;

	if (s->fd >= 0)
		getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

static void feed(struct stream *s)
{
	static const char zeros[CHUNK_BYTES];
	ssize_t n = send(s->fd, zeros, sizeof zeros, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n >= 0 || errno == EAGAIN || errno == EINTR)
		return;
	s->failed = errno;
	close(s->fd);
	s->fd = -1;
}

/* Keep all open streams full until `end`. */
static int keep_full(struct stream *streams, int ep, struct mono end)
{
	struct epoll_event got[64];

	for (;;) {
		uint64_t left_ns = mono_diff_ns(end, mono_now());
		int n;

		if (left_ns == 0)
			return 0;
		n = epoll_wait(ep, got, 64, (int)(left_ns / NS_PER_MS));
		if (n < 0 && errno != EINTR)
			return -1;
		for (int i = 0; i < n; i++)
			feed(&streams[got[i].data.u32]);
	}
}

static void print_acked(const struct opts *o, struct stream *streams, struct mono now)
{
	uint64_t busy_us = 0, window_us = 0, buffer_us = 0;
	struct tcp_info info;

	printf("at=%.3f acked=", (double)now.ns / 1e9);
	for (int i = 0; i < o->streams; i++) {
		memset(&info, 0, sizeof info);
		read_info(&streams[i], &info);
		printf("%s%llu", i ? "," : "", (unsigned long long)info.tcpi_bytes_acked);
		busy_us += info.tcpi_busy_time;
		window_us += info.tcpi_rwnd_limited;
		buffer_us += info.tcpi_sndbuf_limited;
	}
	printf(" busy=%.3f window=%.3f buffer=%.3f\n", (double)busy_us / 1e6, (double)window_us / 1e6,
	    (double)buffer_us / 1e6);
	fflush(stdout);
}

/* The same, with a line at each multiple of the interval after `start`. */
static int pump(const struct opts *o, struct stream *streams, int ep, struct mono start,
    struct mono end)
{
	uint64_t interval_ns = (uint64_t)(o->interval_s * 1e9);
	struct mono now = mono_now(), next;

	while (interval_ns > 0) {
		next = mono_add_ns(start, (mono_diff_ns(now, start) / interval_ns + 1) * interval_ns);
		if (next.ns > end.ns)
			break;
		if (keep_full(streams, ep, next) < 0)
			return -1;
		now = mono_now();
		print_acked(o, streams, now);
	}
	return keep_full(streams, ep, end);
}

static double stream_mbps(const struct stream *s, double seconds)
{
	if (s->failed)
		return 0;
	return (double)(s->is.tcpi_bytes_acked - s->was.tcpi_bytes_acked) * 8e-6 / seconds;
}

static int report(const struct opts *o, const struct stream *streams, double seconds)
{
	double sum = 0, squares = 0, rtt = 0;
	unsigned retrans = 0;
	int failed = 0, n = o->streams;

	for (int i = 0; i < n; i++) {
		const struct stream *s = &streams[i];
		double mbps = stream_mbps(s, seconds);
		unsigned re = s->is.tcpi_total_retrans - s->was.tcpi_total_retrans;

		printf("stream=%d mbps=%.4f retrans=%u rtt_ms=%.3f min_rtt_ms=%.3f cwnd=%u",
		    i, mbps, re, s->is.tcpi_rtt / 1e3, s->is.tcpi_min_rtt / 1e3,
		    s->is.tcpi_snd_cwnd);
		if (s->failed)
			printf(" error=\"%s\"", strerror(s->failed));
		putchar('\n');
		sum += mbps;
		squares += mbps * mbps;
		rtt += s->is.tcpi_rtt / 1e3 / n;
		retrans += re;
		failed += s->failed != 0;
	}
	printf("total streams=%d failed=%d cc=%s seconds=%.3f mbps=%.4f retrans=%u "
	    "rtt_ms=%.3f fairness=%.3f\n", n, failed, o->cc ? o->cc : "default",
	    seconds, sum, retrans, rtt, squares > 0 ? sum * sum / (n * squares) : 0);
	return failed > 0;
}

static int source(const struct opts *o)
{
	static struct stream streams[MAX_STREAMS];
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct mono start = mono_add_ns(mono_now(), (uint64_t)(o->delay_s * 1e9)), t;
	double gap_s = o->streams > 1 ? o->spread_s / (o->streams - 1) : 0;

	if (ep < 0)
		return complain("epoll_create");
	for (int i = 0; i < o->streams; i++)
		streams[i].fd = -1;
	for (int i = 0; i < o->streams; i++) {
		if (pump(o, streams, ep, start, mono_add_ns(start, (uint64_t)(i * gap_s * 1e9))) < 0)
			return complain("epoll_wait");
		if (open_stream(o, &streams[i], ep, i) < 0)
			return complain(o->cc ? o->cc : o->address);
	}
	if (pump(o, streams, ep, start, mono_add_ns(start,
	    (uint64_t)((o->spread_s + o->warm_s) * 1e9))) < 0)
		return complain("epoll_wait");
	t = mono_now();
	for (int i = 0; i < o->streams; i++)
		read_info(&streams[i], &streams[i].was);
	if (pump(o, streams, ep, start, mono_add_ns(t, (uint64_t)(o->time_s * 1e9))) < 0)
		return complain("epoll_wait");
	for (int i = 0; i < o->streams; i++) {
		read_info(&streams[i], &streams[i].is);
		if (streams[i].fd >= 0 && streams[i].is.tcpi_state == STATE_SYN_SENT)
			streams[i].failed = ETIMEDOUT; /* never connected */
	}
	return report(o, streams, (double)mono_diff_ns(mono_now(), t) / 1e9);
}

/* ------------------------------------------------------------- arguments */

static int usage(void)
{
	fputs("usage: flow sink [-p PORT]\n"
	    "       flow source [-p PORT] [-n STREAMS] [-d DELAY_S] [-s SPREAD_S] [-w WARM_S]\n"
	    "                   [-t TIME_S] [-i INTERVAL_S] [-c CONGESTION_CONTROL] ADDRESS\n", stderr);
	return 2;
}

/* A decimal of 0 to `max` as a whole argument. */
static int number(const char *text, double max, double *out)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end != '\0' || !(v >= 0 && v <= max))
		return -1;
	*out = v;
	return 0;
}

static int parse(struct opts *o, int argc, char **argv)
{
	double v;
	int c, bad = 0;

	while ((c = getopt(argc, argv, "p:n:d:s:w:t:i:c:")) != -1) {
		switch (c) {
		case 'p': bad |= number(optarg, 65535, &v); o->port = (int)v; break;
		case 'n': bad |= number(optarg, MAX_STREAMS, &v); o->streams = (int)v; break;
		case 'd': bad |= number(optarg, 86400, &o->delay_s); break;
		case 's': bad |= number(optarg, 86400, &o->spread_s); break;
		case 'w': bad |= number(optarg, 86400, &o->warm_s); break;
		case 't': bad |= number(optarg, 86400, &o->time_s); break;
		case 'i': bad |= number(optarg, 86400, &o->interval_s); break;
		case 'c': o->cc = optarg; break;
		default: bad = 1;
		}
		if (bad)
			return -1;
	}
	o->address = argv[optind];
	return o->streams < 1 || o->port < 1 || o->time_s <= 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct opts o = { .port = 5001, .streams = 1, .time_s = 10 };
	struct in_addr ip;

	if (argc < 2 || parse(&o, argc - 1, argv + 1) < 0)
		return usage();
	/* Ahead of compilers and the like, where allowed: a sender that waits for its turn
	 * sends in bursts, which short queues answer with losses. */
	setpriority(PRIO_PROCESS, 0, -20);
	argv++;
	if (strcmp(argv[0], "sink") == 0 && o.address == NULL)
		return sink(o.port);
	if (strcmp(argv[0], "source") == 0 && o.address != NULL &&
	    argv[optind + 1] == NULL && inet_pton(AF_INET, o.address, &ip) == 1)
		return source(&o);
	return usage();
}
