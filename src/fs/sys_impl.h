/* For the tables of system calls: sys_linux.c and sys_posix.c. */
#ifndef FS_SYS_IMPL_H
#define FS_SYS_IMPL_H

#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "fs/sys.h"

int sys_openat(int dirfd, const char *path, int flags, mode_t mode);
int sys_dup(int fd);

/* Calls that all systems have in the same form. */
#define SYS_COMMON \
	.openat = sys_openat, .close = fd_close, .dup = sys_dup, .fstat = fstat, .fstatat = fstatat, \
	.faccessat = faccessat, .fdopendir = fd_dir, .readdir = readdir, .closedir = closedir, \
	.readlinkat = readlinkat, .lseek = lseek, .pwrite = pwrite, .ftruncate = ftruncate, .fsync = fsync, \
	.fdatasync = fdatasync, .flock = flock, .fchmod = fchmod, .fchmodat = fchmodat, .futimens = futimens, \
	.utimensat = utimensat, .mkdirat = mkdirat, .symlinkat = symlinkat, .linkat = linkat, \
	.renameat = renameat, .unlinkat = unlinkat

#endif
