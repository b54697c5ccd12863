/* Unix sockets between processes of one host: messages, descriptors, and the user at the other end. Non-blocking,
 * except where stated. Any thread. */
#ifndef CORE_LOCAL_SOCK_H
#define CORE_LOCAL_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/err.h"

#define LOCAL_SOCK_TEXT_BYTES 256 /* usual size of a message, with a NUL */

/* Listens at `path`, with the permissions `mode` (0666: processes of all users may connect). The socket of an ended
 * process is replaced; PTCP_ECONFIG for a socket in use, and for other files. */
int local_sock_listen(int *out, const char *path, mode_t mode, struct ptcp_err *e);
/* Removes the socket of an ended process. False: not a socket, or in use. */
bool local_sock_remove_stale(const char *path);
/* The next connection; -1: none. */
int local_sock_accept(int fd);
/* Connects; waits up to `wait_ms` for a busy listener. PTCP_ECONNECT. */
int local_sock_connect(int *out, const char *path, unsigned wait_ms, struct ptcp_err *e);
/* User and process that connected. False: unknown. */
bool local_sock_peer(int fd, uid_t *user, pid_t *process);

/* Sends a message, with a copy of the descriptor `passed` unless it is -1. False, with errno EAGAIN: no room. */
bool local_sock_send(int fd, const char *text, int passed);
/* Receives a message of up to `cap` bytes, with NUL, and at most one descriptor (*passed -1: none), which is the
 * caller's. -1: none now; 0: the end, an error, or an empty message, all without a descriptor; 1: a message. A longer
 * message, or one with a NUL, is no text of ptcp: "" stands for such a message. */
int local_sock_receive(int fd, char *text, size_t cap, int *passed);
/* Whether the other end has received all messages, or has ended. */
bool local_sock_drained(int fd);

#endif
