/* Random overlays for the tests of paths. */
#ifndef TESTS_MODEL_OVERLAY_H
#define TESTS_MODEL_OVERLAY_H

#include <math.h>

#include "draw.h"
#include "model/overlay_paths.h"

#define OVERLAY_HOSTS 20
#define OVERLAY_LINKS (OVERLAY_HOSTS * OVERLAY_HOSTS)

struct overlay {
	struct paths_graph graph;
	bool relay[OVERLAY_HOSTS];
	struct paths_link links[OVERLAY_LINKS];
};

/* About four links a host, 1 Mbit/s to 1 Gbit/s, 1 to 100 ms; one host in ten
 * does not relay. From host 0 to the last one. */
static inline void overlay_random(struct overlay *o, size_t hosts, struct rng *r)
{
	double density = 4.0 / (double)(hosts - 1);
	size_t i, j, n = 0;

	for (i = 0; i < hosts; i++) {
		o->relay[i] = rng_uniform(r) < 0.9;
		for (j = 0; j < hosts; j++)
			if (i != j && rng_uniform(r) < density)
				o->links[n++] = (struct paths_link){ i, j,
				    1e6 * pow(10, 3 * rng_uniform(r)),
				    0.001 * pow(10, 2 * rng_uniform(r)) };
	}
	o->graph = (struct paths_graph){ hosts, n, o->relay, o->links };
}

#endif
