/* Part files: where a file that is being received grows, beside its target.
 *
 * Whoever holds the flock(2) of the inode that has the part's name owns it, and
 * only the owner truncates, renames or unlinks it. What may lie under that name is
 * not trusted: a link is not followed, and a file of another user or with a second
 * name is not written to (its owner could read along, or the second name change). */
#ifndef STORE_PART_H
#define STORE_PART_H

#include <stdbool.h>

#include "store/dir.h"

#define PART_NAME_BYTES 40

/* ".ptcp-" + 16 hex digits of the XXH3 of `name` + `suffix`, into `out`. */
const char *part_name(char out[PART_NAME_BYTES], const char *name, const char *suffix);
#define PART_SUFFIX ".part"
#define PART_LINK_SUFFIX ".link"
#define PART_JOURNAL_SUFFIX ".journal"
#define PART_DIR_SUFFIX ".dir" /* see landing.h */

/* The part of `name` in `d`, which is open at `at`: created or taken over, locked,
 * empty. A leftover is taken over only if `reuse`; else it makes way, so that an
 * inode without data that we did not create is never ours (see created()).
 * Returns the descriptor or a negative PTCP_E*. */
int part_open(struct dir *d, int at, const char *name, bool reuse, struct ptcp_err *e);

#endif
