/* Judgment of a path: the number of competing flows, and the limit of our streams, from the kernel's view of our
 * streams.
 *
 * Throughput at two stream counts cannot distinguish competing flows from our own losses: behind a short queue, 1, 4
 * and 15 streams have a curve of the same shape alone and beside five competing flows. Therefore hypotheses are weighed
 * by the likelihood of all observations of the kernel. A hypothesis is a point of a grid:
 *     X(n) = min(C n / (n + h), n r)       (the minimum is smooth, see belief.c)
 * with C the capacity, r the limit of each stream (random loss or window; none: infinite), and h the contenders, in
 * units of our streams: competing flows (each with a share proportional to 1 / (n + h)), or on an idle path the losses
 * of our own streams (without any impact).
 *
 * Likelihoods, with their deviations in belief.c:
 *   - the rates of the levels, by their errors;
 *   - the rates that explain the frequency of loss events (RFC 9438, section 5.1, and RFC 5348): slow start leaves
 *   streams
 *     far above the final rate, on long paths for longer than a level;
 *   - the largest rate of arrival over a short time: at most C, and close to C while many streams are in slow start;
 *   - the queue: competing flows keep the queue filled whatever our share is; on an idle path, or random loss that
 *     limits all flows, the queue is empty while the link is not full, and before our streams start;
 *   - the rate beside a queue that never empties: the link is full, so that on an idle path the rate is the capacity;
 *   - the loss per segment: constant with random loss, growing with n with congestion;
 *   - missing losses: random loss that limits streams causes retransmissions at every level;
 *   - the time limited by windows.
 * The answer is the mixture of all hypotheses by weight. */
#ifndef MODEL_EVIDENCE_H
#define MODEL_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/parameters.h"
#include "model/probe.h"

#define EVIDENCE_LEVELS_MAX 8
/* Of CUBIC: growth, and the part of the window that a loss leaves (RFC 9438, section 4.1). */
#define EVIDENCE_CUBIC_C 0.4
#define EVIDENCE_CUBIC_BETA 0.7

/* Observation of one stream count, after slow start. Unknown values are negative. */
struct evidence_level {
	struct probe probe;
	double lag_ratio;       /* further error of the rate: not all streams have their share yet */
	double rtt_s;           /* mean over the streams and time */
	double low_rtt_s;       /* a tenth of the time the mean over the streams was lower */
	double loss_ratio;      /* retransmitted of all segments sent */
	double segments;        /* sent */
	double window_ratio;    /* part of the busy time limited by windows or buffers */
	double time_s;          /* duration of the level */
	double loss_events;     /* loss events of all streams, without those of slow start */
	double segment_bytes;   /* mean */
};

/* ---- Observation of one level ---- */

/* One interval, of all streams together. */
struct evidence_sample {
	double interval_s;
	double delivered_bytes, sent_segments, lost_segments;
	double rtt_s;           /* mean over the streams; 0: unknown */
	double min_rtt_s;       /* smallest of all streams so far; 0: unknown */
	double busy_s, window_s; /* sums over all streams; window_s: limited by windows or buffers */
	double loss_events;     /* see loss_events_of() */
};

/* Of one stream; zero-initialize. */
struct loss_events {
	double since_s;         /* time since the last event began */
};

/* How many losses of one interval are events of their own (RFC 5348, section 5.2: a loss less than an RTT after the
 * first belongs to its event, since the window shrinks once). */
double loss_events_of(struct loss_events *l, double lost_segments, double rtt_s, double interval_s);

/* Zero-initialize for each level. */
struct evidence_watch {
	struct evidence_sample sample[STEADY_MAX];
	size_t n;
};

/* ---- All levels ---- */

/* How a congestion control takes its share from competing flows. */
enum evidence_growth {
	EVIDENCE_CUBIC,         /* CUBIC, or unknown */
	EVIDENCE_RENO,
	EVIDENCE_MODEL,         /* losses do not drive the window: BBR */
};

/* Zero-initialize. */
struct evidence {
	struct evidence_level level[EVIDENCE_LEVELS_MAX];
	size_t n;
	/* 0: unknown */
	double base_rtt_s;      /* smallest RTT seen */
	double peak_rtt_s;      /* largest mean RTT of all streams at one time */
	double idle_rtt_s;      /* RTT before our streams sent data */
	double burst_bps;       /* largest rate of arrival over EVIDENCE_BURST_S */
	double second_bytes;    /* most that arrived in a second */
	enum evidence_growth growth; /* growth of our windows */
};

/* Adds a sample to the level, and to base, peak and burst of all levels. */
void evidence_watch_add(struct evidence_watch *w, struct evidence *e, const struct evidence_sample *s);
/* Ends the level and adds it, or replaces the level with the same stream count. A full list drops the first level.
 * older_ratio: rate per stream of the level before over the rate per added stream, 0 if all streams are new. */
void evidence_add_level(struct evidence *e, const struct evidence_watch *w, unsigned streams,
    const struct steady_result *s, double older_ratio);

/* Rate of one stream after convergence, bit/s, as the congestion control (Reno or CUBIC) keeps it with this loss ratio,
 * not 0, at this RTT. */
double evidence_stream_bps(double loss_ratio, double rtt_s, double segment_bytes, enum evidence_growth growth);

/* Inverse of evidence_stream_bps(): the loss ratio at this rate of a stream. Rate and RTT must be positive; the result
 * may exceed 1. */
double evidence_loss_ratio(double stream_bps, double rtt_s, double segment_bytes, enum evidence_growth growth);

/* Total rate of the level's streams after convergence, bit/s, as the congestion control keeps it with this frequency of
 * loss events at this RTT. 0: too few loss events to tell, or too many, or no such rule. */
double evidence_loss_bps(const struct evidence_level *l, double rtt_s, enum evidence_growth growth);

/* Cycle of a stream's window: the time from a loss until the window is as large again (RFC 9438, section 5.1). */
double evidence_cycle_s(double stream_bps, double rtt_s, double segment_bytes, enum evidence_growth growth);
/* Cycle of the windows of the level's streams by the samples so far, if they grow as with CUBIC. 0: unknown. */
double evidence_watch_cycle_s(const struct evidence_watch *w, const struct evidence *e, unsigned streams);

/* Time in which flows recover that our streams have displaced: one cycle of windows as large as those of the first
 * level.
 * 0: unknown. */
double evidence_recovery_s(const struct evidence *e);

/* For logs: the level, with the queues and the burst of all levels so far. "": there is no such level. */
#define EVIDENCE_TEXT_BYTES 400
const char *evidence_text(char out[EVIDENCE_TEXT_BYTES], const struct evidence *e, unsigned streams);

/* Forgets the level, if there is one. */
void evidence_drop_level(struct evidence *e, unsigned streams);

/* ---- Judgment ---- */

enum evidence_kind {
	EVIDENCE_NOBODY,        /* an idle path: our own queue limits the streams */
	EVIDENCE_NOBODY_LIMITED, /* an idle path; random loss or windows limit each stream */
	EVIDENCE_OTHERS,        /* competing flows share the link */
	EVIDENCE_OTHERS_LIMITED, /* the same, and random loss or windows limit each of our streams */
	EVIDENCE_ALL_LIMITED,   /* random loss limits all flows: ours slow the competing flows down
	                           once the link is full */
	EVIDENCE_KINDS
};

struct belief_point {
	enum evidence_kind kind;
	double weight;          /* all weights sum to 1 */
	double capacity_bps, contenders, limit_bps; /* C, h, r */
};

#define BELIEF_POINTS_MAX 6000

/* The weighted hypotheses, without those of negligible weight. */
struct belief {
	struct belief_point point[BELIEF_POINTS_MAX];
	size_t n;
	double nobody_ratio;    /* probability of no flow that the probed streams slow down */
	double contenders;      /* geometric mean of h beside competing flows */
	unsigned fewest_streams, most_streams; /* smallest and largest stream count of the evidence */
};

/* Terms of the weight of a hypothesis, beside its prior and its rates. A term must improve answers on paths that it was
 * not made for: `make advice-terms` leaves out one after the other. */
#define BELIEF_TERM_LIST(X)                                                     \
	X(BELIEF_TERM_BURST, "burst rate")                                      \
	X(BELIEF_TERM_QUEUE, "queue")                                           \
	X(BELIEF_TERM_LOSSES, "losses of two levels")                           \
	X(BELIEF_TERM_MISSING, "missing losses")                                \
	X(BELIEF_TERM_WINDOWS, "windows")                                       \
	X(BELIEF_TERM_CONTENDERS, "weak contenders")                            \
	X(BELIEF_TERM_UNUSED, "unused link")                                    \
	X(BELIEF_TERM_STANDING, "standing queue")                               \
	X(BELIEF_TERM_IDLE, "queue before the start")                           \
	X(BELIEF_TERM_KEPT, "queue that never empties")                         \
	X(BELIEF_TERM_LAG, "lag of joining streams")                            \
	X(BELIEF_TERM_FALL, "fall from slow start")                             \
	X(BELIEF_TERM_LOSS_RATE, "rate from loss events")

enum belief_term {
#define X(id, name) id,
	BELIEF_TERM_LIST(X)
#undef X
	BELIEF_TERMS
};

#ifdef PARAMETERS_VARY
extern unsigned belief_without; /* bits of terms that are left out */
#define BELIEF_HAS(term) ((belief_without >> (term) & 1) == 0)
#else
#define BELIEF_HAS(term) true
#endif

/* Weighs all hypotheses. Needs a level with a positive rate; -1 without. */
int belief_of(struct belief *out, const struct evidence *e);

/* Throughput, and the slowdown of each competing flow relative to one stream of ours (0 on an idle path). */
bool belief_has_others(const struct belief_point *p);
double belief_point_bps(const struct belief_point *p, double streams);
/* Of n streams, compared with one stream, and with none. */
double belief_point_impact(const struct belief_point *p, double streams);
/* 1: n streams fill the link, and the queue has any length; 0: the queue is empty unless competing flows fill it. */
double belief_point_fullness(const struct belief_point *p, double streams);

/* Probability that the largest stream count of the evidence fills the link; and that it does, and no competing flow
 * exists, neither seen nor limited like our streams: such a flow leaves no trace while the link is not full. */
double belief_full_ratio(const struct belief *b);
double belief_none_ratio(const struct belief *b);

struct belief_range {
	double low, middle, high; /* quantiles of 10, 50 and 90 % */
};
struct belief_prediction {
	struct belief_range throughput_bps, impact_ratio;
	double mean_bps;           /* geometric mean */
	double mean_impact_ratio;
	double total_impact_ratio; /* mean; relative to no transfer */
};
/* base: the number of streams that the impact is relative to, 1 of a single transfer. unseen_flow: adds the impact on
 * the flow of belief_unseen_ratio(), weighted by that probability. */
void belief_predict(struct belief_prediction *out, const struct belief *b, double streams, double base,
    bool unseen_flow);

#endif
