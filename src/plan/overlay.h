/* What an overlay handle holds, for the other files of the planner. */
#ifndef PLAN_OVERLAY_H
#define PLAN_OVERLAY_H

#include <ptcp/plan.h>

#include "conf/overlay.h"

struct ptcp_overlay {
	struct conf_overlay *conf;
};

#endif
