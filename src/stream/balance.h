/* Streams on worker loops: a new stream goes to the worker with the fewest, and from time to time a stream of an
 * overloaded worker moves to an idle one. Of all sessions of a context, on its control thread. */
#ifndef STREAM_BALANCE_H
#define STREAM_BALANCE_H

#include "stream/stream.h"

/* Places a new stream; PTCP_ENOMEM. */
int balance_join(struct stream *s);
void balance_leave(struct stream *s);
/* Moves the stream to the worker with that index, unless it ends or moves already. */
void stream_move(struct stream *s, unsigned worker);
/* Where it is. */
unsigned stream_worker(const struct stream *s);

#endif
