/* Reads and writes of a descriptor that the user opened: a pipe, socket, terminal or file. Calls wait for the other
 * end, but not longer than until pipe_io_stop(). The descriptor stays the user's: flags that others may share, such as
 * O_NONBLOCK, are not changed. One thread reads or writes; any thread may call pipe_io_stop() meanwhile. */
#ifndef FS_PIPE_IO_H
#define FS_PIPE_IO_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <sys/types.h>

struct pipe_io {
	int fd;       /* the user's */
	int own;      /* a non-blocking descriptor of the same pipe or terminal, to write to; -1: none */
	int wake;     /* readable after pipe_io_stop() */
	bool socket;
	bool blocks;  /* writes may wait beyond pipe_io_stop(): at most PIPE_BUF bytes, which a
	                 ready pipe takes at once */
};

/* `fd` is borrowed. PTCP_EUSAGE: not open in this direction, or a directory; PTCP_ENOMEM: no descriptor is left. */
int pipe_io_init(struct pipe_io *p, int fd, bool writes, struct ptcp_err *e);
/* After the last read or write has returned. */
void pipe_io_fini(struct pipe_io *p);
/* Ends the current call and all later ones, with ECANCELED. */
void pipe_io_stop(struct pipe_io *p);

/* Up to n bytes; 0 at the end; -1 with errno, ECANCELED after pipe_io_stop(). */
ssize_t pipe_io_read(struct pipe_io *p, void *buf, size_t n);
/* All n bytes: 0, or an errno, ECANCELED after pipe_io_stop(). */
int pipe_io_write(struct pipe_io *p, const void *buf, size_t n);

#endif
