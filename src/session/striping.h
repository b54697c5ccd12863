/* Movers, which carry the streams of a session in place of worker threads: which mover carries which stream, and the
 * limits of all of them together. */
#ifndef SESSION_STRIPING_H
#define SESSION_STRIPING_H

#include "mover/movers.h"
#include "session/endpoints.h"

struct session;
struct session_opts;

struct striping {
	struct movers *movers;      /* movers that carry the streams; NULL: worker threads do */
	struct movers *pool;        /* acceptor: of the server; `movers` is the set of this session. NULL: none */
	struct endpoints *endpoints; /* starter: of the acceptor's movers; NULL: streams connect to the acceptor */
};

void striping_init(struct session *sess, const struct session_opts *o);
/* Once agreed: movers of the server accept the streams of this session, or of the acceptor the streams of the
 * starter. */
int striping_open(struct session *sess, bool movers, struct ptcp_err *e);
void striping_free(struct session *sess);
/* Starter: as engine_ops.endpoint. */
void striping_on_endpoint(struct session *sess, const struct wire_endpoint *f);
/* From now on movers carry the streams. */
void striping_start(struct session *sess);
void striping_stop(struct session *sess);
void striping_pump(struct session *sess, struct mono now);
struct mono striping_deadline(const struct session *sess);

/* Movers of either end carry the streams, whose number depends on theirs. */
bool striping_sets_streams(const struct session *sess);
/* A rate limit may delay the movers' streams. */
bool striping_is_paced(const struct session *sess);

#endif
