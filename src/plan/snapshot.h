/* An overlay as it is now, for a thread that plans while rates go on changing. What never changes - names, addresses,
 * curves, which links share what - is the original's, which has to outlive it. */
#ifndef PLAN_SNAPSHOT_H
#define PLAN_SNAPSHOT_H

#include "plan/overlay.h"

int snapshot_new(struct ptcp_overlay **out, const struct ptcp_overlay *o, struct ptcp_err *e);
void snapshot_free(struct ptcp_overlay *o); /* NULL is fine; an overlay of any other kind is not */

#endif
