/* Directories that no peer may reach, wherever they lie beneath a root: the server's own configuration and state.
 * Compared by inode, so that other paths to them, or renamed parents, do not help. Any thread. */
#ifndef STORE_EXCLUDED_H
#define STORE_EXCLUDED_H

#include <stdbool.h>
#include <stdint.h>

#define EXCLUDED_PATHS_MAX 2
#define EXCLUDED_LINKS_MAX 15 /* symbolic links of one path */
#define EXCLUDED_MAX (EXCLUDED_PATHS_MAX * (1 + EXCLUDED_LINKS_MAX))

#define EXCLUDED_ABOVE_MAX 256

struct excluded_inode { uint64_t dev, ino; };

struct excluded {
	unsigned n, n_above;
	struct excluded_inode of[EXCLUDED_MAX];
	struct excluded_inode above[EXCLUDED_ABOVE_MAX]; /* directories above them: not to be renamed */
	bool too_deep; /* not all directories above are known */
};

#define EXCLUDED_WHY "the server's own configuration or state: not served"

/* Adds the directory at `path`, if it exists, and the symbolic links that lead there: whoever replaces a link chooses
 * the directory. For EXCLUDED_PATHS_MAX paths at most (asserted). */
void excluded_add(struct excluded *x, const char *path);
bool excluded_has(const struct excluded *x, uint64_t dev, uint64_t ino);
/* Whether one of them lies, or may lie, below the directory of this inode. */
bool excluded_below(const struct excluded *x, uint64_t dev, uint64_t ino);

#endif
