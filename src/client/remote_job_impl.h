/* The inside of requests to remote hosts, for remote_job.c (connection, request, answers), remote_query.c,
 * manage_task.c, read_task.c, write_task.c and measure_task.c. */
#ifndef CLIENT_REMOTE_JOB_IMPL_H
#define CLIENT_REMOTE_JOB_IMPL_H

#include "client/task_impl.h"
#include "engine/job_frames.h"

/* A request on one file, and what the server answers: read_task.c, write_task.c. */
struct work_ops {
	enum job_frames_state request;
	size_t bytes; /* size of the state, zeroed at first */
	int (*take)(struct ptcp_task *t, const void *opts, struct ptcp_err *e);
	void (*put)(struct ptcp_task *t);
	int (*opened)(struct ptcp_task *t, const struct wire_listed *f, struct ptcp_err *e);
	/* NULL: only READ has pieces */
	int (*piece)(struct ptcp_task *t, const struct job_piece *p, struct ptcp_err *e);
	int (*ended)(struct ptcp_task *t, const struct wire_managed *f, struct ptcp_err *e);
	void (*free)(void *work);
};

struct remote_job {
	struct job_frames frames;
	struct ptcp_host *host;         /* keeps the connection for other tasks; NULL: none does */
	bool reused, heard;             /* the connection is a kept one; the server has answered on it */
	bool complete;                  /* the answer of work on files has come to its end */
	enum job_frames_state request;  /* one of .._REQUESTED */
	struct remote doer, other;      /* the host that carries out the job, and the third host; unused in queries */
	enum wire_grant_mode mode;      /* what the grant permits the doer: WRITE, READ (the doer receives), PROBE */
	char audience[PTCP_FINGERPRINT_BYTES]; /* identity of the third host; "": still unknown */
	bool reversing;                 /* the doer refused to send: the receiver is to fetch instead */
	struct ptcp_err first;          /* why the sender refused; code 0: not requested yet */
	struct wire_status status;      /* STATUS_REQUESTED */
	struct ptcp_published_link *link; /* LINKS_REQUESTED: PTCP_PUBLISHED_LINKS_MAX, with strings to be freed */
	size_t n_links;
	struct ptcp_clean_opts clean;   /* CLEAN_REQUESTED: beneath t->target.path */
	struct ptcp_clean_result cleaned;
	enum ptcp_manage_op op;         /* MANAGE_REQUESTED: of the paths in t->files.open_paths */
	struct ptcp_manage_opts manage;
	struct ptcp_manage_result managed;
	void *work;                     /* state of work_ops, on the only path in t->files.open_paths; or NULL */
	const struct work_ops *work_ops;
	size_t next_url;                /* PTCP_SUM: the URL behind the one that the last answer was about */
	size_t known_prefix;            /* size of the part of each listed path that the user knows */
	char *failed_path;              /* path of the first failure; NULL: none */
	struct ptcp_err failure;        /* the first; its cause is that of all, or 0 */
	struct ptcp_timing_opts timing; /* TIMING_REQUESTED */
	struct ptcp_message *message;   /* timing.messages messages; frames.n_samples have arrived */
	double round_trip_s;
};

/* The answer ends with a final frame. */
static inline bool remote_job_is_on_files(const struct remote_job *h)
{
	return h->request == JOB_FRAMES_CLEAN_REQUESTED || h->request == JOB_FRAMES_MANAGE_REQUESTED ||
	    h->request == JOB_FRAMES_READ_REQUESTED || h->request == JOB_FRAMES_WRITE_REQUESTED;
}

static inline bool remote_job_is_query(const struct remote_job *h)
{
	return h->request == JOB_FRAMES_STATUS_REQUESTED || h->request == JOB_FRAMES_LINKS_REQUESTED ||
	    remote_job_is_on_files(h);
}

/* A job: t->target sends to `to`. Sets t->job_ops. */
int remote_job_new(struct ptcp_task *t, const struct remote *to, struct ptcp_err *e);
/* As in remote_job_ops. */
void remote_job_aim(struct ptcp_task *t);
const struct ptcp_err *remote_job_cause(const struct ptcp_task *t, const struct ptcp_err *why);

#define REMOTE_JOB_ID_DIGITS 16
#define REMOTE_JOB_NAME_BYTES (REMOTE_JOB_ID_DIGITS + 1 + REMOTE_USER_BYTES + SOCK_HOST_BYTES)
/* "ID@HOST:PORT" of the job with the id at t->target. */
void remote_job_name(const struct ptcp_task *t, uint64_t id, char out[REMOTE_JOB_NAME_BYTES]);
/* Code and sentence of a job's ERROR or STATE, as an error of the local user's transfer. */
void remote_job_reason(struct ptcp_err *out, const struct wire_why *w);

/* Puts the frames of the request to the doer, whose identity is t->fingerprint. */
int remote_job_put(struct ptcp_task *t, struct ptcp_err *e);
/* After the sender's refusal: whether the receiver can be requested to fetch instead. */
bool remote_job_can_reverse(const struct ptcp_task *t, const struct ptcp_err *why);
/* The receiver is next; t->fingerprint is the sender's. At the end of a callback of t->chan, which is freed. */
void remote_job_reverse(struct ptcp_task *t);

/* ---- manage_task.c ---- */

void remote_job_put_clean(struct remote_job *h, const char *path);
void remote_job_leftover(struct ptcp_task *t, const struct wire_leftover *f);
void remote_job_cleaned(struct ptcp_task *t, const struct wire_cleaned *f);
void remote_job_put_manage(struct ptcp_task *t);
int remote_job_listed(struct ptcp_task *t, const struct wire_listed *f, struct ptcp_err *e);
void remote_job_managed(struct ptcp_task *t, const struct wire_managed *f);

/* The paths of t->target, all on one host, from URLs. */
int remote_job_take_urls(struct ptcp_task *t, const char *const *urls, size_t n, struct ptcp_err *e);

/* ---- remote_job.c ---- */

/* A task of one remote host. */
int remote_job_new_task(struct ptcp_task **out, const struct ptcp_transfer_opts *o, struct ptcp_err *e);
/* A task of such a request on one file; ops->take() takes the options. */
int remote_job_new_work(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct work_ops *ops, const void *opts, struct ptcp_err *e);
/* The entry of LISTED, except for the target. */
struct ptcp_entry remote_job_entry(const struct wire_listed *f, const char *path);
/* Remembers the failure of LISTED for remote_job_failed(). */
int remote_job_fails(struct remote_job *h, const struct wire_listed *f, struct ptcp_err *e);
/* The failure of the only path. */
void remote_job_failed(const struct remote_job *h, struct ptcp_err *e);
/* Sends the next request on files, after the complete answer to the one before. */
int remote_job_request_next(struct ptcp_task *t, struct ptcp_err *e);

/* ---- Answers: remote_query.c, measure_task.c ---- */

void remote_job_state(struct ptcp_task *t, const struct wire_state *f);
int remote_job_link(struct remote_job *h, const struct wire_link *f, struct ptcp_err *e);
void remote_job_sampled(struct remote_job *h, const struct wire_sample *f);

#endif
