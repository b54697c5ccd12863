/* The directories in which ptcp keeps what is the user's own, and locks in them. `dir` is where the caller has been
 * told to look; NULL: where the XDG base directories say, else below HOME. Any thread. */
#ifndef CORE_USERDIR_H
#define CORE_USERDIR_H

#include <stdio.h>

#include <ptcp/err.h>

#define USERDIR_BYTES 3840

/* $XDG_CONFIG_HOME/ptcp or ~/.config/ptcp; $XDG_STATE_HOME/ptcp or ~/.local/state/ptcp. Make nothing.
 * PTCP_ECONFIG: nothing says where, or the path is empty or too long. */
int userdir_config(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e);
int userdir_state(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e);

/* Makes every missing directory on the way, 0700. `dir` is one of the above. */
int userdir_make(const char *dir, struct ptcp_err *e);

/* Waits for the lock of the file `path`, which is another file beside it; it is let go by close(). A descriptor, or
 * PTCP_ECONFIG. */
int userdir_lock(const char *path, struct ptcp_err *e);

/* Opens a file there. NULL with errno: there is none, or it is not one of ours and only ours to write, to be waited
 * for or read without end. */
FILE *userdir_read(const char *path);

#endif
