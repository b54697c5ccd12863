/* Direct I/O (O_DIRECT): reads and writes of files of several blocks that bypass the page cache. Memory, offset and
 * length of the system calls are multiples of DIRECT_IO_BYTES; other reads and writes go through an aligned buffer. Any
 * thread. */
#ifndef FS_DIRECT_IO_H
#define FS_DIRECT_IO_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fs/dir.h"

#define DIRECT_IO_BYTES 4096
#define DIRECT_IO_FILE_BYTES (256u << 10) /* files up to this size are a single block, and use the page cache */

/* Of a transfer, zeroed at first; outlives its files. */
struct direct_io {
	atomic_int refused;              /* enum direct_io_refused */
	char path[DIR_PATH_RAW_BYTES];   /* first file whose file system refused direct I/O */
};
enum direct_io_refused { DIRECT_IO_ACCEPTED, DIRECT_IO_NAMING, DIRECT_IO_REFUSED, DIRECT_IO_REPORTED };
#define DIRECT_IO_REFUSED_WHY "the file system has no direct I/O: data goes through the page cache"

/* True once, after the first direct_io_refuse(). */
bool direct_io_report(struct direct_io *t);
void direct_io_refuse(struct direct_io *t, const struct dir *d, const char *name);

/* Sets O_DIRECT for the open file. False: the file system has no direct I/O, or needs a larger alignment. */
bool direct_io_begin(const struct sys *sys, int fd);
/* Back to the page cache, for all threads that use the descriptor. */
void direct_io_end(const struct sys *sys, int fd);
/* Whether an operation failed with this errno because it was direct. */
bool direct_io_is_refusal(int error);

/* Aligned memory for n bytes, to be released with free(). NULL without memory. */
void *direct_io_memory(size_t n);
/* As sys_read_all() and sys_write_all(), with O_DIRECT set or not. `off` of a write is a multiple of DIRECT_IO_BYTES;
 * if the end is not, zeros follow up to the next multiple: the file must be cut to its size later. */
ssize_t direct_io_read(const struct sys *sys, int fd, void *buf, size_t n, uint64_t off);
int direct_io_write(const struct sys *sys, int fd, const void *buf, size_t n, uint64_t off);

#endif
