/* Shell patterns for paths, as in rsync, and filters made of them.
 *
 *   * ?       any characters, one character, except '/'
 *   **        any characters including '/'
 *   [a-z] [!a-z] [^a-z]   one listed (not listed) character, except '/'
 *   \c        the character c literally
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

#include "core/memory_budget.h"

#define GLOB_PATTERN_MAX 1000 /* bytes */

struct glob;

/* PTCP_EUSAGE says what is wrong, without naming the pattern. */
int glob_new(struct glob **out, const char *pattern, struct ptcp_err *e);
void glob_free(struct glob *g); /* NULL is fine */

/* `path` is relative to the top, without leading or trailing '/'. Any thread. */
bool glob_match(const struct glob *g, const char *path, bool is_dir);

/* ---- Filters: which paths are transferred, by patterns in the given order ---- */

#define FILTER_RULES_MAX 1000 /* each path is compared with every rule */

struct filter;

/* Takes its memory from the account, which outlives the filter. */
int filter_new(struct filter **out, struct memory_account *memory, struct ptcp_err *e);
void filter_free(struct filter *f); /* NULL is fine */

/* PTCP_EUSAGE for a malformed pattern (see glob_new()) or too many, PTCP_ENOMEM as memory_charge(); f is unchanged. */
int filter_add(struct filter *f, bool include, const char *pattern, struct ptcp_err *e);

/* The first matching rule decides; without a match the path is included. An excluded directory is not
 * entered, so a rule cannot include paths below it. Any thread. */
bool filter_includes(const struct filter *f, const char *path, bool is_dir);

#endif
