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
#ifndef XFER_SESSION_H
#define XFER_SESSION_H

#include "core/log.h"
#include "xfer/receiver.h"
#include "xfer/sender.h"

struct session;

struct session_ops {
	/* Acceptor: what the starter asks for (valid during the call). Answer with
	 * session_accept() or session_fail(), now or later. */
	void (*open)(void *arg, const struct wire_open *o);
	/* Both: agreed (valid during the call); session_snd() or session_rcv() is there, or neither in a
	 * session that only measures. */
	void (*running)(void *arg, const struct wire_opened *o);
	/* Something the sender could not offer, or a warning of either. */
	void (*note)(void *arg, const struct wire_note *n);
	/* The peer has so many bytes of what the outbox gave; nothing it could not have. */
	int (*heard)(void *arg, uint64_t bytes, struct ptcp_err *e);
	/* What our own disk keeps us with right now. */
	enum wire_busy (*busy)(void *arg);
	/* Once. `why` NULL: all is done (files may have failed, see session_failed()). */
	void (*ended)(void *arg, const struct ptcp_err *why);
	const struct snd_ops *snd;
	const struct rcv_ops *rcv;
	/* Steered, acceptor: so many streams are to be in use (valid during the calls). */
	void (*use)(void *arg, const struct wire_use *u);
	/* Steered, a starter that receives: what the sender's kernel has seen. */
	void (*seen)(void *arg, const struct wire_seen *f);
	/* An acceptor that sends: what its streams are to carry at most (valid during the call). */
	void (*rate)(void *arg, const struct wire_rate *f);
};

/* A peer that says it is busy is believed for so many time-outs since there was progress; for as many as the
 * second while it verifies, which may take as long as reading the largest of files. */
#define SESSION_BUSY_TIMEOUTS 120u
#define SESSION_VERIFYING_TIMEOUTS 2880u

/* A sender takes no more RATE frames than so many, and so many for each second of the session. */
#define SESSION_RATES 200u
#define SESSION_RATES_PER_S 20u

struct session_opts {
	bool starter;
	bool one_channel;         /* blocks travel on the control channel; a peer that cannot is refused */
	bool returns;             /* the control channel may be replaced, if the peer can do that, too */
	const char *software;     /* outlives the session */
	uint64_t timeout_ns;
	/* Of ours, as the peer is told: it says something three times as often. 0: as above. */
	uint64_t hello_timeout_ns;
	uint32_t max_entries;
	uint16_t max_streams;
	uint16_t fixed_streams;   /* starter, to be steered: what to ask for where the peer cannot be */
	const struct session_ops *ops;
	void *arg;
	const struct log *log;    /* may be NULL */
};

/* For the starter `open` says what it wants (copied). */
int session_new(struct session **out, const struct session_opts *o, const struct wire_open *open,
    struct mono now, struct ptcp_err *e);
void session_free(struct session *s); /* NULL is fine */
/* Ends every entry that is unfinished, as the session itself is over. */
void session_drop(struct session *s);

/* Bytes of frames from the peer, but for those of a BLOCK where there is one channel; none is a sign of
 * life, too. What is wrong with them fails the session. */
void session_input(struct session *s, const uint8_t *p, size_t n, struct mono now);
/* The channel is gone: fails the session unless it has ended. */
void session_closed(struct session *s, const struct ptcp_err *why);
/* Bytes for the peer; the caller takes them off. */
struct outbox *session_outbox(struct session *s);

/* Acceptor in JUDGING; a session that has failed meanwhile ignores it. */
void session_accept(struct session *s, const struct wire_opened *o, struct mono now);
/* Tells the peer why and ends. */
void session_fail(struct session *s, const struct ptcp_err *why);
/* The starter of a session that only measures, RUNNING: sends END. */
void session_finish(struct session *s);
/* Relays hold what goes over its data connections: these may stand still for long (RUNNING). */
bool session_held(const struct session *s);
/* Of a session that is steered, RUNNING: the starter sends USE, an acceptor that sends SEEN. */
bool session_steered(const struct session *s);
void session_use(struct session *s, const struct wire_use *u);
void session_tell_seen(struct session *s, const struct wire_seen *f);
/* A starter that receives: whether the sender keeps to the rates it is told, and tells it, while RUNNING; not more than
 * SESSION_RATES_PER_S times a second. */
bool session_takes_rates(const struct session *s);
void session_rate(struct session *s, const struct wire_rate *f);
/* Data came in on a stream, or nothing is owed by who keeps to a rate. */
void session_progress(struct session *s, struct mono now);

struct mono session_deadline(const struct session *s);
/* Also after the caller has done anything to the engine: looks whether all is finished. */
void session_tick(struct session *s, struct mono now);

struct snd *session_snd(struct session *s); /* NULL unless sending and agreed */
struct rcv *session_rcv(struct session *s); /* NULL unless receiving and agreed */
/* Sender: whether the peer takes HARDLINK entries; else other names of a file are sent as files. */
bool session_takes_links(const struct session *s);
/* The control channel may be replaced, as far as is known by now. */
bool session_returns(const struct session *s);
/* When the peer was last heard of there. */
struct mono session_heard(const struct session *s);
/* What the peer's disk keeps it with, by its last word. */
enum wire_busy session_peer_busy(const struct session *s);
bool session_over(const struct session *s);
/* What was asked for: the starter's own, or the peer's OPEN (paths only during ops.open). */
const struct wire_open *session_open(const struct session *s);

/* Something that could not be offered (sender only: counted), or a warning (both): the peer is told. */
void session_note(struct session *s, enum wire_note_kind kind, const char *path,
    const struct ptcp_err *why);
/* Failed files, both ends' and what could not be offered; complete when ended well. */
uint64_t session_failed(const struct session *s);
uint64_t session_files(const struct session *s);

#endif
