/* Random transfers by the thousand; see world.h for what must hold in each. */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLDS 2000
#define LIMIT_NS (600 * NS_PER_S)

/* XFER_SEED=n runs that world alone, XFER_TRACE=1 shows its sessions' states. */
static uint64_t only_seed(void)
{
	const char *only = getenv("XFER_SEED");

	return only != NULL ? strtoull(only, NULL, 10) : 0;
}

/* One in three worlds has it, more or less often. */
static unsigned maybe(struct rng *r, uint32_t least, uint32_t more)
{
	return rng_one_in(r, 3) ? least + rng_below(r, more) : 0;
}

static void plan_random(struct plan *p, uint64_t seed)
{
	struct rng r = { seed * 77 + 1 };

	plan_init(p, seed);
	p->receiver_starts = seed & 1;
	p->verify = !rng_one_in(&r, 5);
	p->lines = 1 + rng_below(&r, 6);
	p->jobs = 1 + rng_below(&r, 3);
	p->max_entries = rng_one_in(&r, 3) ? 30 + rng_below(&r, 30) : WIRE_SLOTS;
	p->control_latency_ns = (1 + rng_below(&r, 60)) * NS_PER_MS;
	p->control_split = rng_one_in(&r, 2) ? 1 + rng_below(&r, 100) : 0;
	p->store_ns = (1 + rng_below(&r, 20)) * NS_PER_MS;
	p->slow_store_ns = rng_one_in(&r, 6) ? 3 * p->timeout_ns : 0;
	p->list_batch = 1 + rng_below(&r, 40);
	p->later = rng_below(&r, 4);
	p->refuse = maybe(&r, 5, 30);
	p->have_it = maybe(&r, 2, 10);
	p->commit_fails = maybe(&r, 5, 30);
	p->changes = maybe(&r, 5, 20);
	p->spoils = maybe(&r, 5, 20);
	p->read_fails = maybe(&r, 3, 20);
	p->write_fails = maybe(&r, 5, 20);
	p->bad_blocks = maybe(&r, 3, 60);
	p->late_news = maybe(&r, 1, 5);
	p->deaths = maybe(&r, 1, 20);
	p->stalls = maybe(&r, 1, 5);
	p->fault_ns = (1 + rng_below(&r, 5)) * NS_PER_S;
}

static void lines_random(struct world *w)
{
	unsigned i;

	for (i = 0; i < w->plan.lines; i++) {
		w->line[i].bytes_per_s = 500000u << rng_below(&w->rng, 10);
		w->line[i].latency_ns = rng_below(&w->rng, 50) * NS_PER_MS;
	}
}

static void any_world_ends_well(void **state)
{
	uint64_t only = only_seed(), i;
	struct world w;
	struct plan p;

	(void)state;
	for (i = only > 0 ? only : 1; i <= (only > 0 ? only : WORLDS); i++) {
		plan_random(&p, i);
		world_init(&w, &p);
		lines_random(&w);
		world_grow(&w, rng_below(&w.rng, 60));
		world_run(&w, LIMIT_NS);
		world_agreed(&w);
		world_fini(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_world_ends_well),
	};
	return cmocka_run_group_tests_name("xfer/worlds", tests, NULL, NULL);
}
