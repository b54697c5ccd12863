/* Competing flows at a bottleneck of a collection, and the rate that an impact budget leaves to the collection. Pure.
 *
 * A full bottleneck shows queues and losses whether our flows or competing flows fill it. Therefore a test follows: all
 * our flows over the bottleneck send a third less for some seconds. On an idle path buffers and queue drain, and losses
 * end. Competing flows take the rate that our flows leave, and queue and losses stay.
 *
 *   UNKNOWN  next TEST, when queue and losses appear
 *   TEST     next SEEN, or UNKNOWN for a while; also after a lack of processor time on this host, which delays
 *            acknowledgments and lets buffers overflow at any rate
 *   SEEN     the budget applies; next UNKNOWN, when queue and losses have been gone for some seconds
 *
 * The budget compares with the method that users have without ptcp: each source sends directly, through one stream,
 * until its data has arrived. Afterwards the source leaves its share; so the mean over the whole duration counts. The
 * collection may take that mean, and the budget's part of the capacity. */
#ifndef COLLECT_OTHERS_H
#define COLLECT_OTHERS_H

#include <stdbool.h>
#include <stddef.h>

#include "collect/collect_parameters.h"
#include "model/evidence.h"

#define OTHERS_TICKS 12

/* One tick of all our flows over a bottleneck. */
struct others_sample {
	double at_s, interval_s;
	double rate_bps;
	double streams;            /* streams that carry data */
	double stream_bps;         /* mean of the streams that send less than their rate limit permits; 0: none */
	/* RTT of flows whose senders see the bottleneck; smallest RTT of the flow with the shortest queue */
	double rtt_s, min_rtt_s;   /* 0: unknown */
	double segments, lost;
	bool starved;              /* this host lacked processor time: queue and losses may be its own */
};

enum others_phase { OTHERS_UNKNOWN, OTHERS_TEST, OTHERS_SEEN };

/* Zero-initialize. */
struct others {
	enum others_phase phase;
	double until_s;            /* end of the test; UNKNOWN: earliest next one */
	double judged_s;           /* the test ends from this time on, as soon as queue and losses have fallen */
	double calm_s;             /* SEEN: time without queue and losses */
	double starved_s;          /* TEST: its time without enough processor time */
	struct others_sample sample[OTHERS_TICKS]; /* the latest, a ring */
	size_t n;
	double longest_s;          /* queue */
	struct others_sample before; /* means before the test */
	double low_rtt_s;          /* smallest RTT then */
};

enum others_event { OTHERS_NOTHING, OTHERS_BEGIN_TEST, OTHERS_NOBODY, OTHERS_FOUND, OTHERS_GONE };

/* Adds a tick. may_test: rates are steady, and nothing else is being tried. */
enum others_event others_add(struct others *o, const struct others_sample *s, bool may_test);

/* Whether queue and losses call for a test, which has not been possible yet: higher rates that are found meanwhile may
 * come at the expense of competing flows. */
bool others_are_suspected(const struct others *o, double now_s);

/* A bottleneck as the method direct finds it. */
struct others_point {
	double capacity_bps;
	double contenders;         /* competing flows, in units of our streams; 0: an idle path */
};

/* After OTHERS_FOUND: capacity and contenders by the judgment of model/evidence.h. -1: out of memory. */
int others_judge(struct others_point *out, const struct others *o);

struct others_source {
	size_t point;              /* index of a point on the direct path */
	double bytes;
};

/* Duration of the method direct. */
double others_direct_s(const struct others_point *p, size_t n_points, const struct others_source *s, size_t n);

/* Rate left at a bottleneck: all bytes of its sources over the duration of direct, and the budget. */
double others_allowed_bps(const struct others_point *p, size_t point, const struct others_source *s, size_t n,
    double direct_s, double budget_ratio);

#endif
