/* Random numbers of the laboratory (xoshiro256**): fast, seedable, no globals. */
#ifndef LAB_RNG_H
#define LAB_RNG_H

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);

/* Uniform in [0, 1). */
double rng_unit(struct rng *r);

#endif
