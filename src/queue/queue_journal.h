/* The journal of a queue: a file of records, for several readers and writers. A written record survives kill -9 and the
 * loss of power. Readers ignore a torn last line, left by a killed writer, and the next writer removes the line. */
#ifndef QUEUE_QUEUE_JOURNAL_H
#define QUEUE_QUEUE_JOURNAL_H

#include <sys/types.h>

#include "queue/queue.h"

struct queue_journal {
	char *path;
	int fd;
	off_t done;    /* applied bytes */
	unsigned line; /* applied lines */
	/* Gets a copy of each record first; may be NULL. */
	void (*each)(void *arg, const char *word, char *fields);
	void *arg;
};

/* Opens DIR/journal. With `make` creates directory and file. PTCP_ECONFIG: no queue, or none of this user. */
int queue_journal_open(struct queue_journal *j, const char *dir, bool make, struct ptcp_err *e);
void queue_journal_close(struct queue_journal *j); /* zeroed, with fd -1, is fine */

/* Applies the records since the last call. PTCP_ECONFIG: a damaged record, named by its line. */
int queue_journal_follow(struct queue_journal *j, struct job_queue *q, struct ptcp_err *e);

/* Takes the lock of the journal, until queue_journal_unlock(), and applies the records of other writers: the caller
 * decides on the present state. Waits as fd_lock(). */
int queue_journal_lock(struct queue_journal *j, struct job_queue *q, int wait_ms, struct ptcp_err *e);
void queue_journal_unlock(struct queue_journal *j);
/* Writes the records durably and applies them; needs the lock. PTCP_ENOSPC, PTCP_EIO: nothing is written. */
int queue_journal_append(struct queue_journal *j, struct job_queue *q, const struct queue_record *r,
    struct ptcp_err *e);

#endif
