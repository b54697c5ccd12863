/* Turns: which of many links is measured next, where measuring never ends.
 *
 * Wu, Rao, Iyengar (section V) allocate measurements by the variances seen and allocate again all the time. The
 * variance of a mean of k values with standard deviation s is s^2 / k, and the sum of such variances over all links is
 * least with k in proportion to s (Neyman 1934). For that, the means of all links must cover equal times rather than
 * equal numbers of values: turns_weight(). The paper lets the share of a quiet link fall to 0; here a link keeps a
 * quarter of an equal share, because quiet paths change, too. */
#ifndef MODEL_TURNS_H
#define MODEL_TURNS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/parameters.h"

struct turn {
	bool out;        /* never measured */
	double sd;       /* standard deviation of a measurement; negative or NAN: unknown, as the mean of the known */
	double credit;   /* zero-initialize */
	unsigned waited; /* turns since the last turn of this link; zero-initialize */
};

/* The next link, in proportion to sd; n if all links are out. Every link has one of the next 8 n turns, however the
 * deviations change. Links of equal sd take turns in the order of the array. *waited: turns since the last turn of the
 * link, this turn included. */
size_t turns_next(struct turn *t, size_t n, unsigned *waited);

/* Weight of a measurement after `waited` turns of `links` links, `weight` being that after one turn of each: the means
 * of all links forget equally fast. */
double turns_weight(double weight, unsigned waited, size_t links);

#endif
