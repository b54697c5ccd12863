/* Room of a relay for connections of sessions. A session works with its control connection and one data connection,
 * so the control connection takes the place of its first data connection, too: sessions cannot lock each other out.
 * A session that is refused asks again; until then further data connections of other sessions leave room for it.
 *
 * Pure: no sockets, no clock. Control thread. */
#ifndef SERVER_RELAY_ROOM_H
#define SERVER_RELAY_ROOM_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/list.h"

#define RELAY_SESSION_PLACES 2u             /* places of a session's control connection and first data connection */
#define RELAY_WAIT_NS UINT64_C(10000000000) /* longer than a client pauses before it asks again */

struct relay_client;

struct relay_room {
	struct list clients;
	unsigned places; /* taken by connections, or kept for those of sessions */
};

/* Of a connection; zeroed before relay_room_enter() and after relay_room_leave(). */
struct relay_place {
	struct relay_client *client;   /* NULL: none */
	struct relay_session *session;
	bool control;
};

struct relay_limits {
	unsigned places;  /* number of all places */
	unsigned max;     /* --max-relayed, for sentences: `places` is below if descriptors are short */
};

void relay_room_init(struct relay_room *r);
/* Without a place: forgets who waits. */
void relay_room_fini(struct relay_room *r);
/* A connection of the client's session; session 0: of none. PTCP_EBUSY: no room; PTCP_ENOMEM. */
int relay_room_enter(struct relay_room *r, struct relay_place *p, const char *client, uint64_t session, bool control,
    const struct relay_limits *l, struct mono now, struct ptcp_err *e);
/* Harmless without a place. */
void relay_room_leave(struct relay_room *r, struct relay_place *p);

#endif
