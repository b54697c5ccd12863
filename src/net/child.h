/* Child processes (ssh) with one of our sockets as standard input and output. Everything on the thread of
 * the loop. From the first child on libuv handles SIGCHLD, and waits for its own children only. */
#ifndef NET_CHILD_H
#define NET_CHILD_H

#include <stdbool.h>

#include "net/loop.h"

struct child;

struct child_opts {
	char *const *argv;      /* argv[0] is searched in PATH; borrowed */
	bool quiet;             /* discard its standard error instead of inheriting ours */
	bool merged;            /* the standard error of the child is the socket, too */
	bool apart;             /* own session and process group: signals of the terminal do not reach the child, and
	                         * child_free() ends the whole group */
	/* The child has ended: exit status, and terminating signal or 0. Once, from the loop; may be NULL. */
	void (*ended)(void *arg, int status, int signal);
	void *arg;
};

/* *fd: our end of the socket, non-blocking, owned by the caller. PTCP_ECONNECT when the program cannot be
 * started. */
int child_start(struct child **out, struct loop *l, const struct child_opts *o, int *fd, struct ptcp_err *e);
/* No callback follows. A running child, whose socket the caller should have closed, gets 0.5 s to exit, then
 * SIGTERM, then SIGKILL; loop_free() waits for its end. NULL is fine. */
void child_free(struct child *c);
/* Whether a child of the loop still ends after its child_free(). */
bool children_end(struct loop *l);

#endif
