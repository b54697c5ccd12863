/* The politest way to end a transfer by a time: rest, time and throughput in, number of streams and floor out.
 *
 *   YIELDS    the streams yield to competing flows (yield.h), down to the floor: the rate, of all streams together,
 *             that the rest needs. One stream begins; the floor is missed for a while: next COMPETES
 *   COMPETES  the streams do not yield, and the impact budget determines their number. Once throughput and impact of
 *             all numbers are known: the smallest number that has room for the floor, next YIELDS
 *
 * So the transfer uses what competing flows leave, and takes from them only what the deadline needs, until the budget
 * has no room: then the transfer takes the budget. The floor aims at a time before the deadline; at that time, the
 * transfer competes. With a budget of 0 the transfer always yields, without a floor. */
#ifndef MODEL_DEADLINE_H
#define MODEL_DEADLINE_H

#include <stdbool.h>

#include "model/advice.h"
#include "model/parameters.h"

enum deadline_mode { DEADLINE_YIELDS, DEADLINE_COMPETES };

struct deadline {
	enum deadline_mode mode;
	unsigned streams;      /* at most; 0: as many as the budget permits */
	double floor_bps;      /* INFINITY: does not yield */
	double impact_ratio;   /* predicted impact of these streams; NAN: not known */
	double margin_s;       /* from the aim to the deadline */
	double recent_bps;     /* mean throughput of the last seconds */
	double room;           /* throughput that is chosen, over the floor; grows when the floor is missed again */
	double mode_s, short_s; /* time in this mode, and time with less than the floor */
};

/* One step of about a second. */
struct deadline_step {
	double interval_s;
	double left_s, left_bits; /* until the deadline; bits that are known to be left */
	double delivered_bps;
	bool yields_only;      /* a budget of 0 */
	unsigned streams;      /* active ones */
	unsigned most;         /* number that the budget permits, if `advice` is known */
	const struct advice *advice; /* NULL: not known */
	bool probes;           /* the number of streams is about to change */
};

/* left_s: from the start to the deadline. */
void deadline_init(struct deadline *d, double left_s);
/* Before the first step, with the throughput that is known from an earlier transfer: its number of streams. */
void deadline_begin(struct deadline *d, const struct deadline_step *s);
/* True: mode, or number of streams, has changed. The floor changes in each step. */
bool deadline_step(struct deadline *d, const struct deadline_step *s);

/* What is to be expected. */
struct deadline_outlook {
	bool known;            /* the next two */
	bool possible;         /* within the budget */
	double left_s;         /* until the end: while the transfer yields, at the latest */
	/* If not possible, and throughput and impact of more streams are known: the smallest impact that meets the
	 * deadline, or the largest, if none does; NAN: not known */
	double larger_ratio, larger_left_s;
};

/* max_streams: of any budget. */
void deadline_outlook(struct deadline_outlook *out, const struct deadline *d, const struct deadline_step *s,
    unsigned max_streams);

#endif
