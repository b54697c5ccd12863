/* A received file that is written to a descriptor, in order: blocks wait in a bounded window of memory for the blocks
 * before them, and a thread writes them. Any thread. */
#ifndef STORE_PIPE_SINK_H
#define STORE_PIPE_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/digest.h"
#include <ptcp/err.h>

#define PIPE_SINK_VERSION_BYTES 16

struct pipe_sink;

/* `fd` is borrowed. */
int pipe_sink_new(struct pipe_sink **out, int fd, uint64_t window_bytes, struct ptcp_err *e);
/* Stops and joins the thread: what is not written yet is lost. NULL is fine. */
void pipe_sink_free(struct pipe_sink *p);

struct pipe_sink_file {
	uint64_t size_bytes;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t block_bytes, n_blocks;
	bool has_version;
	uint8_t version[PIPE_SINK_VERSION_BYTES];
};
/* The file to be received, before other calls. Once part of a file was taken, in an earlier session, only the same
 * file is accepted: PTCP_ECHANGED. */
int pipe_sink_begin(struct pipe_sink *p, const struct pipe_sink_file *f, struct ptcp_err *e);
/* Calls `news`, under a lock, whenever pipe_sink_state() has changed: it may only post a message. */
void pipe_sink_attach(struct pipe_sink *p, void (*news)(void *arg), void *arg);
/* No further call of `news` follows. */
void pipe_sink_detach(struct pipe_sink *p);

struct pipe_sink_state {
	uint32_t taken;        /* blocks before the first missing one, */
	struct digest sum;     /* and the sum of their terms */
	uint32_t written;      /* of them, by the thread */
	uint32_t end;          /* later blocks are beyond the window */
	bool failed;
};
/* `why` is filled with `failed`. */
struct pipe_sink_state pipe_sink_state(struct pipe_sink *p, struct ptcp_err *why);

/* Whether the block is within the window, or was taken before. */
bool pipe_sink_admits(struct pipe_sink *p, uint32_t block);
/* A verified chunk, in order within its block; `last`: of the block, with the block's content hash. Never waits. */
int pipe_sink_put(struct pipe_sink *p, const void *buf, uint32_t n, uint64_t off, bool last, uint64_t hash,
    struct ptcp_err *e);
/* Blocks of zeros, within the window. */
void pipe_sink_hole(struct pipe_sink *p, uint32_t first, uint32_t count);

#endif
