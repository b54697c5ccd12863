/* A conversation in lines of text over a socket, before it carries something else. Everything on the
 * thread of the loop. */
#ifndef NET_LINE_READER_H
#define NET_LINE_READER_H

#include <stdbool.h>

#include "net/loop.h"

#define LINE_READER_BYTES 4096 /* the longest, with its NUL */

struct line_reader;

struct line_reader_ops {
	/* One line without its end (LF or CR LF); bytes may be any but NUL, which ends it early. May free
	 * or take over the lines. */
	void (*line)(void *arg, const char *line);
	/* The other side has closed, or sent a line that is too long (`broken`). Once, then only
	 * line_reader_free() is left. */
	void (*closed)(void *arg, bool broken);
};

/* `fd`: a non-blocking socket; taken, also on failure. */
int line_reader_new(struct line_reader **out, struct loop *l, int fd, const struct line_reader_ops *ops, void *arg,
    struct ptcp_err *e);
/* Sends a line, its end is added. False when the socket does not take it. */
bool line_reader_say(struct line_reader *ls, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Frees them but for the socket, which is the caller's. The other side must not have sent more than what
 * has been read. */
int line_reader_take_fd(struct line_reader *ls);
/* Closes the socket. NULL is fine. */
void line_reader_free(struct line_reader *ls);

#endif
