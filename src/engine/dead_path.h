/* Detects paths without progress. A path may fail silently (cable, stopped relay): TCP retransmits at growing
 * intervals, and the streams wait. A path is dead when its streams made no progress for DEAD_PATH_NS before the
 * latest progress on another path; while all paths stand still, all count as alive. */
#ifndef ENGINE_DEAD_PATH_H
#define ENGINE_DEAD_PATH_H

#include "engine/streams_view.h"

#define DEAD_PATH_NS (UINT64_C(3) * 1000000000)
#define DEAD_PATH_CHECK_NS (UINT64_C(500) * 1000000)

struct dead_path {
	bool enabled;
	struct mono checked;
	struct {
		uint32_t generation;    /* number of the connection whose bytes and progress these are */
		uint64_t moved;
		struct mono progress;   /* time of the last progress */
	} stream[ENGINE_STREAMS_MAX];
	struct mono excused[ENGINE_PATHS_MAX];
};

/* Only the end that opens the connections checks, and only among several paths. */
void dead_path_init(struct dead_path *d, bool connects, unsigned n_paths);
/* Restarts the time limit DEAD_PATH_NS of a path, for example after a change of its rate limit. */
void dead_path_excuse(struct dead_path *d, unsigned path, struct mono now);
bool dead_path_due(const struct dead_path *d, struct mono now);
/* Paths whose streams are to be closed, as a bit mask. Paths with spooling relays are never dead; a rate limit
 * extends the limit by the duration of two quanta. */
uint32_t dead_path_check(struct dead_path *d, const struct streams_view *v, struct mono now);
struct mono dead_path_deadline(const struct dead_path *d, unsigned n_connected);

#endif
