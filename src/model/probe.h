/* Probes: the throughput of n streams over some seconds, and its scatter between runs. Models are fitted to
 * probes (fit.h); ptcp advise measures them. */
#ifndef MODEL_PROBE_H
#define MODEL_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/parameters.h"

/* ---- Steady state ----
 *
 * Throughput of a probe after slow start, and its standard error, from rates in short intervals of equal
 * length.
 *
 * White, "An effective truncation heuristic for bias reduction in simulation output" (1997), truncates the
 * beginning: up to half of the intervals, minimizing the variance of the rest over its length. The error is
 * by batch means: the rest is divided into STEADY_BATCHES, long enough to be nearly independent, and the
 * scatter of the batch means gives the error. */

#define STEADY_MAX 512
#define STEADY_BATCHES 6

struct steady {
	double rate_bps[STEADY_MAX];
	size_t n;
};

/* Ignores intervals beyond STEADY_MAX. Zero-initialize the struct. */
void steady_add(struct steady *s, double rate_bps);

struct steady_result {
	size_t skipped;   /* intervals truncated */
	double mean_bps;
	double error_bps; /* standard error */
};

/* 0, or -1 with too few intervals or without any traffic. */
int steady_result(struct steady_result *out, const struct steady *s);

struct probe {
	unsigned streams;      /* number of streams, at least 1 */
	double throughput_bps; /* aggregate of all streams */
	double error_bps;      /* standard error; 0: unknown, probe_error_ratio() assumes one short run */
};

/* Standard deviation of the probe's throughput over the throughput. If unknown: the scatter of single short
 * runs on Linux (up to 70 % with 1 or 2 streams, about 10 % with 8 and more, taken as two and one
 * deviations). */
double probe_error_ratio(const struct probe *p);

/* Rate of a number of streams by what was measured: on the line between the levels beside it, in proportion below the
 * smallest level, and that of the largest level beyond it. error_ratio: that of the level at or below. count > 0. */
double probe_between(const struct probe *p, size_t count, unsigned streams, double *error_ratio);

/* One probe from the steady state of one run. The error combines the scatter within the run and the assumed
 * scatter between short runs. */
void probe_of_steady(struct probe *out, unsigned streams, const struct steady_result *s);

/* Errors, as logarithms, of two successive probes with a growing group of streams if there are other flows: the part
 * of probe_grew() that is caused by streams that had not reached their share. */
void probe_lag(const struct probe *before, const struct probe *after, double older_ratio, double *lag_before,
    double *lag_after);

/* Adjusts the errors of two successive probes with a growing group of streams. Widens both errors by
 * evidence that streams had not reached their share: each older stream got `older_ratio` times the rate of
 * each newer stream; or the rate per stream rose with the stream count, which has no other explanation. If
 * the total was the same within PROBE_ALONE_RATIO and the newer streams got at least half, the path has no
 * competing flows and no scatter: both errors become PROBE_ALONE_RATIO. */
void probe_grew(struct probe *before, struct probe *after, double older_ratio);

/* ---- Probing by ptcp advise ---- */

/* Longest duration of a level with `streams` streams: the fewer they are, the more their rate scatters. */
double probe_max_s(unsigned streams);
/* Longest duration of the first of the levels where time is short: each has PROBE_MIN_S, and they share the rest of
 * what is left in proportion to the rest of their longest durations. left_s may be INFINITY. */
double probe_share_s(const double *longest_s, size_t levels, double left_s);
/* Whether the level can end; cycle_s: of the streams' windows (evidence_cycle_s()), or 0. */
bool probe_is_done(const struct steady *s, double elapsed_s, double cycle_s, double max_s);

/* ---- Profile of a path ----
 *
 * A transfer's knowledge of its path: the throughput of each stream count, averaged over runs, with an
 * error that shrinks with their number. */

#define PROFILE_MAX 8

/* Zero-initialize. */
struct profile {
	struct probe probe[PROFILE_MAX];
	double runs[PROFILE_MAX]; /* weight of each level in short runs */
	bool host_limited[PROFILE_MAX];  /* socket buffers or windows limited the streams */
	size_t n;
};

/* Adds a level, weighted as `runs` short runs. A full profile drops its least known level. */
void profile_add(struct profile *l, unsigned streams, double mean_bps, double runs, bool host_limited);

/* Forgets a level. */
void profile_drop(struct profile *l, size_t i);

/* Replaces all levels by at most PROFILE_MAX earlier probes, each weighted as one run. */
void profile_recall(struct profile *l, const struct probe *p, size_t count);

/* Index of the level with this stream count, or n. */
size_t profile_find(const struct profile *l, unsigned streams);

/* The level with the fewest streams; n > 0. */
const struct probe *profile_fewest(const struct profile *l);

/* The least known level with `from` to `until` streams, or NULL; levels with fewer than `now` streams count as known
 * below_worth times as well. */
const struct probe *profile_worst(const struct profile *l, unsigned from, unsigned until, unsigned now,
    double below_worth);

/* The largest level limited by its hosts, and the smallest level above, or NULL. Levels with less
 * throughput per stream than a smaller level do not count: the path or a processor limits them, whatever
 * the sockets report. */
const struct probe *profile_host_limited(const struct profile *l, const struct probe **above);

/* ---- Sender limit ----
 *
 * Cause that limited a group of streams: the network, or a host, where more streams do not help; from the
 * kernel's times of a TCP sender (tcp_info in Linux, Francis Yan and Yuchung Cheng, "tcp: instrument tcp
 * sender limits chronographs"). */

/* enum, name in JSON, remedy (NULL: none) */
#define LIMIT_LIST(X)                                                          \
	X(LIMIT_UNKNOWN, "unknown", NULL)                                      \
	X(LIMIT_NETWORK, "network", NULL)                                      \
	X(LIMIT_SEND_BUFFER, "send-buffer",                                    \
	    "the sender's buffers limited the probes, not the network: more streams do not help " \
	    "(raise net.ipv4.tcp_wmem on the sending host)")                   \
	X(LIMIT_RECEIVE_WINDOW, "receive-window",                              \
	    "the receiver's window limited the probes, not the network: more streams do not help " \
	    "(raise net.ipv4.tcp_rmem on the receiving host, if its processor keeps up)") \
	X(LIMIT_APPLICATION, "application",                                    \
	    "the sender's processor limited the probes, not the network: more streams do not help " \
	    "(stop other programs there, or use --cipher none where the network is safe)")

enum limit {
#define X(id, name, advice) id,
	LIMIT_LIST(X)
#undef X
};

const char *limit_name(enum limit l);
/* 0, or -1 for an unknown name. */
int limit_by_name(enum limit *out, const char *name);
const char *limit_advice(enum limit l);

/* Sums over streams, in seconds. busy_s includes the next two. */
struct limit_times {
	double elapsed_s;     /* lifetime */
	double busy_s;        /* time with unsent or unacknowledged data */
	double window_s;      /* limited by the receiver's window */
	double buffer_s;      /* limited by the sender's buffer */
};

/* The cause of most of the time; UNKNOWN if no time has passed. */
enum limit limit_of(const struct limit_times *t);

/* Whether windows or buffers limited the streams for over a twentieth of their busy time: up to some stream
 * count the streams then do not compete with each other, contrary to all models of shares. In laboratories
 * the part was 5 % and more with short windows, even with frequent losses, and at most 0.3 % elsewhere. */
bool limit_is_partial(const struct limit_times *t);

#endif
