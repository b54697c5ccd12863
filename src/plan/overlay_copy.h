/* Copies of overlays; conf/overlay.h has the struct. */
#ifndef PLAN_OVERLAY_COPY_H
#define PLAN_OVERLAY_COPY_H

#include <ptcp/plan.h>

#include "conf/overlay.h"

/* Copies the changing numbers of an overlay (data, rates, windows) for a planning thread. Names, addresses,
 * curves and lists of links remain the original's, which must outlive the copy. */
int overlay_snapshot(struct ptcp_overlay **out, const struct ptcp_overlay *o, struct ptcp_err *e);
void overlay_snapshot_free(struct ptcp_overlay *o); /* NULL is fine; only for snapshots */

#endif
