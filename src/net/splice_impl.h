/* Internals of a splice: splice.c (sockets and pipes) and splice_spool.c (files). */
#ifndef NET_SPLICE_IMPL_H
#define NET_SPLICE_IMPL_H

#include <sys/types.h>

#include "net/loop_uv.h"
#include "net/splice.h"

/* Writing to or reading from a file, possibly on another thread. */
struct file_io {
	struct splice_job job;
	struct msg done;
	struct lane *lane;
	bool submitted;
	off_t at;
	size_t n;
	ssize_t result;
	int sys;                /* errno for result -1 */
};

/* One direction. Its bytes, oldest first: `out`, the file, the pipe. */
struct lane {
	struct splice *splice;
	int from, to;
	int pipe[2];
	size_t in_pipe;         /* bytes */
	bool eof, shut;         /* the source has ended; the end was forwarded */
	struct spool *spool;    /* NULL: not needed so far */
	bool disk_full;         /* the disk is full until bytes are forwarded and space is freed */
	uint8_t *out;           /* read from the file; NULL: not allocated */
	size_t out_at, out_n;
	struct file_io write, read;
};

struct splice {
	struct splice_opts o;
	struct loop *loop;
	uv_poll_t poll[2];
	int fd[2], events[2];
	unsigned n_open, n_submitted; /* handles, file_io */
	struct lane lane[2];     /* lane[i] carries the bytes from fd[i] to the other descriptor */
	struct timer *idle;
	uint64_t bytes, total_spooled_bytes;
	uint64_t progress_bytes; /* sum of both lanes at the last progress */
	struct mono moved;       /* time of the last progress */
	struct mono slow_until;  /* the disk is slow: write on another thread */
	bool over, freed;
	void (*gone)(void *arg);
	void *gone_arg;
};

/* Moves bytes as far as possible without waiting. */
void splice_pump(struct splice *s);
/* Ends the splice, `why` NULL: in good order. */
void splice_end(struct splice *s, const struct ptcp_err *why);
/* Frees the memory once libuv and other threads no longer use the splice. */
void splice_release(struct splice *s);

/* ---- splice_spool.c ---- */

/* Whether `out` or the file has bytes; they precede the bytes in the pipe. */
bool lane_has_spooled(const struct lane *l);
/* Whether such bytes can be sent without waiting for the disk. */
bool lane_can_unspool(const struct lane *l);
/* From the pipe into the file, from the file to the socket: bytes moved; 0: none now; -1: the splice has
 * ended. */
ssize_t lane_spool(struct lane *l);
ssize_t lane_unspool(struct lane *l);
void lane_close(struct lane *l);

#endif
