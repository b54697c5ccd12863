/* Which way of carrying packets between namespaces costs least? Forwards without
 * any model between two namespaces and reports what its one thread used.
 *
 *   iobench tun SECONDS NSPID_A NSPID_B      creates lab0 in both, one read() and
 *                                            one write() a packet
 *   iobench packet SECONDS DEV_A DEV_B       veth ends here: memory-mapped receive
 *                                            ring, sendmmsg() past the qdisc
 *
 * tests/lab/iobench.sh sets the namespaces up and runs both. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"

#define BATCH 64
#define FRAME_BYTES 2048
#define FRAMES 8192

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

static void open_tun(struct port *p, const char *pid)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "lab0" };
	char path[64];
	int ns;

	snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET) < 0)
		fail(path);
	close(ns);
	p->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->fd < 0 || ioctl(p->fd, TUNSETIFF, &r) < 0)
		fail("/dev/net/tun");
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

int main(int argc, char **argv)
{
	struct port p[2] = { { .fd = -1 }, { .fd = -1 } };
	struct pollfd w[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int tun = argc > 1 && strcmp(argv[1], "tun") == 0;
	struct rusage u;
	struct mono end;
	double cpu, seconds;

	if (argc != 5)
		return 2;
	seconds = atof(argv[2]);
	for (int i = 0; i < 2; i++) {
		(tun ? open_tun : open_packet)(&p[i], argv[3 + i]);
		w[i].fd = p[i].fd;
	}
	printf("ready\n");
	fflush(stdout);
	end = mono_add_ns(mono_now(), (uint64_t)(seconds * 1e9));
	while (mono_diff_ns(end, mono_now()) > 0) {
		poll(w, 2, 100);
		for (int i = 0; i < 2; i++)
			(tun ? carry_tun : carry_packet)(&p[i], &p[1 - i]);
	}
	getrusage(RUSAGE_SELF, &u);
	cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	printf("%s packets=%lu mbps=%.0f cpu_s=%.2f us_per_packet=%.2f\n", argv[1],
	    packets, (double)bytes * 8e-6 / seconds, cpu,
	    packets ? cpu * 1e6 / (double)packets : 0);
	return 0;
}
