/* Suspects a path that drops large packets without a word (a black hole for packets above its MTU): connections are
 * made, as their first packets are small, but full segments are never acknowledged. The remedy is a smaller segment
 * size. */
#ifndef ENGINE_MTU_H
#define ENGINE_MTU_H

#include <stdbool.h>
#include <stdint.h>

#define MTU_SEGMENT_BYTES 1200             /* fits the smallest MTU of IPv6, 1280, with options */
#define MTU_PROOF_BYTES (UINT64_C(64) << 10) /* delivered over a path: full segments do arrive */
#define MTU_STALLS 2
#define MTU_SILENT_S 3.0 /* without a segment from the peer: no other cause is likely */

struct mtu_lost {
	uint64_t delivered_bytes; /* in both directions; or by all streams of the same path
	                             meanwhile, if these are more */
	double silent_s;          /* since the last sign that segments arrive: data at the receiver,
	                             acknowledgments at the sender; MTU_SILENT_S for a control connection that has a
	                             successor */
};

struct mtu {
	unsigned stalls;        /* connections in a row that stalled without MTU_PROOF_BYTES */
	bool reduced;           /* new connections use MTU_SEGMENT_BYTES */
};

/* A connection was lost, by an end of its own or its peer's, while another connection to the peer works. True: use
 * MTU_SEGMENT_BYTES from now on, and warn. */
bool mtu_suspect(struct mtu *m, const struct mtu_lost *lost);

#endif
