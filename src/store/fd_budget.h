/* Limit on open descriptors. The limit is the process's (RLIMIT_NOFILE), so one count per process covers all
 * long-lived descriptors: connections, event loops, and files in transfer. The rest is left to directories
 * (dir.h, walk.h), short-lived descriptors, and those that are not counted. Any thread; never blocks. */
#ifndef STORE_FD_BUDGET_H
#define STORE_FD_BUDGET_H

#include <stdbool.h>

/* Adds n descriptors (negative: closed again) of connections and other users that cannot wait. */
void fd_budget_count(int n);

/* Takes n descriptors for files. False: the budget is used up; try again after other files are closed. */
bool fd_budget_take(unsigned n);
/* Takes n descriptors even beyond the budget. */
void fd_budget_take_unchecked(unsigned n);
void fd_budget_give(unsigned n);

/* Maximum number of connections of one transfer: a quarter of the limit. */
unsigned fd_budget_connections(void);

/* Maximum number of unauthenticated connections: `max`, or an eighth of the limit. */
unsigned fd_budget_unauthenticated(unsigned max);

/* Maximum number of cached, or concurrently listed, directories of a tree: `max`, or a sixteenth of the
 * limit. */
unsigned fd_budget_directories(unsigned max);

#endif
