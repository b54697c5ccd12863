#include "model/turns.h"

#include <math.h>

#define EQUAL 1e-9 /* credits that differ by rounding */

static bool known(double sd)
{
	return sd >= 0 && isfinite(sd);
}

/* Mean of the known standard deviations; 0 if none is known. */
static double mean_sd(const struct turn *t, size_t n)
{
	double sum = 0;
	size_t i, k = 0;

	for (i = 0; i < n; i++)
		if (!t[i].out && known(t[i].sd)) {
			sum += t[i].sd;
			k++;
		}
	return k > 0 ? sum / (double)k : 0;
}

static double weight_of(const struct turn *t, double mean)
{
	if (t->out)
		return 0;
	return mean == 0 ? 1 : known(t->sd) ? fmax(t->sd / mean, TURNS_LEAST) : 1;
}

/* Smooth weighted round robin: each link earns its share of a turn, and the link with the largest credit pays one. */
size_t turns_next(struct turn *t, size_t n, unsigned *waited)
{
	double mean = mean_sd(t, n), sum = 0;
	size_t i, best = n;

	for (i = 0; i < n; i++)
		sum += weight_of(&t[i], mean);
	for (i = 0; i < n; i++) {
		if (t[i].out)
			continue;
		t[i].credit += weight_of(&t[i], mean) / sum;
		t[i].waited++;
		if (best == n || t[i].credit > t[best].credit + EQUAL)
			best = i;
	}
	if (best == n)
		return n;
	t[best].credit -= 1;
	*waited = t[best].waited;
	t[best].waited = 0;
	return best;
}

double turns_weight(double weight, unsigned waited, size_t links)
{
	return 1 - pow(1 - weight, (double)waited / (double)links);
}
