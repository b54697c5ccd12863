/* A plan as something to do: the paths that it uses, and what each is to carry from when on. Pure.
 *
 * A path is given the rate at which the plan has its source send; hosts on the way pass on as they receive, so
 * where a plan holds data at a relay it may be further on than planned, never behind. */
#ifndef COLLECT_SCHEDULE_H
#define COLLECT_SCHEDULE_H

#include <stddef.h>

#include <ptcp/plan.h>

struct schedule_path {
	int source;
	const int *hop;        /* hosts behind the source, the destination last; the plan's order */
	size_t nhops;
	double bytes;          /* that go over it in all */
	double held_bytes;     /* the most that relays on it hold of what goes over it */
	unsigned streams;      /* of those that the plan counts for its links, in proportion; 0: it counts none */
	size_t first, n;       /* its rates, among schedule.rate */
};

/* From then on, until the next of its path. */
struct schedule_rate {
	double from_s, bps;
};

struct schedule {
	struct schedule_path *path; /* by source, then the most bytes first */
	size_t n;
	struct schedule_rate *rate;
	double end_s;          /* the plan's makespan */
	int *hops;
};

int schedule_new(struct schedule **out, const struct ptcp_plan *p, struct ptcp_err *e);
void schedule_free(struct schedule *s); /* NULL is fine */

/* What path i is to carry at a time from the start of the plan. Behind the end, when all should have arrived,
 * it is the path's last rate above 0: what is late goes the way it was going. */
double schedule_bps(const struct schedule *s, size_t i, double t_s);

/* When a rate of any path next changes after t; INFINITY: never. */
double schedule_next_s(const struct schedule *s, double t_s);

/* What has yet to leave a source at that time, if all went as planned. */
double schedule_left_bytes(const struct schedule *s, int source, double t_s);

#endif
