/* The inside of a splice, for splice.c (sockets and pipes) and splice_hold.c (what is held in files). */
#ifndef NET_SPLICE_IMPL_H
#define NET_SPLICE_IMPL_H

#include <sys/types.h>

#include "net/loop_uv.h"
#include "net/splice.h"

/* Writing to a file, or reading from it, on another thread. */
struct chore {
	struct splice_job job;
	struct msg done;
	struct lane *lane;
	bool away;
	off_t at;
	size_t n;
	ssize_t result;
	int sys;                /* the errno, if that is -1 */
};

/* One direction; a pipe holds what has been taken and not given on. Oldest first: what `out` has, then the file, then
 * the pipe. */
struct lane {
	struct splice *splice;
	int from, to;
	int pipe[2];
	size_t held;            /* in the pipe */
	bool eof, shut;         /* nothing more comes; the end has been carried on */
	struct spool *spool;    /* NULL: none was needed yet */
	bool full;              /* the disk was; to be tried again when something has been given on */
	uint8_t *out;           /* read from the file; NULL: nothing is */
	size_t out_at, out_n;
	struct chore write, read;
};

struct splice {
	struct splice_opts o;
	struct loop *loop;
	uv_poll_t poll[2];
	int fd[2], events[2];
	unsigned n_open, n_away; /* handles, chores */
	struct lane lane[2];     /* from fd[i] to the other */
	struct timer *idle;
	uint64_t bytes, stored_bytes;
	uint64_t seen;           /* of both, */
	struct mono moved;       /* then */
	struct mono slow_until;  /* the disk pushes back */
	bool over, freed;
	void (*gone)(void *arg);
	void *gone_arg;
};

/* Moves everything that can be moved. */
void splice_pump(struct splice *s);
/* Ends it, `why` NULL: well. */
void splice_end(struct splice *s, const struct ptcp_err *why);
/* A chore has come back to a splice that has been freed. */
void splice_let_go(struct splice *s);

/* ---- splice_hold.c ---- */

/* Something is behind `out`, or older than what the pipe has. */
bool lane_holds(const struct lane *l);
/* There is something to give on from it, without waiting for a disk first. */
bool lane_can_give(const struct lane *l);
/* From the pipe into the file, from the file to the socket: bytes moved, 0: none can be now; -1: it has failed. */
ssize_t lane_store(struct lane *l);
ssize_t lane_give(struct lane *l);
void lane_close(struct lane *l);

#endif
