#include "model/ewma.h"

#include <math.h>

void ewma_add(struct ewma *s, double value, double weight)
{
	double w = fmax(weight, 1.0 / ++s->n), off = value - s->mean;

	s->mean += w * off;
	s->variance = (1 - w) * (s->variance + w * off * off);
	s->squares = (1 - w) * (1 - w) * s->squares + w * w;
}

double ewma_error(const struct ewma *s)
{
	/* The variance of the values is that about the mean over 1 - squares. */
	return s->n < 2 || !(s->squares < 1) ? NAN : sqrt(s->variance / (1 - s->squares) * s->squares);
}
