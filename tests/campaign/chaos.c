/* A TCP proxy on loopback that does to connections what networks, firewalls and bad memory do.
 *
 *   chaos --to FILE [--seed N] [--modes LIST|clean] [--rate BYTES] [--brake BYTES] [--span BYTES]
 *
 * FILE holds the line that `ptcp serve` prints when it is ready, and is read anew for each
 * connection: so a server may come back at another port. Without --modes the seed draws one to three. On
 * stdout: "PORT MODES", and on SIGQUIT, and on SIGTERM at its end, "up BYTES down BYTES": the bytes
 * taken so far from clients and from servers. On stderr: each fault that struck.
 *
 * After the bytes of --brake the rate is a tenth: what begins quickly is still there when a busy machine looks.
 *
 * SIGUSR1: the link goes away: nothing moves, newcomers wait. SIGUSR2: it is back.
 * SIGHUP: the connections that are there die without a word; newcomers get through. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "campaign/way.h"

#define MOST_CONNS 512
#define BUFFER_BYTES 131072 /* small, so that what is in flight is small */
#define TICK_MS 5

struct conn {
	int client, server; /* server: -1 as long as it waits at the door */
	unsigned number;
	struct mono due;
	bool dead;          /* without a word */
	struct way *way;    /* up, down; NULL as long as it waits */
};

static struct chaos {
	struct plan plan;
	const char *to;
	int listener;
	struct conn conn[MOST_CONNS];
	unsigned conns, accepted, turn;
	struct pollfd poll[2 * MOST_CONNS + 1];
	uint64_t total_bytes[2];
	uint64_t brake_bytes; /* 0: none */
	double tokens_bytes;
	struct mono filled_at;
	bool dark;
} chaos;

static volatile sig_atomic_t told[NSIG];

static void tell(int sig)
{
	told[sig] = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "chaos: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- Connections */

static void prepare(int fd)
{
	int on = 1;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void hang_up(int fd, bool reset)
{
	struct linger rst = { .l_onoff = 1, .l_linger = 0 };

	if (fd < 0)
		return;
	if (reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &rst, sizeof rst);
	close(fd);
}

static void conn_close(unsigned i, bool reset)
{
	struct conn *c = &chaos.conn[i];

	hang_up(c->client, reset);
	hang_up(c->server, reset);
	free(c->way);
	*c = chaos.conn[--chaos.conns];
}

/* The port in "listening 127.0.0.1:PORT SHA256:..", or 0. */
static unsigned server_port(void)
{
	FILE *f = fopen(chaos.to, "r");
	unsigned port = 0;

	if (f != NULL) {
		if (fscanf(f, "listening 127.0.0.1:%u", &port) != 1)
			port = 0;
		fclose(f);
	}
	return port;
}

static int dial(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)server_port()) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = BUFFER_BYTES;

	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	if (a.sin_port == 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
		close(fd);
		return -1;
	}
	prepare(fd);
	return fd;
}

/* Through the door; false if there is no server. */
static bool conn_enter(struct conn *c)
{
	struct way *w;
	int d;

	if ((c->server = dial()) < 0)
		return false;
	if ((c->way = w = calloc(2, sizeof *w)) == NULL)
		die("memory");
	w[0].in = w[1].out = c->client;
	w[0].out = w[1].in = c->server;
	for (d = 0; d < 2; d++)
		w[d].faults = plan_draw_faults(&chaos.plan, c->number, d, w[d].fault);
	return true;
}

static void conn_accept(struct mono now)
{
	struct conn *c = &chaos.conn[chaos.conns];
	int fd = accept4(chaos.listener, NULL, NULL, SOCK_CLOEXEC);
	uint64_t wait_ms;

	if (fd < 0)
		return;
	prepare(fd);
	wait_ms = plan_draw_wait_ms(&chaos.plan, chaos.accepted);
	*c = (struct conn){ .client = fd, .server = -1, .number = chaos.accepted++,
		.due = mono_add_ns(now, wait_ms * NS_PER_MS) };
	chaos.conns++;
}

/* False when the connection is to be forgotten, which has been done. */
static bool conn_step(unsigned i, struct mono now)
{
	struct conn *c = &chaos.conn[i];
	enum way_verdict v = WAY_ON;
	char name[32];
	int d;

	if (c->dead || chaos.dark || (c->server < 0 && now.ns < c->due.ns))
		return true;
	if (c->server < 0 && !conn_enter(c)) {
		conn_close(i, true);
		return false;
	}
	for (d = 0; d < 2 && v == WAY_ON; d++) {
		uint64_t budget = UINT64_MAX, before = c->way[d].passed_bytes;

		if (chaos.plan.rate_Bps > 0)
			budget = chaos.tokens_bytes > 0 ? (uint64_t)chaos.tokens_bytes : 0;
		snprintf(name, sizeof name, "%u %s", c->number, d == 0 ? "up" : "down");
		v = way_step(&c->way[d], &chaos.plan, now, &budget, name);
		chaos.total_bytes[d] += c->way[d].passed_bytes - before;
		chaos.tokens_bytes -= (double)(c->way[d].passed_bytes - before);
	}
	if (v == WAY_ON && c->way[0].ended && c->way[0].shut && c->way[1].ended && c->way[1].shut)
		v = WAY_CLOSE;
	if (v == WAY_ON)
		return true;
	conn_close(i, v == WAY_RESET);
	return false;
}

/* ---- The loop */

static void refill(struct mono now)
{
	bool braked = chaos.brake_bytes > 0 && chaos.total_bytes[0] + chaos.total_bytes[1] > chaos.brake_bytes;
	double rate = (double)chaos.plan.rate_Bps / (braked ? 10 : 1), most = rate / 100 + WAY_CHUNK_BYTES;

	chaos.tokens_bytes += rate * (double)mono_diff_ns(now, chaos.filled_at) / 1e9;
	if (chaos.tokens_bytes > most)
		chaos.tokens_bytes = most;
	chaos.filled_at = now;
}

/* What to poll for: slot 0 is the listener, then two a connection. A descriptor that nothing is
 * waited for is left out, for poll(2) would tell of its end again and again. */
static void poll_fill(struct mono now)
{
	bool budget = chaos.plan.rate_Bps == 0 || chaos.tokens_bytes >= 1;
	unsigned i;
	int d;

	chaos.poll[0] = (struct pollfd){ chaos.conns < MOST_CONNS ? chaos.listener : -1, POLLIN, 0 };
	for (i = 0; i < chaos.conns; i++) {
		const struct conn *c = &chaos.conn[i];
		struct pollfd *ends = &chaos.poll[1 + 2 * i]; /* the client's and the server's */

		ends[0] = ends[1] = (struct pollfd){ -1, 0, 0 };
		for (d = 0; d < 2 && c->way != NULL && !c->dead && !chaos.dark; d++) {
			short in, out;

			way_wants(&c->way[d], now, budget, &in, &out);
			ends[d].events |= in;
			ends[1 - d].events |= out;
		}
		if (ends[0].events != 0)
			ends[0].fd = c->client;
		if (ends[1].events != 0)
			ends[1].fd = c->server;
	}
}

static void obey(void)
{
	unsigned i;

	if (told[SIGTERM] || told[SIGQUIT]) {
		printf("up %llu down %llu\n", (unsigned long long)chaos.total_bytes[0],
		    (unsigned long long)chaos.total_bytes[1]);
		if (fflush(stdout) != 0 || told[SIGTERM])
			exit(told[SIGTERM] && !ferror(stdout) ? 0 : 1);
	}
	if (told[SIGUSR1])
		chaos.dark = true;
	if (told[SIGUSR2])
		chaos.dark = false;
	for (i = 0; told[SIGHUP] && i < chaos.conns; i++)
		chaos.conn[i].dead = true;
	told[SIGUSR1] = told[SIGUSR2] = told[SIGHUP] = told[SIGQUIT] = 0;
}

static void turn(void)
{
	struct mono now = mono_now();
	unsigned i, n;

	poll_fill(now);
	poll(chaos.poll, 1 + 2 * chaos.conns, TICK_MS);
	now = mono_now();
	obey();
	refill(now);
	if ((chaos.poll[0].revents & POLLIN) != 0)
		conn_accept(now);
	chaos.turn++; /* another one is first each time: with a narrow link all get some of it */
	for (n = chaos.conns; n > 0; n--) {
		i = (chaos.turn + n) % chaos.conns;
		if (!conn_step(i, now))
			break; /* they have changed places; the next turn is near */
	}
}

static unsigned open_listener(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int size = BUFFER_BYTES;

	chaos.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(chaos.listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	setsockopt(chaos.listener, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	if (chaos.listener < 0 || bind(chaos.listener, (struct sockaddr *)&a, len) < 0 ||
	    listen(chaos.listener, 256) < 0 ||
	    getsockname(chaos.listener, (struct sockaddr *)&a, &len) < 0)
		die("listening");
	return ntohs(a.sin_port);
}

static void usage(void)
{
	fprintf(stderr,
	    "usage: chaos --to FILE [--seed N] [--modes LIST|clean] [--rate BYTES] [--brake BYTES] [--span BYTES]\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = { { "to", 1, NULL, 't' }, { "seed", 1, NULL, 's' },
		{ "modes", 1, NULL, 'm' }, { "rate", 1, NULL, 'r' }, { "brake", 1, NULL, 'b' },
		{ "span", 1, NULL, 'p' }, { 0 } };
	const char *modes = NULL;
	int c;

	chaos.plan.span_bytes = 4000000;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't')
			chaos.to = optarg;
		else if (c == 's')
			chaos.plan.seed = strtoull(optarg, NULL, 10);
		else if (c == 'm')
			modes = optarg;
		else if (c == 'r')
			chaos.plan.rate_Bps = strtoull(optarg, NULL, 10);
		else if (c == 'b')
			chaos.brake_bytes = strtoull(optarg, NULL, 10);
		else if (c == 'p')
			chaos.plan.span_bytes = strtoull(optarg, NULL, 10);
		else
			usage();
	}
	if (chaos.to == NULL || optind != argc)
		usage();
	if (modes == NULL)
		chaos.plan.modes = plan_draw_modes(chaos.plan.seed);
	else if (!plan_parse_modes(modes, &chaos.plan.modes))
		usage();
}

static void announce(unsigned port)
{
	const char *comma = "";
	int m;

	printf("%u ", port);
	for (m = 0; m < MODES; m++) {
		if ((chaos.plan.modes & 1u << m) == 0)
			continue;
		printf("%s%s", comma, mode_name[m]);
		comma = ",";
	}
	puts(chaos.plan.modes == 0 ? "clean" : "");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGHUP };
	struct sigaction a = { .sa_handler = tell };
	size_t i;

	parse(argc, argv);
	plan_draw_link(&chaos.plan);
	for (i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &a, NULL);
	chaos.filled_at = mono_now();
	announce(open_listener());
	for (;;)
		turn();
}
