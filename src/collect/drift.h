/* Whether links are what they were taken for, from what paths carry: when to look, and what to make of it. Pure.
 *
 * A limit is the rate of a link or of a bottleneck that links share; a flow is a path of one source. A flow that
 * brings less than it was given for some seconds says that something on its way is slower; one that was given nothing,
 * and brings something to make up for others, counts with that. What paths could carry
 * beyond what they are given cannot be seen, as they are paced; so from time to time they are given half as much again
 * for three seconds (a probe), after which a limit that more came through than it allows has been found to be higher.
 * That is enough to find what is there in a few steps, and little enough to cost next to nothing where it is not. */
#ifndef COLLECT_DRIFT_H
#define COLLECT_DRIFT_H

#include <stdbool.h>
#include <stddef.h>

#define DRIFT_OFF_RATIO 0.2   /* off by more than that is off */
#define DRIFT_PROBE_RATIO 1.5 /* times what it is given a flow may have during a probe */

struct drift_flow {
	const size_t *limit;      /* what it crosses */
	size_t n_limits;
	double want_bps, got_bps; /* what it was given; what came, over the last drift_window_s() */
	bool judged;              /* it has had work, and that rate, for as long */
};

struct drift_limits {
	const double *bps, *first_bps; /* the estimates in force, and the first ones */
	size_t n;
};

struct drift {
	double quiet_until_s;     /* rates have yet to settle */
	double off_since_s;       /* NAN: nothing is off */
	double probe_at_s, probe_every_s;
	double probe_session_until_s;   /* NAN: no probe is on */
};

enum drift_act {
	DRIFT_GO_ON,
	DRIFT_PROBE,  /* flows may have more now */
	DRIFT_PROBED, /* no longer; `found` says what is higher, if any */
	DRIFT_BELOW,  /* `found` says what is lower */
};

void drift_init(struct drift *w, double now_s);

/* Rates have been set anew: what is seen in the next seconds says nothing. */
void drift_changed(struct drift *w, double now_s);

/* Something that was lost is there again: the next probe is due, when rates have settled. */
void drift_returned(struct drift *w, double now_s);

/* Over how long to look at a flow. */
double drift_window_s(const struct drift *w, double want_bps);

/* `left_s`: what is left to do at these rates; near the end nothing is worth a change. found_bps gets a rate for each
 * limit that is off, else NAN, and *n_found their number. */
enum drift_act drift_see(struct drift *w, double now_s, double left_s, const struct drift_flow *f, size_t n,
    const struct drift_limits *limits, double *found_bps, size_t *n_found);

/* What a source that is late does about it. Rates alone would keep it as late to the end, and where flows of others
 * leave its streams less than the plan counts on, make it ever later. So it may have more, on each path up to what its
 * links are taken for, and on paths that the plan gives nothing, too. Pure. */

/* How much more each of its paths may have now, having had `before_bps`. `behind_bytes`: what has yet to come and
 * should have by the plan; negative where it is ahead. given_bps: what its paths are given together, and of it got_bps
 * what comes, of late. It takes a good deal to begin, and paths that fall short; then it goes on until the source is as
 * far ahead as makes up for what its own paths lack. */
double catch_up_bps(double before_bps, double behind_bytes, double given_bps, double got_bps);

#endif
