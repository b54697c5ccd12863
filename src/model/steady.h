/* The rate that a probe came to after slow start, and how sure it is: from the rates
 * in short intervals of equal length.
 *
 * The beginning is left out by White, "An effective truncation heuristic for bias
 * reduction in simulation output" (1997): so much of it that the rest has the least
 * variance over its length, but at most half. The error is by batch means: the rest
 * is cut into STEADY_BATCHES, long enough to be nearly independent, and the scatter of
 * their means is the mean's. */
#ifndef MODEL_STEADY_H
#define MODEL_STEADY_H

#include <stddef.h>

#define STEADY_MAX 512
#define STEADY_BATCHES 6

struct steady {
	double rate_bps[STEADY_MAX];
	size_t n;
};

/* What comes after STEADY_MAX intervals is ignored. Begin with all zero. */
void steady_add(struct steady *s, double rate_bps);

struct steady_result {
	size_t skipped;   /* intervals left out */
	double mean_bps;
	double error_bps; /* standard error of it */
};

/* 0, or -1 while there are too few intervals to say, or nothing was sent in them. */
int steady_result(struct steady_result *out, const struct steady *s);

#endif
