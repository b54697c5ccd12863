/* A pool of threads for work that may block on disk. */
#ifndef FS_IO_H
#define FS_IO_H

#include "core/err.h"

/* Embedded by the caller; `run` is called once on an I/O thread and may free or resubmit the job. The caller
 * reports completion to its own loop. */
struct io_job {
	void (*run)(struct io_job *job);
	struct io_job *next; /* the pool's */
};

struct io;

/* Starts a thread, and later, while jobs wait, further threads up to `max_threads` (at least 1), with all signals
 * blocked. */
int io_new(struct io **out, unsigned max_threads, struct ptcp_err *e);
/* Any thread; first in, first out. Never fails: if no further thread can be started, the job waits. */
void io_submit(struct io *io, struct io_job *job);
/* Runs the submitted jobs, then ends the threads. NULL is fine. */
void io_free(struct io *io);

#endif
