/* What n streams brought for a while, and how much that scatters from one run to the next: what models
 * are fitted to (fit.h), and how ptcp advise measures it. */
#ifndef MODEL_PROBE_H
#define MODEL_PROBE_H

#include <stdbool.h>
#include <stddef.h>

/* The rate that a probe came to after slow start, and how sure it is: from the rates
 * in short intervals of equal length.
 *
 * The beginning is left out by White, "An effective truncation heuristic for bias
 * reduction in simulation output" (1997): so much of it that the rest has the least
 * variance over its length, but at most half. The error is by batch means: the rest
 * is cut into STEADY_BATCHES, long enough to be nearly independent, and the scatter of
 * their means is the mean's. */

#define STEADY_MAX 512
#define STEADY_BATCHES 6

struct steady {
	double rate_bps[STEADY_MAX];
	size_t n;
};

/* What comes after STEADY_MAX intervals is ignored. Begin with all zero. */
void steady_add(struct steady *s, double rate_bps);

struct steady_result {
	size_t skipped;   /* intervals left out */
	double mean_bps;
	double error_bps; /* standard error of it */
};

/* 0, or -1 while there are too few intervals to say, or nothing was sent in them. */
int steady_result(struct steady_result *out, const struct steady *s);

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

/* What a transfer has learnt of its path: what each number of streams brought, averaged over the runs that it had,
 * with an error that shrinks with them. */

#define PROFILE_MAX 8
/* A short run, whose scatter probe_error_ratio() knows, lasts so long; a level counts as so many at the most. */
#define PROFILE_RUN_S 5.0
#define PROFILE_RUNS_MAX 32.0

/* Begin with all zero. */
struct profile {
	struct probe probe[PROFILE_MAX];
	double runs[PROFILE_MAX]; /* short ones, that each of them is worth */
	bool roomy[PROFILE_MAX];  /* it was windows or buffers that held the streams up there */
	size_t n;
};

/* So many streams brought that in what is worth so many short runs. Where there is no room for another level, the one
 * known worst goes. */
void profile_add(struct profile *l, unsigned streams, double mean_bps, double runs, bool roomy);

/* These levels, at most PROFILE_MAX, and no others: each as it is, worth one run. */
void profile_recall(struct profile *l, const struct probe *p, size_t count);

/* The level with so many streams; n: there is none. */
size_t profile_find(const struct profile *l, unsigned streams);

/* The level with the fewest. There must be one. */
const struct probe *profile_fewest(const struct profile *l);

/* Of the levels with `from` streams or more the one known worst, where those with fewer than `now` count as known so
 * many times as well; NULL: there is none. */
const struct probe *profile_worst(const struct profile *l, unsigned from, unsigned now, double below_worth);

/* The largest level with room for more, and the least above it; NULL: none. Where each of more streams brought less it
 * is the path, or a processor, that holds them up, whatever the sockets wait for. */
const struct probe *profile_room(const struct profile *l, const struct probe **above);

/* What limited some streams: the network, or something that more streams do not cure.
 *
 * From the times that the kernel keeps of a TCP sender (tcp_info in Linux, Francis Yan
 * and Yuchung Cheng, "tcp: instrument tcp sender limits chronographs"). */

/* enum, name in JSON, what to do about it (NULL: nothing) */
#define LIMIT_LIST(X)                                                          \
	X(LIMIT_UNKNOWN, "unknown", NULL)                                      \
	X(LIMIT_NETWORK, "network", NULL)                                      \
	X(LIMIT_SEND_BUFFER, "send-buffer",                                    \
	    "the sender's buffers limited the probes, not the network: more streams are the wrong cure " \
	    "(raise net.ipv4.tcp_wmem on the sending host)")                   \
	X(LIMIT_RECEIVE_WINDOW, "receive-window",                              \
	    "the receiver's window limited the probes, not the network: more streams are the wrong cure " \
	    "(raise net.ipv4.tcp_rmem on the receiving host, if its processor keeps up)") \
	X(LIMIT_APPLICATION, "application",                                    \
	    "the sender's processor limited the probes, not the network: more streams are the wrong cure " \
	    "(see what else runs there, or take --cipher none where the network is safe)")

enum limit {
#define X(id, name, advice) id,
	LIMIT_LIST(X)
#undef X
};

const char *limit_name(enum limit l);
const char *limit_advice(enum limit l);

/* Summed over streams, in seconds. `busy` includes the next two. */
struct limit_times {
	double elapsed_s;     /* that they existed */
	double busy_s;        /* with data to send or unacknowledged */
	double window_s;      /* held up by the receiver's window */
	double buffer_s;      /* held up by the sender's buffer */
};

/* What held the streams up for most of the time; UNKNOWN if no time has passed. */
enum limit limit_of(const struct limit_times *t);

/* Whether windows or buffers held the streams up for over a twentieth of the time that they were busy: up to some
 * number they then take nothing from each other, which no model of shares knows. In laboratories it was 5 % and more
 * where windows are short, even if losses interrupted that most of the time, and 0.3 % at the most elsewhere. */
bool limit_by_parts(const struct limit_times *t);

#endif
