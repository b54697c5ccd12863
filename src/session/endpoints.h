/* Movers of the acceptor, to which the starter connects streams in place of the acceptor's own address. Control
 * thread. */
#ifndef SESSION_ENDPOINTS_H
#define SESSION_ENDPOINTS_H

#include <ptcp/ptcp.h>

#include "core/clock.h"
#include "net/sock.h"
#include "wire/mover.h"

#define ENDPOINTS_MAX 128

struct endpoint {
	uint32_t id;
	char fingerprint[PTCP_FINGERPRINT_BYTES], host[SOCK_HOST_BYTES];
	unsigned port;
	unsigned failures;             /* failures since a connection was made; not 0: streams go to other endpoints */
	struct mono retry_at;          /* time until which streams go to other endpoints */
	int trial;                     /* the stream that tries again after retry_at; -1: none does */
	bool relays_only;              /* the starter must not connect to it itself: fewer hosts
	                                  reach it than the acceptor */
	bool told;                     /* the user has been told that the endpoint cannot be reached */
};

struct endpoints {
	struct endpoint of[ENDPOINTS_MAX];
	unsigned n;
};

/* Adds or removes an endpoint. `from`: address of the acceptor, or of another family if unknown. NULL: done; else the
 * reason why the endpoint is ignored: an acceptor must not lead a starter to hosts that the acceptor may not be able to
 * reach itself. `relays`: the starter has paths through relays, whose operators permit the addresses that relays
 * connect to. */
const char *endpoints_take(struct endpoints *e, const struct wire_endpoint *f,
    const struct sockaddr *from, bool relays);
/* NULL: none. */
struct endpoint *endpoints_find(struct endpoints *e, uint32_t id);
/* Whether the user knows of an unreachable one. */
bool endpoints_told(const struct endpoints *e);
/* Deals streams, as deal_streams() does, to the endpoints that can be reached as far as known, or to all if none can
 * be. Of the other endpoints each gets one stream for the next attempt, when its time has come; the attempt costs
 * nothing, as a connected stream stays where it is until then. */
bool endpoints_deal(struct endpoints *e, uint32_t *place, unsigned n, const uint8_t *path, struct mono now);
/* Stream `number` could not be connected to the endpoint, which has no connected stream. True: for the first time. */
bool endpoints_failed(struct endpoints *e, uint32_t id, unsigned number, struct mono now);
/* No effect without endpoints (NULL), and for an unknown one. */
void endpoints_reached(struct endpoints *e, uint32_t id);
/* When endpoints_deal() has an endpoint tried again. */
struct mono endpoints_deadline(const struct endpoints *e);

#endif
