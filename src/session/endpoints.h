/* Movers of the acceptor, to which the starter connects streams in place of the acceptor's own address. Control thread. */
#ifndef SESSION_ENDPOINTS_H
#define SESSION_ENDPOINTS_H

#include <ptcp/ptcp.h>

#include "net/sock.h"
#include "wire/mover.h"

#define ENDPOINTS_MAX 128

struct endpoint {
	uint32_t id;
	char fingerprint[PTCP_FINGERPRINT_BYTES], host[SOCK_HOST_BYTES];
	unsigned port;
	bool relays_only;              /* the starter must not connect to it itself: fewer hosts reach it than the acceptor */
	bool told;                     /* that it cannot be reached */
};

struct endpoints {
	struct endpoint of[ENDPOINTS_MAX];
	unsigned n;
};

/* Adds or removes an endpoint. `from`: address of the acceptor, or of another family if unknown. NULL: done; else the reason
 * why the endpoint is ignored: an acceptor must not lead a starter to hosts that the acceptor may not be able to reach itself.
 * `relays`: the starter has paths through relays, whose operators permit the addresses that relays connect to. */
const char *endpoints_take(struct endpoints *e, const struct wire_endpoint *f, const struct sockaddr *from, bool relays);
/* NULL: none. */
struct endpoint *endpoints_find(struct endpoints *e, uint32_t id);
/* Whether the user knows of any that it cannot be reached. */
bool endpoints_told(const struct endpoints *e);
/* Deals streams to the endpoints: see deal_streams(). */
bool endpoints_deal(const struct endpoints *e, uint32_t *place, unsigned n, const uint8_t *path);

#endif
