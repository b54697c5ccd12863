/* What n streams brought for a while, and how much that scatters from one run to the next: what models
 * are fitted to (fit.h), and how ptcp advise measures it. */
#ifndef MODEL_PROBE_H
#define MODEL_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/steady.h"

struct probe {
	unsigned streams;      /* at least 1 */
	double throughput_bps; /* aggregate of all streams */
	double error_bps;      /* standard error of it; 0: not known, probe_error_ratio()
				  then assumes that of one short run */
};

/* One standard deviation of the probe's throughput over the throughput. Where it
 * is not known: what single short runs scattered by on Linux (up to 70 % with 1
 * or 2 streams, about 10 % with 8 and more, taken as two and one deviations). */
double probe_error_ratio(const struct probe *p);

/* One probe of several runs with the same number of streams: their mean, and its
 * error from their scatter; since a few runs show scatter badly, what is assumed of
 * a single run counts as two runs more. runs >= 1. */
void probe_of_runs(struct probe *out, unsigned streams, const double *throughput_bps, size_t runs);

/* One probe of one run: what it settled to. Its error is what the scatter within it shows,
 * and what that cannot: how short runs differ from each other, as assumed of a single one. */
void probe_of_settled(struct probe *out, unsigned streams, const struct steady_result *s);

#define PROBE_ALONE_RATIO 0.02

/* A group of streams grew from one probe to the next. Widens their errors by what shows that
 * streams had not come to their share yet: each that was there before got `older_ratio` times
 * what each got that joined; or with more streams each brought more, which nothing but that
 * can explain. But where they brought the same together, within PROBE_ALONE_RATIO, and those that joined got half
 * of it at least, nobody else is there and nothing scatters: that is their error then. */
void probe_grew(struct probe *before, struct probe *after, double older_ratio);

/* ---- How ptcp advise probes, in one place ---- */

/* A level lasts for so long at least, and at the most. */
#define PROBE_LEAST_S 2.5
#define PROBE_MOST_S 10.0
/* In between it ends when what it settled to is known so well: a link that nobody else is on is so steady. Shares of
 * one are not, though for some seconds they may look it: of 72 levels in laboratories beside others' flows 1 would have
 * ended so, and with 0.02 it were 42, most of them while the rate still rose. */
#define PROBE_STEADY_RATIO 0.005
/* No further level begins after so long in all. */
#define PROBE_LAST_START_S 17.0

/* Whether a level has told what it can. */
bool probe_told(const struct steady *s, double elapsed_s);

#endif
