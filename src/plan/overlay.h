/* The overlay handle, for the planner and collections. */
#ifndef PLAN_OVERLAY_H
#define PLAN_OVERLAY_H

#include <ptcp/plan.h>

#include "conf/overlay.h"

struct ptcp_overlay {
	struct conf_overlay *conf;
};

/* Copies the changing numbers of an overlay (data, rates, windows) for a planning thread. Names, addresses,
 * curves and lists of links remain the original's, which must outlive the copy. */

int snapshot_new(struct ptcp_overlay **out, const struct ptcp_overlay *o, struct ptcp_err *e);
void snapshot_free(struct ptcp_overlay *o); /* NULL is fine; only for copies */

#endif
