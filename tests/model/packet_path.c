#include "model/packet_path.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lab/link.h"
#include "model/advice.h"
#include "model/probe.h"

#define SEGMENT_BYTES 1448u
#define PACKET_BYTES 1500u
#define ACK_BYTES 40u
#define FLOWS_MAX 64
#define OURS_MAX 15u
#define LOG 65536u /* arrivals that a flow remembers: more than a window */
#define STEP_NS 100000000u
#define TICK_NS 10000000u
#define BETA EVIDENCE_CUBIC_BETA
#define SEC 1e-9

const char *const packet_limit_name[PACKET_LIMITS] = {
	[PACKET_LINK] = "link", [PACKET_OTHERS] = "others", [PACKET_ON_OFF] = "on/off", [PACKET_POLICER] = "policer",
	[PACKET_RETURN] = "return path", [PACKET_SHALLOW] = "shallow queue", [PACKET_RANDOM_LOSS] = "random loss",
};

/* ---- Drawing ---- */

static double between(struct rng *r, double from, double until)
{
	return from * pow(until / from, rng_unit(r));
}

struct packet_path packet_path_of(enum packet_limit limit, uint64_t seed)
{
	struct packet_path p = { .limit = limit };
	double bdp;
	struct rng r;

	rng_init(&r, seed * 2654435761u + limit);
	p.rate_bps = between(&r, 5e6, 50e6);
	p.rtt_s = between(&r, 0.01, 0.15);
	p.back_bps = 10 * p.rate_bps;
	p.back_queue = 1000;
	bdp = p.rate_bps * p.rtt_s / (8 * PACKET_BYTES);
	p.queue = (unsigned)fmax(between(&r, 0.5, 2) * bdp, 40);
	if (rng_unit(&r) < 0.3) /* beside another limit */
		p.others = (unsigned)between(&r, 1, 9);
	switch (limit) {
	case PACKET_ON_OFF:
		p.on_s = between(&r, 3, 15);
		p.off_s = between(&r, 3, 15);
		/* fall through */
	case PACKET_OTHERS:
		p.others = (unsigned)between(&r, 1, 13);
		if (rng_unit(&r) < 0.2)
			p.queue = (unsigned)between(&r, 8, 40);
		break;
	case PACKET_POLICER: /* behind it, the link is faster */
		p.police_bps = p.rate_bps;
		p.rate_bps *= between(&r, 2, 10);
		p.police_bytes = between(&r, 32e3, 500e3);
		break;
	case PACKET_RETURN: /* data of others goes where our acknowledgments go */
		p.back_bps = p.rate_bps * between(&r, 0.05, 0.3);
		p.back_queue = (unsigned)between(&r, 50, 200);
		p.back_flows = (unsigned)between(&r, 1, 5);
		break;
	case PACKET_SHALLOW:
		p.queue = (unsigned)fmin(between(&r, 8, 25), fmax(bdp / 4, 4));
		break;
	case PACKET_RANDOM_LOSS:
		p.loss_ratio = between(&r, 5e-4, 1e-2);
		break;
	case PACKET_LINK:
		p.others = 0;
		break;
	case PACKET_LIMITS:
		break;
	}
	return p;
}

struct packet_path packet_path_draw(uint64_t seed)
{
	return packet_path_of((enum packet_limit)(seed % PACKET_LIMITS), seed);
}

/* ---- Flows ---- */

struct unit {
	struct packet p; /* first */
	unsigned flow;
	bool ack;
	uint64_t index, sent_ns; /* of a segment, or of the arrival that is acknowledged */
};

struct flow {
	bool ours, back, active, recovers;
	uint64_t next, highest; /* transmissions are numbered; below `highest` each has arrived or is lost */
	uint64_t *arrived;      /* by arrival, the transmission */
	uint64_t n_arrived, n_known;
	uint64_t recovery, delivered, sent, lost;
	double window, threshold, most, epoch_s; /* segments; epoch_s: since the last reduction, < 0: none */
	double rtt_s, base_s, min_rtt_s, dev_s;
	uint64_t round_end;     /* of HyStart */
	double round_min_s;
	unsigned round_n;
	uint64_t heard_ns;
	uint64_t toggle_ns;
};

struct world {
	const struct packet_path *path;
	struct link forth, back;
	struct flow flow[FLOWS_MAX];
	unsigned n_flows;
	struct unit *unused;
	struct rng rng;
	uint64_t now_ns;
};

static void world_free(struct world *w)
{
	struct packet *lists[2] = { link_cut(&w->forth), link_cut(&w->back) };
	unsigned i;

	for (i = 0; i < 2; i++)
		while (lists[i] != NULL) {
			struct packet *p = lists[i];

			lists[i] = p->next;
			free(p);
		}
	while (w->unused != NULL) {
		struct packet *p = &w->unused->p;

		w->unused = (struct unit *)p->next;
		free(p);
	}
	for (i = 0; i < w->n_flows; i++)
		free(w->flow[i].arrived);
	free(w);
}

static struct unit *take(struct world *w)
{
	struct unit *u = w->unused;

	if (u == NULL)
		return calloc(1, sizeof *u);
	w->unused = (struct unit *)u->p.next;
	return u;
}

static void give(struct world *w, struct packet *p)
{
	p->next = (struct packet *)w->unused;
	w->unused = (struct unit *)p;
}

static struct link *link_of(struct world *w, const struct flow *f, bool ack)
{
	return f->back != ack ? &w->back : &w->forth;
}

static void put(struct world *w, unsigned i, bool ack, uint64_t index, uint64_t sent_ns)
{
	struct unit *u = take(w);

	u->p = (struct packet){ .bytes = ack ? ACK_BYTES : PACKET_BYTES };
	u->flow = i;
	u->ack = ack;
	u->index = index;
	u->sent_ns = sent_ns;
	if (!link_offer(link_of(w, &w->flow[i], ack), &u->p, w->now_ns))
		give(w, &u->p);
}

static void fill_window(struct world *w, unsigned i)
{
	struct flow *f = &w->flow[i];

	while (f->active && (double)(f->next - f->highest) < fmax(floor(f->window), 1)) {
		put(w, i, false, f->next, w->now_ns);
		f->next++;
		f->sent++;
	}
}

static void begin(struct world *w, unsigned i)
{
	struct flow *f = &w->flow[i];

	f->active = true;
	f->window = 10;
	f->threshold = INFINITY;
	f->epoch_s = -1;
	f->most = 0;
	f->round_end = f->next;
	f->round_min_s = INFINITY;
	f->heard_ns = w->now_ns;
	f->recovery = f->next;
	f->highest = f->next;
	fill_window(w, i);
}

/* ---- Congestion control (RFC 9438, RFC 9406) ---- */

static void grow(struct flow *f, double acked, double rtt_s, double step_s)
{
	double k, target, reno;

	if (f->window < f->threshold) {
		f->window += acked;
		return;
	}
	if (f->epoch_s < 0) { /* left slow start by its delay */
		f->epoch_s = 0;
		f->most = f->window;
	}
	f->epoch_s += step_s;
	k = cbrt(f->most * (1 - BETA) / EVIDENCE_CUBIC_C);
	target = f->most + EVIDENCE_CUBIC_C * pow(f->epoch_s + rtt_s - k, 3);
	reno = f->most * BETA + 3 * (1 - BETA) / (1 + BETA) * f->epoch_s / rtt_s;
	target = fmin(fmax(target, reno), 1.5 * f->window);
	if (target > f->window)
		f->window += (target - f->window) / f->window * acked;
}

static void reduce(struct flow *f)
{
	f->most = f->window < f->most ? f->window * (1 + BETA) / 2 : f->window;
	f->window = fmax(f->window * BETA, 2);
	f->threshold = f->window;
	f->epoch_s = 0;
	f->recovery = f->next;
}

/* Slow start ends as the RTT grows (HyStart). */
static void watch_delay(struct flow *f, double rtt_s)
{
	if (f->highest >= f->round_end) {
		f->round_end = f->next;
		f->round_min_s = INFINITY;
		f->round_n = 0;
	}
	f->round_min_s = fmin(f->round_min_s, rtt_s);
	if (++f->round_n == 8 && f->window >= 16 &&
	    f->round_min_s > f->min_rtt_s + fmin(fmax(f->min_rtt_s / 8, 0.004), 0.016))
		f->threshold = f->window;
}

static void take_ack(struct world *w, unsigned i, const struct unit *u)
{
	struct flow *f = &w->flow[i];
	double rtt_s = (double)(w->now_ns - u->sent_ns) * SEC, acked = 0, lost = 0;

	if (u->index < f->n_known)
		return; /* an older one */
	for (; f->n_known <= u->index; f->n_known++) {
		uint64_t tx = f->arrived[f->n_known % LOG];

		if (tx < f->highest)
			continue; /* written off by a time-out */
		lost += (double)(tx - f->highest);
		f->highest = tx + 1;
		acked++;
	}
	f->delivered += (uint64_t)acked;
	f->lost += (uint64_t)lost;
	f->dev_s = f->rtt_s > 0 ? 0.75 * f->dev_s + 0.25 * fabs(rtt_s - f->rtt_s) : rtt_s / 2;
	f->rtt_s = f->rtt_s > 0 ? 0.875 * f->rtt_s + 0.125 * rtt_s : rtt_s;
	f->min_rtt_s = f->min_rtt_s > 0 ? fmin(f->min_rtt_s, rtt_s) : rtt_s;
	if (lost > 0 && f->highest > f->recovery)
		reduce(f);
	else if (lost == 0 && f->highest > f->recovery) {
		if (f->window < f->threshold)
			watch_delay(f, rtt_s);
		grow(f, acked, f->rtt_s, (double)(w->now_ns - f->heard_ns) * SEC);
	}
	f->heard_ns = w->now_ns;
	fill_window(w, i);
}

static void time_out(struct world *w, unsigned i)
{
	struct flow *f = &w->flow[i];

	if (!f->active || f->next == f->highest ||
	    (double)(w->now_ns - f->heard_ns) * SEC < fmax(f->rtt_s + 4 * f->dev_s, 0.2 + f->rtt_s))
		return;
	f->lost += f->next - f->highest;
	reduce(f);
	f->highest = f->next;
	f->window = 1;
	f->heard_ns = w->now_ns;
	f->dev_s = 2 * f->dev_s + f->rtt_s; /* back off */
	fill_window(w, i);
}

/* ---- Time ---- */

static void arrive(struct world *w, struct packet *p)
{
	struct unit *u = (struct unit *)p;
	struct flow *f = &w->flow[u->flow];

	if (u->ack) {
		take_ack(w, u->flow, u);
	} else {
		f->arrived[f->n_arrived % LOG] = u->index;
		put(w, u->flow, true, f->n_arrived++, u->sent_ns);
	}
	give(w, p);
}

static void step_link(struct world *w, struct link *l)
{
	struct packet *p;
	enum link_event ev = link_step(l, w->now_ns, &p);

	if (ev == LINK_ARRIVED)
		arrive(w, p);
	else if (ev == LINK_LOST)
		give(w, p);
}

static double exponential(struct world *w, double mean) { return -mean * log(1 - rng_unit(&w->rng)); }

/* Competing flows come and go. */
static void toggle(struct world *w, unsigned i)
{
	struct flow *f = &w->flow[i];
	const struct packet_path *p = w->path;

	if (f->ours || f->back || !(p->on_s > 0) || w->now_ns < f->toggle_ns)
		return;
	if (f->active)
		f->active = false;
	else
		begin(w, i);
	f->toggle_ns = w->now_ns + (uint64_t)(exponential(w, f->active ? p->on_s : p->off_s) / SEC);
}

static void run_until(struct world *w, uint64_t until_ns)
{
	uint64_t tick_ns = w->now_ns / TICK_NS * TICK_NS + TICK_NS;
	unsigned i;

	while (w->now_ns < until_ns) {
		uint64_t forth = link_next_ns(&w->forth), back = link_next_ns(&w->back);

		if (tick_ns <= forth && tick_ns <= back) {
			w->now_ns = tick_ns;
			tick_ns += TICK_NS;
			for (i = 0; i < w->n_flows; i++) {
				toggle(w, i);
				time_out(w, i);
			}
			continue;
		}
		w->now_ns = forth < back ? forth : back;
		step_link(w, forth <= back ? &w->forth : &w->back);
	}
}

static unsigned add_flow(struct world *w, bool ours, bool back)
{
	struct flow *f = &w->flow[w->n_flows];

	*f = (struct flow){ .ours = ours, .back = back };
	f->arrived = calloc(LOG, sizeof *f->arrived);
	return w->n_flows++;
}

static struct world *world_new(const struct packet_path *p, uint64_t seed)
{
	uint64_t delay_ns = (uint64_t)(p->rtt_s / 2 / SEC);
	struct link_conf forth = { .rate_bps = (uint64_t)p->rate_bps, .delay_ns = delay_ns,
		.loss_ratio = p->loss_ratio, .queue_packets = p->queue, .police_bps = (uint64_t)p->police_bps,
		.police_bytes = (uint64_t)p->police_bytes };
	struct link_conf back = { .rate_bps = (uint64_t)p->back_bps, .delay_ns = delay_ns,
		.queue_packets = p->back_queue };
	struct world *w = calloc(1, sizeof *w);
	unsigned i;

	w->path = p;
	rng_init(&w->rng, seed);
	link_init(&w->forth, &forth, seed + 1);
	link_init(&w->back, &back, seed + 2);
	for (i = 0; i < OURS_MAX; i++)
		add_flow(w, true, false);
	for (i = 0; i < p->others + p->back_flows; i++) {
		unsigned n = add_flow(w, false, i >= p->others);

		begin(w, n);
		w->flow[n].toggle_ns = (uint64_t)(exponential(w, p->on_s) / SEC);
		run_until(w, w->now_ns + (uint64_t)(0.2 * rng_unit(&w->rng) / SEC));
	}
	run_until(w, w->now_ns + (uint64_t)(15 / SEC)); /* they settle */
	return w;
}

/* ---- Observation ---- */

struct seen {
	struct loss_events events[OURS_MAX];
	uint64_t lost[OURS_MAX], delivered, sent;
};

/* One interval of n streams. */
static struct evidence_sample observe(struct world *w, struct seen *s, unsigned n)
{
	struct evidence_sample x = { .interval_s = STEP_NS * SEC };
	uint64_t delivered = 0, sent = 0;
	unsigned i, known = 0;

	run_until(w, w->now_ns + STEP_NS);
	for (i = 0; i < n; i++) {
		const struct flow *f = &w->flow[i];
		double lost = (double)(f->lost - s->lost[i]);

		delivered += f->delivered;
		sent += f->sent;
		x.lost_segments += lost;
		x.loss_events += loss_events_of(&s->events[i], lost, f->rtt_s, x.interval_s);
		s->lost[i] = f->lost;
		if (f->rtt_s > 0) {
			x.rtt_s += f->rtt_s;
			known++;
			x.min_rtt_s = x.min_rtt_s > 0 ? fmin(x.min_rtt_s, f->min_rtt_s) : f->min_rtt_s;
		}
	}
	x.rtt_s = known > 0 ? x.rtt_s / known : 0;
	x.delivered_bytes = (double)(delivered - s->delivered) * SEGMENT_BYTES;
	x.sent_segments = (double)(sent - s->sent);
	x.busy_s = n * x.interval_s;
	s->delivered = delivered;
	s->sent = sent;
	return x;
}

static double queue_s(const struct link *l) { return (double)(l->waiting_bytes * 8) / (double)l->conf.rate_bps; }

/* The RTT of a connection's first packets: the queues of others. */
static double handshake_s(struct world *w)
{
	return w->path->rtt_s + queue_s(&w->forth) + queue_s(&w->back);
}

static void share_of(const struct world *w, unsigned older, unsigned n, double out[2])
{
	unsigned i;

	out[0] = out[1] = 0;
	for (i = 0; i < n; i++)
		out[i >= older] += (double)w->flow[i].delivered;
}

static void observe_level(struct world *w, struct evidence *e, unsigned older, unsigned n)
{
	static struct evidence_watch watch;
	static struct steady settle;
	double at_s = 0, half[2] = { 0 }, end[2], most_s = probe_max_s(n), ratio = 1;
	struct steady_result r;
	struct seen seen = { .delivered = 0 };
	unsigned i;

	for (i = 0; i < older; i++) {
		seen.delivered += w->flow[i].delivered;
		seen.sent += w->flow[i].sent;
		seen.lost[i] = w->flow[i].lost;
	}
	for (i = older; i < n; i++)
		begin(w, i);
	settle.n = watch.n = 0;
	do {
		struct evidence_sample x = observe(w, &seen, n);

		at_s += x.interval_s;
		steady_add(&settle, 8 * x.delivered_bytes / x.interval_s);
		evidence_watch_add(&watch, e, &x);
		if (at_s >= most_s / 2 && half[1] == 0)
			share_of(w, older, n, half);
	} while (!probe_is_done(&settle, at_s, evidence_watch_cycle_s(&watch, e, n), most_s));
	share_of(w, older, n, end);
	if (half[1] > 0 && end[1] > half[1] && older > 0)
		ratio = (end[0] - half[0]) / older / ((end[1] - half[1]) / (n - older));
	if (steady_result(&r, &settle) == 0)
		evidence_add_level(e, &watch, n, &r, older > 0 ? ratio : 0);
}

void packet_path_evidence(const struct packet_path *p, uint64_t seed, struct evidence *out)
{
	static const unsigned levels[] = ADVICE_PROBES;
	struct world *w = world_new(p, seed);
	size_t i;

	*out = (struct evidence){ .idle_rtt_s = handshake_s(w) };
	for (i = 0; i < sizeof levels / sizeof *levels; i++)
		observe_level(w, out, i > 0 ? levels[i - 1] : 0, levels[i]);
	world_free(w);
}

static void delivered(const struct world *w, double out[2])
{
	unsigned i;

	out[0] = out[1] = 0;
	for (i = 0; i < w->n_flows; i++)
		if (!w->flow[i].back)
			out[!w->flow[i].ours] += (double)w->flow[i].delivered;
}

double packet_path_truth(const struct packet_path *p, uint64_t seed, unsigned n, double seconds, double *others_bps)
{
	const double bits = SEGMENT_BYTES * 8 / seconds;
	struct world *w = world_new(p, seed);
	double before[2], after[2];
	unsigned i;

	for (i = 0; i < n && i < OURS_MAX; i++)
		begin(w, i);
	run_until(w, w->now_ns + (uint64_t)(10 / SEC));
	delivered(w, before);
	run_until(w, w->now_ns + (uint64_t)(seconds / SEC));
	delivered(w, after);
	world_free(w);
	if (others_bps != NULL)
		*others_bps = (after[1] - before[1]) * bits;
	return (after[0] - before[0]) * bits;
}
