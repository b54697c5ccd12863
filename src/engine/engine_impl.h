/* The inside of a session, for session.c (what is known of it, what it tells the peer, its end), engine_agree.c (until
 * data may flow), engine_frames.c (what the peer says) and engine_time.c (silence and being busy). */
#ifndef ENGINE_ENGINE_IMPL_H
#define ENGINE_ENGINE_IMPL_H

#include "engine/engine.h"
#include "engine/frame_reader.h"

#define ENGINE_STATES(X) X(HELLO) X(OPENING) X(ASKED) X(JUDGING) X(RUNNING) X(ENDING) X(ENDED) X(FAILED)

enum engine_state {
#define X(name) name,
	ENGINE_STATES(X)
#undef X
};

struct engine {
	struct engine_opts o;
	enum engine_state state;
	struct frame_reader in;
	struct outbox out;
	struct buf wanted_paths;         /* the starter's */
	struct wire_open open;
	struct snd *snd;
	struct rcv *rcv;
	uint64_t peer_timeout_ns, ticks;
	uint32_t peer_entries;
	bool returns;                    /* offered, and not declined */
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
void engine_set_state(struct engine *s, enum engine_state to, const char *event);
int engine_unexpected(const struct engine *s, unsigned type, struct ptcp_err *e);
/* The session only measures: there is neither a sender nor a receiver of files. */
bool engine_measures(const struct engine *s);
void engine_send_end(struct engine *s);
/* It is over, and the peer knows: done (`why` NULL) or failed. */
void engine_end(struct engine *s, const struct ptcp_err *why);

/* ---- engine_agree.c ---- */

int engine_on_hello(struct engine *s, struct span in, struct ptcp_err *e);
int engine_on_open(struct engine *s, struct span in, struct ptcp_err *e);
int engine_on_opened(struct engine *s, struct span in, struct ptcp_err *e);

/* ---- engine_time.c ---- */

/* Whether a peer that says this may be waited for: not before there is anything to be busy with, and not for ever. */
bool engine_is_excuse(const struct engine *s, enum wire_busy busy, struct mono now);

#endif
