/* The JSON lines of a campaign on random paths (see the script `campaign`), one file per seed. */
#ifndef BENCH_ADVICE_RECORDS_H
#define BENCH_ADVICE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#define SEED_TRUTHS_MAX 32
#define SEED_RUNS_MAX 16
#define SEED_STREAMS_MOST 32
#define SEED_ANSWERS_MAX 8
#define SEED_AUTOS_MAX 4
#define SEED_SECONDS_MAX 600

/* Truth of a number of streams: goodput of each run. Undisturbed runs, or all if the machine disturbed all. */
struct seed_truth {
	unsigned streams;
	char congestion[16];
	double ours_mbps[SEED_RUNS_MAX], others_mbps[SEED_RUNS_MAX];
	size_t runs;
	bool disturbed;
};

struct seed_point {
	double mbps, low_mbps, high_mbps, impact_ratio, impact_low_ratio, impact_high_ratio; /* NAN: not predicted */
};

/* An answer of ptcp advise. Ranges are NAN if the answer has none. */
struct seed_answer {
	double budget_ratio;
	bool failed;
	unsigned streams;
	char congestion[16];
	double mbps, low_mbps, high_mbps;
	double impact_ratio, impact_low_ratio, impact_high_ratio;
	bool confident, disturbed;
	double seconds;
	struct seed_point curve[SEED_STREAMS_MOST]; /* from 1 stream on */
	size_t n_curve;
};

/* A transfer with --streams auto: each second. */
struct seed_auto {
	double budget_ratio;
	bool failed, disturbed;
	char congestion[16]; /* "" if unknown */
	double ours_mbps[SEED_SECONDS_MAX], others_mbps[SEED_SECONDS_MAX];
	size_t seconds;
	bool changes;        /* the other flows end after half of the time */
};

enum { RECORD_FILE_BYTES = 64 };

struct seed_case {
	unsigned long long seed;
	char form[16];           /* full or short: never compared with each other */
	double rate_mbps, rtt_ms, queue_packets, bdp_packets, loss_percent;
	unsigned window_bytes, others;
	char congestion[16];     /* ours, as drawn */
	bool red, others_reno, others_cubic, others_bbr, come_and_go, mixed_rtt;
	struct seed_truth truth[SEED_TRUTHS_MAX];
	size_t truths;
	struct seed_answer answer[SEED_ANSWERS_MAX];
	size_t answers;
	struct seed_auto transfer[SEED_AUTOS_MAX];
	size_t transfers;
	char probes[RECORD_FILE_BYTES]; /* raw data of the probes whose groups grow from 1 stream; "": none */
	double alone_mbps;       /* goodput of the best measured number of streams without other
	                            flows; 0: not measured */
};

/* Reads the file of one seed. 0, or -1 after printing FILE:LINE and the reason. */
int records_read(const char *file, struct seed_case *out);

/* NULL: not measured. */
const struct seed_truth *seed_truth_of(const struct seed_case *c, unsigned streams, const char *congestion);
/* Means over the runs. */
double truth_ours_mbps(const struct seed_truth *t);
double truth_others_mbps(const struct seed_truth *t);
/* Mean goodput of ours and of the others with n streams, linear between measured numbers that differ by at most a
 * factor of two; false: not known. */
bool seed_truth_at(const struct seed_case *c, unsigned streams, const char *congestion, double *ours_mbps,
    double *others_mbps);
/* Share that n streams take from the other flows, compared with one stream; NAN if unknown, or without other
 * flows. */
double seed_impact(const struct seed_case *c, unsigned streams, const char *congestion);
/* Goodput of the best number of streams up to SEED_STREAMS_MOST whose impact is within the budget; NAN without
 * truth. */
double seed_best_mbps(const struct seed_case *c, const char *congestion, double budget_ratio);

#endif
