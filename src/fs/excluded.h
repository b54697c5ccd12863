/* Directories and files that no peer may reach, wherever they lie beneath a root: the server's own configuration and
 * state. Compared by inode, so that other paths to them, bind mounts, hard links or renamed parents do not help. An
 * inode that another file takes over while the set is in use stays excluded. Any thread; a set changes only before
 * its use. */
#ifndef FS_EXCLUDED_H
#define FS_EXCLUDED_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stdint.h>

struct excluded;

#define EXCLUDED_WHY "the server's own configuration or state: not served"
#define EXCLUDED_MAX 20000u /* inodes of a set */

int excluded_new(struct excluded **out, struct ptcp_err *e);
void excluded_free(struct excluded *x); /* NULL is fine */

/* Adds the directory at `path`, if it exists, all directories and files in it, the regular files that its links lead
 * to, and the symbolic links that lead to the directory: whoever replaces a link chooses the directory. What may not be
 * listed is left out, apart from the directory itself. */
int excluded_add(struct excluded *x, const char *path, struct ptcp_err *e);
/* The same for the directory open at `fd`, which may have been moved. */
int excluded_add_open(struct excluded *x, int fd, struct ptcp_err *e);

bool excluded_has(const struct excluded *x, uint64_t dev, uint64_t ino);
/* Whether a directory of the set, or a link that leads there, lies below the directory of this inode. */
bool excluded_below(const struct excluded *x, uint64_t dev, uint64_t ino);

#endif
