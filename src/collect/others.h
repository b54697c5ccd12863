/* Competing flows at a bottleneck of a collection, and the rate that an impact budget leaves to the collection.
 * Pure.
 *
 * A full bottleneck shows queues and losses whether our flows or competing flows fill it. Therefore a test follows.
 * First all our flows over the bottleneck send a third less, until queue and losses end: the buffers of our senders
 * have drained. Then they send an eighth less than before. On an idle path queue and losses stay away;
 * competing flows have taken the free rate, and bring both back. Queue and losses prove competing
 * flows only while our flows have the rate of the test: with less, the bottleneck has become slower, and the test
 * begins again at less.
 *
 *   UNKNOWN  next TEST, when queue and losses appear
 *   TEST     next SEEN, or UNKNOWN for a while; also after a lack of processor time on this host, which delays
 *            acknowledgments and lets buffers overflow at any rate
 *   SEEN     the budget applies; next UNKNOWN, when queue and losses have been gone for some seconds
 *
 * The budget compares with the method that users have without ptcp: each source sends directly, through one stream,
 * until its data has arrived. Afterwards the source leaves its share; so the mean over the whole duration counts.
 * The collection may take that mean, and the budget's part of the capacity. */
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
	double rate_bps;           /* rate of whole blocks */
	double sent_bps;           /* rate of the kernels of senders, without losses, up to a factor: steadier */
	double hidden_bps;         /* part of rate_bps without reports of kernels */
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
	double until_s;            /* end of the present part of the test; UNKNOWN: earliest next one */
	double since_s;            /* start of the part */
	double level;              /* TEST: 1, or the fallen rate over the rate before */
	bool holds;                /* TEST: queue and losses had ended, and must stay away */
	bool fallen, drained;      /* TEST: our rate has, at the latest tick; and the queue */
	unsigned rounds;           /* TEST: begun again, below a rate that has fallen */
	double calm_s;             /* SEEN: time without queue and losses */
	double starved_s;          /* TEST: its time without enough processor time */
	struct others_sample sample[OTHERS_TICKS]; /* the latest, a ring */
	size_t n;
	double longest_s;          /* queue */
	struct others_sample before; /* means before the test */
	double low_rtt_s;          /* smallest RTT then */
};

enum others_event {
	OTHERS_NOTHING,
	OTHERS_LIMIT,              /* the test begins, or goes on: others_test_ratio() limits our flows */
	OTHERS_NOBODY,             /* queue and losses were ours */
	OTHERS_UNCLEAR,            /* the test has shown nothing */
	OTHERS_FOUND,
	OTHERS_GONE,
};

/* Whether the rates of all tested bottlenecks have fallen, and all their queues and losses with the rates: our
 * flows at one bottleneck may cause the queue at another. */
struct others_peers {
	bool fallen, drained;
};

/* Adds a tick. may_test: rates are steady, and nothing else is being tried. */
enum others_event others_add(struct others *o, const struct others_sample *s, bool may_test,
    const struct others_peers *peers);

/* After a test has begun elsewhere: begins a test here, too, if our flows may share the tested bottleneck, because of
 * queue, losses, or rates below their limits; or if nothing is known. */
bool others_join(struct others *o, double now_s);

/* TEST: a path began, without limit by the test. */
void others_disturb(struct others *o, double now_s);

/* TEST: the rate of our flows over their rate before the test. Flows without a report of a kernel, whose rates are
 * known too little, stay at the rate of the first part. */
double others_test_ratio(const struct others *o, bool reported);

/* After OTHERS_NOBODY: the rate of the full bottleneck. */
double others_full_bps(const struct others *o);

/* Whether queue and losses call for a test, which has not been possible yet: higher rates that are found meanwhile
 * may come at the expense of competing flows. */
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
