/* A collection in the fluid of study.h, carried out as ptcp collect does it: each path is paced to
 * 95 % of what the plan gives it, paths take what is left of their source as they come to it, rates
 * are watched (collect/drift.h), and the rest is planned anew by what was found. */
#ifndef TESTS_BENCH_COLLECT_EXECUTE_H
#define TESTS_BENCH_COLLECT_EXECUTE_H

#include <ptcp/plan.h>

#include "bench/collect/study.h"

struct way {
	enum ptcp_plan_method method;
	bool paced;  /* else paths of the plan send what their fair share lets them */
	bool replan; /* only what is paced */
};

struct outcome {
	double makespan_s;
	double planned_s;
	double others_loss_ratio; /* of the other flows' rate, while it lasts */
	double storage_ratio;     /* the most that sources hold for others by the plan, of all data */
	int replans;
	size_t n_shared;          /* bottlenecks concluded */
};

/* 0, or -1 with the reason on stderr. */
int execute(const struct study *s, const struct way *w, struct outcome *out);

#endif
