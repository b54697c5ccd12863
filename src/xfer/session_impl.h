/* The inside of a session, for session.c (what is known of it, what it tells the peer, its end), session_agree.c (until
 * data may flow), session_frames.c (what the peer says) and session_time.c (silence and being busy). */
#ifndef XFER_SESSION_IMPL_H
#define XFER_SESSION_IMPL_H

#include "xfer/session.h"

#define SESSION_STATES(X) X(HELLO) X(OPENING) X(ASKED) X(JUDGING) X(RUNNING) X(ENDING) X(ENDED) X(FAILED)

enum session_state {
#define X(name) name,
	SESSION_STATES(X)
#undef X
};

struct session {
	struct session_opts o;
	enum session_state state;
	struct buf in;
	struct outbox out;
	struct buf wanted_paths;         /* the starter's */
	struct wire_open open;
	struct snd *snd;
	struct rcv *rcv;
	uint64_t peer_timeout_ns, ticks;
	uint32_t peer_entries;
	bool peer_links;                 /* it takes HARDLINK entries */
	bool returns;                    /* offered, and not declined */
	bool peer_rates;                 /* it knows RATE */
	uint64_t n_rates;                /* it has sent */
	struct mono running_since;
	uint64_t noted_failures;
	enum wire_busy told_busy, peer_busy;
	bool was_busy;                   /* we, at the last look */
	struct wire_end end;             /* the sender's, at the receiver */
	struct mono last_ping, last_heard, last_progress;
	struct mono last_work;           /* as last_progress, but a peer that says it is busy does not count */
};

/* ---- session.c ---- */

/* `event` is why, for the log. */
void session_set_state(struct session *s, enum session_state to, const char *event);
int session_unexpected(const struct session *s, unsigned type, struct ptcp_err *e);
/* The session only measures: there is neither a sender nor a receiver of files. */
bool session_measures(const struct session *s);
void session_send_end(struct session *s);
/* It is over, and the peer knows: done (`why` NULL) or failed. */
void session_end(struct session *s, const struct ptcp_err *why);

/* ---- session_agree.c ---- */

int session_on_hello(struct session *s, struct span in, struct ptcp_err *e);
int session_on_open(struct session *s, struct span in, struct ptcp_err *e);
int session_on_opened(struct session *s, struct span in, struct ptcp_err *e);

/* ---- session_time.c ---- */

/* Whether a peer that says this may be waited for: not before there is anything to be busy with, and not for ever. */
bool session_is_excuse(const struct session *s, enum wire_busy busy, struct mono now);

#endif
