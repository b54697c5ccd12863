/* A connection by which a client asks for an errand and hears of it, or asks how those are doing that it left to
 * us. Control thread. */
#ifndef LIB_CALLER_H
#define LIB_CALLER_H

#include "lib/errand.h"

/* Takes the channel, also on failure; the caller ends by itself. */
int caller_new(struct errand_set *t, struct chan *c, const char *address, const struct authorization *auth,
    struct ptcp_err *e);
/* Tells those who have ended it what has come of it. */
void callers_tell(struct errand_set *t, const struct errand *r);
/* Those that have no errand, and wait for none: they go. */
void callers_end(struct errand_set *t);

/* Those that have not asked yet: who may not any more goes, of others the rights are looked up again. */
void callers_judge_again(struct errand_set *t,
    bool (*admits)(void *arg, const char *fingerprint, struct authorization *a), void *arg);
/* How many this client has. */
unsigned callers_of(const struct errand_set *t, const char *fingerprint);

/* What its errand tells it. Frames are put, then flushed. Who leaves 8 MiB of it unread goes, soon after. */
struct outbox *caller_outbox(struct caller *c);
void caller_flush(struct caller *c);
/* The last word, `why` NULL: done. It is told, and goes by itself. */
void caller_over(struct caller *c, const struct ptcp_err *why, const struct wire_end *end);

#endif
