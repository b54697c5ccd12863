/* Replays control frames over a new control connection. When the control connection dies, the starter opens a
 * successor, over the next path where several exist; each end reports the number of bytes received in a CONTROL_ACK,
 * and its peer retransmits the rest. Each end therefore retains control frames until acknowledged.
 *
 *   UP        next LOST, RESUMING (acceptor: the starter left the connection first)
 *   LOST      next RESUMING
 *   RESUMING  the successor is connected, the peer's CONTROL_ACK is due; next UP, LOST */
#ifndef ENGINE_CONTROL_REPLAY_H
#define ENGINE_CONTROL_REPLAY_H

#include <stdbool.h>

#include "core/clock.h"
#include "wire/outbox.h"

#define CONTROL_REPLAY_MAX_BYTES (8u << 20)                     /* limit of retained bytes */
#define CONTROL_REPLAY_ACK_BYTES (32u << 10)                    /* bytes received between two CONTROL_ACKs */
#define CONTROL_REPLAY_RTTS 3                                   /* see control_replay_session.rtt_ns */

enum control_replay_state { CONTROL_UP, CONTROL_LOST, CONTROL_RESUMING };

struct control_replay {
	struct buf retained;            /* sent, not acknowledged */
	size_t resend;                  /* last bytes of `retained`, not yet sent on this connection */
	uint64_t acked;                 /* bytes that the peer has acknowledged */
	uint64_t received, reported;    /* bytes received; as of the last CONTROL_ACK */
	enum control_replay_state state;
	struct mono since;              /* start of the connection */
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES];
	size_t got;                     /* bytes of the peer's CONTROL_ACK */
	bool opens;                     /* this end opens the connections that replace a lost one */
	unsigned path, n_paths;         /* path of the next successor; number of paths */
	unsigned n_refusals;            /* number of refusals by relays, in a row */
	bool ended;                     /* the peer has received everything: no successor is needed */
};

/* The session's state. */
struct control_replay_session {
	bool agreed;            /* both ends let the session linger (HELLO) */
	bool running, failed, over, gone;
	bool receives;
	struct mono last_input;      /* last bytes from the peer */
	uint64_t quiet_ns, rtt_ns;   /* UP without a frame, or RESUMING, for quiet + CONTROL_REPLAY_RTTS RTTs: dead */
};

/* In UP. Only a starter that is the TLS client opens successors. */
void control_replay_init(struct control_replay *r, bool opens, unsigned path, unsigned n_paths, struct mono now);
void control_replay_fini(struct control_replay *r);

/* Whether a lost control connection may have a successor. */
bool control_replay_possible(const struct control_replay *r, const struct control_replay_session *s);

/* ---- Bytes sent and received, once agreed ---- */

/* Bytes to retransmit before new bytes; empty: none. */
struct span control_replay_unsent(const struct control_replay *r);
void control_replay_resent(struct control_replay *r, size_t n);
/* Number of new bytes, at most n, that may be sent now: limited by CONTROL_REPLAY_MAX_BYTES and memory. Call
 * control_replay_sent() after sending. */
size_t control_replay_room(struct control_replay *r, size_t n);
void control_replay_sent(struct control_replay *r, const uint8_t *p, size_t n);
/* Counts received bytes; appends a CONTROL_ACK to the outbox when due. `out` NULL: counts only. */
void control_replay_received(struct control_replay *r, size_t n, struct outbox *out);
/* The peer's CONTROL_ACK: PTCP_EPROTO if the peer cannot have received that many bytes. */
int control_replay_acked(struct control_replay *r, uint64_t bytes, struct ptcp_err *e);

/* ---- Connections ---- */

/* The connection died: LOST; the successor uses the next path. */
void control_replay_lost(struct control_replay *r);
/* The successor broke while RESUMING, or could not be used: LOST; the next attempt uses the same path. */
void control_replay_dropped(struct control_replay *r);
/* The peer closed the connection cleanly, after receiving everything. */
void control_replay_end(struct control_replay *r);
/* A successor is connected: RESUMING. Encodes the first frame for it; returns its length. */
size_t control_replay_begin(struct control_replay *r, uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES], struct mono now);

enum control_replay_answer { CONTROL_ANSWER_PARTIAL, CONTROL_ANSWER_RESUMED, CONTROL_ANSWER_WRONG,
    CONTROL_ANSWER_VIOLATION };
/* Bytes of the peer's answer, at most as many as are missing. RESUMED: UP, all unacknowledged bytes are to be
 * retransmitted. WRONG: not a CONTROL_ACK, the successor is to be dropped. VIOLATION: fails the session, with *e. */
size_t control_replay_missing(const struct control_replay *r);
enum control_replay_answer control_replay_answer(struct control_replay *r, const uint8_t *p, size_t n,
    struct mono now, struct ptcp_err *e);

/* True: the connection is dead, to be closed; LOST. */
bool control_replay_tick(struct control_replay *r, const struct control_replay_session *s, struct mono now);
/* Whether this end is to open a successor now. */
bool control_replay_wants(const struct control_replay *r, const struct control_replay_session *s);
/* No successor could be opened on this path. over: the peer refused it, or is known to have ended. path_over: a relay
 * refused it, or it leads to another host. Returns an error that fails the session, also after all paths were over; or
 * 0 after moving to the next path. */
int control_replay_failed(struct control_replay *r, const struct ptcp_err *why, bool over, bool path_over,
    struct ptcp_err *e);
struct mono control_replay_deadline(const struct control_replay *r, const struct control_replay_session *s);

#endif
