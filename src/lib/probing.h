/* A session that only measures: one side sends blocks of no entry over n streams at a time, the other drops
 * them; the starter decides. Beside sending.c and receiving.c, as the third thing a party can do. Control
 * thread. */
#ifndef LIB_PROBING_H
#define LIB_PROBING_H

#include "lib/party.h"
#include "model/limit.h"
#include "net/tcpinfo.h"

/* What an acceptor takes on one stream, in bytes and time, before it closes it. */
#define PROBING_STREAM_BYTES (UINT64_C(1) << 40)
#define PROBING_STREAM_NS (UINT64_C(900) * 1000000000)

struct probing_ops {
	/* All streams of the level are joined, and begin to send. */
	void (*begun)(void *arg);
	/* One of them has ended: all its bytes were sent and taken, in that time; or
	 * (`why` not NULL) it was lost, or the level could not begin. */
	void (*ended)(void *arg, unsigned number, struct mono from, struct mono until,
	    const struct ptcp_err *why);
	/* After probing_clear(): no stream is left. */
	void (*clear)(void *arg);
};

/* Starter, before running ends: has probing_level() and so on from then on. */
int party_probe(struct party *p, const struct probing_ops *ops, void *arg, struct ptcp_err *e);
/* Acceptor: drops what comes. */
int party_drop(struct party *p, struct ptcp_err *e);
/* Acceptor: sends as the starter says. */
int party_flood(struct party *p, struct ptcp_err *e);

/* Streams that the acceptor has granted. */
unsigned probing_granted(const struct party *p);
/* The session's. */
uint64_t probing_timeout_ns(const struct party *p);
/* Begins a level: joins so many streams (as many as granted, at most), then sends so many bytes of
 * blocks on each, UINT64_MAX: until it is cleared. Where a level without end and with fewer streams has
 * begun, its streams go on sending and the others join them. */
void probing_level(struct party *p, unsigned streams, uint64_t stream_bytes);
/* Begins a level whose streams stay open, for messages: `begun` follows. */
void probing_open(struct party *p, unsigned streams);
/* Then a message, when the one before has gone: so many bytes in all, divided among the streams. */
void probing_message(struct party *p, uint64_t bytes);
/* What the kernel knows of one of its streams now; false: nothing. Where the other side sends, acked_bytes
 * are those that came, and times are zero: */
bool probing_look(const struct party *p, unsigned number, struct tcpinfo *out);
/* what its kernel has seen of all of them since the level began; false: we send. */
bool probing_told(const struct party *p, struct limit_times *times, uint64_t *retransmits);
/* Ends the level: cuts off what still sends. */
void probing_clear(struct party *p);
/* Ends the session in good order; no level is under way. */
void probing_finish(struct party *p);

#endif
