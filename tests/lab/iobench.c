/* Which way of carrying packets between namespaces costs least? Forwards one to four
 * TCP streams between two namespaces, without any model, and prints what the one
 * thread that does it used.
 *
 *   iobench tun|packet STREAMS SECONDS
 *
 * tun:    one read() and one write() a packet on two TUN devices
 * packet: AF_PACKET on veth pairs, memory-mapped receive ring, sendmmsg() in batches
 * Needs root. Runs `flow` from its own directory. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "ns.h"
#include "veth.h"

#define BATCH 64
#define FRAME_BYTES 2048
#define FRAMES 8192
#define TUN_QUEUE_PACKETS 10000

struct port {
	int fd;
	char *ring;
	unsigned next;
};

static unsigned long packets, bytes;

static int fail(const char *what)
{
	fprintf(stderr, "iobench: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* In the host's namespace. */
static void open_tun(struct port *p)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = VETH_HOST_DEV };

	p->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->fd < 0 || ioctl(p->fd, TUNSETIFF, &r) < 0)
		fail("/dev/net/tun");
	r.ifr_qlen = TUN_QUEUE_PACKETS;
	if (ioctl(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), SIOCSIFTXQLEN, &r) < 0)
		fail("SIOCSIFTXQLEN");
}

static void open_packet(struct port *p, const char *dev)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
	    .sll_ifindex = (int)if_nametoindex(dev) };
	struct tpacket_req req = { .tp_block_size = FRAME_BYTES * 32,
	    .tp_block_nr = FRAMES / 32, .tp_frame_size = FRAME_BYTES, .tp_frame_nr = FRAMES };
	int version = TPACKET_V2, one = 1;

	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	if (p->fd < 0 ||
	    setsockopt(p->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0 ||
	    setsockopt(p->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one) < 0 ||
	    setsockopt(p->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) < 0 ||
	    setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof req) < 0)
		fail("AF_PACKET socket");
	p->ring = mmap(NULL, (size_t)FRAME_BYTES * FRAMES, PROT_READ | PROT_WRITE,
	    MAP_SHARED, p->fd, 0);
	if (p->ring == MAP_FAILED || bind(p->fd, (struct sockaddr *)&a, sizeof a) < 0)
		fail(dev);
}

static void carry_tun(struct port *from, struct port *to)
{
	static char buf[FRAME_BYTES];

	for (int i = 0; i < BATCH; i++) {
		ssize_t n = read(from->fd, buf, sizeof buf);

		if (n <= 0)
			return;
		packets++;
		bytes += (unsigned long)n;
		if (write(to->fd, buf, (size_t)n) < 0 && errno != EAGAIN && errno != EIO)
			fail("write");
	}
}

static void carry_packet(struct port *from, struct port *to)
{
	struct mmsghdr m[BATCH];
	struct iovec v[BATCH];
	struct tpacket2_hdr *h[BATCH];
	int n = 0;

	memset(m, 0, sizeof m);
	while (n < BATCH) {
		h[n] = (struct tpacket2_hdr *)(void *)(from->ring +
		    (size_t)((from->next + (unsigned)n) % FRAMES) * FRAME_BYTES);
		if (!(*(volatile __u32 *)&h[n]->tp_status & TP_STATUS_USER))
			break;
		v[n].iov_base = (char *)h[n] + h[n]->tp_mac;
		v[n].iov_len = h[n]->tp_snaplen;
		m[n].msg_hdr.msg_iov = &v[n];
		m[n].msg_hdr.msg_iovlen = 1;
		packets++;
		bytes += h[n]->tp_snaplen;
		n++;
	}
	if (n > 0)
		sendmmsg(to->fd, m, (unsigned)n, MSG_DONTWAIT);
	for (int i = 0; i < n; i++)
		h[i]->tp_status = TP_STATUS_KERNEL;
	from->next = (from->next + (unsigned)n) % FRAMES;
}

/* Two hosts, and their ends here in p. */
static void make_hosts(int tun, struct port *p, int *ns)
{
	struct ptcp_err e = { .msg = "" };
	char peer[2][4] = { "va", "vb" };
	struct ns_id ignored;
	int here, r = ns_new(&here, &ignored, &e);

	for (int i = 0; r == 0 && i < 2; i++) {
		r = ns_new(&ns[i], &ignored, &e);
		if (r == 0 && tun)
			open_tun(&p[i]);
		else if (r == 0)
			r = veth_create(peer[i], here, 1500, &e);
		if (r == 0)
			r = veth_configure(0x0a000001u + (uint32_t)i, 0, &e);
	}
	if (r == 0 && setns(here, CLONE_NEWNET) < 0)
		fail("setns");
	for (int i = 0; r == 0 && !tun && i < 2; i++) {
		r = veth_bring_up(peer[i], &e);
		if (r == 0)
			open_packet(&p[i], peer[i]);
	}
	if (r < 0) {
		fprintf(stderr, "iobench: %s\n", e.msg);
		exit(1);
	}
}

static pid_t run_flow(const char *dir, int ns, char **argv)
{
	char path[1000];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof path, "%s/flow", dir);
	if (setns(ns, CLONE_NEWNET) == 0)
		execv(path, argv);
	fail(path);
	return -1;
}

/* Carry until the source has ended. */
static double forward(int tun, struct port *p, pid_t source)
{
	struct pollfd w[2] = { { .fd = p[0].fd, .events = POLLIN },
	    { .fd = p[1].fd, .events = POLLIN } };
	struct mono start = mono_now();

	while (waitpid(source, NULL, WNOHANG) == 0) {
		poll(w, 2, 100);
		for (int i = 0; i < 2; i++)
			(tun ? carry_tun : carry_packet)(&p[i], &p[1 - i]);
	}
	return (double)mono_diff_ns(mono_now(), start) / 1e9;
}

int main(int argc, char **argv)
{
	struct port p[2] = { { .fd = -1 }, { .fd = -1 } };
	char *sink[] = { "flow", "sink", NULL }, dir[900], *slash;
	int tun = argc == 4 && strcmp(argv[1], "tun") == 0, ns[2];
	struct rusage u;
	double cpu_s, seconds;
	pid_t listener, sender;

	if (argc != 4 || (!tun && strcmp(argv[1], "packet") != 0)) {
		fprintf(stderr, "usage: iobench tun|packet STREAMS SECONDS\n");
		return 2;
	}
	snprintf(dir, sizeof dir, "%s", argv[0]);
	slash = strrchr(dir, '/');
	snprintf(slash ? slash : dir, 2, "%s", slash ? "" : ".");
	make_hosts(tun, p, ns);
	listener = run_flow(dir, ns[1], sink);
	usleep(200000);
	sender = run_flow(dir, ns[0], (char *[]){ "flow", "source", "-c", "cubic", "-n", argv[2],
	    "-w", "0.5", "-t", argv[3], "10.0.0.2", NULL });
	seconds = forward(tun, p, sender);
	kill(listener, SIGKILL);
	getrusage(RUSAGE_SELF, &u);
	cpu_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	printf("%s packets=%lu mbps=%.0f cpu_percent=%.0f us_per_packet=%.2f\n", argv[1],
	    packets, (double)bytes * 8e-6 / seconds, cpu_s / seconds * 100,
	    packets ? cpu_s * 1e6 / (double)packets : 0);
	return 0;
}
