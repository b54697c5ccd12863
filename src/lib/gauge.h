/* What a party's streams have moved, and what held them up, since the last look. They are tapped
 * (party_impl.h). Control thread. */
#ifndef LIB_GAUGE_H
#define LIB_GAUGE_H

#include "lib/party_impl.h"

struct gauge {
	struct tcpinfo last[PTCP_STREAMS_MAX];
	const struct stream *of[PTCP_STREAMS_MAX]; /* whose that is */
};

struct gauged {
	uint64_t used_bytes;      /* by streams in use, our TLS included: acknowledged, or received */
	uint64_t other_bytes;     /* by others, that still drain */
	struct limit_times times; /* of streams in use, as they send */
	uint64_t retransmits;
	char congestion[TCPINFO_CC_BYTES];
};

/* `elapsed_s` since the last call. A stream counts from its second look on. Begin with all zero. */
void gauge_read(struct gauge *g, const struct party *p, double elapsed_s, struct gauged *out);

#endif
