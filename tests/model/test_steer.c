/* The controller on paths that are formulas: shares of a link, with noise, slow start, streams that drain,
 * and changes. What it loses against the best fixed number of streams that keeps the budget is printed. */
#include "model/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/rng.h"
#include "model/steer.h"

#define RUN_S 600.0
#define MBIT 1e6

/* What n streams bring once all has settled, from a moment on. */
struct path {
	double from_s;
	double capacity_bps;
	double others;        /* flows that share it equally */
	double window_bps;    /* of one stream at most; 0: no such limit */
	double falls_ratio;   /* lost with each stream beyond the first */
	double enough_bps;    /* the application has no more; 0: it has */
};

struct world {
	const char *name;
	struct path path[4];
	double budget_ratio;
	double lost_most;     /* against the best fixed number, and time above the budget, at the most */
	double over_most;
};

static double brings(const struct path *p, double n)
{
	double rate = p->capacity_bps * n / (n + p->others) * fmax(0.1, 1 - p->falls_ratio * (n - 1));

	if (p->window_bps > 0)
		rate = fmin(rate, n * p->window_bps);
	return p->enough_bps > 0 ? fmin(rate, p->enough_bps) : rate;
}

/* What it takes from each other flow, against one stream; nothing where there is none, or room. */
static double takes(const struct path *p, double n)
{
	double fair = p->capacity_bps / (n + p->others);

	if (p->others == 0 || (p->window_bps > 0 && fair > p->window_bps) ||
	    (p->enough_bps > 0 && p->capacity_bps * n / (n + p->others) > p->enough_bps))
		return 0;
	return 1 - (1 + p->others) / (n + p->others);
}

static const struct path *at(const struct world *w, double t)
{
	size_t i = 0;

	while (i + 1 < 4 && w->path[i + 1].capacity_bps > 0 && t >= w->path[i + 1].from_s)
		i++;
	return &w->path[i];
}

/* Bits of the best fixed number of streams; 0 if it breaks the budget. */
static double fixed_bits(const struct world *w, unsigned n)
{
	double bits = 0, t;

	for (t = 0; t < RUN_S; t += STEER_SAMPLE_S) {
		if (takes(at(w, t), n) > w->budget_ratio + 1e-9)
			return 0;
		bits += brings(at(w, t), n) * STEER_SAMPLE_S;
	}
	return bits;
}

struct line {
	struct rng rng;
	double rate_bps, noise, unsteady_s;
};

/* One interval: slow start and draining take their time, and few streams scatter more than many. */
static struct steer_sample step(struct line *l, const struct path *p, unsigned n)
{
	bool shared = takes(p, n + 1) > 0;
	double sd = !shared ? 0.03 : n >= 8 ? 0.1 : 0.1 * pow(8.0 / n, 0.6), keep = exp(-STEER_SAMPLE_S / 2), share;
	double kick = (rng_uniform(&l->rng) - 0.5) * sqrt(12);

	l->noise = keep * l->noise + sqrt(1 - keep * keep) * kick;
	l->rate_bps += (brings(p, n) - l->rate_bps) * (1 - exp(-STEER_SAMPLE_S / 0.5));
	l->unsteady_s = fmax(0, l->unsteady_s - STEER_SAMPLE_S);
	share = l->rate_bps * exp(sd * l->noise - sd * sd / 2);
	return (struct steer_sample){ STEER_SAMPLE_S, p->enough_bps > 0 ? fmin(share, p->enough_bps) : share,
		l->unsteady_s == 0, p->enough_bps > 0 && p->enough_bps < brings(&(struct path){ 0,
		p->capacity_bps, p->others, p->window_bps, p->falls_ratio, 0 }, n) };
}

struct outcome { double lost, over; unsigned changes, streams, best; };

static struct outcome run(const struct world *w, uint64_t seed)
{
	struct line l = { .rng = { seed } };
	struct outcome o = { .best = 1 };
	struct steer_opts opts;
	struct steer_sample x;
	struct steer s;
	double t, bits = 0;
	unsigned n;

	steer_opts_init(&opts);
	opts.budget_ratio = w->budget_ratio;
	steer_init(&s, &opts);
	for (n = 1; n <= opts.max_streams; n++)
		if (fixed_bits(w, n) > fixed_bits(w, o.best) * (1 + 1e-9))
			o.best = n;
	for (t = 0; t < RUN_S; t += STEER_SAMPLE_S) {
		n = s.streams;
		assert_in_range(n, 1, opts.max_streams);
		x = step(&l, at(w, t), n);
		bits += x.rate_bps * STEER_SAMPLE_S;
		if (takes(at(w, t), n) > w->budget_ratio + 1e-9)
			o.over += STEER_SAMPLE_S / RUN_S;
		if (steer_add(&s, &x)) {
			o.changes++;
			l.unsteady_s = s.streams > n ? 0.3 : 0.6;
			if (getenv("STEER_VERBOSE"))
				print_message("%s %.1f: %u -> %u: %s\n", w->name, t, n, s.streams, s.reason);
		}
	}
	o.lost = fixed_bits(w, o.best) / bits - 1;
	o.streams = s.streams;
	return o;
}

static const struct world worlds[] = {
	{ "5 others, 10 %", { { 0, 100 * MBIT, 5, 0, 0, 0 } }, 0.10, 0.05, 0.1 },
	{ "5 others, 30 %", { { 0, 100 * MBIT, 5, 0, 0, 0 } }, 0.30, 0.05, 0.1 },
	{ "20 others, 30 %", { { 0, 1000 * MBIT, 20, 0, 0, 0 } }, 0.30, 0.05, 0.1 },
	{ "60 others, 20 %", { { 0, 1000 * MBIT, 60, 0, 0, 0 } }, 0.20, 0.05, 0.1 },
	{ "nobody else", { { 0, 100 * MBIT, 0, 0, 0, 0 } }, 0.10, 0.05, 0.1 },
	{ "windows", { { 0, 100 * MBIT, 0, 8 * MBIT, 0, 0 } }, 0.10, 0.05, 0.1 },
	{ "falling", { { 0, 100 * MBIT, 0, 0, 0.03, 0 } }, 0.10, 0.05, 0.1 },
	{ "others leave", { { 0, 100 * MBIT, 20, 0, 0, 0 }, { 200, 100 * MBIT, 2, 0, 0, 0 } }, 0.30, 0.05, 0.2 },
	{ "others come", { { 0, 100 * MBIT, 2, 0, 0, 0 }, { 200, 100 * MBIT, 20, 0, 0, 0 } }, 0.30, 0.05, 0.2 },
	{ "capacity halves", { { 0, 100 * MBIT, 10, 0, 0, 0 }, { 300, 50 * MBIT, 10, 0, 0, 0 } }, 0.20, 0.05, 0.1 },
	{ "slow disk", { { 0, 1000 * MBIT, 5, 0, 0, 100 * MBIT } }, 0.10, 0.05, 0.1 },
	{ "disk in between", { { 0, 100 * MBIT, 20, 0, 0, 0 }, { 200, 100 * MBIT, 20, 0, 0, 5 * MBIT },
	    { 300, 100 * MBIT, 20, 0, 0, 0 } }, 0.20, 0.05, 0.1 },
};

#define SEEDS 20

static void time_lost(void **state)
{
	size_t i;
	unsigned k;

	(void)state;
	print_message("#> %-18s %8s %8s %8s %8s %5s %5s\n", "600 s on a path", "lost %", "most %", "over %", "changes",
	    "best", "ends");
	for (i = 0; i < sizeof worlds / sizeof *worlds; i++) {
		struct outcome sum = { 0 }, o = { 0 };
		double most = -1;

		for (k = 0; k < SEEDS; k++) {
			o = run(&worlds[i], k + 1);
			sum.lost += o.lost / SEEDS;
			sum.over += o.over / SEEDS;
			sum.changes += o.changes;
			most = fmax(most, o.lost);
		}
		print_message("#> %-18s %8.1f %8.1f %8.1f %8.1f %5u %5u\n", worlds[i].name, sum.lost * 100, most * 100,
		    sum.over * 100, (double)sum.changes / SEEDS, o.best, o.streams);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_lost),
	};
	return cmocka_run_group_tests_name("model/steer", tests, NULL, NULL);
}
