/* Joined connections of the acceptor's end: which connection belongs to which stream of which session. */
#include <string.h>

#include "conn/join_proof.h"
#include "session/session_impl.h"

/* The peer itself joins with the key of the session, a mover of the peer with a key that only the two ends can make
 * for its identity. The control connection stays between the two ends. */
static int join_key(uint8_t out[32], const struct session *sess, const struct chan *c, const struct wire_join *j)
{
	bool peer = strcmp(chan_fingerprint(c), sess->peer.fingerprint) == 0;

	if (peer)
		memcpy(out, sess->key, sizeof sess->key);
	else if (j->stream == WIRE_JOIN_CONTROL)
		return PTCP_EREFUSED;
	return peer ? 0 : tls_mover_key(out, sess->key, chan_fingerprint(c));
}

enum session_join session_join(const struct session *sess, struct chan *c, const struct wire_join *j)
{
	uint8_t key[32];
	bool genuine;

	genuine = sess != NULL && memcmp(sess->id, j->session, sizeof sess->id) == 0 &&
	    (sess->striping.pool == NULL || j->stream == WIRE_JOIN_CONTROL) &&
	    join_key(key, sess, c, j) == 0 && join_proof_valid(c, j, key);
	explicit_bzero(key, sizeof key);
	if (genuine && (j->stream == WIRE_JOIN_CONTROL ? control_may_resume(sess) : streams_accepts(sess, j->stream)))
		return SESSION_JOIN_VALID;
	return genuine && sess->end.over ? SESSION_JOIN_LATE : SESSION_JOIN_INVALID;
}

void session_add_stream(struct session *sess, unsigned number, struct chan *c)
{
	if (number == WIRE_JOIN_CONTROL)
		control_take(sess, c);
	else
		streams_add(sess, number, c, false);
}
