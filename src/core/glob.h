/* Shell patterns for paths, with rsync's habits.
 *
 *   * ?       any characters, one character, but no '/'
 *   **        any characters, '/' too
 *   [a-z] [!a-z] [^a-z]   one character that is (not) listed, but no '/'
 *   \c        the character c as it is
 *   /x        x at the top of what is transferred and nowhere else
 *   x/        only directories
 *   x         (no '/' but a last one, no "**") the last component, at any depth
 *   a/x       the end of the path, beginning with a whole component
 *
 * A pattern that ends with a '/' and three stars is the directory before them and all
 * in it. A leading "**" and '/' may be left out: it means any depth, the top as well.
 * Paths are any bytes; a character is one byte. Each byte of the path is looked at
 * once, whatever the pattern: a set of positions in the pattern moves along the path,
 * one word of it for each 64 bytes of pattern. */
#ifndef CORE_GLOB_H
#define CORE_GLOB_H

#include <stdbool.h>

#include "core/err.h"

#define GLOB_PATTERN_MAX 1000 /* bytes; one costs some 2 KiB for each 64 of them */

struct glob;

/* PTCP_EUSAGE with what is wrong with the pattern, which the sentence does not name. */
int glob_new(struct glob **out, const char *pattern, struct ptcp_err *e);
void glob_free(struct glob *g); /* NULL is fine */

/* `path`, relative to the top, has no '/' in front or behind. Any thread. */
bool glob_match(const struct glob *g, const char *path, bool is_dir);

#endif
