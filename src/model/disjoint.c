#include "model/disjoint.h"

#include <string.h>

static int larger(int a, int b)
{
	return a > b ? a : b;
}

size_t disjoint_round(size_t *out, size_t max, const struct disjoint_link *link, const bool *waits, size_t n,
    int *scratch, size_t n_hosts)
{
	int *degree = scratch, *taken = scratch + n_hosts, worst, sum, d, best_worst, best_sum;
	size_t count = 0, i, best;

	memset(scratch, 0, 2 * n_hosts * sizeof *scratch);
	for (i = 0; i < n; i++)
		if (waits[i]) {
			degree[link[i].from]++;
			degree[link[i].to]++;
		}
	while (count < max) {
		best = n;
		best_worst = best_sum = 0;
		for (i = 0; i < n; i++) {
			if (!waits[i] || taken[link[i].from] || taken[link[i].to])
				continue;
			d = degree[link[i].from];
			sum = d + degree[link[i].to];
			worst = larger(d, sum - d);
			if (worst > best_worst || (worst == best_worst && sum > best_sum)) {
				best = i;
				best_worst = worst;
				best_sum = sum;
			}
		}
		if (best == n)
			break;
		taken[link[best].from] = taken[link[best].to] = 1;
		out[count++] = best;
	}
	return count;
}
