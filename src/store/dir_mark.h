/* The mark of a directory that is being received under another name than its source's.
 *
 * `send data HOST:/new` makes "new" of "data" when nothing is there; by the rule of cp -r the same command
 * once more would put "data" into "new". Between the two, while the first is unfinished, it has to go
 * on in "new": so a file beside it, ".ptcp-" + 16 hex digits of its name's XXH3 + ".dir", keeps the name of
 * its source until it is complete. May block on disk. */
#ifndef STORE_DIR_MARK_H
#define STORE_DIR_MARK_H

#include <stdbool.h>

#include "store/dir.h"

#define DIR_MARK_SOURCE_BYTES 256

/* `name` in `parent`, which is about to be made, is `source`'s copy. */
int dir_mark_mark(struct dir *parent, const char *name, const char *source, struct ptcp_err *e);

/* Whether the directory `name` in `parent` is unfinished, and of what. A mark that is not a plain
 * file of ours counts as none. */
bool dir_mark_marked(struct dir *parent, const char *name, char source[DIR_MARK_SOURCE_BYTES]);

/* It is complete. */
void dir_mark_unmark(struct dir *parent, const char *name);

#endif
