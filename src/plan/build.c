#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "plan/plan.h"

struct ranked {
	double start_s;
	int source;
	size_t at;
};

static int by_start(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->source != y->source)
		return x->source - y->source;
	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Bytes are rounded along their running sum, so that each source's sum to its
 * data; pieces that come to nothing are left out. */
static void fill_pieces(struct ptcp_plan *plan, const struct pieces *p, const struct graph *n,
    struct ranked *rank)
{
	double sum = 0, all;
	uint64_t done = 0;
	size_t i, k = 0;

	for (i = 0; i < p->n; i++)
		rank[i] = (struct ranked){ p->hop[p->piece[i].first_hop].start_s,
			p->piece[i].source, i };
	qsort(rank, p->n, sizeof *rank, by_start);
	for (i = 0; i < p->n; i++) {
		const struct piece *from = &p->piece[rank[i].at];
		uint64_t until;

		if (i == 0 || from->source != rank[i - 1].source) {
			sum = 0;
			done = 0;
		}
		sum += from->bytes;
		all = n->host[from->source].data;
		if (i + 1 == p->n || rank[i + 1].source != from->source)
			sum = all;
		until = (uint64_t)fmin(all, floor(sum + 0.5));
		if (until <= done)
			continue;
		plan->piece[k++] = (struct plan_piece){ from->source, done, until - done,
			from->first_hop, from->nhops };
		done = until;
	}
	plan->npieces = k;
	if (p->nhops > 0)
		memcpy(plan->hop, p->hop, p->nhops * sizeof *p->hop);
	plan->nhops = p->nhops;
}

static int by_step(const void *a, const void *b)
{
	const struct ptcp_plan_step *x = a, *y = b;

	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	if (x->from != y->from)
		return x->from - y->from;
	if (x->to != y->to)
		return x->to - y->to;
	if (x->source != y->source)
		return x->source - y->source;
	return x->end_s < y->end_s ? -1 : x->end_s > y->end_s;
}

static void fill_steps(struct ptcp_plan *plan)
{
	size_t i, h, n = 0, k = 0;

	for (i = 0; i < plan->npieces; i++)
		for (h = 0; h < plan->piece[i].nhops; h++) {
			const struct ptcp_plan_hop *hop = &plan->hop[plan->piece[i].first_hop + h];

			plan->step[n++] = (struct ptcp_plan_step){ hop->from, hop->to,
				plan->piece[i].source, hop->start_s, hop->end_s,
				plan->piece[i].bytes };
			plan->info.relayed_bytes += h > 0 ? (double)plan->piece[i].bytes : 0;
		}
	qsort(plan->step, n, sizeof *plan->step, by_step);
	for (i = 0; i < n; i++)
		if (k > 0 && by_step(&plan->step[k - 1], &plan->step[i]) == 0)
			plan->step[k - 1].bytes += plan->step[i].bytes;
		else
			plan->step[k++] = plan->step[i];
	plan->nsteps = k;
}

static int fill_streams(struct ptcp_plan *plan, const struct graph *n, const int *streams)
{
	const struct conf_overlay *o = n->conf;
	size_t i;

	if (streams == NULL)
		return 0;
	if ((plan->streams = calloc(o->nhosts * o->nhosts, sizeof *plan->streams)) == NULL)
		return -1;
	for (i = 0; i < o->nlinks; i++)
		plan->streams[(size_t)o->links[i].from * o->nhosts + (size_t)o->links[i].to] =
		    (unsigned short)streams[i];
	return 0;
}

int plan_build(struct ptcp_plan **out, const struct pieces *p, const struct graph *n,
    const int *streams, struct ptcp_err *e)
{
	struct ptcp_plan *plan = calloc(1, sizeof *plan);
	struct ranked *rank = calloc(p->n + 1, sizeof *rank);
	int r = 0;

	if (plan != NULL) {
		plan->nhosts = n->nhosts;
		plan->piece = calloc(p->n + 1, sizeof *plan->piece);
		plan->hop = calloc(p->nhops + 1, sizeof *plan->hop);
		plan->step = calloc(p->nhops + 1, sizeof *plan->step);
		plan->storage = calloc((size_t)n->nhosts + 1, sizeof *plan->storage);
	}
	if (plan == NULL || rank == NULL || plan->piece == NULL || plan->hop == NULL ||
	    plan->step == NULL || plan->storage == NULL || fill_streams(plan, n, streams) < 0) {
		ptcp_plan_free(plan);
		r = err_nomem(e);
	} else {
		fill_pieces(plan, p, n, rank);
		fill_steps(plan);
		plan->info.data_bytes = n->total;
		*out = plan;
	}
	free(rank);
	return r;
}
