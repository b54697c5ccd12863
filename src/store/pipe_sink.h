/* A received file that is written to a descriptor, in order: blocks wait in a bounded window of memory for the blocks
 * before them, and a thread of the sink writes them. Any thread may call these functions at any time, except
 * pipe_sink_free(), which is the last call. */
#ifndef STORE_PIPE_SINK_H
#define STORE_PIPE_SINK_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/digest.h"

#define PIPE_SINK_VERSION_BYTES 16

struct pipe_sink;

/* `fd` is borrowed. PTCP_EUSAGE: not open for writing, or a directory; PTCP_ENOMEM. */
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
/* The file to be received: starts the thread, and precedes pipe_sink_put() and pipe_sink_hole(). Once a session has
 * delivered the first block, later sessions must offer the same file: of equal size, and equal version, or mtime if
 * neither has a version. Else PTCP_ECHANGED. PTCP_ENOMEM. */
int pipe_sink_begin(struct pipe_sink *p, const struct pipe_sink_file *f, struct ptcp_err *e);
/* The thread calls `changed` whenever it has written a block or failed, with the lock of the sink held: `changed`
 * posts a message, and calls no function of the sink. */
void pipe_sink_attach(struct pipe_sink *p, void (*changed)(void *arg), void *arg);
/* No further call of `changed` follows. */
void pipe_sink_detach(struct pipe_sink *p);

struct pipe_sink_state {
	uint32_t taken;        /* number of blocks before the first missing one */
	struct digest sum;     /* sum of the terms of these blocks */
	uint32_t written;      /* blocks written to the descriptor, at most `taken` */
	uint32_t end;          /* the first block beyond the window */
	bool failed;
};
/* `why` is filled with `failed`. */
struct pipe_sink_state pipe_sink_state(struct pipe_sink *p, struct ptcp_err *why);

/* Whether the block is within the window, or was taken before. */
bool pipe_sink_admits(struct pipe_sink *p, uint32_t block);
/* Copies a verified chunk. The chunks of a block come in order; `last`: the block is complete, `hash` is the hash of
 * its content. Never waits for the descriptor. Accepts blocks taken before, without effect. PTCP_EPROTO: beyond the
 * window or the file; PTCP_ENOMEM; PTCP_EIO: the thread has failed, as `why` of pipe_sink_state(). */
int pipe_sink_put(struct pipe_sink *p, const void *buf, uint32_t n, uint64_t off, bool last, uint64_t hash,
    struct ptcp_err *e);
/* Blocks of zeros; blocks beyond the window are ignored. */
void pipe_sink_hole(struct pipe_sink *p, uint32_t first, uint32_t count);

#endif
