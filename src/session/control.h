/* The control connection of a session: frames out and in, and its successors after a loss (engine/control_replay.h). */
#ifndef SESSION_CONTROL_H
#define SESSION_CONTROL_H

#include "conn/connect.h"
#include "engine/control_replay.h"
#include "engine/mtu.h"
#include "session/mux.h"

struct session;
struct session_opts;

struct control {
	struct chan *chan;          /* NULL once closed */
	struct chan *successor;     /* successor of `chan`, until the peer's CONTROL_ACK */
	struct control_replay replay;
	uint64_t quiet_ns, rtt_ns;  /* see control_replay_session */
	struct mono return_by;      /* a lost control connection must have its successor by then */
	struct ptcp_err why;        /* reason of the loss, or of the last attempt to connect its successor */
	struct mono resumed;        /* time when the present connection replaced a lost one; 0: it has not */
	bool lost;                  /* a connection was lost for which control_take_lost() was not called yet: */
	struct mtu_lost lost_conn;
	struct mux *mux;            /* multiplexer of the only channel; else NULL */
};

extern const struct chan_ops control_ops;
extern const struct mux_ops control_mux_ops; /* operations with one channel */

/* Takes the connection o->control. */
void control_init(struct session *sess, const struct session_opts *o, uint64_t quiet_ns);
void control_free(struct session *sess);
/* Writes control frames, and with one channel blocks between frames. */
void control_flush(struct session *sess);
/* As engine_ops.control_ack. */
int control_on_ack(void *arg, uint64_t bytes, struct ptcp_err *e);
/* A lost control connection may be replaced: the session continues. */
bool control_may_resume(const struct session *sess);
/* It works, as far as this end knows. */
bool control_is_up(const struct session *sess);
/* The starter is to connect a successor now. */
bool control_wants_successor(const struct session *sess);
/* A joined connection as the successor; taken. */
void control_take(struct session *sess, struct chan *c);
/* An attempt to connect a successor failed. */
void control_failed(struct session *sess, const struct connect_result *r);
/* Whether a connection was lost since the last call; *out: what became of its segments. */
bool control_take_lost(struct session *sess, struct mtu_lost *out);
/* Its segments are not acknowledged: drops it. */
void control_stuck(struct session *sess);
void control_pump(struct session *sess, struct mono now);
struct mono control_deadline(const struct session *sess);

#endif
