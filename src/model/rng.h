/* Reproducible randomness for what draws lots: the caller seeds it, so that a
 * run can be repeated. SplitMix64 (Steele, Lea, Flood 2014). Never for secrets. */
#ifndef MODEL_RNG_H
#define MODEL_RNG_H

#include <stdint.h>

struct rng {
	uint64_t state; /* any value is a good seed */
};

uint64_t rng_next(struct rng *r);

/* Uniform in [0, 1), 53 random bits. */
double rng_uniform(struct rng *r);

#endif
