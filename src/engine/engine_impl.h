/* Internals of the engine, for engine.c (construction, getters, outgoing frames, the end), opening.c, dispatch.c
 * (incoming frames) and timeouts.c. */
#ifndef ENGINE_ENGINE_IMPL_H
#define ENGINE_ENGINE_IMPL_H

#include "engine/engine.h"
#include "engine/frame_conn.h"
#include "engine/tape.h"

#define ENGINE_STATES(X) X(HELLO) X(OPENING) X(AWAIT_OPEN) X(AUTHORIZING) X(RUNNING) X(CLOSING) X(ENDED) X(FAILED)

enum engine_state {
#define X(name) name,
	ENGINE_STATES(X)
#undef X
};

struct engine {
	struct engine_opts o;
	enum engine_state state;
	struct frame_conn conn;
	struct buf open_paths;           /* paths that the starter requests */
	struct wire_open open;
	struct snd *snd;
	struct rcv *rcv;
	uint64_t timeout_ns;             /* agreed: the longer one, within what this end lets a session linger */
	uint64_t linger_ns;              /* agreed: the shorter one */
	uint64_t ping_ns;                /* time between two PINGs, from the peer's HELLO */
	uint64_t ticks;
	uint32_t peer_entries;
	struct buf early;                /* acceptor: ENTRY frames that arrived before the session was authorized */
	unsigned n_early;                /* number of these frames */
	uint64_t n_rates, n_endpoints;   /* RATE and ENDPOINT frames received */
	struct mono running_since, opened;   /* opened: starter, when the peer's HELLO arrived */
	uint64_t warned_failures;        /* files that the sender could not offer, */
	bool warned_unplaced;            /* some of them in no directory that was offered */
	enum wire_busy busy_reported, peer_busy;
	bool leftovers_received;
	uint64_t n_deleted;             /* DELETED frames */
	bool selected;                  /* the last SELECT has arrived */
	bool ended_by_peer;              /* an ERROR of the peer has ended the session */
	bool unanswered;                 /* the channel was lost before the peer's HELLO */
	bool was_busy;                   /* this end was busy at the last tick */
	struct wire_end end;             /* receiver: the sender's counts */
	struct mono last_work;           /* conn.last_progress without the peer's claims to be busy */
	struct mono due;                 /* the deadline at the last tick */
	bool moved;                      /* a block arrived or was acknowledged */
	struct tape *tape;               /* NULL: no record */
};

/* ---- engine.c ---- */

extern const char *const engine_state_names[];
/* `event` names the cause in the log. */
void engine_set_state(struct engine *s, enum engine_state to, const char *event);
/* A measurement has neither a sender nor a receiver of files. */
bool engine_measures(const struct engine *s);
void engine_send_end(struct engine *s);
/* The sending half, as OPEN requests it. */
int engine_new_sender(struct engine *s, struct ptcp_err *e);
/* As engine_fail(), by the engine itself; a record has only what others call. */
void engine_give_up(struct engine *s, const struct ptcp_err *why);
/* Ends the session without informing the peer: done (`why` NULL) or failed. */
void engine_end(struct engine *s, const struct ptcp_err *why);

/* ---- dispatch.c ---- */

extern const struct frame_table engine_table;

/* ---- opening.c ---- */

int engine_on_hello(struct engine *s, const struct wire_hello *h, struct ptcp_err *e);
int engine_on_open(struct engine *s, const struct wire_open *o, struct ptcp_err *e);
int engine_on_waiting(struct engine *s, const struct wire_waiting *f, struct ptcp_err *e);
int engine_on_opened(struct engine *s, const struct wire_opened *o, struct ptcp_err *e);
/* An ENTRY that arrives in AUTHORIZING waits, undecoded, for the authorization. */
int engine_on_early_entry(struct engine *s, struct span in, struct ptcp_err *e);

/* ---- timeouts.c ---- */

struct frame_limits engine_limits(const void *engine);
struct wire_ping engine_ping(void *engine, struct mono now);

/* As engine_progress() and engine_tick(), by the engine itself. */
void engine_advance(struct engine *s, struct mono now);
void engine_check(struct engine *s, struct mono now);

/* Whether to wait for a peer that reports `busy`: only after work has started, and for a limited time. */
bool engine_tolerates(const struct engine *s, enum wire_busy busy, struct mono now);

#endif
