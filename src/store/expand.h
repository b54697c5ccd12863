/* Patterns in a path, expanded to the paths that exist: `*` `?` `[..]` within a name, `**` across directories (see
 * core/glob.h). A name that exists literally is taken as it is, and so is a path without a complete pattern. A
 * wildcard matches no leading dot, and no file of ptcp's own. Links are followed in the middle of a path, but not by
 * `**`. Blocks on disk; one thread at a time. */
#ifndef STORE_EXPAND_H
#define STORE_EXPAND_H

#include "core/memory_budget.h"
#include "fs/dir.h"

#define EXPAND_MATCHES_MAX 10000
#define EXPAND_BYTES_MAX (4u << 20) /* size of the matches, and of the directories still to be listed */
#define EXPAND_NAMES_MAX 1000000    /* examined */

/* Opens the directory at a path as a client writes it: "" is the top. `arg` is the caller's. */
typedef int expand_open_fn(void *arg, const char *path, struct dir **out, struct ptcp_err *e);

struct expand;

/* Copies `path`. The paths found take memory from the account, which outlives them. PTCP_ENOMEM. */
int expand_new(struct expand **out, const char *path, expand_open_fn *open, void *arg, struct memory_account *memory,
    struct ptcp_err *e);
/* Examines up to `names` names. 1: more remain; 0: done; or a negative PTCP_E*: beyond a limit above, or nothing
 * matches (PTCP_EIO with ENOENT in e->sys). */
int expand_step(struct expand *x, unsigned names, struct ptcp_err *e);
void expand_free(struct expand *x); /* NULL is fine */

/* Once done: the paths, sorted, at least one; borrowed. */
size_t expand_n(const struct expand *x);
const char *expand_path(const struct expand *x, size_t i);
/* Whether the path was a pattern. */
bool expand_is_pattern(const struct expand *x);

/* Whether a match of the pattern can have this last component. */
bool expand_can_match(const char *pattern, const char *name);
/* Whether the text contains an unescaped wildcard. */
bool expand_has_wildcard(const char *text);

#endif
