/* The value below which the share `q` (0..1) of a sorted array lies, linear between neighbours; 0.5 is the median.
 * count > 0. */
#ifndef TESTS_QUANTILE_H
#define TESTS_QUANTILE_H

#include <stddef.h>

static inline double quantile(const double *sorted, size_t count, double q)
{
	double at = q * (double)(count - 1);
	size_t i = (size_t)at;

	if (i + 1 >= count)
		return sorted[count - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

#endif
