/* Removal of leftovers beneath a client's root, for ptcp clean (PROTOCOL.md, section 13): in short steps on an I/O
 * thread, reported on a job connection. Control thread. */
#ifndef SERVER_CLEANING_H
#define SERVER_CLEANING_H

#include "server/job.h"

struct cleaning;

/* Starts; the last report, or an error, ends the connection's request and frees the cleaning. On failure `e` is a
 * sentence for the client. */
int cleaning_new(struct cleaning **out, struct job_set *t, const struct job_client *c, const struct wire_clean *f,
    struct ptcp_err *e);
/* The connection has ended: stops after the present step. */
void cleaning_leave(struct cleaning *k);
/* Whether the present rights of the client permit it. */
bool cleaning_is_permitted(const struct cleaning *k, const struct authorization *now);

#endif
