/* What hosts and links of an overlay are called in what is shown. */
#ifndef CLI_OVERLAY_NAMES_H
#define CLI_OVERLAY_NAMES_H

#include <ptcp/plan.h>

/* Lives as long as the overlay. */
const char *host_name(const struct ptcp_overlay *o, int host);

/* "A>B". Returns out. */
#define LINK_NAME_BYTES 140
const char *link_name(char out[LINK_NAME_BYTES], const struct ptcp_overlay *o, int from, int to);

#endif
