/* Whether what n streams bring has left the prediction for long enough to fit
 * again: a cumulative sum of ln(measured / predicted) either way (Page,
 * "Continuous Inspection Schemes", 1954), over time instead of samples. */
#ifndef MODEL_CUSUM_H
#define MODEL_CUSUM_H

struct cusum {
	double slack, limit_s;  /* ln(1 + drift_ratio), hold_s x slack */
	double above, below;
};

/* A deviation of up to a factor of (1 + drift_ratio) never counts; a lasting one of
 * its square is reported after hold_s, larger ones sooner. Both positive. */
void cusum_init(struct cusum *w, double drift_ratio, double hold_s);

/* `measured_bps` over interval_s where predicted_bps (positive) was expected. One
 * interval counts as a factor of CUSUM_FACTOR_MAX at most, so that a single stall is
 * no change. Returns 1 when the path brings more than predicted for long enough, -1
 * when less, else 0; after a report it begins anew. */
int cusum_add(struct cusum *w, double measured_bps, double predicted_bps, double interval_s);

#define CUSUM_FACTOR_MAX 4.0

#endif
