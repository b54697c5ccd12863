#include "plan/time_grid.h"

#include <math.h>
#include <string.h>

struct time_grid *time_grid_pipelined(struct sandbox *run, const struct graph *n, double end_s)
{
	struct time_grid *g = sandbox_alloc(run, 1, sizeof *g);
	int i;

	g->stage = sandbox_alloc(run, (size_t)n->ntimes, sizeof *g->stage);
	g->period = sandbox_alloc(run, (size_t)n->ntimes, sizeof *g->period);
	g->end_s = end_s;
	for (i = 0; i < n->ntimes && n->time[i] < end_s; i++) {
		double until = i + 1 < n->ntimes && n->time[i + 1] < end_s ? n->time[i + 1] : end_s;

		g->stage[i] = (struct stage){ i, 1, i, 1 };
		g->period[i] = (struct period){ n->time[i], until - n->time[i], i };
		g->nstages = g->nperiods = i + 1;
	}
	return g;
}

struct time_grid *time_grid_one(struct sandbox *run, double len_s)
{
	struct time_grid *g = sandbox_alloc(run, 1, sizeof *g);

	*g = (struct time_grid){ .end_s = len_s, .nstages = 1, .nperiods = 1 };
	g->stage = sandbox_alloc(run, 1, sizeof *g->stage);
	g->stage[0] = (struct stage){ 0, 1, 0, 1 };
	g->period = sandbox_alloc(run, 1, sizeof *g->period);
	g->period[0] = (struct period){ 0, len_s, 0 };
	return g;
}

/* Tolerance for moments at a slot's end, in slots. */
#define NEAR 1e-9

/* Marks slots that are single-slot stages. */
static void mark_single(const struct graph *n, double slot_s, int nslots, int fringe, char *single)
{
	int i, k;

	for (k = 0; k < fringe && k < nslots; k++)
		single[k] = single[nslots - 1 - k] = 1;
	for (i = 1; i < n->ntimes; i++) {
		double at = n->time[i] / slot_s;
		int first, last;

		if (!(at < nslots - NEAR))
			break;
		first = (int)floor(at + NEAR) - fringe;
		last = (int)ceil(at - NEAR) - 1 + fringe;
		for (k = first > 0 ? first : 0; k <= last && k < nslots; k++)
			single[k] = 1;
		if (at - floor(at) > NEAR && ceil(at) - at > NEAR)
			single[(int)at] = 1;
	}
}

/* Whether rates change at the start of a slot. */
static int change_at(const struct graph *n, double slot_s, int slot)
{
	int i;

	for (i = 1; i < n->ntimes; i++)
		if (fabs(n->time[i] / slot_s - slot) <= NEAR)
			return 1;
	return 0;
}

static void add_periods(struct time_grid *g, const struct graph *n, struct stage *s)
{
	double from = s->first_slot * g->slot_s, until = (s->first_slot + s->nslots) * g->slot_s;
	double eps = NEAR * g->slot_s;
	int i = graph_interval(n, from + eps);

	s->first_period = g->nperiods;
	while (from < until - eps) {
		double next = i + 1 < n->ntimes && n->time[i + 1] < until - eps ? n->time[i + 1] : until;

		g->period[g->nperiods++] = (struct period){ from, next - from, i };
		s->nperiods++;
		from = next;
		i++;
	}
}

struct time_grid *time_grid_coordinated(struct sandbox *run, const struct graph *n, double slot_s, int nslots,
    int fringe, int longest)
{
	struct time_grid *g = sandbox_alloc(run, 1, sizeof *g);
	char *single = sandbox_alloc(run, (size_t)nslots, 1);
	int at, end;

	g->slot_s = slot_s;
	g->end_s = nslots * slot_s;
	g->stage = sandbox_alloc(run, (size_t)nslots, sizeof *g->stage);
	g->period = sandbox_alloc(run, (size_t)nslots + (size_t)n->ntimes, sizeof *g->period);
	mark_single(n, slot_s, nslots, fringe, single);
	for (at = 0; at < nslots; at = end) {
		struct stage *s = &g->stage[g->nstages++];

		for (end = at + 1; end < nslots && !single[at] && !single[end] &&
		    end - at < longest && !change_at(n, slot_s, end); end++)
			;
		s->first_slot = at;
		s->nslots = end - at;
		add_periods(g, n, s);
	}
	return g;
}

int time_grid_stage(const struct time_grid *g, int period)
{
	int lo = 0, hi = g->nstages - 1;

	while (lo < hi) {
		int mid = (lo + hi + 1) / 2;

		if (g->stage[mid].first_period <= period)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}
