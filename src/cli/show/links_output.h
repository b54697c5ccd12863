/* Output of ptcp links: a table, JSON, and the links that failed. */
#ifndef CLI_SHOW_LINKS_OUTPUT_H
#define CLI_SHOW_LINKS_OUTPUT_H

#include <ptcp/plan.h>

#include "cli/show/json.h"

/* The shared bottlenecks, freed by the caller; returns their number. */
size_t links_shared(struct ptcp_shared_bottleneck **out, const struct ptcp_links *l);

/* A line of the table, and the table. `queried`: of estimates by servers, without the regression. */
void links_print_one(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t i);
void links_print(const struct ptcp_overlay *o, const struct ptcp_links *l, bool queried);

/* Fields and units are described in ptcp-links(1). */
json_t *links_one_json(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t i);
json_t *links_all_json(const struct ptcp_overlay *o, const struct ptcp_links *l);

/* Warns of each reason for failed links once. `first_told`: the result of the command has the first reason. */
void links_warn_failed(const struct ptcp_overlay *o, const struct ptcp_links *l, bool first_told);

#endif
