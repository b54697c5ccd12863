/* What a party's streams have moved, and what held them up, since the last look. They are tapped
 * (engine_impl.h). Control thread. */
#ifndef SESSION_TCP_STATS_H
#define SESSION_TCP_STATS_H

#include "session/session_impl.h"

struct tcp_stats {
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
void tcp_stats_read(struct tcp_stats *g, const struct session *sess, double elapsed_s, struct gauged *out);

#endif
