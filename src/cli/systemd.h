/* The service manager: what it passes, and what it is told, by the protocols of sd_listen_fds(3) and
 * sd_notify(3), which need no library. Without one nothing is passed, and telling does nothing. */
#ifndef CLI_SYSTEMD_H
#define CLI_SYSTEMD_H

#include <stddef.h>

/* The listening sockets that are passed: how many, and *first, the descriptor of the first; the others
 * follow it. Children do not see them as passed. */
size_t systemd_sockets(int *first);

/* Connects to it; before the process gives up that it may. */
void systemd_open(void);
/* "READY=1", "STOPPING=1", several lines. */
void systemd_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
