/* TCP_INFO of the streams: sampled for engine/stream_count.h, or reported to the starter by a sending acceptor, whose
 * kernel alone knows the sender's limits. */
#ifndef SESSION_TCP_REPORT_H
#define SESSION_TCP_REPORT_H

#include <ptcp/ptcp.h>

#include "core/clock.h"
#include "model/probe.h"
#include "net/sock.h"
#include "wire/frame.h"

struct session;

/* Counters of the streams' TCP connections. */
struct tcp_stats {
	struct tcp_counters {
		uint32_t generation;    /* generation of the slot that `last` describes; 0: none */
		struct tcpinfo last;
		struct loss_events events;
		struct evidence_sample sample; /* sample of the last interval, if active; rtt_s 0: unknown */
	} of[PTCP_STREAMS_MAX];
};

/* Increase of the counters over an interval. */
struct tcp_delta {
	uint64_t active_bytes;    /* bytes of active streams, TLS included: acknowledged, or received */
	uint64_t inactive_bytes;  /* bytes of inactive streams, which drain */
	struct limit_times times; /* limits of active streams, as senders */
	struct evidence_sample kernel; /* the same */
	uint64_t retransmits;
	char congestion[TCPINFO_CC_BYTES];
};

struct tcp_report {
	bool reports;             /* a sending acceptor */
	struct mono reported;
	struct tcp_stats stats;
};

/* Since the last call with these counters; a stream counts from its second sample. */
void tcp_stats_read(struct session *sess, struct tcp_stats *t, double elapsed_s, struct tcp_delta *out);
/* Once running: reports if this end is a sending acceptor. */
void tcp_report_start(struct session *sess);
void tcp_report_pump(struct session *sess, struct mono now);
struct mono tcp_report_deadline(const struct session *sess);
/* As engine_ops.tcp_report: the starter's part. */
void tcp_report_take(struct session *sess, const struct wire_tcp_report *f);

#endif
