/* One session on one control channel: agreeing, then sending or receiving, then the end.
 *
 * Bytes and `now` come in, bytes (the outbox) and a deadline come out; decisions through the
 * operations. No sockets, no files, no clock; one thread. The starter sends OPEN and is
 * independent of who is the TLS client and of who sends the data.
 *
 *   HELLO    ours is sent; next OPENING (starter), ASKED (acceptor)
 *   OPENING  OPEN is sent; next RUNNING
 *   ASKED    waiting for OPEN; next JUDGING
 *   JUDGING  the caller decides; next RUNNING
 *   RUNNING  entries and blocks; next ENDING (sender), ENDED (receiver)
 *   ENDING   END is sent; next ENDED
 *   ENDED, FAILED   nothing more is taken; FAILED from any but ENDED */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "core/log.h"
#include "engine/receiver.h"
#include "engine/sender.h"

struct engine;

struct engine_ops {
	/* Acceptor: what the starter asks for (valid during the call). Answer with
	 * engine_accept() or engine_fail(), now or later. */
	void (*open)(void *arg, const struct wire_open *o);
	/* Both: agreed (valid during the call); engine_snd() or engine_rcv() is there, or neither in a
	 * session that only measures. */
	void (*running)(void *arg, const struct wire_opened *o);
	/* Something the sender could not offer, or a warning of either. */
	void (*note)(void *arg, const struct wire_warning *n);
	/* The peer has so many bytes of what the outbox gave; nothing it could not have. */
	int (*heard)(void *arg, uint64_t bytes, struct ptcp_err *e);
	/* What our own disk keeps us with right now. */
	enum wire_busy (*busy)(void *arg);
	/* Whether that, or idling, is only for a rate that is kept to: what a peer owes then is waited for as for one that is
	 * busy itself. NULL: never. */
	bool (*paced)(void *arg);
	/* Once. `why` NULL: all is done (files may have failed, see engine_failed()). */
	void (*ended)(void *arg, const struct ptcp_err *why);
	const struct snd_ops *snd;
	const struct rcv_ops *rcv;
	/* Starter: the acceptor itself holds the session up. */
	void (*load)(void *arg, const struct wire_load *f);
	/* Acceptor: so many streams are to be in use (valid during the calls). */
	void (*use)(void *arg, const struct wire_set_streams *u);
	/* A starter that receives: what the sender's kernel has seen. */
	void (*seen)(void *arg, const struct wire_tcp_report *f);
	/* An acceptor that sends: what its streams are to carry at most (valid during the call). */
	void (*rate)(void *arg, const struct wire_rate *f);
};

/* A peer that says it is busy, or that a rate is kept to, is believed for so many time-outs since there was progress; for as many as the
 * second while it verifies, which may take as long as reading the largest of files. */
#define ENGINE_BUSY_TIMEOUTS 120u
#define ENGINE_VERIFYING_TIMEOUTS 2880u

/* A sender takes no more RATE frames than so many, and so many for each second of the session. */
#define ENGINE_RATES 200u
#define ENGINE_RATES_PER_S 20u

struct engine_opts {
	bool starter;
	bool one_channel;         /* blocks travel on the control channel; a peer that cannot is refused */
	bool returns;             /* the control channel may be replaced, if the peer can do that, too */
	const char *software;     /* outlives the session */
	uint64_t timeout_ns;
	/* Of ours, as the peer is told: it says something three times as often. 0: as above. */
	uint64_t hello_timeout_ns;
	uint32_t max_entries;
	uint16_t max_streams;
	const struct engine_ops *ops;
	void *arg;
	const struct log *log;    /* may be NULL */
};

/* For the starter `open` says what it wants (copied). */
int engine_new(struct engine **out, const struct engine_opts *o, const struct wire_open *open,
    struct mono now, struct ptcp_err *e);
void engine_free(struct engine *s); /* NULL is fine */
/* Ends every entry that is unfinished, as the session itself is over. */
void engine_drop(struct engine *s);

/* Bytes of frames from the peer, but for those of a BLOCK where there is one channel; none is a sign of
 * life, too. What is wrong with them fails the session. */
void engine_input(struct engine *s, const uint8_t *p, size_t n, struct mono now);
/* The channel is gone: fails the session unless it has ended. */
void engine_closed(struct engine *s, const struct ptcp_err *why);
/* Bytes for the peer; the caller takes them off. */
struct outbox *engine_outbox(struct engine *s);

/* Acceptor in JUDGING; a session that has failed meanwhile ignores it. */
void engine_accept(struct engine *s, const struct wire_opened *o, struct mono now);
/* Tells the peer why and ends. */
void engine_fail(struct engine *s, const struct ptcp_err *why);
/* The starter of a session that only measures, RUNNING: sends END. */
void engine_finish(struct engine *s);
/* Relays spool what goes over its data connections: these may stand still for long (RUNNING). */
bool engine_spooled(const struct engine *s);
/* RUNNING: the starter sends SET_STREAMS, an acceptor that sends TCP_REPORT. */
void engine_use(struct engine *s, const struct wire_set_streams *u);
void engine_tell_seen(struct engine *s, const struct wire_tcp_report *f);
/* Acceptor, RUNNING: sends LOAD. */
void engine_tell_load(struct engine *s, const struct wire_load *f);
/* A starter that receives, RUNNING: sends RATE; not more than ENGINE_RATES_PER_S times a second. */
void engine_rate(struct engine *s, const struct wire_rate *f);
/* Data came in on a stream. */
void engine_progress(struct engine *s, struct mono now);
struct mono engine_deadline(const struct engine *s);
/* Also after the caller has done anything to the engine: looks whether all is finished. */
void engine_tick(struct engine *s, struct mono now);

struct snd *engine_snd(struct engine *s); /* NULL unless sending and agreed */
struct rcv *engine_rcv(struct engine *s); /* NULL unless receiving and agreed */
/* The control channel may be replaced, as far as is known by now. */
bool engine_returns(const struct engine *s);
/* When the peer was last heard of there. */
struct mono engine_heard(const struct engine *s);
/* What the peer's disk keeps it with, by its last word. */
enum wire_busy engine_peer_busy(const struct engine *s);
bool engine_over(const struct engine *s);
/* What was asked for: the starter's own, or the peer's OPEN (paths only during ops.open). */
const struct wire_open *engine_open(const struct engine *s);

/* Something that could not be offered (sender only: counted), or a warning (both): the peer is told. */
void engine_note(struct engine *s, enum wire_warning_kind kind, const char *path,
    const struct ptcp_err *why);
/* Failed files, both ends' and what could not be offered; complete when ended well. */
uint64_t engine_failed(const struct engine *s);
uint64_t engine_files(const struct engine *s);

#endif
