/* How many files may be open at once. The limit is the process's (RLIMIT_NOFILE), so there is one count
 * for the process, of what stays open for long: connections, event loops, and the files that are being sent or
 * received. What it leaves free is for directories (dir.h, walk.h), for what is open for a moment only,
 * and for what nobody counts. Any thread; never blocks. */
#ifndef STORE_FD_BUDGET_H
#define STORE_FD_BUDGET_H

#include <stdbool.h>

/* What is no file, or cannot wait, is open now; n may be negative: closed again. */
void fd_budget_count(int n);

/* True: there is room for n more of files, which are counted from now on. False: there will be when others are
 * closed; to be asked again then. */
bool fd_budget_take(unsigned n);
/* As if there were. */
void fd_budget_take_anyway(unsigned n);
void fd_budget_give(unsigned n);

/* The most connections of one transfer, that it may have files open beside: a quarter of the limit. */
unsigned fd_budget_connections(void);

/* How many connections may wait that have not said who they are: `most`, or an eighth of the limit. */
unsigned fd_budget_strangers(unsigned most);

/* How many directories may stay open for later use, and how many be listed at once, in one tree:
 * `most`, or a sixteenth of the limit. */
unsigned fd_budget_directories(unsigned most);

#endif
