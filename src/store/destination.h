/* Where transfers begin and end: what a path that a user or peer wrote stands for. All block on disk. */
#ifndef STORE_DESTINATION_H
#define STORE_DESTINATION_H

#include "store/dir_mark.h"

#define DESTINATION_NAME_BYTES 256

enum destination_flags {
	PLACE_INTO_DIR = 1, /* must be, or becomes, a directory */
	PLACE_CONTENTS = 2, /* what comes is the content of one directory */
	PLACE_DRY_RUN = 4   /* nothing is made */
};

/* Where received entries land, as with cp -r. */
struct destination {
	struct dir *base;
	char rename[DESTINATION_NAME_BYTES];       /* of the only entry; "": they keep their names */
	bool missing;                        /* dry run: the base would be made */
	/* Not NULL: what lies at `base` is the unfinished copy of a directory called `source`: should that
	 * come again, it goes on there, that is as `name` in `above`. */
	struct dir *above;
	char name[DESTINATION_NAME_BYTES], source[DIR_MARK_SOURCE_BYTES];
};

/* An existing directory (or one made now, for a path that ends with a slash or with a flag, its parent
 * being there) is the base. Else the base is its parent, and `rename` the last component. `root` NULL:
 * `path` is the user's own and trusted; else it is a peer's, below `root`. On failure nothing is left. */
int destination_target(struct destination *out, struct tree *root, const char *path, int flags, struct ptcp_err *e);
void destination_fini(struct destination *p); /* zeroed is fine */

/* What is to be sent: the directory and the name in it, or with name "" its contents (for a path that
 * ends with a slash, ".", ".." or "/", or with `contents`). The entry itself need not exist. */
int destination_source(struct tree *root, const char *path, bool contents, struct dir **dir,
    char name[DESTINATION_NAME_BYTES], struct ptcp_err *e);

/* Whether a path as written means the contents of what it names. */
bool destination_is_contents(const char *path);

#endif
