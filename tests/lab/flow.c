/* Memory-to-memory TCP traffic for the laboratory.
 *
 *   flow sink [-p PORT]
 *       accepts connections and throws away what arrives, until killed
 *   flow source [-p PORT] [-n STREAMS] [-d DELAY_S] [-s SPREAD_S] [-w WARM_S]
 *               [-t TIME_S] [-i INTERVAL_S] [-c CONGESTION_CONTROL]
 *               [-o ON_S,OFF_S] [-T FILE] ADDRESS
 *       waits DELAY_S, opens STREAMS connections spread evenly over SPREAD_S,
 *       and measures from WARM_S after the last one's start for TIME_S
 *   flow source -l N:SECONDS,.. [-p PORT] [-d DELAY_S] [-i INTERVAL_S]
 *               [-c CONGESTION_CONTROL] [-T FILE] ADDRESS
 *       measures with N streams for SECONDS, then with the next number: opens
 *       further streams, or closes the newest
 *
 * A source prints one line a stream and one "total" line, key=value. Rates are
 * goodput: bytes the receiver acknowledged (TCP_INFO) in the measured time. With -i
 * it also prints, from the first start to the end, every INTERVAL_S a line of the
 * monotonic time in seconds, the bytes acknowledged so far on each stream, and, of all
 * streams together so far, seconds in which they were busy, and of these held up by the
 * receiver's window and by their own buffers. At the same times -T writes the TCP_INFO of
 * each open stream to FILE, as CSV with a header; 0 is an unknown RTT or an unlimited pacing rate.
 *
 * With -o the streams come and go: each is open for ON_S on average and closed for OFF_S,
 * exponentially distributed, independently of the other streams and of earlier runs. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flow.h"

#define DISCARD_BYTES (1 << 20)

int flow_fail(const char *what)
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
	if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, FLOW_STREAMS_MAX) == 0)
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
		return flow_fail("cannot listen");
	printf("listening port=%d\n", port);
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(ep, got, 64, -1);

		if (n < 0 && errno != EINTR)
			return flow_fail("epoll_wait");
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

/* ------------------------------------------------------------- arguments */

static int usage(void)
{
	fputs("usage: flow sink [-p PORT]\n"
	    "       flow source [-p PORT] [-n STREAMS] [-d DELAY_S] [-s SPREAD_S] [-w WARM_S]\n"
	    "                   [-t TIME_S] [-i INTERVAL_S] [-c CONGESTION_CONTROL]\n"
	    "                   [-o ON_S,OFF_S] [-T FILE] ADDRESS\n"
	    "       flow source -l N:SECONDS,.. [-p PORT] [-d DELAY_S] [-i INTERVAL_S]\n"
	    "                   [-c CONGESTION_CONTROL] [-T FILE] ADDRESS\n", stderr);
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

/* N:SECONDS,.. */
static int parse_levels(struct flow_opts *o, char *text)
{
	char *save = NULL, *item, *colon;
	double n;

	o->streams = 0;
	for (item = strtok_r(text, ",", &save); item != NULL; item = strtok_r(NULL, ",", &save)) {
		colon = strchr(item, ':');
		if (colon == NULL || o->levels == FLOW_LEVELS_MAX)
			return -1;
		*colon = '\0';
		if (number(item, FLOW_STREAMS_MAX, &n) < 0 || number(colon + 1, 86400, &o->level_s[o->levels]) < 0)
			return -1;
		o->level[o->levels++] = (int)n;
		if ((int)n > o->streams)
			o->streams = (int)n;
	}
	return o->levels > 0 ? 0 : -1;
}

/* ON_S,OFF_S */
static int parse_on_off(struct flow_opts *o, char *text)
{
	char *comma = strchr(text, ',');

	if (comma == NULL)
		return -1;
	*comma = '\0';
	if (number(text, 86400, &o->on_s) < 0 || number(comma + 1, 86400, &o->off_s) < 0)
		return -1;
	return o->on_s > 0 && o->off_s > 0 ? 0 : -1;
}

static int parse(struct flow_opts *o, int argc, char **argv)
{
	double v;
	int c, bad = 0;

	while ((c = getopt(argc, argv, "p:n:d:s:w:t:i:c:o:l:T:")) != -1) {
		switch (c) {
		case 'p': bad |= number(optarg, 65535, &v); o->port = (int)v; break;
		case 'n': bad |= number(optarg, FLOW_STREAMS_MAX, &v); o->streams = (int)v; break;
		case 'd': bad |= number(optarg, 86400, &o->delay_s); break;
		case 's': bad |= number(optarg, 86400, &o->spread_s); break;
		case 'w': bad |= number(optarg, 86400, &o->warm_s); break;
		case 't': bad |= number(optarg, 86400, &o->time_s); break;
		case 'i': bad |= number(optarg, 86400, &o->interval_s); break;
		case 'c': o->cc = optarg; break;
		case 'o': bad |= parse_on_off(o, optarg); break;
		case 'l': bad |= parse_levels(o, optarg); break;
		case 'T': o->trace = optarg; break;
		default: bad = 1;
		}
		if (bad)
			return -1;
	}
	o->address = argv[optind];
	if (o->levels > 0 && o->on_s > 0)
		return -1;
	return o->streams < 1 || o->port < 1 || o->time_s <= 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct flow_opts o = { .port = 5001, .streams = 1, .time_s = 10 };
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
		return flow_source(&o);
	return usage();
}
