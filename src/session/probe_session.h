/* A session that only measures: one side sends blocks of no entry over n streams at a time, the other drops
 * them; the starter decides. Beside send.c and receive.c, as the third thing a party can do. Control
 * thread. */
#ifndef SESSION_PROBE_SESSION_H
#define SESSION_PROBE_SESSION_H

#include "model/probe.h"
#include "net/sock.h"
#include "session/session.h"

/* What an acceptor takes on one stream, in bytes and time, before it closes it. */
#define PROBE_SESSION_STREAM_BYTES (UINT64_C(1) << 40)
#define PROBE_SESSION_STREAM_NS (UINT64_C(900) * 1000000000)

struct probe_session_ops {
	/* All streams of the level are joined, and begin to send. */
	void (*begun)(void *arg);
	/* One of them has ended: all its bytes were sent and taken, in that time; or
	 * (`why` not NULL) it was lost, or the level could not begin. */
	void (*ended)(void *arg, unsigned number, struct mono from, struct mono until,
	    const struct ptcp_err *why);
	/* After probe_session_clear(): no stream is left. */
	void (*clear)(void *arg);
};

/* Starter, before running ends: has probe_session_level() and so on from then on. */
int session_probe(struct session *sess, const struct probe_session_ops *ops, void *arg, struct ptcp_err *e);
/* Acceptor: drops what comes. */
int session_drop(struct session *sess, struct ptcp_err *e);
/* Acceptor: sends as the starter says. */
int session_flood(struct session *sess, struct ptcp_err *e);

/* Streams that the acceptor has granted. */
unsigned probe_session_granted(const struct session *sess);
/* The session's. */
uint64_t probe_session_timeout_ns(const struct session *sess);
/* Begins a level: joins so many streams (as many as granted, at most), then sends so many bytes of
 * blocks on each, UINT64_MAX: until it is cleared. Where a level without end and with fewer streams has
 * begun, its streams go on sending and the others join them. */
void probe_session_level(struct session *sess, unsigned streams, uint64_t stream_bytes);
/* Begins a level whose streams stay open, for messages: `begun` follows. */
void probe_session_open(struct session *sess, unsigned streams);
/* Then a message, when the one before has gone: so many bytes in all, divided among the streams. */
void probe_session_message(struct session *sess, uint64_t bytes);
/* What the kernel knows of one of its streams now; false: nothing. Where the other side sends, acked_bytes
 * are those that came, and times are zero: */
bool probe_session_look(const struct session *sess, unsigned number, struct tcpinfo *out);
/* what its kernel has seen of all of them since the level began; false: we send. */
bool probe_session_told(const struct session *sess, struct limit_times *times, uint64_t *retransmits);
/* Ends the level: cuts off what still sends. */
void probe_session_clear(struct session *sess);
/* Ends the session in good order; no level is under way. */
void probe_session_finish(struct session *sess);

#endif
