/* A server gives up, before it talks to anybody, what it does not need. */
#ifndef CLI_CONFINE_H
#define CLI_CONFINE_H

#include <ptcp/ptcp.h>

#define CONFINE_ABI 6 /* the newest Landlock of which we know what it adds */

/* Directories beside those that the server needs: for what the tool reads and writes itself. NULL: none. */
struct confine_also {
	const char *reads[2], *writes[2];
};

/* For this thread, which must be the only one, and all that it starts, for good: no new privileges; its
 * memory closed to other processes of its user; by Landlock no files but those that `n`, `also` and name
 * services need, no program run, no device made or controlled, and as far as the kernel's version goes no TCP
 * beyond `n`, no signals to others; no capability but those that it takes to give files to their owners, where
 * the process has them.
 *
 * `newest`: at most this version of Landlock's ABI. Where the kernel has none, or none that does without
 * breaking transfers, files stay open. What is in force is logged at info, a root that is not there at warn,
 * if `level` has it. PTCP_ECONFIG: something that should work did not; the process may be confined in part. */
int confine(const struct ptcp_server_needs *n, const struct confine_also *also, unsigned newest, int level,
    struct ptcp_err *e);

#endif
