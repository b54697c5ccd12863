/* Lists of links in an overlay file, read by overlay.c after the hosts. `node` 0: list not given. */
#ifndef CONF_OVERLAY_LINKS_H
#define CONF_OVERLAY_LINKS_H

#include "conf/overlay.h"

int conf_read_links(const struct conf_doc *d, int node, struct ptcp_overlay *o, struct ptcp_err *e);
int conf_read_groups(const struct conf_doc *d, int node, struct ptcp_overlay *o, struct ptcp_err *e);
int conf_read_windows(const struct conf_doc *d, int node, struct ptcp_overlay *o, struct ptcp_err *e);

void conf_free_curve(struct conf_curve *c); /* NULL is fine */

#endif
