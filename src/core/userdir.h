/* The user's configuration, state and runtime directories, and locks on files in them. `dir` is the directory chosen
 * by the caller; NULL: by the XDG base directory specification, else below HOME. Any thread. */
#ifndef CORE_USERDIR_H
#define CORE_USERDIR_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stdio.h>

#define USERDIR_BYTES 3840

/* $XDG_CONFIG_HOME/ptcp or ~/.config/ptcp; $XDG_STATE_HOME/ptcp or ~/.local/state/ptcp. Create no directory.
 * PTCP_ECONFIG: HOME and the XDG variable are unset, or the path is empty or too long. */
int userdir_config(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e);
int userdir_state(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e);

/* Creates `dir` (a result of the above) and its missing parents, mode 0700. */
int userdir_make(const char *dir, struct ptcp_err *e);

/* Directories for sockets of this user, in order of preference: $XDG_RUNTIME_DIR/ptcp, /run/user/UID/ptcp (jobs of cron
 * lack the variable), /tmp/ptcp-UID, which another user may have made, and the directory `run` of userdir_state(), if
 * its path is short enough. Returns the number; without duplicates, and without directories whose parents belong to
 * another user. */
#define USERDIR_RUNTIME 4
#define USERDIR_RUNTIME_BYTES 96 /* leaves room for a name within the 108 bytes of a socket address */
unsigned userdir_runtime(char out[USERDIR_RUNTIME][USERDIR_RUNTIME_BYTES]);

/* Opens a directory, made first with `make`, sets its mode to 0700, locks the directory, and returns a descriptor;
 * fd_close() releases the lock. PTCP_ECONFIG: no directory, of another user, a symbolic link, writable by other users,
 * or locked by another process for more than a second. */
int userdir_private(const char *dir, bool make, struct ptcp_err *e);
/* Removes such a directory if empty. */
void userdir_private_remove(const char *dir);

/* Waits for an exclusive lock on the file `path` (flock on `path`.lock) and returns a descriptor, or
 * PTCP_ECONFIG. fd_close() releases the lock. */
int userdir_lock(const char *path, struct ptcp_err *e);

/* Opens a file for reading. NULL with errno: missing, or (EPERM) not a regular file owned by the user and
 * writable by the user alone. Never blocks on a FIFO. */
FILE *userdir_read(const char *path);

#endif
