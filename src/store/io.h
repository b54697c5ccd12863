/* The store's own threads, for what would wait for a disk. */
#ifndef STORE_IO_H
#define STORE_IO_H

#include "core/err.h"

/* Embedded by the caller; `run` is called once on an I/O thread and may free or
 * resubmit the job; how completion gets back to a loop is the caller's affair. */
struct io_job {
	void (*run)(struct io_job *job);
	struct io_job *next; /* the pool's */
};

struct io;

/* `threads` of at least 1, made at once, with all signals blocked. */
int io_new(struct io **out, unsigned threads, struct ptcp_err *e);
/* Any thread; first in, first out. Never fails, allocates nothing. */
void io_submit(struct io *io, struct io_job *job);
/* Runs what was submitted, ends the threads. NULL is fine. */
void io_free(struct io *io);

#endif
