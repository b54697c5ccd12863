/* Directories that no peer may reach, wherever they lie beneath a root: the server's own configuration and state.
 * Compared by inode, so that other paths to them, or renamed parents, do not help. Any thread. */
#ifndef STORE_EXCLUDED_H
#define STORE_EXCLUDED_H

#include <stdbool.h>
#include <stdint.h>

#define EXCLUDED_PATHS_MAX 2
#define EXCLUDED_LINKS_MAX 15 /* symbolic links of one path */
#define EXCLUDED_MAX (EXCLUDED_PATHS_MAX * (1 + EXCLUDED_LINKS_MAX))

struct excluded {
	unsigned n;
	struct { uint64_t dev, ino; } of[EXCLUDED_MAX];
};

#define EXCLUDED_WHY "the server's own configuration or state: not served"

/* Adds the directory at `path`, if it exists, and the symbolic links that lead there: whoever replaces a link chooses
 * the directory. For EXCLUDED_PATHS_MAX paths at most (asserted). */
void excluded_add(struct excluded *x, const char *path);
bool excluded_has(const struct excluded *x, uint64_t dev, uint64_t ino);

#endif
