/* A host's network device: a veth pair of "lab0" in the host's namespace and an
 * end in the emulator's. Every lab0 has the same hardware address and no ARP, so
 * that a frame from one host is fit for any other as it is. */
#ifndef LAB_VETH_H
#define LAB_VETH_H

#include <ptcp/err.h>
#include <stdint.h>

#define VETH_HOST_DEV "lab0"

/* Make the pair: lab0 in the calling thread's namespace, `peer` in that of
 * emu_ns, neither up yet. */
int veth_create(const char *peer, int emu_ns, uint32_t mtu, struct ptcp_err *e);

/* Bring lo and, without any offload, lab0 up with this address (host byte order) and a route to all
 * others, through which windows over window_bytes are not advertised (0: any). */
int veth_configure(uint32_t address, uint64_t window_bytes, struct ptcp_err *e);

/* In the emulator's namespace: bring its end up, without offloads. */
int veth_bring_up(const char *dev, struct ptcp_err *e);

#endif
