#include "model/cusum.h"

#include <math.h>

void cusum_init(struct cusum *w, double drift_ratio, double hold_s)
{
	*w = (struct cusum){ log1p(drift_ratio), hold_s * log1p(drift_ratio), 0, 0 };
}

int cusum_add(struct cusum *w, double measured_bps, double predicted_bps, double interval_s)
{
	double ratio = measured_bps / predicted_bps, off;

	off = log(fmin(fmax(ratio, 1 / CUSUM_FACTOR_MAX), CUSUM_FACTOR_MAX));
	w->above = fmax(0, w->above + interval_s * (off - w->slack));
	w->below = fmax(0, w->below + interval_s * (-off - w->slack));
	if (w->above < w->limit_s * (1 - 1e-9) && w->below < w->limit_s * (1 - 1e-9))
		return 0;
	off = w->above - w->below;
	w->above = w->below = 0;
	return off > 0 ? 1 : -1;
}
