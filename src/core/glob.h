/* Shell patterns for paths, as in rsync.
 *
 *   * ?       any characters, one character, except '/'
 *   **        any characters including '/'
 *   [a-z] [!a-z] [^a-z]   one listed (not listed) character, except '/'; [[:digit:]] and the like of ASCII
 *   \c        the character c literally, in a pattern that has *, ? or [; else a backslash
 *   /x        x at the top of the transferred tree only
 *   x/        directories only
 *   x         (no '/' but a final one, no "**") the last component, at any depth
 *   a/x       the end of the path, from the start of a component
 *
 * A pattern ending in '/' and three stars matches the directory before them and its whole content. A leading
 * "**" and '/' may be omitted: it means any depth, including the top. Paths are bytes; a character is one
 * byte. Matching reads each byte of the path once, whatever the pattern: it moves a set of pattern positions
 * along the path, one word of the set per 64 bytes of pattern. */
#ifndef CORE_GLOB_H
#define CORE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

#define GLOB_PATTERN_MAX 1000 /* bytes */

struct glob;

/* PTCP_EUSAGE says what is wrong, without naming the pattern. */
int glob_new(struct glob **out, const char *pattern, struct ptcp_err *e);
void glob_free(struct glob *g); /* NULL is fine */

/* `path` is relative to the top, without leading or trailing '/'. Any thread. */
bool glob_match(const struct glob *g, const char *path, bool is_dir);

bool glob_is_anchored(const struct glob *g); /* begins with a slash */
/* Memory of the pattern: about 300 bytes, and a word per 64 bytes of pattern for each byte that the pattern tells apart
 * from others. */
size_t glob_bytes(const struct glob *g);

#endif
