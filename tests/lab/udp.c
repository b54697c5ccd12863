/* Timed UDP packets: measures rate, loss, delay and order of a path, to nothing but
 * the kernel's receive time stamps. Both ends share the machine's clock.
 *
 *   udp sink [-p PORT] [-f FIRST_S] [-i IDLE_S]
 *       waits FIRST_S for a first packet and then for more until IDLE_S pass without,
 *       then prints one line
 *   udp source [-p PORT] [-r PACKETS_PER_S] [-l IP_BYTES] [-k COUNT] ADDRESS
 *       sends COUNT packets of IP_BYTES (headers included) evenly spaced */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"

#define HEADER_BYTES 28 /* IPv4 and UDP */
#define MAX_PACKETS 2000000
#define MAX_BEHIND_NS 2000000u
#define RECEIVE_BUFFER_BYTES (8 << 20)

struct opts {
	const char *address;
	int port;
	double rate, bytes, count, first_s, idle_s;
};

struct probe {
	uint64_t sequence, sent_ns; /* CLOCK_REALTIME */
};

static uint64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int complain(const char *what)
{
	fprintf(stderr, "udp: %s: %s\n", what, strerror(errno));
	return 1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct tally {
	uint64_t received, bytes, reordered, newest, first_ns, last_ns;
	double *delay_ms;
};

/* One packet; 0, or -1 when there is none. */
static int receive(int fd, struct tally *t)
{
	char data[65536];
	union { char room[CMSG_SPACE(sizeof(struct timespec))]; struct cmsghdr align; } c;
	struct iovec v = { data, sizeof data };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = c.room,
	    .msg_controllen = sizeof c.room };
	struct timespec ts = { 0, 0 };
	struct probe p;
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

	if (n < (ssize_t)sizeof p)
		return -1;
	memcpy(&p, data, sizeof p);
	if (CMSG_FIRSTHDR(&m) != NULL)
		memcpy(&ts, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof ts);
	t->last_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	if (t->received == 0)
		t->first_ns = t->last_ns;
	else
		t->bytes += (uint64_t)n + HEADER_BYTES; /* those that came after the first */
	t->reordered += p.sequence < t->newest;
	if (p.sequence > t->newest)
		t->newest = p.sequence;
	if (t->received < MAX_PACKETS)
		t->delay_ms[t->received++] = ((double)t->last_ns - (double)p.sent_ns) / 1e6;
	return 0;
}

static void report(struct tally *t)
{
	double seconds = (double)(t->last_ns - t->first_ns) / 1e9, sum = 0;
	uint64_t n = t->received;

	qsort(t->delay_ms, n, sizeof *t->delay_ms, by_value);
	for (uint64_t i = 0; i < n; i++)
		sum += t->delay_ms[i];
	printf("received=%llu seconds=%.6f mbps=%.4f reordered=%llu",
	    (unsigned long long)n, seconds,
	    seconds > 0 ? (double)t->bytes * 8e-6 / seconds : 0,
	    (unsigned long long)t->reordered);
	if (n > 0)
		printf(" delay_mean_ms=%.4f delay_min_ms=%.4f delay_p50_ms=%.4f "
		    "delay_p95_ms=%.4f delay_max_ms=%.4f", sum / (double)n, t->delay_ms[0],
		    t->delay_ms[n / 2], t->delay_ms[n * 95 / 100], t->delay_ms[n - 1]);
	putchar('\n');
}

static int sink(const struct opts *o)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)o->port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1, room = RECEIVE_BUFFER_BYTES;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct tally t = { .delay_ms = calloc(MAX_PACKETS, sizeof(double)) };

	if (fd < 0 || t.delay_ms == NULL || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one) < 0)
		return complain("cannot listen");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	while (poll(&p, 1, (int)((t.received ? o->idle_s : o->first_s) * 1e3)) > 0)
		while (receive(fd, &t) == 0)
			;
	report(&t);
	free(t.delay_ms);
	return t.received == 0;
}

static int source(const struct opts *o)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)o->port) };
	static char data[65536];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	size_t n = (size_t)o->bytes - HEADER_BYTES;
	uint64_t gap_ns = (uint64_t)(1e9 / o->rate), next_ns = mono_now().ns;

	inet_pton(AF_INET, o->address, &a.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		return complain(o->address);
	prctl(PR_SET_TIMERSLACK, 1);
	for (uint64_t i = 0; i < (uint64_t)o->count; i++) {
		struct timespec ts = { (time_t)(next_ns / NS_PER_S), (long)(next_ns % NS_PER_S) };
		struct probe p = { .sequence = i };
		uint64_t now_ns = mono_now().ns;

		if (next_ns > now_ns)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		else if (next_ns + MAX_BEHIND_NS < now_ns)
			next_ns = now_ns - MAX_BEHIND_NS;
		p.sent_ns = realtime_ns();
		memcpy(data, &p, sizeof p);
		if (send(fd, data, n, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
			return complain("send");
		next_ns += gap_ns;
	}
	return 0;
}

/* ------------------------------------------------------------- arguments */

static int number(const char *text, double least, double most, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end == text || *end != '\0' || !(*out >= least && *out <= most) ? -1 : 0;
}

static int parse(struct opts *o, int argc, char **argv)
{
	double v = o->port;
	int c, bad = 0;

	while ((c = getopt(argc, argv, "p:r:l:k:f:i:")) != -1) {
		switch (c) {
		case 'p': bad |= number(optarg, 1, 65535, &v); o->port = (int)v; break;
		case 'r': bad |= number(optarg, 0.1, 1e7, &o->rate); break;
		case 'l': bad |= number(optarg, HEADER_BYTES + 16, 9000, &o->bytes); break;
		case 'k': bad |= number(optarg, 1, MAX_PACKETS, &o->count); break;
		case 'f': bad |= number(optarg, 0.01, 3600, &o->first_s); break;
		case 'i': bad |= number(optarg, 0.01, 3600, &o->idle_s); break;
		default: bad = 1;
		}
	}
	o->address = argv[optind];
	return bad || (o->address && argv[optind + 1]) ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct opts o = { .port = 5002, .rate = 100, .bytes = 1500, .count = 100,
	    .first_s = 30, .idle_s = 0.5 };
	struct in_addr ip;

	if (argc > 1 && parse(&o, argc - 1, argv + 1) == 0) {
		if (strcmp(argv[1], "sink") == 0 && o.address == NULL)
			return sink(&o);
		if (strcmp(argv[1], "source") == 0 && o.address &&
		    inet_pton(AF_INET, o.address, &ip) == 1)
			return source(&o);
	}
	fputs("usage: udp sink [-p PORT] [-f FIRST_S] [-i IDLE_S]\n"
	    "       udp source [-p PORT] [-r PACKETS_PER_S] [-l IP_BYTES] [-k COUNT] ADDRESS\n",
	    stderr);
	return 2;
}
