/* Work on an I/O thread whose end the control thread learns of. */
#ifndef CONN_IO_CALL_H
#define CONN_IO_CALL_H

#include "fs/io.h"
#include "net/loop.h"

struct context;

/* Embedded by the caller. */
struct io_call {
	struct io_job io;
	struct msg msg;
	struct loop *control;
	/* On an I/O thread: fills in the result, and with a negative one `why`. */
	void (*work)(struct io_call *c);
	/* On the control thread: may free the call, or start it again, for the next of several short steps: the work of
	 * others comes between them. */
	void (*done)(struct io_call *c);
	int result;
	struct ptcp_err why;
};

void io_call_start(struct io_call *c, const struct context *context, void (*work)(struct io_call *c),
    void (*done)(struct io_call *c));

#endif
