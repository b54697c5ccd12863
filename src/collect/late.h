/* What a source that is behind its plan does about it: rates alone would keep it as far behind to the end. Each of its
 * paths may have as much more as makes up for it within seconds, up to what its links are taken for; and where that is
 * not enough, as flows of others leave its streams less than the plan gave them, its spare paths help. Pure. */
#ifndef COLLECT_LATE_H
#define COLLECT_LATE_H

#include <stdbool.h>

struct late {
	double more_bps; /* than it is given */
	bool spares;     /* they help */
};

/* `behind_bytes`: what has yet to come and should have by the plan; negative where it is ahead. given_bps: what its
 * paths are given together, and of it got_bps what comes, of late: once spares help they bring what lacks before it is
 * late, until it is ahead by enough. `l` zeroed to begin with. */
void late_see(struct late *l, double behind_bytes, double given_bps, double got_bps);

#endif
