/* The plan handle. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <ptcp/plan.h>

#include "plan/methods.h"

struct plan_piece {
	int source;
	uint64_t offset, bytes;
	size_t first_hop, nhops;
};

struct ptcp_plan {
	struct ptcp_plan_info info;
	struct plan_piece *piece;
	struct ptcp_plan_hop *hop;
	struct ptcp_plan_step *step;
	size_t npieces, nhops, nsteps;
	double *storage; /* peak of each host */
	unsigned short *streams; /* [from * nhosts + to]; NULL: not counted */
	int nhosts;
};

int plan_build(struct ptcp_plan **out, const struct pieces *p, const struct graph *n,
    const int *streams, struct ptcp_err *e);

/* As ptcp_plan_verify(); also fills storage[host] unless NULL. */
int plan_verify(const struct ptcp_plan *p, const struct conf_overlay *o, double *storage,
    struct ptcp_err *e);

/* As ptcp_plan_make(), without checking the options. */
int plan_make(struct ptcp_plan **out, const struct ptcp_overlay *o,
    const struct ptcp_plan_opts *opts, const struct plan_tuning *tuning, struct ptcp_err *e);

#endif
