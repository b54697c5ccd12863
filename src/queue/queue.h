/* The queue of ptcp jobs: the state of all jobs follows from the records of the journal. Pure: no files, no clock.
 * Times are seconds since 1970. */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/blackout.h"
#include "queue/queue_record.h"

#define QUEUE_NAME_MAX 64

enum queue_state { QUEUE_WAITING, QUEUE_RUNNING, QUEUE_DONE, QUEUE_FAILED, QUEUE_CANCELLED };

struct queue_texts {
	char **of; /* ended by NULL */
	size_t n;
};

/* The work of a job. */
struct queue_task {
	struct queue_texts sources, options, after; /* an option is "NAME" or "NAME=VALUE" */
	char *destination;
	char *pairs;     /* list of sources and destinations, instead of both above; or NULL */
	char *directory; /* relative paths begin here */
	char *blackout;  /* windows without processes, see core/blackout.h; or NULL */
	char *on_success, *on_failure, *on_overdue; /* commands for the shell, run after these events; or NULL */
	int priority;    /* higher ones first */
	int64_t start_s; /* not before; 0: at once */
	int64_t deadline_s; /* time by which the job is to be done; 0: none */
	unsigned retries;
};

/* The work that processes have done. */
struct queue_counts {
	uint64_t bytes, files, same_bytes, same_files; /* at the destination; same: there before */
	uint64_t failed_files, position, pairs, failed_pairs;
	uint64_t failures;     /* processes that have failed */
	double seconds;
	double impact_percent; /* largest predicted impact on a competing flow */
	bool has_impact;       /* the impact of a process is known */
};
void queue_counts_add(struct queue_counts *sum, struct queue_counts c); /* the larger impact counts */

struct queue_job {
	char *name;
	struct queue_task task;
	struct blackout *blackout; /* the windows of the task; or NULL */
	enum queue_state state;
	bool paused;
	bool alerted; /* the command for overdue jobs was run */
	int64_t begun_s, ended_s, again_s; /* again_s: not before, after a failure */
	unsigned tries;      /* failures in succession */
	unsigned turns;      /* processes that have done a part of a list of pairs */
	int exit;            /* status of the last process */
	char *error;         /* error of the last process, or NULL */
	struct queue_counts sum; /* sum of all processes; position: where the next process begins in the list */
	struct queue_counts recent; /* sum of the processes that have ended since job_queue.since_s */
	uint64_t alone_until;    /* pairs before this position get a process each, to find a failing pair */

	/* Members for the struct queue_run, not in the journal: */
	bool prepared;
	char *hosts;         /* the pair of hosts */
	uint64_t disk;       /* device of a local source; 0: none */
	bool alive;          /* has a process */
	enum { ORDER_UNKNOWN, ORDER_ON_CHAIN, ORDER_CHECKED } order;
};

struct job_queue {
	struct queue_job **job; /* in the order of their entry */
	size_t n, room;
	void *by_name;
	char *blackout_text;    /* windows without processes; or NULL */
	struct blackout *blackout;
	int64_t since_s;        /* for `recent`; set before the records are applied */
};

void queue_free(struct job_queue *q); /* zeroed is fine */
struct queue_job *queue_find(const struct job_queue *q, const char *name);

/* Applies a record (queue_record_read()). PTCP_ECONFIG: a record about an unknown job. A record "add" replaces a job,
 * unless the job runs or is done. */
int queue_apply(struct job_queue *q, const char *word, char *fields, struct ptcp_err *e);

/* Writes the record "add". */
void queue_write_add(struct queue_record *r, const char *name, const struct queue_task *t, int64_t now_s);
/* Writes an order: "pause", "resume", "cancel" or "retry"; without effect on jobs in other states. */
void queue_write_order(struct queue_record *r, const char *word, const char *name, int64_t now_s);
/* Writes that the command for overdue jobs is run. */
void queue_write_overdue(struct queue_record *r, const char *name, int64_t now_s);
void queue_write_begin(struct queue_record *r, const char *name, int64_t now_s);

/* Ends of processes, and their words in the record "end". */
#define QUEUE_ENDS(X) \
	X(SUCCEEDED, "done") \
	X(MORE, "more")       /* a part of a list of pairs */ \
	X(AGAIN, "again")     /* failed, to be repeated at again_s */ \
	X(GIVEN_UP, "failed") /* failed, not to be repeated */ \
	X(STOPPED, "stopped") /* by us: pause, cancel, or the end of the run */
enum queue_end {
#define QUEUE_END(NAME, word) QUEUE_##NAME,
	QUEUE_ENDS(QUEUE_END)
#undef QUEUE_END
};
struct queue_ended {
	enum queue_end end;
	int exit;
	const char *error;
	int64_t again_s;
	struct queue_counts counts;
	uint64_t alone_until;
};
void queue_write_end(struct queue_record *r, const char *name, const struct queue_ended *x, int64_t now_s);

const char *queue_state_name(enum queue_state s);

/* Whether two jobs do the same. */
bool queue_task_equal(const struct queue_task *a, const struct queue_task *b);
void queue_task_fini(struct queue_task *t); /* zeroed is fine */
/* Appends a copy. */
int queue_texts_add(struct queue_texts *t, const char *text, struct ptcp_err *e);
void queue_texts_fini(struct queue_texts *t);

/* Letters, digits, '.', '_' and '-', the first a letter or a digit; at most QUEUE_NAME_MAX. */
bool queue_name_ok(const char *name);

/* The reason why a waiting job does not begin now: "pause", "after", "start", "retry" or "blackout"; NULL: the limits
 * at most. A failure holds a job for QUEUE_PAUSE_MAX_S at most, in case the clock was put back. */
const char *queue_held_by(const struct job_queue *q, const struct queue_job *j, int64_t now_s);
#define QUEUE_PAUSE_MAX_S 3600

/* Whether a window of the queue, or of the job, is closed now, and until when. */
struct blackout_span queue_blackout(const struct job_queue *q, const struct queue_job *j, int64_t now_s);
/* Seconds outside of the windows from now_s to until_s; windows after a year do not count. */
int64_t queue_open_s(const struct job_queue *q, const struct queue_job *j, int64_t now_s, int64_t until_s);
/* Writes the windows of the queue; "none": no windows. */
void queue_write_blackout(struct queue_record *r, const char *windows, int64_t now_s);

/* Whether the job was done after its deadline, or is not done and the deadline is over. */
bool queue_is_overdue(const struct queue_job *j, int64_t now_s);

/* PTCP_ECONFIG: a job comes after an unknown job, or, by a chain, after itself. */
int queue_check_order(const struct job_queue *q, struct ptcp_err *e);

#endif
