/* The file of the path history, `paths` in the state directory `dir` (NULL: $XDG_STATE_HOME/ptcp, else
 * ~/.local/state/ptcp). Read and replaced as a whole, under a lock; malformed lines are dropped. Any thread. */
#ifndef CLIENT_HISTORY_FILE_H
#define CLIENT_HISTORY_FILE_H

#include "core/err.h"
#include "model/history.h"

#define HISTORY_ENTRIES_MAX 500 /* the newest are kept */

/* 1: found, aged as of now; 0: no useful entry. */
int history_find(const char *dir, const struct history_key *key, struct history_entry *out, struct ptcp_err *e);
/* Replaces the entry for this path; an entry without probes deletes it. */
int history_put(const char *dir, const struct history_entry *h, struct ptcp_err *e);

#endif
