/* The emulator's end of all veth pairs of its namespace: one AF_PACKET socket with
 * a memory-mapped ring for what comes in, sendmmsg() in batches for what goes out. */
#ifndef LAB_PACKETIO_H
#define LAB_PACKETIO_H

#include <ptcp/err.h>
#include <stdint.h>

#define PACKETIO_BATCH 64
#define PACKETIO_HEADER_BYTES 14 /* Ethernet; frames are that and an IP packet */

struct packetio;

/* In the emulator's namespace, with all devices up. Frames up to mtu + header. */
int packetio_new(struct packetio **out, uint32_t mtu, struct ptcp_err *e);
void packetio_free(struct packetio *io);

/* Becomes readable when a frame comes in. */
int packetio_fd(const struct packetio *io);

/* Borrow the next frame until packetio_done(); 0 if there is none. */
struct frame {
	const unsigned char *data; /* Ethernet header and IPv4 packet */
	uint32_t bytes;
	int device;                /* interface index it came in by */
	uint64_t at_ns;             /* when it came in, CLOCK_REALTIME; 0 in frames to send */
};
int packetio_peek(struct packetio *io, struct frame *f);
void packetio_done(struct packetio *io);

/* Send n <= PACKETIO_BATCH frames by their devices (data is not kept). Returns how
 * many the kernel refused, which are then gone. */
int packetio_send(struct packetio *io, const struct frame *f, int n);

/* Frames lost because the ring was full, since the start. */
uint64_t packetio_missed(struct packetio *io);

#endif
