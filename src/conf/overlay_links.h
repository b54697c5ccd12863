/* The lists of an overlay file that speak of links; called by overlay.c after
 * the hosts are known. `node` 0: the list was not given. */
#ifndef CONF_OVERLAY_LINKS_H
#define CONF_OVERLAY_LINKS_H

#include "conf/overlay.h"

int conf_read_links(const struct conf_doc *d, int node, struct conf_overlay *o, struct ptcp_err *e);
int conf_read_groups(const struct conf_doc *d, int node, struct conf_overlay *o, struct ptcp_err *e);
int conf_read_windows(const struct conf_doc *d, int node, struct conf_overlay *o, struct ptcp_err *e);

#endif
