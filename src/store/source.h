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

/* Read exactly n bytes at off into buf. With `wait` false nothing waits for the
 * disk: STORE_AGAIN, and the caller comes back with `wait` true on an I/O thread.
 * The file is opened on first use (without following links; never blocks on a
 * FIFO) and must still be the file that was listed: another inode, size, mtime or
 * ctime, or an end of file before off + n, is PTCP_ECHANGED. After a failure the
 * content of buf is undefined. A read of the whole file (off 0, n = size) checks
 * again after reading and closes the descriptor again: many small files do not
 * hold descriptors. n may be 0 for an empty file. */
int source_read(struct source *s, void *buf, size_t n, uint64_t off, bool wait, struct ptcp_err *e);

/* Is it still what was listed? For a file of several blocks after its last read;
 * PTCP_ECHANGED if not. Closes the descriptor. */
int source_check(struct source *s, struct ptcp_err *e);

#endif
