/* A measurement session: transfers no files. The sender generates blocks, over n streams at a time, the receiver
 * discards them; the starter decides. Control thread. */
#ifndef SESSION_PROBE_SESSION_H
#define SESSION_PROBE_SESSION_H

#include "model/probe.h"
#include "net/sock.h"
#include "session/session.h"

/* Limits of an acceptor for each stream. */
#define PROBE_SESSION_STREAM_BYTES (UINT64_C(1) << 40)
#define PROBE_SESSION_STREAM_NS (UINT64_C(900) * 1000000000)

/* A stream of a level. */
struct probe_run {
	bool ended;
	struct mono from, until;
	uint64_t retransmits; /* 0 if the other side sends */
};

struct probe_session_ops {
	/* All streams of the level are connected and start to send. */
	void (*started)(void *arg);
	/* A stream has ended. `why` NULL: the stream transferred all its bytes as `run` says; otherwise the stream was
	 * lost, or (number 0, without a run) the level could not start or made no progress. */
	void (*ended)(void *arg, unsigned number, const struct probe_run *run, const struct ptcp_err *why);
	/* After probe_session_clear(): all streams are closed. */
	void (*cleared)(void *arg);
};

/* Starter, before the session runs; the functions below are available as soon as it runs. */
int session_probe(struct session *sess, const struct probe_session_ops *ops, void *arg, struct ptcp_err *e);
/* Acceptor: discards received blocks. */
int session_discard(struct session *sess, struct ptcp_err *e);
/* Acceptor: generates blocks as the starter requests. */
int session_generate(struct session *sess, struct ptcp_err *e);

unsigned probe_session_granted(const struct session *sess); /* streams */
uint64_t probe_session_timeout_ns(const struct session *sess);
/* Starts a level: connects `streams` streams (at most the granted number), then sends stream_bytes bytes of blocks on
 * each (UINT64_MAX: until the level is cleared). The streams of a previous level without end continue and the missing
 * streams are added. */
void probe_session_level(struct session *sess, unsigned streams, uint64_t stream_bytes);
/* Reads TCP_INFO of a stream; false: not available. If the other side sends, acked_bytes is the number of received
 * bytes and the times and retransmits are 0; instead: */
bool probe_session_tcpinfo(const struct session *sess, unsigned number, struct tcpinfo *out);
/* the sums that the sending side has reported since the level started; false: this side sends. */
bool probe_session_reported(const struct session *sess, struct limit_times *times, uint64_t *retransmits);
/* Ends the level: resets streams that still send. */
void probe_session_clear(struct session *sess);
/* Ends the session cleanly; between levels. */
void probe_session_finish(struct session *sess);

#endif
