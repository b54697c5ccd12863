/* Which paths are transferred: patterns in the order they were given (core/glob.h). */
#ifndef CORE_FILTER_H
#define CORE_FILTER_H

#include "core/glob.h"

#define FILTER_RULES_MAX 1000 /* what each path is compared with */

struct filter;

int filter_new(struct filter **out, struct ptcp_err *e);
void filter_free(struct filter *f); /* NULL is fine */

/* PTCP_EUSAGE: a malformed pattern (as glob_new() says) or too many; f stays as it was. */
int filter_add(struct filter *f, bool include, const char *pattern, struct ptcp_err *e);

/* By the first rule that matches; without one it is kept. Who walks a tree does not enter
 * a directory that is not kept, so no rule can bring back what is in it. Any thread. */
bool filter_keeps(const struct filter *f, const char *path, bool is_dir);

#endif
