/* A connection of a client that requests and follows a job, queries jobs or published links, or
 * requests work on files.
 * Control thread. */
#ifndef SERVER_JOB_CONN_H
#define SERVER_JOB_CONN_H

#include "server/job.h"

/* Takes the channel, also on failure; the connection frees itself. */
int job_conn_new(struct job_set *t, struct chan *c, const char *address, const struct authorization *auth,
    struct ptcp_err *e);
/* Reports the final state of the job to clients that have canceled the job. */
void job_conns_report(struct job_set *t, const struct job *r);
/* For connections without a job: closes those of clients without authorization, and updates the rights of the rest;
 * `admits` NULL: closes all. */
void job_conns_reauthorize(struct job_set *t, trust_admits_fn *admits, void *arg);
/* Number of connections of the client, or (NULL) of all, but those about to close. */
unsigned job_conns_of(const struct job_set *t, const char *fingerprint);
/* Closes the connection among these that has waited for its next request for the longest time. False: none waits. */
bool job_conns_close_idle(struct job_set *t, const char *fingerprint);

/* Frames to the client: put, then flush. Disconnects a client with more than 8 MiB unread. */
struct outbox *job_conn_outbox(struct job_conn *c);
void job_conn_flush(struct job_conn *c);
/* The job is over: sends ERROR with `why`, else END, and closes the connection. */
void job_conn_over(struct job_conn *c, const struct ptcp_err *why, const struct wire_end *end);

#endif
