/* One session on one control channel: the handshake, then sending or receiving, then the end.
 *
 * Inputs are bytes and `now`; outputs are bytes (the outbox) and a deadline; the engine reports
 * decisions through its operations. No sockets, no files, no clock; one thread. The starter sends
 * OPEN; either end may be the TLS client, and either end may send the data.
 *
 *   HELLO        HELLO is sent; next OPENING (starter), AWAIT_OPEN (acceptor)
 *   OPENING      OPEN is sent, and early entries; next RUNNING
 *   AWAIT_OPEN   next AUTHORIZING
 *   AUTHORIZING  the caller decides, early entries wait; next RUNNING
 *   RUNNING      entries and blocks; next CLOSING (sender), CLOSING or ENDED (receiver)
 *   CLOSING      sender: END is sent; receiver: END has arrived, ops.finish has work; next ENDED
 *   ENDED, FAILED   all input is ignored; FAILED from any state but ENDED */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "core/log.h"
#include "engine/receiver.h"
#include "engine/sender.h"
#include "wire/mover.h"

struct engine;

/* Frames are valid during the call. */
struct engine_ops {
	/* Acceptor: the starter's request. Answer with engine_accept() or engine_fail(), now or later. */
	void (*open)(void *arg, const struct wire_open *o);
	/* Starter: the acceptor is busy, and `ahead` other sessions wait before this one. */
	void (*waiting)(void *arg, uint32_t ahead);
	/* Agreed: engine_snd() or engine_rcv() is set, or neither in a measurement. */
	void (*running)(void *arg, const struct wire_opened *o);
	/* A warning from the peer, or a file that the sending peer could not offer. */
	void (*warning)(void *arg, const struct wire_warning *n);
	/* The peer has received `bytes` of our control stream. PTCP_EPROTO if that is impossible. */
	int (*control_ack)(void *arg, uint64_t bytes, struct ptcp_err *e);
	/* Activity that delays this end now, such as reading from a disk. */
	enum wire_busy (*busy)(void *arg);
	/* Only a rate limit delays this end: the engine then tolerates a silent peer like a busy peer. NULL: never. */
	bool (*paced)(void *arg);
	/* Once. `why` NULL: all is done (files may have failed, see engine_failed()). */
	void (*ended)(void *arg, const struct ptcp_err *why);
	const struct snd_ops *snd;
	const struct rcv_ops *rcv;
	/* Receiver: the sender has no further entries, and all have ended. False: engine_finished() follows; true or
	 * NULL: the session ends now. */
	bool (*finish)(void *arg);
	/* Starter that sends: leftovers at the receiver. */
	void (*leftovers)(void *arg, const struct wire_leftovers *f);
	/* Starter that sends, with DELETE: an entry that the receiver has removed. */
	void (*deleted)(void *arg, const struct wire_deleted *f);
	/* Starter: load of the acceptor's host. */
	void (*load)(void *arg, const struct wire_load *f);
	/* Starter: a mover of the acceptor, or its end. */
	void (*endpoint)(void *arg, const struct wire_endpoint *f);
	/* Acceptor: number of active streams. */
	void (*set_streams)(void *arg, const struct wire_set_streams *u);
	/* Starter that receives: TCP statistics of the sender. */
	void (*tcp_report)(void *arg, const struct wire_tcp_report *f);
	/* Acceptor that sends: rate limits of the streams. */
	void (*rate)(void *arg, const struct wire_rate *f);
	/* Acceptor that sends, with SELECTED: entries of the source, until `final`. A negative code fails the
	 * session. */
	int (*select)(void *arg, const struct wire_select *f, struct ptcp_err *e);
};

/* Maximum time without progress, in time-outs, of a peer that is busy or rate-limited, and of a peer that verifies
 * (reading the largest file may take long). */
#define ENGINE_BUSY_TIMEOUTS 120u
#define ENGINE_VERIFYING_TIMEOUTS 2880u

/* Limit on RATE frames accepted by a sender, and on ENDPOINT frames by a starter: a burst, and a number per second of
 * the session. */
#define ENGINE_RATES 200u
#define ENGINE_RATES_PER_S 20u

struct engine_opts {
	bool starter;
	bool one_channel;         /* blocks travel on the control channel; a peer without that ability is refused */
	const char *software;     /* outlives the session */
	uint64_t timeout_ns;      /* limit without progress */
	uint64_t quiet_ns;        /* silence that means a dead connection: three PINGs of the peer; 0: timeout_ns */
	/* How long a session lives without a connection, if the peer allows it as well: the control channel may be
	 * replaced meanwhile. 0: not at all. */
	uint64_t linger_ns;
	uint32_t max_entries;
	uint16_t max_streams;
	uint64_t region_bytes;    /* region of one mover; 0: at least 64 MiB, by the stripes of OPEN and OPENED */
	const struct engine_ops *ops;
	void *arg;
	const struct log *log;    /* may be NULL */
	struct memory_account *memory; /* outlives the engine; NULL: no limit */
};

/* Starter: `open` is the request (copied). Acceptor: NULL. */
int engine_new(struct engine **out, const struct engine_opts *o, const struct wire_open *open,
    struct mono now, struct ptcp_err *e);
void engine_free(struct engine *s); /* NULL is fine */
/* Ends all unfinished entries of an ended session. */
void engine_drop(struct engine *s);

/* Control frames of the peer, without BLOCKs of a session with one channel. Empty input
 * counts as a sign of life, too. A violation fails the session. */
void engine_input(struct engine *s, const uint8_t *p, size_t n, struct mono now);
/* The channel is gone: fails the session unless it has ended, or only the END of a starter that receives is missing. */
void engine_closed(struct engine *s, const struct ptcp_err *why);
/* Bytes for the peer; engine_sent() consumes the first n. */
struct outbox *engine_outbox(struct engine *s);
void engine_sent(struct engine *s, size_t n);

/* Acceptor in AUTHORIZING; ignored once the session has failed. */
void engine_accept(struct engine *s, const struct wire_opened *o, struct mono now);
/* Acceptor in AUTHORIZING whose starter waits (wire_open.wait_ms): sends WAITING. */
void engine_wait(struct engine *s, uint32_t ahead);
/* Sends ERROR and ends the session. */
void engine_fail(struct engine *s, const struct ptcp_err *why);
/* Starter of a measurement, RUNNING: sends END. */
void engine_finish(struct engine *s);
/* Send a frame, if RUNNING: the starter SET_STREAMS; an acceptor that sends TCP_REPORT; an acceptor LOAD; a starter
 * that receives RATE, at most ENGINE_RATES_PER_S times a second. */
void engine_set_streams(struct engine *s, const struct wire_set_streams *u);
void engine_report_tcp(struct engine *s, const struct wire_tcp_report *f);
void engine_report_load(struct engine *s, const struct wire_load *f);
void engine_set_rates(struct engine *s, const struct wire_rate *f);
/* Starter that receives, RUNNING, with SELECTED: sends SELECT. */
void engine_select(struct engine *s, const struct wire_select *f);
/* Sends WARNING: a warning (both ends), or a file that could not be offered (sender; counted as failed). */
void engine_warn(struct engine *s, enum wire_warning_kind kind, const char *path, const struct ptcp_err *why);

/* Acceptor whose OPENED has the flag MOVERS: sends ENDPOINT, if RUNNING. */
void engine_report_endpoint(struct engine *s, const struct wire_endpoint *f);
/* Receiver, before the end: sends LEFTOVERS, if the peer is the starter. */
void engine_report_leftovers(struct engine *s, const struct wire_leftovers *f);
/* Receiver, within or after ops.finish: sends DELETED, if the peer is the starter. */
void engine_report_deleted(struct engine *s, const char *path);
/* Receiver, after ops.finish: ends the session, unless it is over. */
void engine_finished(struct engine *s);

/* A stream has received data. */
void engine_progress(struct engine *s, struct mono now);
struct mono engine_deadline(const struct engine *s);
/* At the deadline, and after any other call: sends PINGs, checks time-outs, and ends a session that is finished. */
void engine_tick(struct engine *s, struct mono now);

/* NULL unless sending, and at an acceptor agreed. */
struct snd *engine_snd(struct engine *s);
struct rcv *engine_rcv(struct engine *s); /* NULL unless receiving and agreed */
/* RUNNING: relays may spool the data, hence streams may stall for a long time. */
bool engine_spooled(const struct engine *s);
/* How long the session lives without a connection: as offered and, after HELLO, as agreed. 0: the control channel
 * cannot be replaced. */
uint64_t engine_linger_ns(const struct engine *s);
/* Time of the last input. */
struct mono engine_last_input(const struct engine *s);
/* The peer's activity, as of its last PING. */
enum wire_busy engine_peer_busy(const struct engine *s);
bool engine_over(const struct engine *s);
/* Whether the peer ended the session by an ERROR, whose text is then the reason. */
bool engine_ended_by_peer(const struct engine *s);
/* Whether the channel was lost before the peer's HELLO arrived. */
bool engine_unanswered(const struct engine *s);
/* CLOSING or over: all data has arrived, so the end of a stream is expected. */
bool engine_closing(const struct engine *s);
/* The starter's request (at the acceptor, its paths are valid only during ops.open). */
const struct wire_open *engine_open(const struct engine *s);
/* Number of failed files at both ends, including files that could not be offered; final after a successful end. */
uint64_t engine_failed(const struct engine *s);
/* Of a receiver: an entry has failed at the top whose name is not known, or a source. */
bool engine_failed_unplaced(const struct engine *s);
uint64_t engine_files(const struct engine *s);

#endif
