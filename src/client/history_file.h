/* The file of the path history, `paths` in a state directory: `dir`, or $XDG_STATE_HOME/ptcp, else
 * ~/.local/state/ptcp, for NULL. Read and replaced as a whole, under a lock; what cannot be parsed in it is
 * left out. Any thread. */
#ifndef CLIENT_HISTORY_FILE_H
#define CLIENT_HISTORY_FILE_H

#include "core/err.h"
#include "model/history.h"

#define HISTORY_ENTRIES_MAX 500 /* the newest stay */

/* 1: found, aged as of now; 0: there is none that says anything. */
int history_find(const char *dir, const struct history_key *key, struct history_entry *out, struct ptcp_err *e);
/* Takes the place of what there is of that path; without probes: that goes. */
int history_put(const char *dir, const struct history_entry *h, struct ptcp_err *e);

#endif
