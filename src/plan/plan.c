#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/sorted.h"
#include "core/units.h"
#include "plan/streams.h"

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

/* Rounds to whole bytes along the running sum, to reach exactly each source's data; leaves out empty
 * pieces. */
static void fill_pieces(struct ptcp_plan *plan, const struct pieces *p, const struct graph *n,
    struct ranked *rank)
{
	double sum = 0, all;
	uint64_t done = 0;
	size_t i, k = 0;

	for (i = 0; i < p->n; i++)
		rank[i] = (struct ranked){ p->hop[p->piece[i].first_hop].start_s,
			p->piece[i].source, i };
	sort_array(rank, p->n, sizeof *rank, by_start);
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
	sort_array(plan->step, n, sizeof *plan->step, by_step);
	for (i = 0; i < n; i++)
		if (k > 0 && by_step(&plan->step[k - 1], &plan->step[i]) == 0)
			plan->step[k - 1].bytes += plan->step[i].bytes;
		else
			plan->step[k++] = plan->step[i];
	plan->nsteps = k;
}

static int fill_streams(struct ptcp_plan *plan, const struct graph *n, const int *streams)
{
	const struct ptcp_overlay *o = n->overlay;
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

static int build(struct ptcp_plan **out, const struct pieces *p, const struct graph *n,
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

/* ---- Making a plan ---- */

static const char *const method_names[] = {
	[PTCP_PLAN_DIRECT] = "direct",
	[PTCP_PLAN_BEST_PATH] = "best-path",
	[PTCP_PLAN_COORDINATED] = "coordinated",
	[PTCP_PLAN_PIPELINED] = "pipelined",
};
#define NMETHODS (int)(sizeof method_names / sizeof *method_names)

const char *ptcp_plan_method_name(enum ptcp_plan_method m)
{
	return (int)m >= 0 && (int)m < NMETHODS ? method_names[m] : "?";
}

int ptcp_plan_method_find(const char *name)
{
	int i;

	for (i = 0; i < NMETHODS; i++)
		if (strcmp(method_names[i], name) == 0)
			return i;
	return -1;
}

void ptcp_plan_opts_init(struct ptcp_plan_opts *o)
{
	*o = (struct ptcp_plan_opts){ .size = sizeof *o, PTCP_OPTIONS_PLAN(PTCP_NO_ROW, OPTS_INITIAL)
		.effort_s = 10 };
}

void plan_tuning_init(struct plan_tuning *t)
{
	*t = (struct plan_tuning){ .small_cols = 6000, .streams_s = 5 };
}

struct planning {
	const struct ptcp_overlay *overlay;
	const struct ptcp_plan_opts *opts;
	const struct plan_tuning *tuning;
	struct ptcp_plan *plan; /* it is on the heap and outlives the run */
};

/* A hundredth of the direct makespan, or of the best path's or pipelined one. */
static double slot_length(struct sandbox *run, const struct graph *n, const struct planning *j)
{
	struct method_result r;

	if (j->opts->slot_s > 0)
		return j->opts->slot_s;
	if (j->overlay->slot_ns != CONF_UNSET)
		return (double)j->overlay->slot_ns / (double)NS_PER_S;
	method_baselines(run, n, false, NULL, &r);
	if (isinf(r.makespan_s))
		method_baselines(run, n, true, NULL, &r);
	if (isinf(r.makespan_s))
		method_pipelined(run, streams_counted(n) ? streams_with(run, n, NULL) : n, j->tuning, NULL, &r);
	return r.makespan_s / 100;
}

/* A relaying method; chooses counted streams first. */
static void make_relayed(struct sandbox *run, const struct graph *n, const struct planning *j,
    struct pieces *pieces, struct method_result *r)
{
	bool counted = streams_counted(n);
	int *streams = counted ? sandbox_alloc(run, n->overlay->nlinks, sizeof *streams) : NULL;
	double least = 0, slot = 0;

	if (j->opts->method == PTCP_PLAN_COORDINATED)
		slot = slot_length(run, n, j);
	if (counted)
		n = streams_best(run, n, j->tuning, streams, &least);
	if (slot > 0)
		method_coordinated(run, n, slot, j->tuning, pieces, r);
	else
		method_pipelined(run, n, j->tuning, pieces, r);
	r->streams = streams;
	if (counted)
		r->bound_s = fmin(r->bound_s, slot > 0 ? ceil(least / slot * (1 - 1e-9)) * slot : least);
}

static void check_deadline(struct sandbox *run, const struct planning *j, const struct method_result *r)
{
	double deadline = j->opts->deadline_s;
	char least[UNITS_TEXT_BYTES], limit[UNITS_TEXT_BYTES];

	if (!(deadline > 0) && j->overlay->deadline_ns != CONF_UNSET)
		deadline = (double)j->overlay->deadline_ns / (double)NS_PER_S;
	if (!(deadline > 0) || r->makespan_s <= deadline * (1 + 1e-9))
		return;
	sandbox_fail(run, PTCP_EINFEASIBLE, "the data cannot arrive by the deadline of %s (%.6g s): "
	    "the minimum makespan (%s) is %s (%.6g s); too small: %s",
	    units_time_text(limit, deadline), deadline,
	    ptcp_plan_method_name(j->opts->method), units_time_text(least, r->makespan_s),
	    r->makespan_s, r->limits);
}

static void plan_job(struct sandbox *run, void *arg)
{
	struct planning *j = arg;
	struct pieces *pieces = pieces_new(run);
	struct graph *n = graph_new(run, j->overlay);
	struct method_result r = { 0 };
	struct ptcp_err e;

	sandbox_set_check(run, j->opts->go_on, j->opts->arg);
	if (n->total > 0 && j->opts->method <= PTCP_PLAN_BEST_PATH)
		method_baselines(run, n, j->opts->method == PTCP_PLAN_BEST_PATH, pieces, &r);
	else if (n->total > 0)
		make_relayed(run, n, j, pieces, &r);
	check_deadline(run, j, &r);
	if (build(&j->plan, pieces, n, r.streams, &e) < 0)
		sandbox_fail(run, e.code, "%s", e.msg);
	j->plan->info.method = j->opts->method;
	j->plan->info.makespan_s = r.makespan_s;
	j->plan->info.bound_s = fmin(r.bound_s, r.makespan_s);
	j->plan->info.slot_s = r.slot_s;
	j->plan->info.relayed_bound_bytes = fmin(r.relayed_bound_bytes, j->plan->info.relayed_bytes);
	if (j->opts->method <= PTCP_PLAN_BEST_PATH)
		j->plan->info.relayed_bound_bytes = j->plan->info.relayed_bytes;
	if (plan_verify(j->plan, j->overlay, j->plan->storage, &e) < 0)
		sandbox_fail(run, e.code, "planning: the plan failed verification: %s", e.msg);
}

int plan_make(struct ptcp_plan **out, const struct ptcp_overlay *o,
    const struct ptcp_plan_opts *opts, const struct plan_tuning *tuning, struct ptcp_err *e)
{
	struct planning j = { .overlay = o, .opts = opts, .tuning = tuning };
	struct mono start = mono_now();
	int r = sandbox_start(plan_job, &j, SANDBOX_MEMORY_BYTES, opts->effort_s, e);

	if (r < 0) {
		ptcp_plan_free(j.plan);
		return r;
	}
	j.plan->info.solve_s = (double)mono_diff_ns(mono_now(), start) / (double)NS_PER_S;
	*out = j.plan;
	return 0;
}

int ptcp_plan_make(struct ptcp_plan **out, const struct ptcp_overlay *o,
    const struct ptcp_plan_opts *opts, struct ptcp_err *e)
{
	struct ptcp_plan_opts own;
	struct plan_tuning tuning;
	int r;

	ptcp_plan_opts_init(&own);
	if ((r = opts_copy(&own, sizeof own, opts, "ptcp_plan_opts_init", e)) < 0)
		return r;
	if ((int)own.method < 0 || (int)own.method >= NMETHODS)
		return err_set(e, PTCP_EUSAGE, "plan options: unknown method %d", (int)own.method);
	if (!(own.slot_s >= 0) || !(own.deadline_s >= 0) || !(own.effort_s >= 0) || isinf(own.slot_s))
		return err_set(e, PTCP_EUSAGE, "plan options: slot, deadline and effort must be 0 "
		    "or more seconds");
	plan_tuning_init(&tuning);
	return plan_make(out, o, &own, &tuning, e);
}

void ptcp_plan_free(struct ptcp_plan *p)
{
	if (p == NULL)
		return;
	free(p->piece);
	free(p->hop);
	free(p->step);
	free(p->storage);
	free(p->streams);
	free(p);
}

void ptcp_plan_info(const struct ptcp_plan *p, struct ptcp_plan_info *out)
{
	*out = p->info;
}

size_t ptcp_plan_pieces(const struct ptcp_plan *p)
{
	return p->npieces;
}

void ptcp_plan_piece(const struct ptcp_plan *p, size_t i, struct ptcp_plan_piece *out)
{
	const struct plan_piece *k = &p->piece[i];

	*out = (struct ptcp_plan_piece){ k->source, k->offset, k->bytes, k->nhops,
		p->hop + k->first_hop };
}

size_t ptcp_plan_steps(const struct ptcp_plan *p)
{
	return p->nsteps;
}

void ptcp_plan_step(const struct ptcp_plan *p, size_t i, struct ptcp_plan_step *out)
{
	*out = p->step[i];
}

double ptcp_plan_storage_bytes(const struct ptcp_plan *p, int host)
{
	return host >= 0 && host < p->nhosts ? p->storage[host] : 0;
}

unsigned ptcp_plan_streams(const struct ptcp_plan *p, int from, int to)
{
	if (p->streams == NULL || from < 0 || to < 0 || from >= p->nhosts || to >= p->nhosts)
		return 0;
	return p->streams[(size_t)from * (size_t)p->nhosts + (size_t)to];
}

int ptcp_plan_verify(const struct ptcp_plan *p, const struct ptcp_overlay *o, struct ptcp_err *e)
{
	return plan_verify(p, o, NULL, e);
}
