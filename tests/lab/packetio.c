#include "packetio.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/units.h"

#define RING_BYTES (32u << 20) /* 16384 frames of 1500: 196 ms at 1 Gbit/s */
#define BLOCK_BYTES (1u << 17)
#define SEND_BUFFER_BYTES (16 << 20)

struct packetio {
	int fd;
	char *ring;
	uint32_t frame_bytes, frames, next;
	uint64_t missed;
};

int packetio_new(struct packetio **out, uint32_t mtu, struct ptcp_err *e)
{
	struct packetio *io = calloc(1, sizeof *io);
	struct tpacket_req req = { .tp_block_size = BLOCK_BYTES,
	    .tp_block_nr = RING_BYTES / BLOCK_BYTES };
	int version = TPACKET_V2, one = 1, size = SEND_BUFFER_BYTES;

	if (io == NULL)
		return err_nomem(e);
	for (io->frame_bytes = 1024; io->frame_bytes < mtu + 128; io->frame_bytes *= 2)
		;
	req.tp_frame_size = io->frame_bytes;
	req.tp_frame_nr = io->frames = RING_BYTES / io->frame_bytes;
	io->ring = MAP_FAILED;
	io->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (io->fd < 0 ||
	    setsockopt(io->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0 ||
	    setsockopt(io->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one) < 0 ||
	    setsockopt(io->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof req) < 0)
		goto fail;
	/* The forced size needs rights over the whole machine; the other will do. */
	if (setsockopt(io->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
		setsockopt(io->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	io->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, io->fd, 0);
	if (io->ring != MAP_FAILED) {
		/* Only what comes in, on whichever device, and only IPv4. */
		struct sockaddr_ll a = { .sll_family = AF_PACKET,
		    .sll_protocol = htons(ETH_P_IP) };

		if (bind(io->fd, (struct sockaddr *)&a, sizeof a) == 0) {
			*out = io;
			return 0;
		}
	}
fail:
	err_sys(e, PTCP_EIO, "cannot open a packet socket");
	packetio_free(io);
	return PTCP_EIO;
}

void packetio_free(struct packetio *io)
{
	if (io == NULL)
		return;
	if (io->ring != MAP_FAILED)
		munmap(io->ring, RING_BYTES);
	if (io->fd >= 0)
		close(io->fd);
	free(io);
}

int packetio_fd(const struct packetio *io)
{
	return io->fd;
}

static struct tpacket2_hdr *slot(struct packetio *io)
{
	uint32_t per_block = BLOCK_BYTES / io->frame_bytes;

	return (struct tpacket2_hdr *)(void *)(io->ring +
	    (size_t)(io->next / per_block) * BLOCK_BYTES +
	    (size_t)(io->next % per_block) * io->frame_bytes);
}

int packetio_peek(struct packetio *io, struct frame *f)
{
	struct tpacket2_hdr *h = slot(io);

	if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
		return 0;
	f->data = (unsigned char *)h + h->tp_mac;
	f->bytes = h->tp_snaplen;
	f->at_ns = (uint64_t)h->tp_sec * NS_PER_S + h->tp_nsec;
	f->device = ((struct sockaddr_ll *)(void *)((char *)h +
	    TPACKET_ALIGN(sizeof *h)))->sll_ifindex;
	return 1;
}

void packetio_done(struct packetio *io)
{
	__atomic_store_n(&slot(io)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	io->next = (io->next + 1) % io->frames;
}

int packetio_send(struct packetio *io, const struct frame *f, int n)
{
	struct mmsghdr m[PACKETIO_BATCH];
	struct iovec v[PACKETIO_BATCH];
	struct sockaddr_ll a[PACKETIO_BATCH];
	int sent = 0, refused = 0;

	memset(m, 0, sizeof *m * (size_t)n);
	memset(a, 0, sizeof *a * (size_t)n);
	for (int i = 0; i < n; i++) {
		a[i].sll_family = AF_PACKET;
		a[i].sll_protocol = htons(ETH_P_IP);
		a[i].sll_ifindex = f[i].device;
		v[i] = (struct iovec){ (void *)(uintptr_t)f[i].data, f[i].bytes };
		m[i].msg_hdr = (struct msghdr){ .msg_name = &a[i], .msg_namelen = sizeof a[i],
		    .msg_iov = &v[i], .msg_iovlen = 1 };
	}
	while (sent < n) {
		int r = sendmmsg(io->fd, m + sent, (unsigned)(n - sent), MSG_DONTWAIT);

		if (r > 0) {
			sent += r;
		} else if (errno != EINTR) {
			refused++;
			sent++;
		}
	}
	return refused;
}

uint64_t packetio_missed(struct packetio *io)
{
	struct tpacket_stats s = { 0 };
	socklen_t len = sizeof s;

	/* Reading clears the kernel's count. */
	if (getsockopt(io->fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0)
		io->missed += s.tp_drops;
	return io->missed;
}
