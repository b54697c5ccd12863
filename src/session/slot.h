/* The slot of a stream number: its connection, the attempt to make one, and where both lead. One more slot belongs to
 * the successor of the control connection, which has attempts only. Control thread.
 *
 *   IDLE        neither a stream nor an attempt; an attempt may begin at once
 *   WAITING     the same after a failure: the next attempt begins at retry_at
 *   CONNECTING  an attempt runs
 *   CONNECTED   the stream carries data
 *   MOVING      as CONNECTED, while an attempt makes the connection that replaces the present one: over another path,
 *   by
 *               another mover, or to another mover of the peer
 *   CLOSING     the stream has been stopped, and stays until its last message
 *
 *              attempt: begins, ends        stream: joins, is lost
 *   IDLE       CONNECTING                   CONNECTED
 *   WAITING    CONNECTING, IDLE (at once)   CONNECTED
 *   CONNECTING IDLE                         MOVING
 *   CONNECTED  MOVING                       IDLE, CLOSING
 *   MOVING     CONNECTED                    CONNECTING
 *   CLOSING                                 IDLE
 *
 * and IDLE becomes WAITING after a failure. */
#ifndef SESSION_SLOT_H
#define SESSION_SLOT_H

#include <ptcp/ptcp.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/log.h"

struct connect;
struct remote_stream;
struct session;
struct stream;

#define SLOT_CONTROL PTCP_STREAMS_MAX /* index of the slot of the control connection's successor */
#define SLOTS (PTCP_STREAMS_MAX + 1)

enum slot_state { SLOT_IDLE, SLOT_WAITING, SLOT_CONNECTING, SLOT_CONNECTED, SLOT_MOVING, SLOT_CLOSING };
#define SLOT_STATES 6

/* The attempt to make a connection; stream_connect.c writes it. */
struct slot_attempt {
	struct connect *connect;    /* connection that this process makes; NULL: none */
	struct remote_stream *remote;      /* connection that a mover makes; NULL: none */
	char endpoint[PTCP_FINGERPRINT_BYTES]; /* fingerprint of the acceptor's mover to connect to; "": the acceptor */
	uint32_t to;                /* id of that mover, or 0 */
	bool by_name;               /* a direct connection resolves the peer's name */
	bool slow;                  /* the last attempt had a connection, but no answer in time */
	bool ahead;                 /* blocks follow JOIN without waiting for JOINED */
};

/* Totals of all connections of a stream at a receiving starter, from TCP_REPORT. */
struct slot_totals {
	double rtt_s, min_rtt_s;    /* 0: unknown, or idle in the last report */
	uint64_t segments, lost;
};

struct slot {
	struct session *session;
	const struct log *log;
	unsigned number;
	enum slot_state state;
	uint32_t generation;        /* counts the connections: facts about an earlier one have another generation */
	/* the connection: slot_connected() to slot_disconnected() */
	struct stream *stream;      /* set in CONNECTED, MOVING and CLOSING; else NULL */
	struct mono since;          /* time of connection */
	uint64_t path_bytes;        /* bytes that all streams of its path had delivered by then */
	uint32_t far;               /* mover of the peer at the other end; 0: the peer itself */
	uint32_t connected_to;      /* the peer's mover that the attempt has reached; 0: the peer itself */
	uint64_t moved_bytes;       /* bytes of the stream when it was last found without acknowledgments */
	/* the next connection */
	struct slot_attempt attempt;
	struct mono retry_at;
	unsigned retries;           /* failures since the last success */
	uint32_t mover;             /* id of the mover of this stream; 0: none yet */
	uint32_t endpoint;          /* id of the acceptor's mover to connect to; 0: none yet */
	/* counters of all connections */
	struct slot_totals totals;
};

void slot_init(struct slot *s, struct session *sess, unsigned number, const struct log *log);

/* Writes the state and logs the transition, which must be one of the above; no effect if the state stays. */
void slot_set_state(struct slot *s, enum slot_state to);
bool slot_permits(enum slot_state from, enum slot_state to);
const char *slot_state_name(enum slot_state state);

/* An attempt begins; only if slot_may_begin(). */
void slot_attempt_begins(struct slot *s);
bool slot_may_begin(const struct slot *s);
bool slot_attempts(const struct slot *s); /* an attempt runs */
/* The attempt has succeeded, failed or been stopped; no effect if none runs. */
void slot_attempt_ended(struct slot *s);

/* A failure: the next attempt begins after a pause, which grows with each failure up to about 13 s; `seed` varies
 * it. */
void slot_retry_later(struct slot *s, struct mono now, uint8_t seed);
/* The failures no longer count: the next attempt begins at `at`. */
void slot_retry_at(struct slot *s, struct mono at);
/* A connection was made: the pause after the next failure is the first. */
void slot_reached(struct slot *s);

/* The stream of the new connection; `far`, path_bytes: see above. Not while the slot has another. */
void slot_connected(struct slot *s, struct stream *stream, uint32_t far, uint64_t path_bytes, struct mono now);
/* The stream has been stopped in its place. */
void slot_closes(struct slot *s);
/* The stream leaves the slot, which forgets the connection. Returns the stream. */
struct stream *slot_disconnected(struct slot *s);

#endif
