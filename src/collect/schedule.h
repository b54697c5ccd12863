/* A plan as a schedule: its paths, and the rates of each path over time. Pure.
 *
 * A path's rate is the planned sending rate of its source; relays forward while they receive, hence data
 * stored at a relay by the plan may arrive early, never late. */
#ifndef COLLECT_SCHEDULE_H
#define COLLECT_SCHEDULE_H

#include <ptcp/plan.h>
#include <stddef.h>

struct schedule_path {
	int source;
	const int *hop;        /* hosts after the source, the destination last; the plan's order */
	size_t nhops;
	double bytes;          /* total over the path */
	double stored_bytes;     /* max stored at relays of the path */
	unsigned streams;      /* part of the counted streams of its links; 0: not counted */
	size_t first, n;       /* range in schedule.rate */
};

/* A rate until the next one of the path. */
struct schedule_rate {
	double from_s, bps;
};

struct schedule {
	struct schedule_path *path; /* paths in the order of sources, then of descending bytes */
	size_t n;
	struct schedule_rate *rate;
	double end_s;          /* makespan */
	int *hops;
};

int schedule_new(struct schedule **out, const struct ptcp_plan *p, struct ptcp_err *e);
void schedule_free(struct schedule *s); /* NULL is fine */

/* Rate of path i at a time of the plan. Before time 0: the first rate. After the end: the path's last rate above 0, for
 * late data. */
double schedule_bps(const struct schedule *s, size_t i, double t_s);

/* Total bytes of the plan over a link. */
double schedule_link_bytes(const struct schedule *s, int from, int to);

/* Time of the next rate change of any path after t; INFINITY: none. */
double schedule_next_s(const struct schedule *s, double t_s);

/* Bytes left to send by a source at a time of the plan. */
double schedule_left_bytes(const struct schedule *s, int source, double t_s);

#endif
