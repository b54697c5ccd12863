/* Joined connections of the acceptor's end: the stream and the session of each connection. */
#include <string.h>

#include "conn/join_proof.h"
#include "session/session_impl.h"

enum session_join session_join(const struct session *sess, struct chan *c, const struct wire_join *j)
{
	/* The control connection stays between the two ends; movers of the peer join streams. */
	bool genuine = sess != NULL && memcmp(sess->id, j->session, sizeof sess->id) == 0 &&
	    (sess->striping.pool == NULL || j->stream == WIRE_JOIN_CONTROL) &&
	    (j->stream != WIRE_JOIN_CONTROL || strcmp(chan_fingerprint(c), sess->peer.fingerprint) == 0) &&
	    join_proof_valid(c, j, sess->key, sess->peer.fingerprint);

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
