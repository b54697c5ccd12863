/* Runs a command and counts its round trips, from the packets of this host.
 *
 *   trips [-v] [-x PORT] out|in COMMAND...
 *
 * prints: first byte of data, exit of the command, both in round trips since the first SYN; seconds until the exit;
 * number of TCP connections. `out` or `in` is the direction of the data; the connections to port PORT carry none. A
 * round trip is the shortest time between a SYN and its answer. The first byte of data is in the first segment of at
 * least 1000 bytes behind the TLS handshake. With -v each segment with content is printed as well. IPv4 only. The exit
 * status is the command's. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SYNS_MAX 1024
#define DATA_BYTES 1000
#define TLS_CHANGE_CIPHER 0x14
#define TLS_HANDSHAKE 0x16

static bool verbose, data_out;
static unsigned other_port;
static double began = -1, rtt = 1e9, first = -1;
static struct { unsigned from, to; double at; } syn[SYNS_MAX];
static unsigned n_syns;

static void die(const char *what)
{
	fprintf(stderr, "trips: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double seconds(const struct timespec *t) { return (double)t->tv_sec + (double)t->tv_nsec / 1e9; }

/* The first SYN of each connection of this host. */
static void on_syn(unsigned from, unsigned to, double at)
{
	unsigned i;

	if (began < 0)
		began = at;
	for (i = 0; i < n_syns; i++)
		if (syn[i].from == from && syn[i].to == to)
			return;
	if (n_syns < SYNS_MAX) {
		syn[n_syns].from = from;
		syn[n_syns].to = to;
		syn[n_syns++].at = at;
	}
}

static void on_syn_ack(unsigned from, unsigned to, double at)
{
	unsigned i;

	for (i = 0; i < n_syns; i++)
		if (syn[i].from == to && syn[i].to == from && at - syn[i].at < rtt)
			rtt = at - syn[i].at;
}

static void on_content(bool out, unsigned from, unsigned to, const uint8_t *p, size_t n, double at)
{
	bool handshake = p[0] == TLS_HANDSHAKE || p[0] == TLS_CHANGE_CIPHER;

	if (verbose)
		fprintf(stderr, "%8.4f s %6.2f %s %5u > %5u %5zu bytes, first 0x%02x\n", at - began, (at - began) / rtt,
		    out ? "out" : "in ", from, to, n, p[0]);
	if (first < 0 && out == data_out && n >= DATA_BYTES && !handshake && from != other_port && to != other_port)
		first = at;
}

static void on_packet(const uint8_t *p, size_t n, bool out, double at)
{
	const struct iphdr *ip = (const void *)p;
	const struct tcphdr *tcp;
	size_t head, whole;
	unsigned from, to;

	if (n < sizeof *ip || ip->version != 4 || ip->protocol != IPPROTO_TCP || n < ip->ihl * 4u + sizeof *tcp)
		return;
	tcp = (const void *)(p + ip->ihl * 4u);
	head = ip->ihl * 4u + tcp->doff * 4u;
	whole = ntohs(ip->tot_len) < n ? ntohs(ip->tot_len) : n; /* without padding */
	from = ntohs(tcp->source);
	to = ntohs(tcp->dest);
	if (tcp->syn && !tcp->ack && out)
		on_syn(from, to, at);
	else if (tcp->syn && tcp->ack && !out)
		on_syn_ack(from, to, at);
	else if (whole > head && began >= 0)
		on_content(out, from, to, p + head, whole - head, at);
}

static void receive(int fd)
{
	static uint8_t packet[1 << 17];
	uint8_t control[256];
	struct sockaddr_ll from;
	struct iovec io = { packet, sizeof packet };
	struct msghdr m = { &from, sizeof from, &io, 1, control, sizeof control, 0 };
	struct cmsghdr *c;
	struct timespec at;
	ssize_t n;

	while (m.msg_namelen = sizeof from, m.msg_controllen = sizeof control,
	    (n = recvmsg(fd, &m, MSG_DONTWAIT)) >= 0) {
		clock_gettime(CLOCK_REALTIME, &at);
		for (c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
				memcpy(&at, CMSG_DATA(c), sizeof at);
		on_packet(packet, (size_t)n, from.sll_pkttype == PACKET_OUTGOING, seconds(&at));
	}
}

static int listen_to_all(void)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)), on = 1, bytes = 8 << 20;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0)
		die("listening to packets");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
	return fd;
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		execvp(argv[0], argv);
		die(argv[0]);
	}
	return pid;
}

int main(int argc, char **argv)
{
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct timespec end;
	int option, status;
	pid_t pid;

	while ((option = getopt(argc, argv, "+vx:")) != -1) {
		if (option == '?')
			return 1;
		verbose |= option == 'v';
		if (option == 'x')
			other_port = (unsigned)atoi(optarg);
	}
	if (argc - optind < 2) {
		fprintf(stderr, "usage: trips [-v] [-x PORT] out|in COMMAND...\n");
		return 1;
	}
	data_out = strcmp(argv[optind], "out") == 0;
	p[0].fd = listen_to_all();
	pid = start(argv + optind + 1);
	if ((p[1].fd = (int)syscall(SYS_pidfd_open, pid, 0)) < 0)
		die("pidfd_open");
	do
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			die("poll");
		else
			receive(p[0].fd);
	while ((p[1].revents & POLLIN) == 0);
	clock_gettime(CLOCK_REALTIME, &end);
	receive(p[0].fd);
	waitpid(pid, &status, 0);
	printf("%.2f %.2f %.3f %u\n", first >= 0 ? (first - began) / rtt : 0, (seconds(&end) - began) / rtt,
	    seconds(&end) - began, n_syns);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
