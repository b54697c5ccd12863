#include "plan/pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- Flow paths ---- */

#define ALIKE 1e-7 /* relative difference of data in one piece */
#define CRUMB 1e-8 /* of a source's data: remainders between goals, no piece */
#define LOST 1e-6  /* of a source's data: max loss by rounding */

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

static int same(const struct flow_path *x, const struct flow_path *y)
{
	return compare(x, y) == 0;
}

static int stage_of(const struct time_grid *g, int slot)
{
	int lo = 0, hi = g->nstages - 1;

	while (lo < hi) {
		int mid = (lo + hi + 1) / 2;

		if (g->stage[mid].first_slot <= slot)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

static int whole_slots(const struct time_grid *g, const struct flow_path *c)
{
	int k;

	for (k = 0; k < c->nhops; k++)
		if (g->stage[stage_of(g, c->hop[k].slot)].nperiods != 1)
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
		if (g->slot_s > 0 && g->stage[stage_of(g, h->slot)].nperiods == 1) {
			hop[k].start_s = h->slot * g->slot_s;
			hop[k].end_s = (h->slot + 1 + more) * g->slot_s;
		}
	}
	pieces_add(out, c->source, bytes, hop, (size_t)c->nhops);
}

static size_t drop_crumbs(const struct graph *n, struct flow_path *c, size_t nc, double share)
{
	size_t i, k = 0;

	for (i = 0; i < nc; i++)
		if (c[i].bytes > CRUMB * share * n->host[c[i].source].data)
			c[k++] = c[i];
	return k;
}

/* Scales the paths of each source to exactly its data. */
static void scale_sources(struct sandbox *run, const struct graph *n, struct flow_path *c, size_t nc,
    double share)
{
	double *sum = sandbox_alloc(run, (size_t)n->nhosts, sizeof *sum);
	size_t i;
	int h;

	for (i = 0; i < nc; i++)
		sum[c[i].source] += c[i].bytes;
	for (h = 0; h < n->nhosts; h++) {
		double want = share * n->host[h].data;

		/* Rounding to whole bytes absorbs less than a byte. */
		if (want > 0 && !(sum[h] > 0 && fabs(sum[h] - want) < LOST * want + 0.5))
			sandbox_fail(run, PTCP_ERANGE, "planning: %g of %g bytes of host %s were lost in "
			    "rounding: rates or sizes of the overlay lie too far apart",
			    want - sum[h], want, graph_name(n, h));
	}
	for (i = 0; i < nc; i++)
		c[i].bytes *= n->host[c[i].source].data / sum[c[i].source];
}

void flow_paths_to_pieces(struct pieces *out, const struct graph *n, const struct time_grid *g,
    struct flow_path *c, size_t nc, double share)
{
	size_t i, k = 0, end;

	nc = drop_crumbs(n, c, nc, share);
	scale_sources(out->run, n, c, nc, share);
	qsort(c, nc, sizeof *c, compare);
	for (i = 0; i < nc; i++) /* merge equal paths and times */
		if (k > 0 && same(&c[k - 1], &c[i]))
			c[k - 1].bytes += c[i].bytes;
		else
			c[k++] = c[i];
	nc = k;
	for (i = 0; i < nc; i = end) {
		double sum = c[i].bytes;

		end = i + 1;
		if (g->slot_s > 0 && whole_slots(g, &c[i]))
			for (; end < nc && compare_paths(&c[i], &c[end]) == 0 &&
			    c[end].hop[0].slot == c[end - 1].hop[0].slot + 1 && whole_slots(g, &c[end]) &&
			    fabs(c[end].bytes - c[i].bytes) <= ALIKE * c[i].bytes; end++)
				sum += c[end].bytes;
		add_piece(out, n, g, &c[i], (int)(end - i - 1), sum);
	}
}
