/* What a daemon does in the background to know the links that begin at its host: measures them, one after the other,
 * gently; keeps what it finds in its state directory; and has its server tell clients who ask. */
#ifndef CLI_LINK_MONITOR_H
#define CLI_LINK_MONITOR_H

#include <ptcp/ptcp.h>

#include "cli/serve.h"

struct link_monitor;

/* As --watch and its like say; the strings are borrowed. Reads the overlay, and makes the state directory: before the
 * process is confined. PTCP_ECONFIG, PTCP_EUSAGE, PTCP_EIO. */
int link_monitor_new(struct link_monitor **out, const struct serve_args *a, struct ptcp_err *e);
/* The state directory, where its file is read and replaced. */
const char *link_monitor_dir(const struct link_monitor *w);
/* What is known from earlier is told at once; the rest happens in a thread. The server must outlive the watcher. */
int link_monitor_start(struct link_monitor *w, struct ptcp_server *s, struct ptcp_err *e);
/* The daemon has work to do, or has not; then turns wait. Any thread. */
void link_monitor_busy(struct link_monitor *w, bool busy);
/* Ends it, within a moment unless it waits for the resolver; the server then has nothing to tell. NULL is fine. */
void link_monitor_free(struct link_monitor *w);

#endif
