/* Reads and writes of a descriptor that the user opened: a pipe, socket, terminal or file. Calls wait for the other
 * end, but not longer than until pipe_io_stop(). The descriptor stays the user's: flags that others may share, such as
 * O_NONBLOCK, are not changed. */
#ifndef FS_PIPE_IO_H
#define FS_PIPE_IO_H

#include <stdbool.h>
#include <sys/types.h>

#include <ptcp/err.h>

struct pipe_io {
	int fd;       /* the user's */
	int own;      /* of a pipe: a non-blocking descriptor of its own; else -1 */
	int wake;     /* readable after pipe_io_stop() */
	bool socket;
	bool blocks;  /* a write of more than PIPE_BUF could wait beyond pipe_io_stop() */
};

int pipe_io_init(struct pipe_io *p, int fd, bool writes, struct ptcp_err *e);
void pipe_io_fini(struct pipe_io *p);
/* Any thread. */
void pipe_io_stop(struct pipe_io *p);

/* Up to n bytes; 0 at the end; -1 with errno, ECANCELED after pipe_io_stop(). */
ssize_t pipe_io_read(struct pipe_io *p, void *buf, size_t n);
/* All n bytes: 0, or an errno. */
int pipe_io_write(struct pipe_io *p, const void *buf, size_t n);

#endif
