/* What ptcp plan prints of a plan, and of the other methods beside it. */
#ifndef CLI_PLAN_OUTPUT_H
#define CLI_PLAN_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "cli/overlay_names.h"

#define PLAN_METHODS 4

struct plan_shown {
	const struct ptcp_overlay *overlay;
	const struct ptcp_plan *plan;
	/* By method; makespan_s NAN where there is no plan. */
	struct ptcp_plan_info baseline[PLAN_METHODS];
};

void plan_text(FILE *f, const struct plan_shown *s);

/* One object, one line on stdout; its fields are described in ptcp-plan(1). PTCP_ENOMEM;
 * an output that fails is exit_checked()'s to see. */
int plan_json(const struct plan_shown *s, struct ptcp_err *e);

/* The steps of a plan, as there; NULL without memory. */
json_t *plan_json_schedule(const struct ptcp_overlay *o, const struct ptcp_plan *p);

/* Links over time and what hosts hold below, as SVG by gnuplot. PTCP_EIO if it is
 * not installed, fails, or the file cannot be written. */
int plan_plot(const char *file, const struct plan_shown *s, struct ptcp_err *e);

#endif
