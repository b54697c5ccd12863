/* A regular file that is being sent. Any thread; reads may run side by side. */
#ifndef STORE_SOURCE_H
#define STORE_SOURCE_H

#include "store/walk.h"

struct source;

/* The file of a WALK_FILE entry; no I/O yet. Takes the entry's dir and name
 * (the entry is left empty). NULL without memory (the entry is untouched). */
struct source *source_new(struct walk_entry *take);
struct source *source_ref(struct source *s);
void source_unref(struct source *s); /* closes with the last hold; NULL is fine */

uint64_t source_size_bytes(const struct source *s);
const char *source_path_text(const struct source *s, char *out, size_t cap);
const char *source_path_raw(const struct source *s, char *out, size_t cap);

/* A value that is another one when the content may be: made of inode number, size, mtime and ctime
 * (no device number, which a restart may change). Nothing else may be read out of it. */
#define SOURCE_VERSION_BYTES 16
void source_version(const struct source *s, uint8_t out[SOURCE_VERSION_BYTES]);

/* It had less on disk than its size when it was listed: source_map() is worth its while. */
bool source_sparse(const struct source *s);

/* Read exactly n bytes at off into buf. With `wait` false nothing waits for the
 * disk: STORE_AGAIN, and the caller comes back with `wait` true on an I/O thread.
 * The file is opened on first use (without following links; never blocks on a
 * FIFO) and must still be the file that was listed: another inode, size, mtime or
 * ctime, or an end of file before off + n, is PTCP_ECHANGED. After a failure the
 * content of buf is undefined. A read of the whole file (off 0, n = size) checks
 * again after reading and closes the descriptor again: many small files do not
 * hold descriptors. n may be 0 for an empty file. */
int source_read(struct source *s, void *buf, size_t n, uint64_t off, bool wait, struct ptcp_err *e);

/* Adds to `holes`, a bitmap, those blocks (of block_bytes, the last may be shorter) that lie wholly
 * in holes, hence are zero, without reading anything. Where the file system cannot tell: none. At most
 * two system calls a block. I/O threads only; fails as a read does. */
int source_map(struct source *s, uint32_t block_bytes, uint64_t *holes, struct ptcp_err *e);

/* Is it still what was listed? For a file of several blocks after its last read;
 * PTCP_ECHANGED if not. Closes the descriptor. */
int source_check(struct source *s, struct ptcp_err *e);

#endif
