/* Reproducible random numbers from the caller's seed: SplitMix64 (Steele, Lea, Flood 2014). Never for
 * secrets. */
#ifndef MODEL_RNG_H
#define MODEL_RNG_H

#include <stdint.h>

struct rng {
	uint64_t state; /* any value is a good seed */
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Uniform in [0, 1), 53 random bits. */
static inline double rng_uniform(struct rng *r)
{
	return (double)(rng_next(r) >> 11) * 0x1p-53;
}

#endif
