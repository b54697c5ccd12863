/* Unix sockets between processes of one host: messages, descriptors, and the user at the other end. Non-blocking, except
 * where stated. Any thread. */
#ifndef NET_LOCAL_SOCK_H
#define NET_LOCAL_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/err.h"

#define LOCAL_SOCK_TEXT_BYTES 256 /* of a message, with a NUL */

/* Listens at `path` to processes of all users. The socket of an ended process is replaced; PTCP_ECONFIG for one that is
 * in use, and for other files. */
int local_sock_listen(int *out, const char *path, struct ptcp_err *e);
/* The next connection; -1: none. */
int local_sock_accept(int fd);
/* Connects; waits up to `wait_ms` for a busy listener. PTCP_ECONNECT. */
int local_sock_connect(int *out, const char *path, unsigned wait_ms, struct ptcp_err *e);
/* User and process that connected. False: unknown. */
bool local_sock_peer(int fd, uid_t *user, pid_t *process);

/* Sends a message, with a copy of the descriptor `passed` unless it is -1. False, with errno EAGAIN: no room. */
bool local_sock_send(int fd, const char *text, int passed);
/* Receives a message, with NUL, and at most one descriptor (*passed -1: none), which is the caller's. -1: none now; 0: the
 * end, or an error; 1: a message. A longer message is cut. */
int local_sock_receive(int fd, char text[LOCAL_SOCK_TEXT_BYTES], int *passed);
/* Whether the other end has received all messages, or has ended. */
bool local_sock_drained(int fd);

#endif
