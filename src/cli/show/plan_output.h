/* Output of ptcp plan: a plan, compared with the plans of all methods. */
#ifndef CLI_SHOW_PLAN_OUTPUT_H
#define CLI_SHOW_PLAN_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "cli/overlay_names.h"

#define PLAN_METHODS 4

struct plan_shown {
	const struct ptcp_overlay *overlay;
	const struct ptcp_plan *plan;
	struct ptcp_plan_info baseline[PLAN_METHODS]; /* makespan_s NAN: no plan; INFINITY: planning took too long */
};

void plan_text(FILE *f, const struct plan_shown *s);

/* Prints an object on stdout; PTCP_ENOMEM. */
int plan_json(const struct plan_shown *s, struct ptcp_err *e);

/* The steps of a plan; NULL if out of memory. */
json_t *plan_json_schedule(const struct ptcp_overlay *o, const struct ptcp_plan *p);

/* plot.c: plots the rates of links over time, and below the data that relays store, if any; errors as
 * plot_draw(). */
int plan_plot(const char *file, const struct plan_shown *s, struct ptcp_err *e);

#endif
