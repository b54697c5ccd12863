/* Data connections of the TLS client: connects, joins, and reconnects after a loss. */
#ifndef SESSION_STREAM_CONNECT_H
#define SESSION_STREAM_CONNECT_H

#include "core/clock.h"

struct session;

void stream_connect_pump(struct session *sess, struct mono now);
struct mono stream_connect_deadline(const struct session *sess);
void stream_connect_stop(struct session *sess);
/* Moves the streams of a place to its present path: the old connections carry data until the new ones have joined. */
void stream_connect_move(struct session *sess, unsigned place);
/* Connects a successor of the control connection, if wanted. */
void stream_connect_control(struct session *sess, struct mono now);
void stream_connect_stop_control(struct session *sess);

#endif
