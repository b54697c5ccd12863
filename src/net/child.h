/* Programs that we start (ssh), with a socket of ours as their standard input and output. Everything on
 * the thread of the loop. libuv handles SIGCHLD from the first one on and waits for its own only. */
#ifndef NET_CHILD_H
#define NET_CHILD_H

#include <stdbool.h>

#include "net/loop.h"

struct child;

struct child_opts {
	char *const *argv;      /* argv[0] is looked up in PATH; borrowed */
	bool quiet;             /* its standard error goes nowhere, else to ours */
	/* It has ended: its exit status, or the signal that ended it (else 0). Once, from the loop; may be NULL. */
	void (*ended)(void *arg, int status, int signal);
	void *arg;
};

/* *fd: our end, non-blocking, the caller's. PTCP_ECONNECT when the program cannot be started. */
int child_start(struct child **out, struct loop *l, const struct child_opts *o, int *fd,
    struct ptcp_err *e);
/* Nothing is called any more. One that still runs has half a second to end by itself, as our end should be
 * closed, then it is told to, then it is made to; loop_free() waits for that. NULL is fine. */
void child_free(struct child *c);

#endif
