/* Files whose writers control this program: they name trusted hosts or permitted clients, or commands to run. Any
 * thread. */
#ifndef CORE_TRUSTED_FILE_H
#define CORE_TRUSTED_FILE_H

/* Opens a regular file for reading, without waiting for the other end of a FIFO. Returns a descriptor, or -1 with
 * errno; EINVAL: not a regular file. */
int trusted_file_open(const char *path);

/* Why the open file at `path` must not be trusted, with the remedy, as a phrase; NULL: trusted. The owner must be the
 * user or root, and no other user may write or replace the file: each directory above, up to the home of the user,
 * belongs to the user or root, and others cannot write there, except in directories with the sticky bit. */
const char *trusted_file_fault(int fd, const char *path);

#endif
