/* Jobs of a server: transfers to or from a third host, and measurements of the path to the third host, for authorized
 * clients with a grant of the third host (PROTOCOL.md, section 13). A job is a session of this host with the third
 * host, under the grant. The client follows the job on a job connection; the job ends with the connection, unless the
 * job is detached. A detached job is remembered for a day after the end. Control thread. */
#ifndef SERVER_JOB_H
#define SERVER_JOB_H

#include "core/list.h"
#include "engine/job_frames.h"
#include "net/relay_acl.h"
#include "net/trust/trust.h"
#include "session/session.h"

struct job_conn;
struct job;
struct link_table;

struct job_set {
	struct list jobs, conns;
	struct list turns;                /* work on files that waits for its turn */
	unsigned n_turns;                 /* steps of such work that run */
	unsigned n_running, n_remembered, n_conns, n_file_jobs;
	uint64_t n_refused;               /* requests so far */
	bool ephemeral;                   /* started through ssh: serves work on files only */
	struct context *context;
	const char *root;                 /* NULL: none */
	const char *const *roots;         /* the only roots to open; ended by NULL. NULL: any path */
	const struct own_dirs *own_dirs;  /* beneath no root */
	struct quota_table *quotas;
	const struct ptcp_server_opts *o;
	struct relay_acl *next_hops; /* permitted third hosts; NULL: none */
	struct link_table *links;         /* published links */
	struct memory_budget *memory;     /* NULL: no limit */
	void (*gone)(void *arg);          /* a job or a connection has ended */
	void *arg;
};

/* Everything is borrowed until job_set_fini(); the owner fills in `roots` and `links`. `gone` is called in the middle
 * of the end of a job or connection: defer what depends on job_set_idle(). */
void job_set_init(struct job_set *t, struct context *context, const char *root,
    const struct ptcp_server_opts *o, struct relay_acl *next_hops, void (*gone)(void *arg), void *arg);
/* No job runs and no connection is open. */
bool job_set_idle(const struct job_set *t);
/* Cancels all jobs with the reason `why`; the set becomes idle later. */
void job_set_cancel(struct job_set *t, const struct ptcp_err *why);
void job_set_fini(struct job_set *t); /* once idle */
/* After a change of the authorized clients: cancels jobs without permission. */
void job_set_reauthorize(struct job_set *t, trust_admits_fn *admits, void *arg);

/* The client of a request; borrowed. */
/* The connection of a client, for work on files. */
struct job_reports {
	struct outbox *out;
	/* Sends the frames in `out`. True: the client has to read first; file_job_resume() follows, or
	 * file_job_leave(). */
	bool (*flush)(struct job_conn *c);
	/* The work is over: ERROR with `why`, unless NULL. Closes the connection. */
	void (*over)(struct job_conn *c, const struct ptcp_err *why);
};

struct job_client {
	struct job_conn *conn;
	const char *fingerprint, *address; /* the latter for logs */
	const struct authorization *auth;
	struct job_reports reports;
};

/* Starts a job, which reports to the client's connection and frees itself. On failure `e` is a sentence for the
 * client: PTCP_EREFUSED, PTCP_EPROTO, PTCP_ENOMEM. */
int job_new(struct job **out, struct job_set *t, const struct job_client *c, const struct job_request *q,
    struct ptcp_err *e);
/* The connection has ended: cancels the job unless detached. */
void job_leave(struct job *r);
/* Ends the job for the reason `why`, now or later; no effect once the job is over. */
void job_cancel(struct job *r, const struct ptcp_err *why);

/* The client's job with the id; with id 0 the client's first job after `after` (NULL: of all). NULL: none. */
struct job *job_find(struct job_set *t, const char *client, uint64_t id, struct job *after);
/* Whether the job belongs to the client and has the id. */
bool job_is(const struct job *r, const char *client, uint64_t id);
bool job_is_over(const struct job *r);
/* Strings of `out` point into the job. */
void job_state(const struct job *r, struct wire_state *out);

#endif
