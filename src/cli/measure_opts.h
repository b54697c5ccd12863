/* What commands that measure a path share. */
#ifndef CLI_MEASURE_OPTS_H
#define CLI_MEASURE_OPTS_H

#include "cli/connect.h"

/* A setter of a bool at o->at: --direction recv. */
int probe_direction(void *args, const struct opt *o, const char *text, struct ptcp_err *e);

/* For the handle's options, with its connection's; shows on the status line how many streams there are. */
void probe_opts(const struct connect_args *a, struct ptcp_transfer_opts *o);

/* Runs the handle to its end; a signal cancels it. */
int probe_run(struct ptcp_transfer *t, struct ptcp_err *e);

/* A setter of a list of numbers of streams that a daemon could grant, into `most` of them; *n how many. */
int probe_levels(const struct opt *o, const char *text, unsigned *level, size_t most, size_t *n,
    struct ptcp_err *e);

#endif
