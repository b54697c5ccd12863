/* Answers from the path history, after a short check of the path.
 *
 * A check is a probe of the advised number for HISTORY_CHECK_S. Its rate contradicts the answer, or shares in it. The
 * check cannot show who else uses the path: other flows may have come or gone, the more probably the older the answer
 * is, so that the range of the impact widens to both sides. */
#ifndef MODEL_RECALLED_H
#define MODEL_RECALLED_H

#include <stdbool.h>

#include "model/advice.h"

/* Whether the check, of `told`'s number of streams, agrees with the answer as it was when the path was probed. */
bool recalled_agrees(const struct advice_point *told, const struct probe *check);

/* What age and check do to all predictions of an answer. */
struct recalled {
	double factor;       /* factor of rates */
	double sd;           /* further deviation of rates, as logarithm; at the checked number it is the whole */
	double others_ratio; /* probability that the competing flows are others than at the time of the probes */
	unsigned streams;    /* the checked number */
};

void recalled_of(struct recalled *r, const struct advice_point *told, const struct probe *check, double age_s);
/* The prediction for a number of streams, as of now. */
void recalled_point(const struct recalled *r, struct advice_point *p, unsigned streams);

#endif
