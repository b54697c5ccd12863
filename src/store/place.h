/* Where transfers begin and end: what a path that a user or peer wrote stands for. All block on disk. */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include "store/dir.h"

#define PLACE_NAME_BYTES 256

enum place_flags {
	PLACE_INTO_DIR = 1, /* must be, or becomes, a directory */
	PLACE_CONTENTS = 2  /* what comes is the content of one directory */
};

/* Where received entries land, as with cp -r. An existing directory (or one made now, for a path that
 * ends with a slash or with a flag, its parent being there): *base is it and rename is "". Else *base is
 * the parent and `rename` the name of the only entry. `root` NULL: `path` is the user's own and trusted;
 * else it is a peer's, below `root`. The caller ends *base with dir_unref(). */
int place_target(struct tree *root, const char *path, int flags, struct dir **base,
    char rename[PLACE_NAME_BYTES], struct ptcp_err *e);

/* What is to be sent: the directory and the name in it, or with name "" its contents (for a path that
 * ends with a slash, ".", ".." or "/", or with `contents`). The entry itself need not exist. */
int place_source(struct tree *root, const char *path, bool contents, struct dir **dir,
    char name[PLACE_NAME_BYTES], struct ptcp_err *e);

/* Whether a path as written means the contents of what it names. */
bool place_is_contents(const char *path);

#endif
