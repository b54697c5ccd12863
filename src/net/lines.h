/* A conversation in lines of text over a socket, before it carries something else. Everything on the
 * thread of the loop. */
#ifndef NET_LINES_H
#define NET_LINES_H

#include <stdbool.h>

#include "net/loop.h"

#define LINES_BYTES 4096 /* the longest, with its NUL */

struct lines;

struct lines_ops {
	/* One line without its end (LF or CR LF); bytes may be any but NUL, which ends it early. May free
	 * or take over the lines. */
	void (*line)(void *arg, const char *line);
	/* The other side has closed, or sent a line that is too long (`broken`). Once, then only
	 * lines_free() is left. */
	void (*closed)(void *arg, bool broken);
};

/* `fd`: a non-blocking socket; taken, also on failure. */
int lines_new(struct lines **out, struct loop *l, int fd, const struct lines_ops *ops, void *arg,
    struct ptcp_err *e);
/* Sends a line, its end is added. False when the socket does not take it. */
bool lines_say(struct lines *ls, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Frees them but for the socket, which is the caller's. The other side must not have sent more than what
 * has been read. */
int lines_take_fd(struct lines *ls);
/* Closes the socket. NULL is fine. */
void lines_free(struct lines *ls);

#endif
