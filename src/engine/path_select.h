/* Selects the paths in use among candidates: observes the throughput of each, and lets model/multipath decide which
 * candidates are tried, which replace slow or dead paths, and at which rate each path sends. A sender samples
 * acknowledged data, from acknowledgment to acknowledgment, so that large blocks do not distort the rate. */
#ifndef ENGINE_PATH_SELECT_H
#define ENGINE_PATH_SELECT_H

#include "engine/streams_view.h"
#include "model/multipath.h"

#define PATH_SELECT_MIN_NS (UINT64_C(1) * 1000000000)   /* length of an interval */
#define PATH_SELECT_MAX_NS (UINT64_C(10) * 1000000000)
#define PATH_SELECT_BLOCKS 8                            /* blocks that a path should carry in an interval */
#define PATH_SELECT_BLOCK_BYTES (256u << 10)
#define PATH_SELECT_DOWN_NS (UINT64_C(3) * 1000000000)  /* without a stream: the path is down */
#define PATH_SELECT_TRIAL_MIN_NS (UINT64_C(500) * 1000000) /* length of an interval in a trial */
#define PATH_SELECT_SAMPLE_NS (UINT64_C(3) * 1000000000) /* without an acknowledgment: no throughput */
#define PATH_SELECT_ENDING_NS (UINT64_C(5) * 1000000000) /* no trials if the data left takes less time */

struct path_select {
	struct multipath model;             /* place[], rate_bps[] and reason are the decisions */
	struct multipath_sample sample;     /* throughput in the last step */
	struct mono since, next;            /* the present interval */
	bool starved;
	/* by place: */
	struct mono connected[ENGINE_PATHS_MAX];
	uint64_t acked[ENGINE_PATHS_MAX];
	struct mono acked_at[ENGINE_PATHS_MAX];
	double acked_bps[ENGINE_PATHS_MAX];
	/* by stream: */
	struct { uint32_t generation; uint64_t moved; } stream[ENGINE_STREAMS_MAX];
};

/* Parameters as of multipath_init(). */
void path_select_init(struct path_select *c, size_t candidates, const size_t *place, size_t places,
    const double *prior_bps, uint64_t seed, struct mono now);

struct path_select_input {
	const struct streams_view *streams;
	uint64_t demand_bps;            /* rate limit of all paths together; 0: none */
	bool peer_busy;
	/* Remaining data (UINT64_MAX: unknown), and data that the streams may buffer: near the end some streams
	 * idle. */
	uint64_t left_bytes, window_bytes;
};

/* A stream had room but no data to send: the interval's throughput does not reflect the paths. */
void path_select_starved(struct path_select *c);
/* Ends the interval, at `next` or later. Returns the places with a new candidate, as a bit mask. */
unsigned path_select_step(struct path_select *c, const struct path_select_input *in, struct mono now);
/* Whether the paths in use are still to change: throughput does not reflect the number of streams. */
bool path_select_in_trial(const struct path_select *c);

#endif
