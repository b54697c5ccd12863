/* Exchange of text lines over a socket before another protocol takes over. Everything on the thread of the
 * loop. */
#ifndef NET_LINE_READER_H
#define NET_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

#define LINE_READER_BYTES 4096 /* the longest line, with its NUL */

struct line_reader;

struct line_reader_ops {
	/* A line without the LF or CR LF at its end; a NUL byte ends the line early. May free the reader or
	 * take its socket. */
	void (*line)(void *arg, const char *line);
	/* The peer closed the socket, or sent too long a line (`broken`). Called once; only
	 * line_reader_free() is allowed then. */
	void (*closed)(void *arg, bool broken);
	/* Text for people: too long a line comes in pieces, and the last line needs no end. */
	bool text;
	/* Of line_reader_send_all(): the peer has taken some; `left` bytes remain. Or NULL. */
	void (*sent)(void *arg, size_t left);
};

/* `fd`: a non-blocking socket; taken, also on failure. */
int line_reader_new(struct line_reader **out, struct loop *l, int *fd, const struct line_reader_ops *ops, void *arg,
    struct ptcp_err *e);
/* Sends a line and its end. False if the socket does not take all of the line. */
bool line_reader_send(struct line_reader *ls, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sends `n` bytes, as fast as the peer takes them, while lines may arrive; `data` is borrowed until all is sent. No
 * line_reader_send() meanwhile. A peer that has closed takes nothing: closed() follows. */
void line_reader_send_all(struct line_reader *ls, const void *data, size_t n);
/* With ops.text: delivers what has arrived, at once, with the beginning of a line. For a peer that writes no more,
 * although others may have the socket open. */
void line_reader_drain(struct line_reader *ls);
/* Frees the reader and returns the socket, owned by the caller. The peer must not have sent more than was
 * read. */
int line_reader_take_fd(struct line_reader *ls);
/* Closes the socket. NULL is fine. */
void line_reader_free(struct line_reader *ls);

#endif
