/* The limit of a path that is neither its link nor competing flows, named with its remedy, from the evidence of the
 * probes. Each limit leaves traces that no other has; without all of them there is no name. */
#ifndef MODEL_PATH_LIMIT_H
#define MODEL_PATH_LIMIT_H

#include <stdbool.h>

#include "model/evidence.h"

/* Name, name in JSON. */
#define PATH_LIMIT_LIST(X)                                                     \
	X(PATH_LIMIT_NONE, "none")                                             \
	X(PATH_LIMIT_POLICER, "policer")     /* drops what exceeds a rate, without a queue */ \
	X(PATH_LIMIT_SHALLOW, "shallow-queue") /* a queue of a few packets: each loss leaves the link idle */ \
	X(PATH_LIMIT_LOSS, "random-loss")    /* losses without a queue, at any rate */

enum path_limit {
#define X(id, name) id,
	PATH_LIMIT_LIST(X)
#undef X
	PATH_LIMITS
};

const char *path_limit_name(enum path_limit l);

struct path_limit_found {
	enum path_limit limit;
	bool alone;          /* nobody else has a share of the policer */
	/* 0: unknown */
	double rate_bps;     /* goodput that a policer lets pass */
	double burst_bytes;  /* burst of a policer, approximate */
	double queue_packets; /* length of a shallow queue */
	double loss_ratio;   /* random loss */
};

/* nobody_ratio: probability that no flow competes (struct belief). */
void path_limit_of(struct path_limit_found *out, const struct evidence *e, double nobody_ratio);

/* One sentence: the limit, and its remedy. NONE has none. */
#define PATH_LIMIT_TEXT_BYTES 240
const char *path_limit_text(char out[PATH_LIMIT_TEXT_BYTES], const struct path_limit_found *l);

#endif
