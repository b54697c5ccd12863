/* Connections whose segments are no longer acknowledged, although the peer answers: TCP waits with growing pauses,
 * for minutes. Both ends reset such a connection, and the TLS client makes a new one. */
#ifndef SESSION_STALLS_H
#define SESSION_STALLS_H

#include "core/clock.h"

struct session;

struct stalls {
	struct mono checked;
	struct mono judged;         /* the control connection was replaced then, and the streams
	                               have been judged after it */
	uint64_t delivered_bytes;   /* bytes of all streams when the latest control connection was lost */
};

void stalls_pump(struct session *sess, struct mono now);
struct mono stalls_deadline(const struct session *sess);

#endif
