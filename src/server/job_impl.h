/* Internals of a job, for job.c (requests, ends, remembered jobs) and job_session.c (the session with the third
 * host). */
#ifndef SERVER_JOB_IMPL_H
#define SERVER_JOB_IMPL_H

#include "conn/connect.h"
#include "measure/prober.h"
#include "server/job.h"
#include "server/request.h"

struct job {
	struct list in_list;
	struct job_set *set;
	struct job_conn *conn;         /* NULL: closed */
	uint64_t id;                   /* never 0 */
	char client[PTCP_FINGERPRINT_BYTES], address[SOCK_TEXT_BYTES];
	bool detached, report_files;   /* flags of the request */
	char host[WIRE_HOST_MAX + 1], congestion[WIRE_CONGESTION_MAX + 1];
	unsigned port;
	struct sock_opts sock;
	uint64_t linger_ns;   /* life of a session with the third host without a connection */
	uint64_t rate_bps;             /* limit of all streams together; 0: none */
	enum wire_grant_mode mode;     /* what the third host does: WRITE receives, READ sends, PROBE discards */
	struct wire_open open;         /* request to the third host, with `path` only, or without a path for PROBE */
	uint8_t *path;
	struct prober *prober;         /* measurement of a PROBE, else NULL */
	size_t n_samples;              /* number of samples that have been reported */
	uint8_t *grant;                /* the frame */
	size_t grant_bytes;
	char audience[PTCP_FINGERPRINT_BYTES];
	struct request request;
	unsigned fds;                  /* reserved for the session, until it starts */
	unsigned failures;             /* number of failed files */
	char *from, *to;               /* first source and destination; with PROBE "" */
	struct connect *connect;
	char peer[SOCK_TEXT_BYTES];
	struct session *session;
	struct memory_account *memory; /* NULL: no limit */
	struct timer *timer;
	struct mono requested, ended;
	bool over;
	struct ptcp_progress last;
	struct ptcp_err why;           /* failure, unless its code is 0 */
};

/* ---- job.c ---- */

/* `why` NULL: done. Frees the job, or remembers a detached job. */
void job_over(struct job *r, const struct ptcp_err *why);

/* ---- job_session.c ---- */

/* Starts the work. job_over() follows, but never within the call. */
int job_begin(struct job *r, struct ptcp_err *e);
/* Reports the progress to the client, if the connection is open. */
void job_report(struct job *r);
/* The third host is not permitted: fills `e`, returns its code. */
int job_refuse_host(const struct job *r, struct ptcp_err *e);

#endif
