/* The user's configuration and state directories, and locks on files in them. `dir` is the directory chosen
 * by the caller; NULL: by the XDG base directory specification, else below HOME. Any thread. */
#ifndef CORE_USERDIR_H
#define CORE_USERDIR_H

#include <stdio.h>

#include <ptcp/err.h>

#define USERDIR_BYTES 3840

/* $XDG_CONFIG_HOME/ptcp or ~/.config/ptcp; $XDG_STATE_HOME/ptcp or ~/.local/state/ptcp. Create no directory.
 * PTCP_ECONFIG: HOME and the XDG variable are unset, or the path is empty or too long. */
int userdir_config(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e);
int userdir_state(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e);

/* Creates `dir` (a result of the above) and its missing parents, mode 0700. */
int userdir_make(const char *dir, struct ptcp_err *e);

/* Waits for an exclusive lock on the file `path` (flock on `path`.lock) and returns a descriptor, or
 * PTCP_ECONFIG. close() releases the lock. */
int userdir_lock(const char *path, struct ptcp_err *e);

/* Opens a file for reading. NULL with errno: missing, or (EPERM) not a regular file owned by the user and
 * writable by the user alone. Never blocks on a FIFO. */
FILE *userdir_read(const char *path);

#endif
