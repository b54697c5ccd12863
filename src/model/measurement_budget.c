#include "model/measurement_budget.h"

#include <math.h>
#include <stdbool.h>

static bool known(double sd)
{
	return sd >= 0 && isfinite(sd);
}

/* Relative to the largest, so that their sum cannot overflow. */
static double weights(double *w, const double *sd, size_t links)
{
	double largest = 0, sum = 0;
	size_t i;

	for (i = 0; i < links; i++)
		if (known(sd[i]))
			largest = fmax(largest, sd[i]);
	for (i = 0; i < links; i++) {
		w[i] = largest > 0 && known(sd[i]) ? sd[i] / largest : 1;
		sum += w[i];
	}
	return sum;
}

void measurement_budget_allocate(unsigned *counts, const double *sd, double *scratch, size_t links,
    unsigned total, unsigned least)
{
	double sum = weights(scratch, sd, links), share;
	unsigned rest = total, divided;
	size_t i, best;

	if (links == 0)
		return;
	for (i = 0; i < links; i++) {
		counts[i] = least < rest ? least : rest;
		rest -= counts[i];
	}
	divided = rest;
	for (i = 0; i < links; i++) {
		share = divided * (scratch[i] / sum);
		if (floor(share) > rest)
			share = rest;
		counts[i] += (unsigned)share;
		rest -= (unsigned)share;
		scratch[i] = share - floor(share);
	}
	for (; rest > 0; rest--) {
		best = 0;
		for (i = 1; i < links; i++)
			if (scratch[i] > scratch[best])
				best = i;
		counts[best]++;
		scratch[best] -= 1;
	}
}
