/* A connection by which a client asks for an errand and hears of it, or asks how those are doing that it left to
 * us. Control thread. */
#ifndef SERVER_JOB_CONN_H
#define SERVER_JOB_CONN_H

#include "server/job.h"

/* Takes the channel, also on failure; the caller ends by itself. */
int job_conn_new(struct job_set *t, struct chan *c, const char *address, const struct authorization *auth,
    struct ptcp_err *e);
/* Tells those who have ended it what has come of it. */
void job_conns_tell(struct job_set *t, const struct job *r);
/* Those that have no job, and wait for none: they go. */
void job_conns_end(struct job_set *t);

/* Those that have not asked yet: who may not any more goes, of others the rights are looked up again. */
void job_conns_judge_again(struct job_set *t,
    bool (*admits)(void *arg, const char *fingerprint, struct authorization *a), void *arg);
/* How many this client has. */
unsigned job_conns_of(const struct job_set *t, const char *fingerprint);

/* What its errand tells it. Frames are put, then flushed. Who leaves 8 MiB of it unread goes, soon after. */
struct outbox *job_conn_outbox(struct job_conn *c);
void job_conn_flush(struct job_conn *c);
/* The last word, `why` NULL: done. It is told, and goes by itself. */
void job_conn_over(struct job_conn *c, const struct ptcp_err *why, const struct wire_end *end);

#endif
