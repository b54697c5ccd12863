/* The input of an UNSIZED file: a thread of the source reads a descriptor into whole blocks, which stay in memory until
 * the receiver has them, as the input cannot be read again. Any thread may call these functions at any time, except
 * pipe_source_free(), which is the last call. */
#ifndef STORE_PIPE_SOURCE_H
#define STORE_PIPE_SOURCE_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stdint.h>

struct pipe_source;

struct pipe_source_opts {
	int fd;                /* borrowed */
	uint32_t block_bytes;
	uint32_t max_blocks;   /* max number in memory; a later block is read once an earlier one is released */
	uint64_t max_bytes;    /* max size of the whole input */
	/* At the end of the input, on the thread: may wait; a negative PTCP_E* fails the input. NULL: nothing is to
	 * do. */
	int (*ended)(void *arg, struct ptcp_err *e);
	void *arg;
};

/* PTCP_EUSAGE: the descriptor is not open for reading, or is a directory; PTCP_ENOMEM. */
int pipe_source_new(struct pipe_source **out, const struct pipe_source_opts *o, struct ptcp_err *e);
/* Stops and joins the thread; `ended` must return. NULL is fine. */
void pipe_source_free(struct pipe_source *p);

/* Starts the thread; a further call only replaces `changed`. The thread calls `changed` after each whole block and at
 * the end, with the lock of the source held: `changed` posts a message, and calls no function of the source.
 * PTCP_ENOMEM: the thread cannot be started. */
int pipe_source_start(struct pipe_source *p, void (*changed)(void *arg), void *arg, struct ptcp_err *e);
/* No further call of `changed` follows. */
void pipe_source_detach(struct pipe_source *p);

struct pipe_source_state {
	uint32_t blocks;       /* whole blocks read so far */
	bool ended;            /* the input has ended, with size_bytes, or with `failed` */
	bool failed;
	bool waits;            /* every block read so far was released: the input is to blame for the delay */
	uint64_t size_bytes;
};
/* `why` is filled with `failed`. */
struct pipe_source_state pipe_source_state(struct pipe_source *p, struct ptcp_err *why);

/* After the end: 0, or why the input failed. */
int pipe_source_check(struct pipe_source *p, struct ptcp_err *e);

/* Copies n bytes of one block, never waits. PTCP_ECHANGED: the block was released. */
int pipe_source_read(struct pipe_source *p, void *buf, uint32_t n, uint64_t off, struct ptcp_err *e);
/* Frees the block, once running reads of the block have ended. The block was counted in `blocks`, or is the last one of
 * an input that has ended; each block is released once, in any order. */
void pipe_source_release(struct pipe_source *p, uint32_t block);
/* Nothing was released: another session can send the input from its beginning. */
bool pipe_source_is_whole(struct pipe_source *p);

#endif
