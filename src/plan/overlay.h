/* What an overlay handle holds, for the other files of the planner. */
#ifndef PLAN_OVERLAY_H
#define PLAN_OVERLAY_H

#include <ptcp/plan.h>

#include "conf/overlay.h"

struct ptcp_overlay {
	struct conf_overlay *conf;
};

/* An overlay as it is now, for a thread that plans while rates go on changing. What never changes - names, addresses,
 * curves, which links share what - is the original's, which has to outlive it. */

int snapshot_new(struct ptcp_overlay **out, const struct ptcp_overlay *o, struct ptcp_err *e);
void snapshot_free(struct ptcp_overlay *o); /* NULL is fine; an overlay of any other kind is not */

#endif
