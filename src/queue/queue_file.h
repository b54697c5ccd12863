/* Files of jobs for ptcp jobs, see ptcp-jobs(1): a map with the key `jobs`, a list of maps. */
#ifndef QUEUE_QUEUE_FILE_H
#define QUEUE_QUEUE_FILE_H

#include "queue/queue.h"

#define QUEUE_RETRIES 10 /* retries of a job without the key */

/* Examines a job, and may complete the task. The caller adds file and line to a failure. */
typedef int queue_check_fn(void *arg, const char *name, struct queue_task *t, struct ptcp_err *e);

struct queue_file {
	struct queue_file_job {
		char *name;
		struct queue_task task;
	} *job;
	size_t n;
	char *blackout; /* windows of the queue; NULL: not mentioned */
};

/* The first times after `now_s` are meant. PTCP_ECONFIG: "FILE:LINE:COLUMN: ..". */
int queue_file_read(struct queue_file *f, const char *path, int64_t now_s, queue_check_fn *check, void *arg,
    struct ptcp_err *e);
void queue_file_fini(struct queue_file *f);

#endif
