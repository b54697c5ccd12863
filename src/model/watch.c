#include "model/watch.h"

#include <math.h>

void watch_init(struct watch *w, double drift_ratio, double hold_s)
{
	*w = (struct watch){ log1p(drift_ratio), hold_s * log1p(drift_ratio), 0, 0 };
}

int watch_add(struct watch *w, double measured_bps, double predicted_bps, double interval_s)
{
	double ratio = measured_bps / predicted_bps, off;

	off = log(fmin(fmax(ratio, 1 / WATCH_FACTOR_MAX), WATCH_FACTOR_MAX));
	w->above = fmax(0, w->above + interval_s * (off - w->slack));
	w->below = fmax(0, w->below + interval_s * (-off - w->slack));
	if (w->above < w->limit_s * (1 - 1e-9) && w->below < w->limit_s * (1 - 1e-9))
		return 0;
	off = w->above - w->below;
	w->above = w->below = 0;
	return off > 0 ? 1 : -1;
}
