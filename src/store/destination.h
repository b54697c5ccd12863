/* Source and destination of a transfer: the meaning of a path given by a user or peer. All functions block on
 * disk.
 *
 * `send data HOST:/new` creates "new" from "data" if "new" does not exist; by the rule of cp -r, repeating
 * the command would put "data" into the existing "new". To resume an interrupted transfer in "new" instead,
 * the file ".ptcp-" + 16 hex digits of the XXH3 of "new" + ".dir" beside the directory holds the name of its
 * source until the directory is complete. */
#ifndef STORE_DESTINATION_H
#define STORE_DESTINATION_H

#include <stdbool.h>

#include "core/open_bits.h"
#include "fs/dir.h"
#include "fs/room.h"

#define DESTINATION_NAME_BYTES 256

/* Flags of OPEN that concern the destination. */
enum destination_flags {
	DESTINATION_INTO_DIR = 1 << OPEN_BIT_INTO_DIR, /* the path must be, or becomes, a directory */
	DESTINATION_CONTENTS = 1 << OPEN_BIT_CONTENTS, /* the content of one directory is received */
	DESTINATION_DRY_RUN = 1 << OPEN_BIT_DRY_RUN,   /* create nothing */
	DESTINATION_MKPATH = 1 << OPEN_BIT_MKPATH,     /* create missing parents */
	DESTINATION_FILE = 1 << OPEN_BIT_FILE          /* the path must name a file: a directory is refused */
};

/* Where received entries are placed, as with cp -r. */
struct destination {
	struct dir *base;
	char rename[DESTINATION_NAME_BYTES]; /* new name of the only entry; "": entries keep their names */
	bool made;                           /* `base` is new */
	bool served;                         /* `base` is the root of a server or client, hence the operator's */
	bool missing;                        /* dry run: `base` would be created */
	bool contents;                       /* `base` receives the content of one directory */
	/* Not NULL: `base` is the unfinished copy of a directory called `source`, which resumes as `name` in
	 * `above`. */
	struct dir *above;
	char name[DESTINATION_NAME_BYTES], source[DESTINATION_NAME_BYTES];
	struct room room;                    /* room of `base` */
};

/* The base is the existing directory at `path`; or a new one (for a path with a trailing slash or by a flag,
 * with DESTINATION_MKPATH also its missing parents); else the parent, with `rename` the last component. `root` NULL:
 * `path` is the user's own and trusted; else a peer's, below `root`. On failure *out is empty. */
int destination_target(struct destination *out, struct tree *root, const char *path, int flags, struct ptcp_err *e);
void destination_fini(struct destination *p); /* zeroed is fine */

/* The entry to send: its directory and name; or with name "" the content of the directory (for a path that
 * ends with a slash, ".", ".." or is "/", or with `contents`). The entry need not exist. */
int destination_source(struct tree *root, const char *path, bool contents, struct dir **dir,
    char name[DESTINATION_NAME_BYTES], struct ptcp_err *e);

/* Another directory of the transfer, relative to the directory `from`; `make`: a missing directory is made, with its
 * parents. `own`: the user of this process named the path, which may lead anywhere; else it stays below the root. */
int destination_other(struct dir *from, const char *path, bool own, bool make, struct dir **out, struct ptcp_err *e);

/* Mark `name` in `parent`, before it is created, as an unfinished copy of `source`. */
int destination_mark(struct dir *parent, const char *name, const char *source, struct ptcp_err *e);
/* Whether the directory `name` in `parent` is marked, and its source. A mark that is not a regular file owned
 * by this user does not count. */
bool destination_marked(struct dir *parent, const char *name, char source[DESTINATION_NAME_BYTES]);
/* Removes the mark of a complete directory. */
void destination_unmark(struct dir *parent, const char *name);

#endif
