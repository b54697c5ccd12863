/* Paths as scp has them on the far side. */
#ifndef CONN_HOME_PATH_H
#define CONN_HOME_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

#define HOME_PATH_BYTES 8192

/* A path of the user's own: absolute as it is, "~" and "~USER" at its start (alone or before a slash) the
 * home directory of this or that user, anything else below this user's; nothing else in it means
 * anything. What ends with a slash still does. PTCP_EUSAGE where the result is too long or there is no
 * home. May ask name services. */
int home_path(char out[HOME_PATH_BYTES], const char *path, struct ptcp_err *e);

#endif
