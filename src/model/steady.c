#include "model/steady.h"

#include <math.h>

#include "model/stats.h"

#define BATCH_MIN 2 /* intervals */

void steady_add(struct steady *s, double rate_bps)
{
	if (s->n < STEADY_MAX)
		s->rate_bps[s->n++] = rate_bps;
}

/* How many intervals to leave out, from the end backwards with running sums. */
static size_t truncation(const struct steady *s)
{
	double sum = 0, squares = 0, spread, least = INFINITY;
	size_t i = s->n, best = 0;

	while (i-- > 0) {
		double k = (double)(s->n - i);

		sum += s->rate_bps[i];
		squares += s->rate_bps[i] * s->rate_bps[i];
		spread = (squares - sum * sum / k) / (k * k);
		if (i <= s->n / 2 && spread <= least) {
			least = spread;
			best = i;
		}
	}
	return best;
}

int steady_result(struct steady_result *out, const struct steady *s)
{
	size_t skip = truncation(s), batch = (s->n - skip) / STEADY_BATCHES, b;
	double mean[STEADY_BATCHES];
	struct stats st;

	if (batch < BATCH_MIN)
		return -1;
	skip = s->n - batch * STEADY_BATCHES; /* whole batches, the latest */
	for (b = 0; b < STEADY_BATCHES; b++) {
		stats_of(&st, s->rate_bps + skip + b * batch, batch);
		mean[b] = st.mean;
	}
	stats_of(&st, mean, STEADY_BATCHES);
	if (!(st.mean > 0))
		return -1;
	*out = (struct steady_result){ skip, st.mean, st.sd / sqrt(STEADY_BATCHES) };
	return 0;
}
