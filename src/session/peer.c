#include "session/peer.h"

#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "session/session_impl.h"

#define RESPONDS_NS (4 * NS_PER_S)   /* max time since the peer's last frame */

void peer_init(struct session *sess, const struct session_opts *o)
{
	struct session_peer *p = &sess->peer;

	strncpy(p->address, o->address, sizeof p->address - 1);
	if (o->name != NULL && strcmp(o->name, o->address) != 0)
		strncpy(p->name, o->name, sizeof p->name - 1);
	p->port = o->port;
	strcpy(p->fingerprint, chan_fingerprint(o->control));
	p->sock = o->sock;
	p->spare = o->spare;
}

void peer_reached(struct session *sess, const char *address)
{
	char host[SOCK_HOST_BYTES];
	unsigned port;

	if (sock_split(address, host, &port, sess->peer.port, NULL) < 0)
		return;
	if (strcmp(host, sess->peer.address) != 0)
		log_at(&sess->o.context->log, LOG_INFO, "session", "event=address-changed to=%s", address);
	strcpy(sess->peer.address, host);
	sess->peer.port = port;
}

struct connect *peer_take_spare(struct session *sess)
{
	struct connect *spare = sess->peer.spare;

	sess->peer.spare = NULL;
	return spare;
}

void peer_drop_spare(struct session *sess) { connect_cancel(peer_take_spare(sess)); }

bool peer_responds(const struct session *sess, struct mono now)
{
	return control_is_up(sess) && mono_diff_ns(now, engine_last_input(sess->engine)) < RESPONDS_NS;
}

void peer_suspect(struct session *sess, const struct mtu_lost *lost)
{
	char text[2 * SOCK_HOST_BYTES + 300];

	if (engine_spooled(sess->engine) || !peer_responds(sess, mono_now()) || !mtu_suspect(&sess->peer.mtu, lost))
		return;
	if (!sess->o.connects)
		return; /* its connections follow the peer's segment size */
	sess->peer.sock.segment_bytes = MTU_SEGMENT_BYTES;
	snprintf(text, sizeof text, "the path to %s seems to drop large packets (MTU): new connections use segments of "
	    "%d bytes (if ping -M do -s 1400 %s fails, have the MTU or the filter of ICMP on the path corrected)",
	    sess->peer.address, MTU_SEGMENT_BYTES, sess->peer.address);
	sess->o.ops->warning(sess->o.arg, NULL, text);
}
