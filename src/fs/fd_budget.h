/* Limit on open descriptors. The limit is the process's (RLIMIT_NOFILE), so one count per process covers all
 * long-lived descriptors, in shares that cannot crowd each other out: an eighth of the limit for inbound connections,
 * an eighth for sessions that wait for room, a sixteenth for directories, and the rest, but for a few short-lived
 * ones, for sessions, event loops, relayed connections and files in transfer. Any thread; never blocks. */
#ifndef FS_FD_BUDGET_H
#define FS_FD_BUDGET_H

#include <ptcp/err.h>
#include <stdbool.h>

/* Whether the limit permits n descriptors of sessions, event loops, relayed connections and files, if nothing else is
 * open. */
bool fd_budget_fits(unsigned n);
/* PTCP_ECONFIG if not, with the limit that does. */
int fd_budget_check(unsigned n, struct ptcp_err *e);

/* Adds n descriptors (negative: closed again) of users that cannot wait. */
void fd_budget_count(int n);
/* Adds n descriptors if there is room; fd_budget_count(-n) returns them. */
bool fd_budget_reserve(unsigned n);
/* The largest n that fd_budget_reserve() grants now. */
unsigned fd_budget_left(void);

/* A changed limit is known after so many files at most, and before a file has to wait. */
enum { FD_BUDGET_FILES_PER_LIMIT = 64 };

/* Takes n descriptors for files, which have half of the room. False: used up; try again after other files are
 * closed. */
bool fd_budget_take(unsigned n);
/* Takes n descriptors even beyond the budget. */
void fd_budget_take_unchecked(unsigned n);
void fd_budget_give(unsigned n);

/* A directory that stays open. False: close the directory after use. */
bool fd_budget_take_directory(void);
void fd_budget_give_directory(void);

/* Connections that have neither been authenticated nor joined a session yet. */
void fd_budget_count_inbound(int n);
bool fd_budget_inbound_full(void);

/* Maximum number of connections of one transfer: a quarter of the limit. */
unsigned fd_budget_connections(void);

/* Maximum number of unauthenticated connections: `max`, or a sixteenth of the limit, so that clients have as many. */
unsigned fd_budget_unauthenticated(unsigned max);

/* Maximum number of sessions that wait: `max`, or an eighth of the limit. */
unsigned fd_budget_waiting(unsigned max);

/* Maximum number of cached, or concurrently listed, directories of a tree: `max`, or a sixteenth of the
 * limit. */
unsigned fd_budget_directories(unsigned max);

#endif
