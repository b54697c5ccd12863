/* Controls the stream count of a transfer under an impact budget by observed throughput: time and rates in,
 * requested streams and a reason out.
 *
 *   PROBING  the user's data at one stream count after the other, each until its rate is steady;
 *            next HOLDING, or PROBING if the answer lies far outside the probed range
 *   HOLDING  at the answer, improving and monitoring the estimate of its rate; next PROBING after the hold
 *            time, or at once after a lasting deviation of the rate in either direction
 *   FIXED    without a choice: a budget of 0, or at most one stream; next PROBING if more are permitted
 *
 * While holding, the count never exceeds the model's answer for the budget; probing may exceed it for the
 * seconds of one level. Application-limited time has no information about the path and changes nothing, and neither has
 * an outage: the level begins again after it. If
 * windows or buffers limit each stream and no competing flows are seen, the controller takes as many streams as fill
 * the path: models of shares do not apply. */
#ifndef MODEL_STREAM_CONTROL_H
#define MODEL_STREAM_CONTROL_H

#include "model/advice.h"
#include "model/impact_budget.h"
#include "model/outage.h"
#include "model/parameters.h"
#include "model/probe.h"
#include "model/stats.h"

/* ---- Rules; model/parameters.def has their numbers, STREAM_CONTROL_* ----
 *
 * The hold time doubles while the answer stays and is certain. Between holds the least known level is probed again.
 * Levels below the answer cost throughput and count as known BELOW_WORTH times as well. A level of at least LEVER times
 * the answer is required, since with many competing flows only this level determines their number, unless one more
 * stream exceeds the budget, or the answer fills the path. Surplus streams leave gradually, and the streams that stay
 * take over. */

#define STREAM_CONTROL_REASON_BYTES 160

struct stream_control_opts {
	double budget_ratio;   /* 0.10 */
	unsigned max_streams;  /* 32; at least 1 */
	enum advice_congestion congestion;
	unsigned movers;       /* 1; hosts that the streams are spread over evenly; 0 and 1: one host */
	unsigned members;      /* 1; transfers of a group (stream_group.h), each of which has a stream at least; 0: 1 */
};

void stream_control_opts_init(struct stream_control_opts *o);

enum stream_control_phase { STREAM_CONTROL_PROBING, STREAM_CONTROL_HOLDING, STREAM_CONTROL_FIXED };

struct stream_control {
	struct stream_control_opts o;
	enum stream_control_phase phase;
	unsigned streams;                /* requested now; leaves gradually for */
	unsigned target;                 /* the count of this level */
	bool saves;                      /* fewer streams than the answer, until competing flows are
	                                    seen or ruled out, and the minute's budget has room again */
	double leave_s;                  /* time since the last stream left */
	char reason[STREAM_CONTROL_REASON_BYTES]; /* reason of the request; "" at the start */
	bool advised, recalled; /* recalled: by an earlier transfer's probes, not contradicted so far */
	bool contradicted;               /* observed throughput disproved the history */
	struct advice advice;            /* valid once `advised` */
	struct profile profile;
	struct evidence evidence;        /* evidence of the same levels */
	unsigned recorded;               /* levels so far, repeated ones too */
	unsigned recorded_streams;       /* connected streams of the latest */
	struct impact_budget spent;
	double probed_s;                 /* time of PROBING so far */
	struct outage outage;
	unsigned answer;                   /* latest answer; 0: none yet */
	double predicted_bps, predicted_impact_ratio;
	double observed_bps, observed_s;         /* observed at the answer, and for how long; 0: not yet */
	/* this level */
	struct steady settle;
	struct evidence_watch kernel;
	double level_s;                  /* counted time */
	double host_limited_s;           /* part of level_s that this host limits */
	double connecting_s;             /* time with streams without a connection */
	double unconnected;              /* mean number of these streams in the level's samples */
	double starved_s, starved_bps;   /* uncounted time, and its rate */
	unsigned next[PROFILE_MAX]; /* pending levels */
	size_t n_next;
	/* holding */
	double hold_s;                   /* current hold time */
	double recent_bps, expected_bps; /* recent average; prediction for the CUSUM, 0: not yet */
	struct cusum watch;
};

/* Starts probing. Copies the options. */
void stream_control_init(struct stream_control *s, const struct stream_control_opts *o);

/* Before the first sample: loads probes of an earlier transfer, with their evidence (n 0: none), and starts at their
 * answer. Ignores probes that cannot be fitted. */
void stream_control_recall(struct stream_control *s, const struct probe *p, size_t count, const struct evidence *e);

/* Observation of one interval. */
struct stream_control_sample {
	double interval_s;     /* about STREAM_CONTROL_SAMPLE_S */
	double rate_bps;       /* all streams */
	bool steady;           /* no other streams than the requested were active */
	bool starved;          /* limited by the application or a disk, not by the path */
	bool host_limited;            /* limited by windows or buffers: the path has room for more streams */
	struct evidence_sample kernel; /* the interval as the kernel reports it; rtt_s 0: unknown */
	unsigned unconnected;  /* requested streams without a connection */
};

/* Another number of hosts, at least 1. Probes from scratch, with the budget already spent: whether the hosts or the
 * path limited the streams is unknown. The stream count remains only if competing flows on the path keep it below both
 * numbers of hosts: then the hosts do not limit the streams. True: it probes from scratch, and the requested stream
 * count may have changed. */
bool stream_control_movers(struct stream_control *s, unsigned movers);

/* Another number of transfers with these streams, and another budget for all. Impact is relative to one
 * stream each. What is known of the path remains. True: the requested stream count changed. */
bool stream_control_members(struct stream_control *s, unsigned members, double budget_ratio);

/* Another maximum of streams, at least 1: without an answer, 1 suspends the probing, and more resume it. What is known
 * of the path remains. True: the requested stream count changed. */
bool stream_control_most(struct stream_control *s, unsigned max_streams);

/* Adds a sample. True: the requested stream count changed. */
bool stream_control_add(struct stream_control *s, const struct stream_control_sample *x);

/* ---- stream_path.c: stream counts for several hosts ---- */

#define STREAM_LEVELS 2u

/* The smallest multiple of `movers`, the hosts that the streams are spread over (0 and 1: one host), that is not below
 * `streams`; at most `most`. */
unsigned stream_levels_round(unsigned streams, unsigned movers, unsigned most);

/* The first levels: ADVICE_LEVELS on one host. With several hosts both are multiples of their number: each host may be
 * a bottleneck, and fewer streams than hosts do not show what all hosts can carry together. The second level is a
 * quarter of the first where `most` leaves no room above, and with BBR. With BBR on one host the quarter comes first:
 * one stream takes what there is, and shows whether the queue is its own; more only fill the queue. */
void stream_levels_first(unsigned out[STREAM_LEVELS], unsigned movers, unsigned most, bool bbr);

/* The smallest number of streams: one, or one for each transfer of a group. */
unsigned stream_path_least(const struct stream_control *s);

/* ---- stream_path.c, for stream_control.c: the observed levels, and the answer that follows from them ---- */

/* The same after a change of the path, but keeps the base RTT, and the recent rate as a level without the kernel's
 * view. */
void stream_path_change(struct stream_control *s);
/* Forgets all levels, too, and plans the first. */
void stream_path_plan(struct stream_control *s);
/* Adds the level that has just been observed, weighted as `runs` short runs. */
void stream_path_record(struct stream_control *s, double mean_bps, double runs);
/* Forgets short levels with about as many streams as now: their rates may have been too high, without any losses
 * yet. */
void stream_path_forget_similar(struct stream_control *s);
/* Judges the levels: s->advice. False: they are inconclusive. */
bool stream_path_judge(struct stream_control *s, double prior_others);

/* Whether the kernel's view shows competing flows, or rules them out. */
bool stream_path_sees_others(const struct stream_control *s);
bool stream_path_sees_nobody(const struct stream_control *s);
/* Whether it does neither, while the fewest streams, without movers, have not been observed. */
bool stream_path_is_open(const struct stream_control *s);
/* Whether the fewest streams are held to find competing flows, where the budget permits more. */
bool stream_path_tries_one(const struct stream_control *s);
/* Whether competing flows are seen, and this number of streams exceeds the budget with a probability of 90 %. */
bool stream_path_exceeds(const struct stream_control *s, unsigned streams);
/* Whether the streams fill the path: a level with more streams has been observed, and the streams deliver at least 90 %
 * of what is predicted for the maximum number of streams. With several hosts it is unknown whether the path or the
 * hosts are full. */
bool stream_path_is_filled(const struct stream_control *s);

/* Whether the hosts of the movers, each with a rate of its own, limit the streams: competing flows are not seen, and a
 * level with fewer streams than hosts has the rate per host of the levels above. On a link that all streams share, few
 * streams would have had more each. */
bool stream_path_hosts_limit(const struct stream_control *s);
/* The best stream count after stream_path_judge(). Without competing flows, or where the hosts are the limit, all hosts
 * are in use, evenly. The transfers of a group have equal numbers. */
unsigned stream_path_answer(const struct stream_control *s);
/* The level that tells whether the hosts are the limit; 0: not needed, or observed already. */
unsigned stream_path_below(const struct stream_control *s);

#endif
