/* Sandbox of a server or mover: drops privileges and accesses that serving does not need, before the first
 * connection. */
#ifndef CLI_CONFINE_H
#define CLI_CONFINE_H

#include <ptcp/ptcp.h>

#define CONFINE_ABI 6 /* newest supported version of Landlock */

/* Directories that the tool reads and writes in addition to the server; NULL: none. */
struct confine_tool {
	const char *reads[2], *writes[3];
	const char *const *roots; /* read, with everything below; n_roots */
	size_t n_roots;
	bool writes_roots;        /* existing files there are written, too */
};

/* Confines this thread, which must be the only thread of the process, permanently: no new privileges; no
 * access to the process's memory by processes of the same user; by Landlock, no files except those required by
 * `n`, `tool` and name services, no execution of programs, no creation or control of devices, and, as far as
 * the kernel supports this, no TCP beyond `n` and no signals to foreign processes; no capabilities except
 * those required to set owners of files.
 *
 * `newest` limits the version of Landlock. Without Landlock in the kernel, or with a version that breaks
 * transfers, files stay accessible. Logs the resulting restrictions at info, and missing roots at warn, if
 * included in `level`. PTCP_ECONFIG: a restriction failed; the process may be partly confined. */
int confine(const struct ptcp_server_needs *n, const struct confine_tool *tool, unsigned newest, int level,
    struct ptcp_err *e);

#endif
