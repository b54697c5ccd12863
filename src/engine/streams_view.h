/* Snapshot of a session's data streams and paths: the input of the adaptive parts (dead_path.h, path_select.h,
 * path_rates.h). Filled by the session for each call. */
#ifndef ENGINE_STREAMS_VIEW_H
#define ENGINE_STREAMS_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "wire/frame.h"

#define ENGINE_STREAMS_MAX WIRE_RATE_STREAMS_MAX
#define ENGINE_PATHS_MAX WIRE_RATES_MAX
#define ENGINE_PATH_IDLE WIRE_RATE_IDLE /* rate of a path that starts no new block */

struct stream_view {
	unsigned path;          /* index of the path */
	unsigned place;         /* index among the paths in use */
	bool moving;            /* still connected through an earlier path of the place */
	struct mono since;      /* time of connection; 0: not connected */
	uint32_t generation;    /* number of the connection, not 0; each has its own */
	uint64_t moved;         /* counter of bytes through the connection, sent and received */
	/* sender: */
	bool carries;           /* has unacknowledged blocks */
	struct mono acked;      /* time of the last acknowledgment */
	uint64_t acked_bytes;   /* bytes of all connections with this number */
};

struct path_view {
	uint64_t rate_bps;      /* rate limit; 0: none; ENGINE_PATH_IDLE */
	bool spools;            /* relays of the path may spool data */
};

struct streams_view {
	bool sends;             /* this side sends the blocks */
	unsigned n_streams;     /* active streams */
	struct stream_view stream[ENGINE_STREAMS_MAX];
	unsigned n_paths;
	struct path_view path[ENGINE_PATHS_MAX];
};

#endif
