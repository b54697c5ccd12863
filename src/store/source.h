/* A regular file that is being sent. Any thread; reads may run concurrently. */
#ifndef STORE_SOURCE_H
#define STORE_SOURCE_H

#include "fs/direct_io.h"
#include "store/hash.h"
#include "store/pipe_source.h"
#include "store/walk.h"
#include "sums/sums.h"

struct source;

/* For a listed file without disk space, of no more than a page: the file system may not know its size, as that of
 * files in /proc (0) and /sys (a page). Reads it to its end, up to SOURCE_CONTENT_MAX bytes: if that is another number
 * of bytes than the size, these become its content and its size. Fails as source_read(). I/O threads only. */
enum { SOURCE_CONTENT_MAX = 16 * HASH_CHUNK_BYTES };
bool source_lacks_size(const struct walk_entry *w);
int source_find_size(struct walk_entry *w, struct ptcp_err *e);

/* The file of a WALK_FILE entry, without I/O. Takes the entry's dir and name (the entry is empty then). NULL
 * without memory (the entry is untouched). */
struct source *source_new(struct walk_entry *take);
/* Of an entry that was listed on another host, whose device number differs: matches every device. */
#define SOURCE_ANY_DEV UINT64_MAX
/* The listed entry; NULL: a pipe. */
const struct walk_entry *source_entry(const struct source *s);
/* A file whose content is the input of `pipe`, borrowed: source_check() fails
 * if the input has failed. It has no holes, and is never removed. */
struct source *source_of_pipe(struct pipe_source *pipe);
/* Before the first read: a file of several blocks is read by direct I/O, where its file system can. */
void source_use_direct_io(struct source *s, struct direct_io *t);
/* Before the first read: a file that grows afterwards is read up to its listed size. It counts as unchanged if these
 * bytes are the same when read again: by a read of the whole file itself, else by the caller, see source_check(). */
void source_permit_growth(struct source *s);
/* Before the first read: a read of the whole file fails by PTCP_EVERIFY if the content does not have this
 * digest, borrowed until the last read. Of a file read in parts, the caller checks the digest. */
void source_expect(struct source *s, const struct sums_expected *x);
/* The file has grown, and what was read of it was the same when read again. */
bool source_has_grown(const struct source *s);
struct source *source_ref(struct source *s);
void source_unref(struct source *s); /* the last reference closes the file; NULL is fine */

uint64_t source_size_bytes(const struct source *s); /* size; of a pipe: the bytes read so far */
const char *source_path_text(const struct source *s, char *out, size_t cap);
const char *source_path_raw(const struct source *s, char *out, size_t cap);

/* An opaque value that changes with the content: derived from inode number, size, mtime and ctime (not the
 * device number, which may change with a restart). */
#define SOURCE_VERSION_BYTES 16
void source_version(const struct source *s, uint8_t out[SOURCE_VERSION_BYTES]);
void source_version_of(const struct manage_stamp *file, uint8_t out[SOURCE_VERSION_BYTES]);

/* Whether the file occupied less disk space than its size when listed: a hint to call source_map(). */
bool source_sparse(const struct source *s);

/* Whether reads bypass the page cache: without `wait` they return STORE_AGAIN. */
bool source_is_direct(const struct source *s);

/* Reads exactly n bytes at off. Without `wait` the call never blocks on disk: on STORE_AGAIN repeat it with
 * `wait` on an I/O thread. The file is opened on first use (not following links, not blocking on a FIFO) and
 * must be the listed file: PTCP_EVANISHED if it was removed, PTCP_ECHANGED for another inode, size, mtime or
 * ctime, or an end of file before off + n. After a failure the content of buf is undefined. A read of the
 * whole file (off 0, n = size) repeats the check after reading and closes the file, so that small files occupy
 * no descriptors. n may be 0 for an empty file. */
int source_read(struct source *s, void *buf, size_t n, uint64_t off, bool wait, struct ptcp_err *e);

/* Whether source_send() applies: n bytes at off, not the whole file, are in memory, as far as the kernel reports that
 * cheaply. Never blocks on disk. */
bool source_in_memory(struct source *s, size_t n, uint64_t off);
/* Sends up to n bytes at off to the socket without copying them: a change of these bytes before the peer has
 * acknowledged them changes what is sent, so source_check() comes after that. The number of bytes; 0: the socket is
 * full; negative: this way is not possible (any more), source_read() works or reports why not. */
ssize_t source_send(struct source *s, int sock, size_t n, uint64_t off);

/* Adds to the bitmap `holes` the blocks (of block_bytes, the last may be shorter) that lie entirely in holes,
 * hence are zero, without reading; none where the file system does not report holes. At most two system calls
 * a block. I/O threads only; fails as source_read(). */
int source_map(struct source *s, uint32_t block_bytes, uint64_t *holes, struct ptcp_err *e);

/* Compares the file with the listed one (PTCP_ECHANGED, PTCP_EVANISHED) and closes the file. For files of several
 * blocks, after the last read. SOURCE_GREW: it may, see source_permit_growth(), and file_digest_next() has to compare
 * it with what was read. */
enum { SOURCE_GREW = 1 };
int source_check(struct source *s, struct ptcp_err *e);

/* Removes the file, if unchanged: manage_remove_unchanged(). I/O threads only. */
int source_remove(struct source *s, struct ptcp_err *e);
/* Whether the file had several names when listed. */
bool source_linked(const struct source *s);

/* The failure PTCP_ECHANGED. */
int source_changed(const struct source *s, struct ptcp_err *e);

/* A step of the digest (hash.h): 1: more blocks are left; 0: all are hashed and source_check() succeeded; or
 * fails as source_read(). I/O threads only. */
int file_digest_next(struct file_digest *sum, struct source *s, struct ptcp_err *e);
/* The same up to the block `end`, without source_check(). */
int file_digest_until(struct file_digest *sum, struct source *s, uint32_t end, struct ptcp_err *e);

#endif
