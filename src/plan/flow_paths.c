#include "plan/flow_paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 8000000
#define DUST 1e-15  /* part of all data: rounding, no piece */
#define SMALL 1e-5  /* relative to the largest simultaneous arrival */

/* One hop of a batch; `before` leads back to its source. */
struct node {
	int before; /* node, or -1 at the source */
	int arc, slot, period;
	int hops;
};

struct batch {
	int node;
	double bytes;
};

struct queue {
	struct batch *b;
	size_t head, n, room;
};

struct arrival { /* data at the destination */
	int node;
	double bytes;
};

struct trace {
	struct sandbox *run;
	const struct lp *lp;
	const struct graph *n;
	const struct time_grid *g;
	double dust;
	struct node *node;
	size_t nnodes, node_room;
	struct queue *stored, *arriving; /* queues of each host */
	struct arrival *arrival;
	size_t narrivals, arrival_room;
	/* Arcs in use in the present stage, with the bytes per slot */
	int *arc, *arc_period, narcs;
	double *bytes;
};

static void put(struct trace *t, struct queue *q, int node, double bytes)
{
	if (q->n == q->room && q->head > q->n / 2) {
		memmove(q->b, q->b + q->head, (q->n - q->head) * sizeof *q->b);
		q->n -= q->head;
		q->head = 0;
	}
	if (q->n == q->room)
		q->b = sandbox_grow(t->run, q->b, q->n, &q->room, sizeof *q->b);
	q->b[q->n++] = (struct batch){ node, bytes };
}

/* Sends `bytes` of node `before` (-1: the source's own) over an arc. */
static void cross(struct trace *t, int before, int arc, int slot, int period, double bytes)
{
	const struct graph_arc *a = &t->n->arc[arc];
	int id = (int)t->nnodes;

	if (t->nnodes == t->node_room && 2 * t->node_room > NODES_MAX)
		sandbox_fail(t->run, PTCP_ERANGE,
		    "planning: the plan has more than %d pieces (longer slots make fewer)", NODES_MAX);
	if (t->nnodes == t->node_room)
		t->node = sandbox_grow(t->run, t->node, t->nnodes, &t->node_room, sizeof *t->node);
	t->node[t->nnodes++] = (struct node){ before, arc, slot, period,
		before < 0 ? 1 : t->node[before].hops + 1 };
	if (a->to != t->n->dest) {
		put(t, &t->arriving[a->to], id, bytes);
		return;
	}
	if (t->narrivals == t->arrival_room)
		t->arrival = sandbox_grow(t->run, t->arrival, t->narrivals, &t->arrival_room, sizeof *t->arrival);
	t->arrival[t->narrivals++] = (struct arrival){ id, bytes };
}

/* Queues much smaller batches first: departures equal arrivals only up to rounding, and the last batch
 * absorbs the difference. */
static void collect_arrived(struct trace *t, int host)
{
	struct queue *from = &t->arriving[host];
	double most = 0;
	size_t i;
	int small;

	for (i = from->head; i < from->n; i++)
		most = fmax(most, from->b[i].bytes);
	for (small = 1; small >= 0; small--)
		for (i = from->head; i < from->n; i++)
			if ((from->b[i].bytes < SMALL * most) == small)
				put(t, &t->stored[host], from->b[i].node, from->b[i].bytes);
	from->head = from->n = 0;
}

/* Sends over the arcs [first, end) of the list: relayed data first, in order of arrival, then own data. */
static void send(struct trace *t, int host, int first, int end, int slot, double own)
{
	struct queue *q = &t->stored[host];
	double others = 0, give, left;
	int i;

	for (i = first; i < end; i++)
		others += t->bytes[i];
	others = t->n->host[host].relay ? others - own : 0;
	for (i = first; i < end; i++) {
		left = t->bytes[i];
		while (others > t->dust && left > t->dust && q->head < q->n) {
			struct batch *b = &q->b[q->head];

			give = fmin(fmin(left, others), b->bytes);
			cross(t, b->node, t->arc[i], slot, t->arc_period[i], give);
			b->bytes -= give;
			left -= give;
			others -= give;
			if (b->bytes <= t->dust)
				q->head++;
		}
		if (left > t->dust && t->n->host[host].data > 0)
			cross(t, -1, t->arc[i], slot, t->arc_period[i], left);
	}
}

static void list_arcs(struct trace *t, const struct stage *s)
{
	int a, p;

	t->narcs = 0;
	for (a = 0; a < t->n->narcs; a++)
		for (p = s->first_period; p < s->first_period + s->nperiods; p++) {
			double f = lp_flow(t->lp, a, p) / s->nslots;

			if (f <= t->dust)
				continue;
			t->arc[t->narcs] = a;
			t->arc_period[t->narcs] = p;
			t->bytes[t->narcs++] = f;
		}
}

/* End of the arcs with the same origin as the first. */
static int end_of_arcs(const struct trace *t, int first)
{
	int end = first;

	while (end < t->narcs && t->n->arc[t->arc[end]].from == t->n->arc[t->arc[first]].from)
		end++;
	return end;
}

static void trace_slots(struct trace *t, int stage)
{
	const struct stage *s = &t->g->stage[stage];
	int k, i, end, h;

	list_arcs(t, s);
	for (k = 0; k < s->nslots; k++) {
		for (i = 0; i < t->narcs; i = end) {
			h = t->n->arc[t->arc[i]].from;
			end = end_of_arcs(t, i);
			send(t, h, i, end, s->first_slot + k, lp_own(t->lp, h, stage) / s->nslots);
		}
		for (h = 0; h < t->n->nhosts; h++)
			collect_arrived(t, h);
	}
}

/* Sorts the hosts along the flows of the stage; false for a cycle, which only rounding can cause. */
static int order_hosts(struct trace *t, int *order, int *indegree)
{
	int n = t->n->nhosts, done = 0, at, i, h;

	memset(indegree, 0, (size_t)n * sizeof *indegree);
	for (i = 0; i < t->narcs; i++)
		if (t->bytes[i] > 0)
			indegree[t->n->arc[t->arc[i]].to]++;
	for (h = 0; h < n; h++)
		if (indegree[h] == 0)
			order[done++] = h;
	for (at = 0; at < done; at++)
		for (i = 0; i < t->narcs; i++)
			if (t->bytes[i] > 0 && t->n->arc[t->arc[i]].from == order[at] &&
			    --indegree[t->n->arc[t->arc[i]].to] == 0)
				order[done++] = t->n->arc[t->arc[i]].to;
	return done == n;
}

static void cancel_cycle(struct trace *t, const int *indegree, int *entry)
{
	int h = 0, i, start;
	double least = INFINITY;

	for (i = 0; i < t->n->nhosts; i++)
		entry[i] = -1;
	while (indegree[h] == 0)
		h++;
	/* Walks back among unsorted hosts until one repeats. */
	while (entry[h] < 0) {
		for (i = 0; !(t->bytes[i] > 0) || t->n->arc[t->arc[i]].to != h ||
		    indegree[t->n->arc[t->arc[i]].from] == 0; i++)
			;
		entry[h] = i;
		h = t->n->arc[t->arc[i]].from;
	}
	start = h;
	do {
		least = fmin(least, t->bytes[entry[h]]);
		h = t->n->arc[t->arc[entry[h]]].from;
	} while (h != start);
	do {
		i = entry[h];
		t->bytes[i] = t->bytes[i] > least ? t->bytes[i] - least : 0;
		h = t->n->arc[t->arc[i]].from;
	} while (h != start);
}

static void trace_fluid(struct trace *t, int stage)
{
	int *order = sandbox_alloc(t->run, (size_t)t->n->nhosts, sizeof *order), at, i, end, h;
	int *indegree = sandbox_alloc(t->run, (size_t)t->n->nhosts, sizeof *indegree);
	int *first = sandbox_alloc(t->run, (size_t)t->n->nhosts, sizeof *first);

	list_arcs(t, &t->g->stage[stage]);
	while (!order_hosts(t, order, indegree))
		cancel_cycle(t, indegree, first);
	for (h = 0; h < t->n->nhosts; h++)
		first[h] = -1;
	for (i = 0; i < t->narcs; i = end) {
		first[t->n->arc[t->arc[i]].from] = i;
		end = end_of_arcs(t, i);
	}
	for (at = 0; at < t->n->nhosts; at++) {
		h = order[at];
		collect_arrived(t, h);
		if (first[h] >= 0) {
			send(t, h, first[h], end_of_arcs(t, first[h]), stage, lp_own(t->lp, h, stage));
		}
	}
}

static struct flow_path *list_paths(struct trace *t)
{
	struct flow_path *c = sandbox_alloc(t->run, t->narrivals, sizeof *c);
	struct flow_path_hop *hop;
	size_t i, total = 0;
	int id, k;

	for (i = 0; i < t->narrivals; i++)
		total += (size_t)t->node[t->arrival[i].node].hops;
	hop = sandbox_alloc(t->run, total, sizeof *hop);
	for (i = 0; i < t->narrivals; i++) {
		id = t->arrival[i].node;
		k = t->node[id].hops;
		c[i] = (struct flow_path){ .bytes = t->arrival[i].bytes, .nhops = k, .hop = hop };
		for (; id >= 0; id = t->node[id].before)
			hop[--k] = (struct flow_path_hop){ t->node[id].arc, t->node[id].slot,
				t->node[id].period };
		c[i].source = t->n->arc[hop[0].arc].from;
		hop += c[i].nhops;
	}
	return c;
}

size_t flow_paths(struct sandbox *run, const struct lp *lp, const struct graph *n, const struct time_grid *g,
    struct flow_path **out)
{
	struct trace t = { .run = run, .lp = lp, .n = n, .g = g, .dust = DUST * n->total };
	size_t arcs = (size_t)n->narcs * (size_t)g->nperiods;
	int s;

	t.stored = sandbox_alloc(t.run, (size_t)n->nhosts, sizeof *t.stored);
	t.arriving = sandbox_alloc(t.run, (size_t)n->nhosts, sizeof *t.arriving);
	t.arc = sandbox_alloc(t.run, arcs, sizeof *t.arc);
	t.arc_period = sandbox_alloc(t.run, arcs, sizeof *t.arc_period);
	t.bytes = sandbox_alloc(t.run, arcs, sizeof *t.bytes);
	for (s = 0; s < g->nstages; s++)
		if (g->slot_s > 0)
			trace_slots(&t, s);
		else
			trace_fluid(&t, s);
	*out = list_paths(&t);
	return t.narrivals;
}
