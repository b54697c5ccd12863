#include "plan/pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sorted.h"
#include "plan/flow_paths.h"

struct pieces *pieces_new(struct sandbox *run)
{
	struct pieces *p = sandbox_alloc(run, 1, sizeof *p);

	p->run = run;
	return p;
}

void pieces_add(struct pieces *p, int source, double bytes, const struct ptcp_plan_hop *hops, size_t nhops)
{
	if (p->n == p->room)
		p->piece = sandbox_grow(p->run, p->piece, p->n, &p->room, sizeof *p->piece);
	while (p->nhops + nhops > p->hop_room)
		p->hop = sandbox_grow(p->run, p->hop, p->nhops, &p->hop_room, sizeof *p->hop);
	p->piece[p->n++] = (struct piece){ source, p->nhops, nhops, bytes };
	memcpy(p->hop + p->nhops, hops, nhops * sizeof *hops);
	p->nhops += nhops;
}

/* ---- From flow paths to pieces ---- */

#define ALIKE 1e-7   /* relative difference of data in one piece */
#define ALIKE_B 1e-3 /* the same in bytes: rounding of all data shows in slots of few bytes */
#define CRUMB 1e-8   /* part of a source's data: remainders between goals, no piece */
#define CRUMBS 1e-7  /* part of a source's data: all its crumbs */
#define LOST 1e-6    /* part of a source's data: max loss by rounding */

/* Orders by source, arcs and slots between hops; 0: the same path, perhaps at another time. */
static int compare_paths(const struct flow_path *x, const struct flow_path *y)
{
	int k, dx, dy;

	if (x->source != y->source)
		return x->source - y->source;
	if (x->nhops != y->nhops)
		return x->nhops - y->nhops;
	for (k = 0; k < x->nhops; k++) {
		if (x->hop[k].arc != y->hop[k].arc)
			return x->hop[k].arc - y->hop[k].arc;
		dx = x->hop[k].slot - x->hop[0].slot;
		dy = y->hop[k].slot - y->hop[0].slot;
		if (dx != dy)
			return dx - dy;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct flow_path *x = a, *y = b;
	int c = compare_paths(x, y), k;

	if (c != 0)
		return c;
	if (x->hop[0].slot != y->hop[0].slot)
		return x->hop[0].slot - y->hop[0].slot;
	for (k = 0; k < x->nhops; k++)
		if (x->hop[k].period != y->hop[k].period)
			return x->hop[k].period - y->hop[k].period;
	return 0;
}

static int whole_slots(const struct time_grid *g, const struct flow_path *c)
{
	int k;

	for (k = 0; k < c->nhops; k++)
		if (g->stage[time_grid_stage(g, c->hop[k].period)].nperiods != 1)
			return 0;
	return 1;
}

/* Adds one piece for `c` and its repetitions in the next `more` slots. */
static void add_piece(struct pieces *out, const struct graph *n, const struct time_grid *g,
    const struct flow_path *c, int more, double bytes)
{
	struct ptcp_plan_hop *hop = sandbox_alloc(out->run, (size_t)c->nhops, sizeof *hop);
	int k;

	for (k = 0; k < c->nhops; k++) {
		const struct flow_path_hop *h = &c->hop[k];
		const struct graph_arc *a = &n->arc[h->arc];
		const struct period *p = &g->period[h->period];

		hop[k] = (struct ptcp_plan_hop){ a->from, a->to, p->start_s, p->start_s + p->len_s };
		if (g->slot_s > 0 && g->stage[time_grid_stage(g, h->period)].nperiods == 1) {
			hop[k].start_s = h->slot * g->slot_s;
			hop[k].end_s = (h->slot + 1 + more) * g->slot_s;
		}
	}
	pieces_add(out, c->source, bytes, hop, (size_t)c->nhops);
}

/* A run of equal paths in successive slots becomes one piece. */
struct run {
	size_t first;
	int slots;
	double bytes;
};

/* Merges paths that are equal in time as well. */
static size_t merge_paths(struct flow_path *c, size_t nc)
{
	size_t i, k = 0;

	for (i = 0; i < nc; i++)
		if (k > 0 && compare(&c[k - 1], &c[i]) == 0)
			c[k - 1].bytes += c[i].bytes;
		else
			c[k++] = c[i];
	return k;
}

static size_t list_runs(const struct time_grid *g, const struct flow_path *c, size_t nc, struct run *run)
{
	size_t i, k = 0, end;

	for (i = 0; i < nc; i = end) {
		double sum = c[i].bytes;

		end = i + 1;
		if (g->slot_s > 0 && whole_slots(g, &c[i]))
			for (; end < nc && compare_paths(&c[i], &c[end]) == 0 &&
			    c[end].hop[0].slot == c[end - 1].hop[0].slot + 1 && whole_slots(g, &c[end]) &&
			    fabs(c[end].bytes - c[i].bytes) <= ALIKE * c[i].bytes + ALIKE_B; end++)
				sum += c[end].bytes;
		run[k++] = (struct run){ i, (int)(end - i), sum };
	}
	return k;
}

static int by_bytes(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The size below which the runs of each source are crumbs. Judged as runs, since a slot of thousands has
 * little data, and limited in sum, so that leaving out crumbs never loses a noticeable part of the data. */
static double *crumb_sizes(struct sandbox *sandbox, const struct graph *n, const struct flow_path *c,
    const struct run *run, size_t nruns, double share)
{
	double *size = sandbox_alloc(sandbox, (size_t)n->nhosts, sizeof *size);
	double *sum = sandbox_alloc(sandbox, (size_t)n->nhosts, sizeof *sum);
	struct run *sorted = sandbox_alloc(sandbox, nruns, sizeof *sorted);
	size_t i;

	memcpy(sorted, run, nruns * sizeof *run);
	sort_array(sorted, nruns, sizeof *sorted, by_bytes);
	for (i = 0; i < nruns; i++) {
		int h = c[sorted[i].first].source;

		sum[h] += sorted[i].bytes;
		if (size[h] == 0 && (sorted[i].bytes > CRUMB * share * n->host[h].data ||
		    sum[h] > CRUMBS * share * n->host[h].data))
			size[h] = sorted[i].bytes;
	}
	return size;
}

/* Factors that scale the runs of each source, without crumbs, to exactly its data. */
static double *scales(struct sandbox *sandbox, const struct graph *n, const struct flow_path *c,
    const struct run *run, size_t nruns, const double *crumb, double share)
{
	double *sum = sandbox_alloc(sandbox, (size_t)n->nhosts, sizeof *sum);
	size_t i;
	int h;

	for (i = 0; i < nruns; i++)
		if (run[i].bytes >= crumb[c[run[i].first].source])
			sum[c[run[i].first].source] += run[i].bytes;
	for (h = 0; h < n->nhosts; h++) {
		double want = share * n->host[h].data;

		/* Rounding to whole bytes absorbs less than a byte. */
		if (want > 0 && !(sum[h] > 0 && fabs(sum[h] - want) < LOST * want + 0.5))
			sandbox_fail(sandbox, PTCP_ERANGE, "planning: %g of %g bytes of host %s were lost in "
			    "rounding: rates or sizes of the overlay lie too far apart",
			    want - sum[h], want, graph_name(n, h));
		sum[h] = sum[h] > 0 ? n->host[h].data / sum[h] : 0;
	}
	return sum;
}

/* Sorts `c`. `share` is the share of the data expected on the paths. */
static void add_pieces(struct pieces *out, const struct graph *n, const struct time_grid *g,
    struct flow_path *c, size_t nc, double share)
{
	struct run *run = sandbox_alloc(out->run, nc, sizeof *run);
	double *crumb, *scale;
	size_t i, nruns;

	sort_array(c, nc, sizeof *c, compare);
	nruns = list_runs(g, c, merge_paths(c, nc), run);
	crumb = crumb_sizes(out->run, n, c, run, nruns, share);
	scale = scales(out->run, n, c, run, nruns, crumb, share);
	for (i = 0; i < nruns; i++) {
		const struct flow_path *first = &c[run[i].first];

		if (run[i].bytes >= crumb[first->source])
			add_piece(out, n, g, first, run[i].slots - 1, run[i].bytes * scale[first->source]);
	}
}

void pieces_trace(struct pieces *out, const struct lp *lp, const struct graph *n, const struct time_grid *g)
{
	struct flow_path *path;
	size_t npaths = flow_paths(out->run, lp, n, g, &path);

	add_pieces(out, n, g, path, npaths, lp_share(lp));
}
