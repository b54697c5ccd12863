/* Steers the number of streams of a transfer under an impact budget, from what they
 * bring: time and rates in, the number wanted and a reason out.
 *
 *   PROBING  the user's own data at one number of streams after the other, each until its
 *            rate has settled; next HOLDING, or PROBING where the answer lies far outside
 *   HOLDING  at the answer, whose rate is learnt ever better and watched; next PROBING when it has been
 *            for its time, or at once when its rate has left what it was for long enough, in either direction
 *   FIXED    there is no choice: a budget of nothing, or one stream at most
 *
 * While it holds it never wants more streams than the model says the budget allows; to learn, it may for the
 * seconds of one level. Time in which the application had too little to send says nothing about
 * the path, and nothing is changed for it. Where windows or buffers hold each stream up, it takes as many
 * as fill the path: no model of shares holds there. */
#ifndef MODEL_STREAM_CONTROL_H
#define MODEL_STREAM_CONTROL_H

#include "model/advice.h"
#include "model/stats.h"
#include "model/probe.h"

/* ---- How it probes, in one place ---- */

/* First with ADVICE_LEVELS; a level lasts so long: */
#define STREAM_CONTROL_LEVEL_S 5.0
/* Extrapolating upwards, no more than so many times what was probed. */
#define STREAM_CONTROL_STRETCH 2u
/* It holds for so long, then, while the answer stays and is known well enough (one deviation of its impact), for twice
 * that, and so on. In between, the level that is known worst is probed again: one with fewer streams than the answer,
 * which costs throughput, counts as known twice as well; and one with so many times the answer must be among them, for
 * beside many others only that tells how many. */
#define STREAM_CONTROL_FIRST_HOLD_S 12.0
#define STREAM_CONTROL_HOLD_MOST_S 320.0
#define STREAM_CONTROL_SURE_RATIO 0.05
#define STREAM_CONTROL_BELOW_WORTH 2.0
#define STREAM_CONTROL_LEVER 3u
/* After a change of their number, streams take so long to come to their rates, and it so long to know them. */
#define STREAM_CONTROL_SKIP_S 2.0
#define STREAM_CONTROL_DWELL_S 8.0
/* A deviation by this ratio's square from what is known of it, for so long, is a change of the path. */
#define STREAM_CONTROL_DRIFT_RATIO 0.4
#define STREAM_CONTROL_DRIFT_S 12.0
/* Intervals of samples are of equal length, about: */
#define STREAM_CONTROL_SAMPLE_S 0.1

#define STREAM_CONTROL_REASON_BYTES 160

struct stream_control_opts {
	double budget_ratio;   /* 0.10 */
	unsigned max_streams;  /* 32; at least 1 */
	enum advice_congestion congestion;
};

void stream_control_opts_init(struct stream_control_opts *o);

enum stream_control_phase { STREAM_CONTROL_PROBING, STREAM_CONTROL_HOLDING, STREAM_CONTROL_FIXED };

struct stream_control {
	struct stream_control_opts o;
	enum stream_control_phase phase;
	unsigned streams;                /* wanted now */
	char reason[STREAM_CONTROL_REASON_BYTES]; /* for that; "" at the beginning */
	bool advised, recalled;          /* recalled: by an earlier transfer's probes, not contradicted so far */
	bool contradicted;               /* what was recalled has been found wrong */
	struct advice advice;            /* valid once `advised` */
	struct profile learnt;
	unsigned held;                   /* the answer that it came to last; 0: none yet. For it: */
	double predicted_bps, predicted_impact_ratio;
	double seen_bps, seen_s;         /* what it brought, over so long; 0: not yet */
	/* of this level */
	struct steady settle;
	double level_s;                  /* that counted; of these: */
	double starved_s, roomy_s;
	unsigned next[PROFILE_MAX]; /* levels yet to come */
	size_t n_next;
	/* holding */
	double hold_s;                   /* for so long */
	double recent_bps, expected_bps; /* lately; what the watch compares with, 0: not yet */
	struct cusum watch;              /* as long as what is known holds */
};

/* Begins. Copies the options. */
void stream_control_init(struct stream_control *s, const struct stream_control_opts *o);

/* Before the first sample: these probes of the path are known from earlier, so it begins at their answer. What cannot
 * be fitted is ignored. */
void stream_control_recall(struct stream_control *s, const struct probe *p, size_t count);

/* What the streams did over an interval. */
struct stream_control_sample {
	double interval_s;     /* about STREAM_CONTROL_SAMPLE_S */
	double rate_bps;       /* of all streams together */
	bool steady;           /* all streams wanted were in use, and no others carried anything */
	bool starved;          /* the application limited them, or a disk, not the path */
	bool roomy;            /* windows or buffers did: the path has room for more streams */
};

/* Takes the next sample. True: another number of streams is wanted from now on. */
bool stream_control_add(struct stream_control *s, const struct stream_control_sample *x);

#endif
