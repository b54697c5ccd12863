/* Lots drawn by tests, from a seed that they name. */
#ifndef TESTS_DRAW_H
#define TESTS_DRAW_H

#include "model/rng.h"

/* Uniform in 0..n-1; n > 0. The bias, below n / 2^32, is left alone. */
static inline unsigned rng_below(struct rng *r, unsigned n)
{
	return (unsigned)(((rng_next(r) >> 32) * n) >> 32);
}

#endif
