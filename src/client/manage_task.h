/* What work on files here and on another host have in common. */
#ifndef CLIENT_MANAGE_TASK_H
#define CLIENT_MANAGE_TASK_H

#include <ptcp/ptcp.h>

#include "wire/jobs.h"

/* The caller's options over the defaults, checked. */
int clean_take_opts(struct ptcp_clean_opts *o, const struct ptcp_clean_opts *callers, struct ptcp_err *e);
/* The error of a removal in `dir` with these counts, or 0. */
int clean_outcome(const char *dir, const struct ptcp_clean_result *r, struct ptcp_err *e);

/* The caller's options of an operation, checked. */
int manage_take_opts(struct ptcp_manage_opts *out, enum ptcp_manage_op op, size_t n,
    const struct ptcp_manage_opts *callers, struct ptcp_err *e);
/* The range of PTCP_SUM. */
struct wire_range manage_range(const struct ptcp_manage_opts *o);
#endif
