/* What ptcp advise prints. */
#ifndef CLI_ADVISE_OUTPUT_H
#define CLI_ADVISE_OUTPUT_H

#include <stdio.h>

#include <ptcp/ptcp.h>

void advise_text(FILE *f, const struct ptcp_advice *a);

/* One object, one line on stdout; its fields are described in ptcp-advise(1). PTCP_ENOMEM;
 * an output that fails is exit_checked()'s to see. */
int advise_json(const struct ptcp_advice *a, struct ptcp_err *e);

/* Throughput and impact over the number of streams, with the probes and the answer. Errors
 * as of plot_draw(). */
int advise_plot(const char *file, const struct ptcp_advice *a, struct ptcp_err *e);

#endif
