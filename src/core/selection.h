/* A set of paths below a directory: the entries of the directory that a walk visits. A selected directory is visited
 * with its whole content, the directories above a selected path as far as the path needs. */
#ifndef CORE_SELECTION_H
#define CORE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/memory_budget.h"

struct selection;

/* Takes its memory from the account, which outlives the selection: the normalized bytes of each path, and an offset. */
int selection_new(struct selection **out, struct memory_account *memory, struct ptcp_err *e);
void selection_free(struct selection *s); /* NULL is fine */

/* Copies a path of n bytes; leading, trailing and repeated slashes and "." components do not count. "." alone selects
 * everything, and replaces all other paths. PTCP_EUSAGE, without the path: an empty path, "..", a NUL, a component over
 * 255 or a path over 4096 bytes. PTCP_ENOMEM: see memory_charge(). */
int selection_add(struct selection *s, const char *path, size_t n, struct ptcp_err *e);
size_t selection_n(const struct selection *s);
/* Bytes of all paths, each with its NUL, as normalized. */
size_t selection_bytes(const struct selection *s);
const char *selection_path(const struct selection *s, size_t i); /* "": everything */

/* Sorts the paths and removes duplicates; before any of the following. Afterwards no path may be added. Millions of
 * paths take most of a second: not for a control thread. */
int selection_sort(struct selection *s, struct ptcp_err *e);

/* Paths [next, end), all with the same first `above` bytes: the selected part of one directory. */
struct selection_part {
	size_t next, end, above;
};
/* All paths; the whole directory is selected: false. */
bool selection_begin(const struct selection *s, struct selection_part *all);
/* Takes the next name off `of`: 1, with the name, not terminated, of *n bytes; 0 at the end. *whole: the entry itself
 * is selected; else *below is the selected part of this directory. */
int selection_next(const struct selection *s, struct selection_part *of, const char **name, size_t *n,
    struct selection_part *below, bool *whole);

#endif
