/* What ptcp links prints. */
#ifndef CLI_LINKS_OUTPUT_H
#define CLI_LINKS_OUTPUT_H

#include <stdbool.h>

#include "cli/overlay_names.h"

/* A table; `queried`: estimates of servers. */
void links_text(const struct ptcp_overlay *o, const struct ptcp_links *l, bool queried);
/* One line of it. */
void links_text_link(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t link);

/* One object, one line on stdout; its fields are described in ptcp-links(1). PTCP_ENOMEM. */
int links_json(const struct ptcp_overlay *o, const struct ptcp_links *l, struct ptcp_err *e);
/* One of its links, likewise. */
int links_json_link(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t link, struct ptcp_err *e);

/* "A>B" of a link. */
const char *links_name(char out[LINK_NAME_BYTES], const struct ptcp_overlay *o, size_t link);

#endif
