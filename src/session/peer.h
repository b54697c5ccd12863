/* The peer of a session: the address where new connections lead, and the options of their sockets. */
#ifndef SESSION_PEER_H
#define SESSION_PEER_H

#include <ptcp/ptcp.h>

#include "core/clock.h"
#include "engine/mtu.h"
#include "net/sock.h"

struct connect;
struct session;
struct session_opts;

struct session_peer {
	char address[SOCK_HOST_BYTES], name[SOCK_HOST_BYTES]; /* last reached; "": no name */
	unsigned port;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	struct sock_opts sock;      /* options of new connections */
	struct connect *spare;      /* made along with the control connection; NULL: none, or in use */
	struct mtu mtu;             /* MTU of the path */
};

void peer_init(struct session *sess, const struct session_opts *o);
/* A connection has reached this address and port: all other connections follow. */
void peer_reached(struct session *sess, const char *address);
/* Takes the spare connection. */
struct connect *peer_take_spare(struct session *sess);
/* The spare connection is of no use. */
void peer_drop_spare(struct session *sess);
/* The peer answers on the control connection. */
bool peer_responds(const struct session *sess, struct mono now);
/* A connection to the peer was lost, perhaps because the path drops large packets: then new ones use small segments. */
void peer_suspect(struct session *sess, const struct mtu_lost *lost);

#endif
