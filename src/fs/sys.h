/* The system calls of the store on user files, in a table: tests can make each call fail. Each member behaves
 * as the call of the same name: -1 and errno on failure. */
#ifndef FS_SYS_H
#define FS_SYS_H

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "core/fd.h"

struct sys {
	int (*openat)(int dirfd, const char *path, int flags, mode_t mode);
	int (*openat2)(int dirfd, const char *path, struct open_how *how, size_t size);
	int (*close)(int *fd); /* fd_close(): clears; 0, or an errno, which close leaves as before */
	int (*dup)(int fd); /* sets FD_CLOEXEC */
	int (*fstat)(int fd, struct stat *st);
	int (*fstatat)(int dirfd, const char *path, struct stat *st, int flags);
	int (*fstatfs)(int fd, struct statfs *st);
	int (*faccessat)(int dirfd, const char *path, int mode, int flags);
	DIR *(*fdopendir)(int *fd); /* fd_dir(): takes, also on failure */
	struct dirent *(*readdir)(DIR *d);
	int (*closedir)(DIR *d);
	ssize_t (*readlinkat)(int dirfd, const char *path, char *buf, size_t n);
	ssize_t (*preadv2)(int fd, const struct iovec *v, int n, off_t off, int flags);
	off_t (*lseek)(int fd, off_t off, int whence);
	ssize_t (*sendfile)(int to, int fd, off_t *off, size_t n);
	/* Number of pages of the range in the page cache; ENOSYS before Linux 6.5. */
	int (*cachestat)(int fd, uint64_t off, uint64_t n, uint64_t *pages);
	/* Sets or clears O_DIRECT of the open file. */
	int (*setdirect)(int fd, bool on);
	/* Alignment that direct I/O needs, 0: the file has none; ENOSYS before Linux 6.1. */
	int (*dioalign)(int fd, uint32_t *memory, uint32_t *offset);
	ssize_t (*pwrite)(int fd, const void *buf, size_t n, off_t off);
	int (*ftruncate)(int fd, off_t n);
	int (*fallocate)(int fd, int mode, off_t off, off_t n);
	/* FICLONERANGE: n bytes of `from` at off become those of fd, which shares them. */
	int (*clonerange)(int fd, int from, uint64_t off, uint64_t n);
	int (*fsync)(int fd);
	int (*fdatasync)(int fd);
	int (*syncfs)(int fd);
	int (*flock)(int fd, int op);
	int (*fchmod)(int fd, mode_t mode);
	int (*fchmodat)(int dirfd, const char *path, mode_t mode, int flags);
	int (*futimens)(int fd, const struct timespec ts[2]);
	int (*utimensat)(int dirfd, const char *path, const struct timespec ts[2], int flags);
	int (*fchownat)(int dirfd, const char *path, uid_t uid, gid_t gid, int flags);
	ssize_t (*flistxattr)(int fd, char *names, size_t n);
	ssize_t (*fgetxattr)(int fd, const char *name, void *value, size_t n);
	int (*fsetxattr)(int fd, const char *name, const void *value, size_t n, int flags);
	int (*fremovexattr)(int fd, const char *name);
	/* Of `path` in dirfd, not following a link. */
	ssize_t (*getxattrat)(int dirfd, const char *path, const char *name, void *value, size_t n);
	int (*mkdirat)(int dirfd, const char *path, mode_t mode);
	int (*symlinkat)(const char *target, int dirfd, const char *path);
	int (*linkat)(int fromfd, const char *from, int tofd, const char *to, int flags);
	int (*renameat)(int fromfd, const char *from, int tofd, const char *to);
	/* without RENAME_EXCHANGE and RENAME_WHITEOUT */
	int (*renameat2)(int fromfd, const char *from, int tofd, const char *to, unsigned flags);
	int (*unlinkat)(int dirfd, const char *path, int flags);
};

extern const struct sys sys_real;

/* For opening an existing file to read: not following a link, not blocking on a FIFO. */
#define SYS_READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

/* Reads n bytes at off, fewer at the end of the file; -1 with errno. Repeats after EINTR and short reads. */
ssize_t sys_read_all(const struct sys *sys, int fd, void *buf, size_t n, uint64_t off);
/* Writes n bytes at off. 0, or an errno. Repeats after EINTR and short writes. */
int sys_write_all(const struct sys *sys, int fd, const void *buf, size_t n, uint64_t off);

#endif
