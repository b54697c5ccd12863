/* --install, and the question without --install: the executable to copy to a remote host without ptcp. */
#ifndef CLI_INSTALL_H
#define CLI_INSTALL_H

#include <ptcp/ptcp.h>

/* Each a ptcp_install_fn: the user has requested the copy; the user is asked on the terminal. */
int install_requested(void *arg, const char *host, const char **path, struct ptcp_err *e);
int install_after_asking(void *arg, const char *host, const char **path, struct ptcp_err *e);

#endif
