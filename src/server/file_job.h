/* Work on the files of a server that a client requests on a job connection (PROTOCOL.md, section 13): in short steps on
 * an I/O thread, reported frame by frame, with pauses while the client does not read. Control thread, except where
 * stated. */
#ifndef SERVER_FILE_JOB_H
#define SERVER_FILE_JOB_H

#include "conn/io_call.h"
#include "core/pacer.h"
#include "server/job.h"
#include "server/request.h"

#define FILE_JOB_STEP_ENTRIES 256          /* other clients' work on the I/O threads comes between two steps */
#define FILE_JOB_STEP_BYTES (64u << 10)    /* size of reports that ends a step */

struct file_job;

struct file_job_ops {
	bool exclusive;   /* a client has one at a time */
	bool takes_turns; /* keeps a processor busy: few steps run at a time, those of all clients in turn */
	/* Bytes of files sent so far, or received: the next frames wait until the limit of the rate permits them. NULL:
	 * none. */
	uint64_t (*moved)(const struct file_job *j);
	bool receives;
	/* The request has found its paths. */
	int (*begin)(struct file_job *j, struct ptcp_err *e);
	/* I/O thread: works on up to FILE_JOB_STEP_ENTRIES entries, and reports them in j->found. 1: more remain, after
	 * j->again_ns if that was set; 0: done; or an error for the client. */
	int (*step)(struct file_job *j, struct ptcp_err *e);
	/* Puts the totals so far. */
	void (*put_totals)(const struct file_job *j, struct outbox *out, bool final);
	/* Fills in the kind of work, and the totals so far. */
	void (*record)(const struct file_job *j, struct ptcp_server_record *r);
	/* Whether the present rights of the client permit it. */
	bool (*permits)(const struct file_job *j, const struct authorization *now);
	void (*free)(struct file_job *j);
};

/* First member of each kind. */
struct file_job {
	const struct file_job_ops *ops;
	struct job_set *set;
	struct job_conn *conn; /* NULL: closed */
	struct job_reports reports;
	char client[PTCP_FINGERPRINT_BYTES], address[SOCK_TEXT_BYTES];
	struct memory_account *memory; /* NULL: no limit */
	struct request request;
	struct outbox found;   /* frames of a step; of the I/O thread during the step */
	bool started;          /* the job runs, since file_job_start() */
	bool waits;            /* the job waits for the client to read */
	/* PACED: what the step has found waits until the rate permits its bytes, those after the first `paced`. AGAIN:
	 * the next step waits, as the last one asked. */
	enum { FILE_JOB_STEPS, FILE_JOB_PACED, FILE_JOB_AGAIN } phase;
	struct pacer_turn limit_turn;
	uint64_t paced, again_ns;
	struct mono again;
	struct timer *timer;   /* NULL: not needed yet */
	bool timed;            /* the timer is set */
	struct mono since, reported;
	struct io_call call;   /* the step */
	struct list turn;      /* among those that wait for theirs */
	bool queued;
};

/* Fills in a zeroed job of `bytes`, whose request is to be taken next; file_job_fini() follows, or file_job_start(). */
int file_job_init(struct file_job *j, const struct file_job_ops *ops, struct job_set *t, const struct job_client *c,
    size_t bytes, struct ptcp_err *e);
void file_job_fini(struct file_job *j);
/* With the request taken: starts. The last report, or an error, ends the connection's request and frees the job. */
void file_job_start(struct file_job *j);
/* The client has read: continues. */
void file_job_resume(struct file_job *j);
/* The connection has ended: stops after the present step; a job that has not started is freed. */
void file_job_leave(struct file_job *j);
/* Any thread: at most max bytes of a text. */
struct span file_job_cut(const char *s, size_t max);
/* The type of an entry with these S_IFMT bits. */
uint8_t file_job_type(uint32_t format);
/* Any thread, during a step: puts LISTED with the failure. */
void file_job_fail(struct file_job *j, const char *path, const struct ptcp_err *why);

/* The kinds. On failure `e` is a sentence for the client. */
int cleaning_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_clean *f,
    struct ptcp_err *e);
int managing_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_manage *f,
    struct ptcp_err *e);
int summing_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_sum *f,
    struct ptcp_err *e);
int reading_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_read *f,
    struct ptcp_err *e);
/* Starts with the last byte of the file: at once if it is empty, else by writing_take(). */
int writing_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_write *f,
    struct ptcp_err *e);
/* The next BLOCK of the file. PTCP_EVERIFY: it has arrived altered. */
int writing_take(struct file_job *j, const struct job_piece *p, struct ptcp_err *e);

#endif
