/* The invitation of a mover by the engine of a striped transfer: a file with mode 0600, or standard input. Any thread.
 *
 * Each line ends with LF:
 *
 *   ptcp-movers 1
 *   run HEX             16 random bytes
 *   key HEX             32 random bytes; they authorize movers while the engine listens: for one transfer, or server
 *   engine SHA256:..    fingerprint of the engine's listener, whose identity is made for this purpose
 *   address HOST:PORT   one or more, to be tried in order
 *   root PATH           one or more absolute paths, which movers read; or,
 *   into PATH           for movers that receive, directories beneath which they write part files; or,
 *   serve PATH          for movers of a server, directories beneath which they read, and write part files
 *   direct              optional: files bypass the page cache
 *   port NUMBER         with serve: where the mover listens for clients; 0: a free port
 *   end
 */
#ifndef MOVER_INVITATION_H
#define MOVER_INVITATION_H

#include <limits.h>
#include <ptcp/ptcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "net/sock.h"
#include "wire/frame.h"

#define INVITATION_ADDRESSES_MAX 16
#define INVITATION_ROOTS_MAX 64
#define INVITATION_MAX_BYTES (INVITATION_ROOTS_MAX * 4400 + 4096)

struct invitation {
	uint8_t run[WIRE_SESSION_BYTES], key[32]; /* random, for one transfer or server */
	char engine[PTCP_FINGERPRINT_BYTES];      /* identity of the engine's listener */
	char address[INVITATION_ADDRESSES_MAX][SOCK_HOST_BYTES + 10]; /* HOST:PORT, to be tried in order */
	unsigned n_addresses;
	char *root[INVITATION_ROOTS_MAX];         /* absolute paths: all that a mover may read; owned */
	unsigned n_roots;
	bool writes;                              /* the mover receives: it may write part files there, too */
	bool serves;                              /* the mover is a server's: it serves clients that
	                                             connect to `port` */
	bool direct_io;                           /* files bypass the page cache */
	unsigned port;                            /* port of the mover's host for clients; 0: a free port */
};

/* The text of an invitation, to be freed. PTCP_EUSAGE: a root contains a newline. */
int invitation_text(char **out, const struct invitation *v, struct ptcp_err *e);
int invitation_parse(struct invitation *out, const char *text, size_t n, struct ptcp_err *e);
/* Creates `path`, mode 0600, and returns a descriptor that keeps the file locked; an existing file is an error. */
int invitation_write(const char *path, const char *text, struct ptcp_err *e);
/* A path in the directory for an invitation of this host, distinguished by `suffix`. Removes those of this host whose
 * processes have been killed: nobody has them locked. */
void invitation_path(char out[PATH_MAX], const char *dir, const char *suffix);
/* Removes the invitation `path` of a process that has ended; no other file. PTCP_ECONFIG: the process is still
 * there. */
int invitation_remove_own(const char *path, struct ptcp_err *e);
/* Reads `path`, or with "-" standard input until its end. PTCP_EUSAGE: missing for `wait_ns` (other hosts may see a new
 * file late), not a regular file, or accessible to other users. */
int invitation_read(struct invitation *out, const char *path, uint64_t wait_ns, struct ptcp_err *e);
void invitation_fini(struct invitation *v); /* zeroed memory is fine */

#endif
