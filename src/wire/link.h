/* Frames by which a daemon is asked what it has learnt of the ways from it to other hosts (PROTOCOL.md, section 13). As
 * wire/frame.h. */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include "wire/job.h"

#define WIRE_LINKS_MAX 1024 /* that one answer has */

/* Tell me: a LINK for each, then the end of the connection. */
#define WIRE_LINKS_MAX_BYTES 8
size_t wire_links_encode(uint8_t *out);
int wire_links_decode(struct span in, struct ptcp_err *e);

#define WIRE_LINK_BPS_MAX UINT64_C(1000000000000000) /* of a rate, and of its error */
#define WIRE_LINK_NS_MAX UINT64_C(3600000000000)     /* of a delay, likewise */
#define WIRE_LINK_NOT_KNOWN UINT64_MAX               /* of an error */

enum wire_link_flags {
	WIRE_LINK_ROUND_TRIP = 1 << 0, /* the delay is half of the least round trip */
	WIRE_LINK_FLAGS = (1 << 1) - 1
};

/* One way. With rate 0 nothing is known of it yet, and all but host, port and text is 0. */
struct wire_link {
	uint64_t rate_bps, rate_error_bps;  /* and one standard error */
	uint64_t delay_ns, delay_error_ns;  /* one way, likewise */
	uint64_t age_ms;                    /* since the last messages were sent */
	uint32_t messages;                  /* that is from so many, not 0, */
	uint16_t streams;                   /* over so many, not 0 */
	uint16_t port;                      /* where to; not 0 */
	uint8_t flags;
	struct span host;                   /* 1 to WIRE_HOST_MAX printable ASCII bytes */
	struct span text;                   /* why it could not be measured the last time; none: it could */
};
#define WIRE_LINK_FIELDS 52
#define WIRE_LINK_MAX_BYTES (8 + WIRE_LINK_FIELDS + WIRE_HOST_MAX + WIRE_TEXT_MAX)
size_t wire_link_encode(uint8_t *out, const struct wire_link *f);
int wire_link_decode(struct wire_link *f, struct span in, struct ptcp_err *e);

#endif
