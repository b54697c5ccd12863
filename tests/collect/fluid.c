#include "collect/fluid.h"

#include <math.h>
#include <string.h>

#define SEGMENT_BITS (8 * 1448.0)
#define FIRST_SEGMENTS 10.0
#define BUFFER_BITS (8 * 65536.0)     /* of a stream, beside two windows */
#define QUANTUM_BITS (8 * 65536.0)
#define QUANTUM_S 0.004
#define QUANTUM_MIN_BITS (8 * 4096.0)
#define BURST_S 0.05
#define RELAY_BITS (8 * 131072.0)     /* the same, more over a relay */
#define OTHER_BUFFER_BITS 1e12        /* competing flows always have data */

double fluid_point_bps(const struct world *w, size_t point, double now_s)
{
	const struct world_point *p = &w->point[point];

	return now_s >= p->later_at_s ? p->later_bps : p->bps;
}

double fluid_rtt_s(const struct fluid *f, const struct fluid_flow *flow)
{
	return flow->base_s + f->queue_bits[flow->point] / fluid_point_bps(f->w, flow->point, f->now_s);
}

struct fluid_flow *fluid_add(struct fluid *f, size_t point, int source, int relay, unsigned streams)
{
	struct fluid_flow *flow = f->flow;

	while (flow < f->flow + f->n && flow->used)
		flow++;
	f->n += flow == f->flow + f->n;
	*flow = (struct fluid_flow){ .used = true, .point = point, .source = source, .relay = relay, .streams = streams,
		.limit_bps = INFINITY, .window_bits = streams * FIRST_SEGMENTS * SEGMENT_BITS, .slow_start = true,
		.base_s = source >= 0 ? f->w->source[relay >= 0 ? relay : source].rtt_s :
		    f->w->source[0].rtt_s * (0.7 + 0.6 * rng_uniform(&f->rng)) };
	if (source < 0)
		flow->buffer_bits = OTHER_BUFFER_BITS;
	return flow;
}

void fluid_remove(struct fluid *f, struct fluid_flow *flow)
{
	if (flow->source >= 0)
		f->left_bits[flow->source] += flow->buffer_bits;
	flow->used = false;
}

void fluid_begin(struct fluid *f, const struct world *w)
{
	size_t i;

	memset(f, 0, sizeof *f);
	f->w = w;
	f->rng = (struct rng){ w->seed };
	for (i = 0; i < w->sources; i++)
		f->left_bits[i] = 8 * w->source[i].bytes;
}

/* ---- A step ---- */

static void change_others(struct fluid *f, size_t point)
{
	const struct world_point *p = &f->w->point[point];
	bool there = f->now_s >= p->others_from_s && f->now_s < p->others_until_s;
	unsigned n = 0, want = there ? p->others : 0;
	struct fluid_flow *flow;

	for (flow = f->flow; flow < f->flow + f->n; flow++)
		if (flow->used && flow->source < 0 && flow->point == point && ++n > want)
			flow->used = false;
	for (; n < want; n++)
		fluid_add(f, point, -1, -1, 1);
}

/* Data goes into the buffer by quanta, as core/pacer.h permits, as far as there is room. */
static void fill_buffer(struct fluid *f, struct fluid_flow *flow)
{
	double most = 2 * flow->window_bits + flow->streams * (BUFFER_BITS + (flow->relay >= 0 ? RELAY_BITS : 0));
	double quantum = fmin(QUANTUM_BITS, fmax(QUANTUM_MIN_BITS, flow->limit_bps * QUANTUM_S)), more;

	flow->due_bits = fmin(flow->due_bits + flow->limit_bps * FLUID_STEP_S, flow->limit_bps * BURST_S +
	    flow->streams * quantum);
	more = fmax(0, fmin(fmin(flow->due_bits, most - flow->buffer_bits), f->left_bits[flow->source]));
	if (more < fmin(quantum, f->left_bits[flow->source]))
		return;
	flow->due_bits -= more;
	flow->buffer_bits += more;
	f->left_bits[flow->source] -= more;
}

/* Hosts send own data and data of other sources at the rate of their access. */
static void limit_access(struct fluid *f)
{
	double out[WORLD_SOURCES] = { 0 }, worst;
	struct fluid_flow *flow;

	for (flow = f->flow; flow < f->flow + f->n; flow++)
		if (flow->used && flow->source >= 0) {
			out[flow->source] += flow->bps;
			if (flow->relay >= 0)
				out[flow->relay] += flow->bps;
		}
	for (flow = f->flow; flow < f->flow + f->n; flow++)
		if (flow->used && flow->source >= 0) {
			worst = fmax(out[flow->source], flow->relay >= 0 ? out[flow->relay] : 0);
			if (worst > f->w->access_bps)
				flow->bps *= f->w->access_bps / worst;
		}
}

/* Streams with losses halve their windows, once per RTT. */
static void lose(struct fluid *f, struct fluid_flow *flow, double lost)
{
	double hit = fmin(flow->streams, floor(lost + rng_uniform(&f->rng)));

	flow->lost += lost;
	if (!(hit > 0) || f->now_s < flow->unhurt_until_s)
		return;
	flow->window_bits = fmax(flow->streams * SEGMENT_BITS, flow->window_bits * (1 - 0.5 * hit / flow->streams));
	flow->unhurt_until_s = f->now_s + fluid_rtt_s(f, flow);
	flow->slow_start = false;
}

static void grow(const struct fluid *f, struct fluid_flow *flow)
{
	double rounds = FLUID_STEP_S / fluid_rtt_s(f, flow);

	if (flow->bps * fluid_rtt_s(f, flow) < 0.9 * flow->window_bits) /* not limited by its window */
		return;
	flow->window_bits += flow->slow_start ? flow->window_bits * rounds : flow->streams * SEGMENT_BITS * rounds;
}

/* All flows of a point: arrivals, departures and losses. */
static void pass_point(struct fluid *f, size_t point)
{
	double bps = fluid_point_bps(f->w, point, f->now_s), most = f->w->point[point].queue_s * f->w->point[point].bps;
	double arrives = 0, leaves, lost, part, passes;
	struct fluid_flow *flow;
	unsigned others = 0;

	for (flow = f->flow; flow < f->flow + f->n; flow++)
		arrives += flow->used && flow->point == point ? flow->bps : 0;
	leaves = f->queue_bits[point] > 0 ? bps : fmin(bps, arrives);
	f->queue_bits[point] = fmax(0, f->queue_bits[point] + (arrives - leaves) * FLUID_STEP_S);
	lost = fmax(0, f->queue_bits[point] - most);
	f->queue_bits[point] -= lost;
	for (flow = f->flow; flow < f->flow + f->n && arrives > 0; flow++) {
		if (!flow->used || flow->point != point)
			continue;
		part = flow->bps / arrives;
		flow->segments += flow->bps * FLUID_STEP_S / SEGMENT_BITS;
		passes = flow->bps * FLUID_STEP_S - part * lost;
		flow->delivered_bits += passes;
		if (flow->source >= 0) {
			flow->buffer_bits = fmax(0, flow->buffer_bits - passes);
		} else {
			f->others_bits += passes;
			others++;
		}
		if (lost > 0)
			lose(f, flow, part * lost / SEGMENT_BITS);
		else
			grow(f, flow);
	}
	f->others_s += others * FLUID_STEP_S;
}

void fluid_step(struct fluid *f)
{
	struct fluid_flow *flow;
	size_t i;

	for (i = 0; i < f->w->points; i++)
		change_others(f, i);
	for (flow = f->flow; flow < f->flow + f->n; flow++) {
		if (!flow->used)
			continue;
		if (flow->source >= 0)
			fill_buffer(f, flow);
		flow->bps = fmin(flow->window_bits / fluid_rtt_s(f, flow), flow->buffer_bits / FLUID_STEP_S);
	}
	limit_access(f);
	for (i = 0; i < f->w->points; i++)
		pass_point(f, i);
	f->now_s += FLUID_STEP_S;
}
