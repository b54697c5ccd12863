/* Runs a queue: begins jobs, and records beginnings and ends. Files, processes and clock are passed in, for tests that
 * simulate a world.
 *
 * A process starts after the record "begin" is durable, and its job is over after the record "end" is durable. A run
 * after kill -9 repeats unrecorded transfers, which find complete files unchanged. While records cannot be written (a
 * full disk), no job begins, and ends wait in memory. */
#ifndef QUEUE_QUEUE_RUN_H
#define QUEUE_QUEUE_RUN_H

#include "queue/queue.h"

#define QUEUE_PROCESSES_MAX 64

/* How a process of a job has ended. */
enum queue_verdict {
	QUEUE_FINE,
	QUEUE_FAILS,
	QUEUE_NO_HOST, /* no response from the host: further jobs of the pair of hosts wait, too */
	QUEUE_WRONG    /* would fail again */
};
struct queue_process {
	enum queue_verdict verdict;
	int exit;
	const char *error; /* NULL: none */
	struct queue_counts counts;
	bool alone; /* the process had a single pair of a list */
};

struct queue_world {
	/* Sets hosts (on the heap) and disk for the next process of a job. 1: the list of pairs has ended. Negative:
	 * the job cannot begin. */
	int (*prepare)(void *arg, struct queue_job *j, struct ptcp_err *e);
	int (*start)(void *arg, struct queue_job *j, struct ptcp_err *e);
	/* Tells the process to end. */
	void (*stop)(void *arg, struct queue_job *j);
	/* Appends the pairs of the ended process durably to the list of failed pairs. */
	int (*skip)(void *arg, struct queue_job *j, struct ptcp_err *e);
	/* Takes the lock of the journal, and applies the records of other writers. */
	int (*lock)(void *arg, struct ptcp_err *e);
	/* Makes a record durable, applies the record, and releases the lock. NULL: only releases the lock. */
	int (*record)(void *arg, const struct queue_record *r, struct ptcp_err *e);
	/* Tells the user: a job has changed. */
	void (*changed)(void *arg, const struct queue_job *j);
	/* A job has become overdue. */
	void (*overdue)(void *arg, const struct queue_job *j);
	/* Tells the user: records cannot be written, or (NULL) can again. */
	void (*trouble)(void *arg, const struct ptcp_err *e);
	void *arg;
};

struct queue_run;

/* At most `at_once` processes for each pair of hosts, and for each disk of local sources. Borrows the queue. */
int queue_run_new(struct queue_run **out, struct job_queue *q, unsigned at_once, const struct queue_world *w,
    struct ptcp_err *e);
void queue_run_free(struct queue_run *r); /* NULL is fine */

/* Begins jobs, and stops processes of paused and cancelled jobs. Returns the time of the next call at the latest, in
 * seconds since 1970; INT64_MAX: after an event only. */
int64_t queue_run_step(struct queue_run *r, int64_t now_s);
/* The process of a job has ended. Then queue_run_step(). */
void queue_run_ended(struct queue_run *r, struct queue_job *j, const struct queue_process *p, int64_t now_s);
/* From now on nothing begins, and all processes are told to end. */
void queue_run_stop(struct queue_run *r);
/* Whether no process runs, all ends are recorded, and, without queue_run_stop(), only an order can begin a job. After
 * queue_run_stop() ends that cannot be recorded do not count. */
bool queue_run_idle(const struct queue_run *r, int64_t now_s);

#endif
