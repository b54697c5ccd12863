/* The inside of an job, for job.c (taking it on, its end, what is remembered) and job_work.c (what
 * happens in between). */
#ifndef SERVER_JOB_IMPL_H
#define SERVER_JOB_IMPL_H

#include "conn/connect.h"
#include "measure/prober.h"
#include "server/job.h"
#include "server/request.h"

struct job {
	struct list in_list;
	struct job_set *set;
	struct job_conn *caller;         /* NULL: gone */
	uint64_t id;                   /* never 0 */
	char client[PTCP_FINGERPRINT_BYTES], address[SOCK_TEXT_BYTES];
	bool detached, files;          /* as asked for */
	char host[WIRE_HOST_MAX + 1], congestion[WIRE_CONGESTION_MAX + 1];
	unsigned port;
	struct sock_opts sock;
	uint64_t rate_bps;             /* of its streams together; 0: no limit */
	enum wire_grant_mode mode;     /* what the third host does for us: WRITE receives, READ sends, PROBE drops */
	struct wire_open open;         /* for it; `path` is its only one, or none with PROBE */
	uint8_t *path;
	struct prober *prober;         /* with PROBE, else NULL */
	size_t n_samples;              /* of it, that have been told */
	uint8_t *grant;                /* the frame */
	size_t grant_bytes;
	char audience[PTCP_FINGERPRINT_BYTES];
	struct request asked;
	unsigned failures;             /* of its files */
	char *from, *to;               /* the first of its sources, and its destination; with PROBE "" */
	struct connect *connect;
	char peer[SOCK_TEXT_BYTES];
	struct session *session;
	struct timer *timer;
	struct mono asked_at, ended;
	bool over;
	struct session_progress last;
	struct ptcp_err why;           /* if its code is not 0 */
};

/* ---- job.c ---- */

/* `why` NULL: done. Frees it unless it is to be remembered. */
void job_over(struct job *r, const struct ptcp_err *why);

/* ---- job_work.c ---- */

/* What it consists of begins, and ends in job_over(), not from within. */
int job_begin(struct job *r, struct ptcp_err *e);
/* Its caller, if it is there, learns how far it is. */
void job_tell(struct job *r);
/* Connecting there is not allowed: fills `e`, returns its code. */
int job_not_there(const struct job *r, struct ptcp_err *e);

#endif
