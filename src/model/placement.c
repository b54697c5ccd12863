#include "model/placement.h"

static double total_bytes(const struct placement_stream *of, unsigned n, unsigned worker)
{
	double total = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		if (of[i].worker == worker)
			total += (double)of[i].bytes;
	return total;
}

bool placement_find(const double *busy_ratio, unsigned workers, const struct placement_stream *of, unsigned n,
    unsigned *stream, unsigned *to)
{
	double gain, best = PLACEMENT_GAIN_RATIO, load, total;
	unsigned i, from, least = 0;
	bool found = false;

	for (i = 1; i < workers; i++)
		if (busy_ratio[i] < busy_ratio[least])
			least = i;
	for (from = 0; from < workers; from++) {
		if (busy_ratio[from] < PLACEMENT_BUSY_RATIO || (total = total_bytes(of, n, from)) == 0)
			continue;
		for (i = 0; i < n; i++) {
			load = of[i].worker == from ? busy_ratio[from] * (double)of[i].bytes / total : 0;
			gain = busy_ratio[from] - busy_ratio[least] - load; /* gain of the one worker over the other, */
			if (gain > load)
				gain = load;                                /* gain over its own past */
			if (gain <= best)
				continue;
			best = gain;
			*stream = i;
			*to = least;
			found = true;
		}
	}
	return found;
}
