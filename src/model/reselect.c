#include "model/reselect.h"

#include <assert.h>
#include <stdbool.h>

static bool among(const size_t *chosen, size_t k, size_t candidate)
{
	size_t i;

	for (i = 0; i < k; i++)
		if (chosen[i] == candidate)
			return true;
	return false;
}

/* One that is not among the k chosen; fewer than all are. */
static size_t draw(const size_t *chosen, size_t k, const double *weight, size_t candidates, struct rng *r)
{
	double total = 0, left, w;
	size_t i, last = candidates, count = 0;

	for (i = 0; i < candidates; i++)
		if (!among(chosen, k, i)) {
			total += weight != NULL ? weight[i] : 1;
			count++;
		}
	left = rng_uniform(r) * (total > 0 ? total : (double)count);
	for (i = 0; i < candidates; i++) {
		w = weight != NULL && total > 0 ? weight[i] : 1;
		if (w == 0 || among(chosen, k, i))
			continue;
		last = i;
		if (left < w)
			break;
		left -= w;
	}
	return last;
}

void choose_paths(size_t *chosen, size_t k, const double *weight, size_t candidates, struct rng *r)
{
	size_t i;

	assert(k <= candidates);
	for (i = 0; i < k; i++)
		chosen[i] = draw(chosen, i, weight, candidates, r);
}

static size_t replace_worst(size_t *chosen, size_t k, const double *seen_bps,
    const double *weight, size_t candidates, struct rng *r)
{
	size_t i, worst = 0;

	if (k >= candidates)
		return 0;
	for (i = 1; i < k; i++)
		if (seen_bps[i] < seen_bps[worst])
			worst = i;
	chosen[worst] = draw(chosen, k, weight, candidates, r);
	return 1;
}

size_t reselect_paths(size_t *chosen, size_t k, enum reselect_paths how, const double *seen_bps,
    const double *weight, size_t candidates, struct rng *r)
{
	size_t i, old, changed = 0;

	if (how == RESELECT_WORST)
		return replace_worst(chosen, k, seen_bps, weight, candidates, r);
	assert(k <= candidates);
	for (i = 0; i < k; i++) {
		old = chosen[i];
		chosen[i] = draw(chosen, i, weight, candidates, r);
		changed += chosen[i] != old;
	}
	return changed;
}
