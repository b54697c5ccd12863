/* The emulator: carries packets between hosts through the network model, in one
 * thread, until it is killed. */
#ifndef LAB_EMU_H
#define LAB_EMU_H

#include "ctl.h"
#include "net.h"
#include "packetio.h"
#include "topo.h"
#include "vclock.h"

#define EMU_PEER_NAME_BYTES 16

struct emu {
	const struct topo *topo;
	struct net net;
	struct vclock clock;
	struct packetio *io;
	struct ctl ctl;
	int *host_of_device, devices;     /* by interface index; -1 */
	int *device_of_host;
	struct packet *unused;            /* free list of full-size packets */
	uint32_t room_bytes;              /* a frame's memory */
	struct frame batch[PACKETIO_BATCH];
	struct packet *batch_packet[PACKETIO_BATCH];
	int batched;
	uint64_t sleep_ns;                /* shortest sleep while active; the longest is twice as long */
	uint64_t active_until_ns;         /* real: packets came lately */
	uint64_t settled_ns;              /* virtual: all before this has happened */
	uint64_t realtime_less_mono_ns;   /* between the two clocks, now */
	unsigned turns;
	uint64_t strange, refused;        /* not for a host; the kernel did not take */
	uint64_t delivered, late_sum_ns, late_max_ns, late_1ms; /* against the schedule */
	const char *scheduling;
};

/* Name of the emulator's device for host i. */
void emu_peer_name(char *buf, int host);

/* Link indices in emu.net: direction d of topology link i. */
int emu_link(const struct topo *t, int i, int d);

/* In the emulator's namespace; serves commands on ctl_fd. Returns only on errors. */
int emu_run(const struct topo *t, int ctl_fd, struct ptcp_err *e);

/* Answers a command; see `lab help` for them. (emu_ctl.c) */
char *emu_command(void *emu, int n, char **words);

#endif
