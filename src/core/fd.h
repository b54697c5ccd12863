/* Each descriptor has one owner at any time, visible in signatures:
 * - a parameter `int fd` borrows: the caller stays the owner, and the function closes nothing;
 * - a parameter `int *fd` that is described as taken moves: the function takes the number with fd_take() or closes the
 *   descriptor with fd_close(), also on failure, and the caller's variable is -1 afterwards;
 * - an out parameter or result gives the descriptor to the caller, and gives none (-1, a negative PTCP_E*, or an
 *   untouched variable) on failure. dir_fd() and functions that lend a member, such as chan_fd(), say so.
 * A number kept after a close would name the next file of another thread. Only this module calls close(), fdopen() and
 * fdopendir(), as tests/layers checks. Any thread. */
#ifndef CORE_FD_H
#define CORE_FD_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef RWF_NOWAIT /* musl has neither the flags of these calls nor, for long, the calls */
#include <linux/fs.h>
#endif

/* Closes *fd, and sets -1; without effect on negative numbers. 0, or the errno of a failed write (of a network file
 * system); the descriptor is closed in either case, and errno stays as before. Aborts if the descriptor is not open: a
 * caller other than the owner has closed the file, and the next such close may hit the file of another owner. */
int fd_close(int *fd);

/* The number, which the caller now owns; sets *fd to -1. */
int fd_take(int *fd);

/* fdopen() and fdopendir(), which take the descriptor, also on failure. NULL with errno. */
FILE *fd_file(int *fd, const char *mode);
DIR *fd_dir(int *fd);

/* Waits at most `ms` milliseconds, without end if negative, for the exclusive flock(2) of the open file. False with
 * errno, EWOULDBLOCK: the time is over. A stopped process may hold a lock for days: a loop that serves others waits
 * FD_LOCK_LOOP_MS, and goes on without. */
enum { FD_LOCK_LOOP_MS = 500 };
bool fd_lock(int fd, int ms);

/* preadv2(2), for any C library. */
ssize_t fd_preadv2(int fd, const struct iovec *v, int n, off_t off, int flags);

#endif
