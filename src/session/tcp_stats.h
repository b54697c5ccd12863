/* TCP_INFO of a session's streams, as differences between two readings. The sockets of the streams are duplicated for
 * that (session->tap). Control thread. */
#ifndef SESSION_TCP_STATS_H
#define SESSION_TCP_STATS_H

#include "session/session_impl.h"

struct tcp_stats {
	struct tcpinfo last[PTCP_STREAMS_MAX];
	const struct stream *of[PTCP_STREAMS_MAX]; /* the stream of `last` */
};

struct tcp_stats_delta {
	uint64_t used_bytes;      /* of active streams, TLS overhead included: acknowledged or received */
	uint64_t other_bytes;     /* of streams that still drain */
	struct limit_times times; /* of active streams that send */
	uint64_t retransmits;
	char congestion[TCPINFO_CC_BYTES];
};

/* `elapsed_s`: since the previous reading. A stream counts from its second reading. Start with a zeroed `g`. */
void tcp_stats_read(struct tcp_stats *g, const struct session *sess, double elapsed_s, struct tcp_stats_delta *out);

#endif
