/* Distribution of streams among worker threads: the move that relieves the busiest worker. Pure functions. */
#ifndef MODEL_PLACEMENT_H
#define MODEL_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/parameters.h"

struct placement_stream {
	unsigned worker;
	uint64_t bytes; /* moved in the last interval: streams of a worker cost by bytes */
};

/* Finds the stream whose move from an overloaded worker to the least busy one lowers the higher load of the two most.
 * busy_ratio: of each worker, 0 to 1. False: no worker is overloaded, or no move gains more than
 * PLACEMENT_GAIN_RATIO. */
bool placement_find(const double *busy_ratio, unsigned workers, const struct placement_stream *of, unsigned n,
    unsigned *stream, unsigned *to);

#endif
