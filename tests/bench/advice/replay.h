/* Answers of src/model to the recorded probes of a campaign: TCP_INFO of each stream every 0.1 s. */
#ifndef BENCH_ADVICE_REPLAY_H
#define BENCH_ADVICE_REPLAY_H

#include "bench/advice/records.h"

enum replay_method {
	REPLAY_MIXTURE,   /* as ptcp advise: all evidence */
	REPLAY_FIT,       /* the fit of the throughput of the levels alone */
};

/* Replaces the answers of `c` by answers to its probes with ADVICE_PROBES, one for each budget. `file`: that of `c`;
 * its folder has the raw data. Without such probes there are no answers.
 * 0, or -1 after printing the reason. */
int replay_answers(struct seed_case *c, const char *file, enum replay_method method);

#endif
