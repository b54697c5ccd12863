/* Random transfers by the thousand; see world.h for what must hold in each. */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fewer where each is slower; there is but one thread. */
#if defined(__SANITIZE_THREAD__)
#define WORLDS 200
#elif defined(__SANITIZE_ADDRESS__)
#define WORLDS 800
#else
#define WORLDS 2000
#endif
#define LIMIT_NS (600 * NS_PER_S)

/* XFER_SEED=n runs that world alone, XFER_SEED=n-m those from n to m, XFER_TRACE=1 shows their sessions' states. */
struct seeds {
	uint64_t first, last;
	bool chosen;
};

static struct seeds seeds(void)
{
	const char *only = getenv("XFER_SEED");
	struct seeds s = { 1, WORLDS, only != NULL };
	char *end;

	if (only != NULL) {
		s.first = s.last = strtoull(only, &end, 10);
		if (*end == '-')
			s.last = strtoull(end + 1, NULL, 10);
	}
	return s;
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
	p->sparse = maybe(&r, 1, 3);
	p->links = maybe(&r, 1, 2);
	p->exists = maybe(&r, 2, 8);
	p->unreadable = maybe(&r, 2, 3);
	p->rots = maybe(&r, 1, 3);
	p->dry_run = rng_one_in(&r, 20);
	p->early = rng_one_in(&r, 2);
	p->deaths = maybe(&r, 1, 20);
	p->stalls = maybe(&r, 1, 5);
	p->fault_ns = (1 + rng_below(&r, 5)) * NS_PER_S;
	p->unsized = maybe(&r, 1, 4);
	p->movers = maybe(&r, 1, 4);
	p->region_bytes = (1 + rng_below(&r, 50)) * 100000;
	p->olds = maybe(&r, 1, 2);
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
	struct seeds s = seeds();
	uint64_t i;
	struct world w;
	struct plan p;

	(void)state;
	for (i = s.first; i <= s.last; i++) {
		plan_random(&p, i);
		world_init(&w, &p);
		lines_random(&w);
		world_grow(&w, rng_below(&w.rng, 60));
		world_run(&w, LIMIT_NS);
		world_agreed(&w);
		world_fini(&w);
	}
}

/* Both ends are killed again and again, what is damaged or has changed meanwhile is found: in the end every
 * file is whole, and nothing was sent again that was here and intact (world_lines.c sees to that). */
static void any_world_resumes(void **state)
{
	struct seeds s = seeds();
	uint64_t i, resumed = 0, again = 0, holes = 0, kills = 0, matched = 0, given_up = 0;
	struct world w;
	struct plan p;
	unsigned n;

	(void)state;
	for (i = s.first; i <= s.last; i++) {
		plan_random(&p, i);
		p.refuse = p.have_it = p.commit_fails = p.changes = p.spoils = p.read_fails = p.write_fails = 0;
		p.bad_blocks = p.stalls = 0;
		p.dry_run = false;
		world_init(&w, &p);
		lines_random(&w);
		world_grow(&w, rng_below(&w.rng, 40));
		for (n = rng_below(&w.rng, 5); n > 0; n--, kills++) {
			world_run_for(&w, world_random(&w.rng) % (p.fault_ns / 2));
			world_again(&w, rng_below(&w.rng, 20));
		}
		world_run(&w, LIMIT_NS);
		world_agreed(&w);
		assert_int_equal(engine_failed(w.side[0].engine), 0);
		world_whole(&w);
		resumed += w.resumed;
		again += w.asked_again;
		holes += w.holes;
		matched += w.matched;
		given_up += w.given_up;
		world_fini(&w);
	}
	/* All of it did happen. */
	if (!s.chosen)
		assert_true(kills > WORLDS && resumed > 10 * WORLDS && again > WORLDS && holes > WORLDS);
	if (!s.chosen)
		assert_true(matched > 5 * WORLDS && given_up > WORLDS);
}

/* ---- Sessions that cannot end well: both sides end, within a time, and let go of all ---- */

static void ends_badly(struct plan *p, uint64_t limit_ns)
{
	struct world w;
	struct node *big;

	p->bad_blocks = 0;
	p->dry_run = false;
	world_init(&w, p);
	lines_random(&w);
	world_grow(&w, 40);
	w.plan.sparse = w.plan.exists = w.plan.olds = 0;
	big = world_add(&w, WIRE_FILE, UINT64_C(1) << 40); /* so that it does not end before */
	big->refused = big->have_it = false;
	big->read_fails_at = big->write_fails_at = NO_BLOCK;
	world_run(&w, limit_ns);
	assert_true(w.side[0].failed && w.side[1].failed);
	world_fini(&w);
}

static void a_cut_ends_both(void **state)
{
	struct plan p;
	unsigned i;

	(void)state;
	for (i = 1; i <= WORLDS / 10; i++) {
		plan_random(&p, i);
		p.cut = true;
		p.stalls = 0;
		p.silent = i % 2 == 0;
		/* Without word of it each waits for its time-out. */
		ends_badly(&p, p.fault_ns + p.timeout_ns + 4 * p.slow_store_ns + NS_PER_S);
	}
}

static void without_streams_it_ends(void **state)
{
	struct world w;
	struct plan p;

	(void)state;
	plan_init(&p, 1);
	p.no_streams = true;
	ends_badly(&p, 2 * p.timeout_ns);

	world_init(&w, &p);
	world_add(&w, WIRE_DIR, 0);
	world_add(&w, WIRE_FILE, 0);
	world_add(&w, WIRE_SYMLINK, 0);
	world_leave(&w);
	world_run(&w, NS_PER_S);
	world_agreed(&w); /* for there are no blocks */
	world_fini(&w);
}

/* A peer whose control channel takes nothing: the one that talks notices by its outbox, or both by
 * the silence. */
static void a_deaf_side_ends_it(void **state)
{
	struct world w;
	struct plan p;
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		plan_init(&p, 3 + i);
		world_init(&w, &p);
		w.side[i].deaf = true;
		world_grow(&w, 30);
		world_run(&w, 2 * p.timeout_ns);
		assert_true(w.side[0].failed && w.side[1].failed);
		assert_int_equal(w.side[!i].why.code, PTCP_ETIMEOUT);
		world_fini(&w);
	}
}

/* ---- Streams ---- */

static void nothing_to_send(void **state)
{
	struct world w;
	struct plan p;

	(void)state;
	plan_init(&p, 1);
	world_init(&w, &p);
	world_run(&w, NS_PER_S);
	world_agreed(&w);
	world_fini(&w);
}

/* One stream is so slow that its first blocks would take minutes: others carry copies of them. */
static void the_tail_does_not_wait(void **state)
{
	struct world w;
	struct plan p;
	uint64_t start;

	(void)state;
	plan_init(&p, 7);
	p.timeout_ns = 1000 * NS_PER_S;
	world_init(&w, &p);
	w.line[2].bytes_per_s = 1000; /* a block in 262 s */
	world_add(&w, WIRE_FILE, 200u << 18);
	start = w.now_ns;
	world_run(&w, 30 * NS_PER_S);
	world_agreed(&w);
	assert_true(w.now_ns - start < 5 * NS_PER_S);
	assert_true(snd_stats(engine_snd(w.side[0].engine)).blocks_again <= 2 * p.jobs);
	world_fini(&w);
}

/* Copies are for the tail: while there is anything new to send, and while a stream is as fast as it
 * was, none are made. */
static void no_copies_without_need(void **state)
{
	struct world w;
	struct plan p;

	(void)state;
	plan_init(&p, 8);
	world_init(&w, &p);
	world_add(&w, WIRE_FILE, 400u << 18);
	world_run(&w, 60 * NS_PER_S);
	world_agreed(&w);
	assert_int_equal(snd_stats(engine_snd(w.side[0].engine)).blocks_again, 0);
	assert_int_equal(w.copies, 0);
	world_fini(&w);
}

/* All streams are slow, because of a rate limit or the receiver's disk, so copies on other streams gain little. Their
 * rates differ by up to this factor. At most one block of each stream, or half of all blocks, is sent again, and no
 * block twice. */
static void copies_are_few_where_all_are_slow(void **state)
{
	static const unsigned factors[] = { 1, 2, 4 };
	struct world w;
	struct plan p;
	unsigned i, k, blocks, most;

	(void)state;
	for (k = 0; k < 3; k++)
		for (blocks = 5; blocks <= 40; blocks += 7) {
			plan_init(&p, k * 100 + blocks);
			p.lines = WORLD_LINES;
			p.jobs = 3;
			p.timeout_ns = 1000 * NS_PER_S;
			world_init(&w, &p);
			for (i = 0; i < p.lines; i++)
				w.line[i].bytes_per_s = 40000 + rng_below(&w.rng, 40000 * factors[k]);
			world_add(&w, WIRE_FILE, (uint64_t)blocks << 18);
			world_run(&w, 200 * NS_PER_S);
			world_agreed(&w);
			most = blocks / 2 > p.lines ? blocks / 2 : p.lines;
			check_that(w.handed <= blocks + (blocks < most ? blocks : most),
			    "%u blocks were sent as %llu, factor %u", blocks, (unsigned long long)w.handed, factors[k]);
			world_fini(&w);
		}
}

/* All streams stall at once, for ever: they are noticed in time for others to take over. */
static void all_stall_and_others_go_on(void **state)
{
	struct world w;
	struct plan p;
	uint64_t start;
	unsigned lines;

	(void)state;
	for (lines = 1; lines <= 4; lines++) {
		plan_init(&p, lines);
		p.lines = lines;
		p.jobs = 3;
		p.stalls = 20;
		p.fault_ns = 600 * NS_PER_MS;
		world_init(&w, &p);
		world_add(&w, WIRE_FILE, (lines * 40u) << 18);
		start = w.now_ns;
		world_run(&w, 60 * NS_PER_S);
		world_agreed(&w);
		assert_true(w.now_ns - start > p.timeout_ns / 2); /* they did stall */
		world_fini(&w);
	}
}

/* A block may be acknowledged before the sender's own thread has said that it was read; when the
 * stream dies in between, that news never comes. */
static void acknowledged_but_never_read(void **state)
{
	struct world w;
	struct plan p;
	unsigned i;

	(void)state;
	for (i = 0; i < 100; i++) {
		plan_init(&p, i);
		p.lines = 2;
		p.jobs = 3;
		p.deaths = 12;
		p.control_latency_ns = NS_PER_MS;
		p.store_ns = 0;
		p.fault_ns = NS_PER_S;
		world_init(&w, &p);
		w.line[0].latency_ns = w.line[1].latency_ns = 0;
		w.job_news_ns = 200 * NS_PER_MS;
		world_add(&w, WIRE_FILE, 30u << 18);
		world_run(&w, 9 * NS_PER_S);
		world_agreed(&w);
		world_fini(&w);
	}
}

/* ---- Sizes ---- */

static void a_big_file(void **state)
{
	struct world w;
	struct plan p;

	(void)state;
	plan_init(&p, 5);
	p.lines = 8;
	p.deaths = 30;
	p.fault_ns = 20 * NS_PER_S;
	p.bad_blocks = 200;
	p.store_ns = 0;
	world_init(&w, &p);
	world_add(&w, WIRE_FILE, (UINT64_C(20000) << 18) + 17);
	world_run(&w, 3600 * NS_PER_S);
	world_agreed(&w);
	assert_true(w.node[0]->fate == SND_DONE);
	world_fini(&w);
}

/* Directories within each other, one more than a receiver takes, and something in the last; all of
 * them offered before the first is there, so that all wait for it. */
static void deep(uint32_t depth, bool later, bool refused)
{
	struct world w;
	struct plan p;
	uint32_t i, well = 0;

	plan_init(&p, 1);
	p.list_batch = 100000;
	p.control_latency_ns = 0;
	p.later = later;
	p.store_ns = later ? NS_PER_MS : 0;
	world_init(&w, &p);
	for (i = 0; i < depth; i++)
		world_add(&w, WIRE_DIR, 0);
	world_add(&w, WIRE_FILE, 10);
	w.node[0]->refused = refused;
	for (i = 0; i < depth; i++)
		world_leave(&w);
	world_run(&w, 3600 * NS_PER_S);
	world_agreed(&w);
	for (i = 0; i <= depth; i++)
		well += w.node[i]->told == 0 || w.node[i]->fate == SND_DONE;
	assert_int_equal(well, refused ? 0 : depth > 4201 ? 4201 : depth + 1);
	world_fini(&w);
}

static void directories_within_each_other(void **state)
{
	(void)state;
	deep(4200, false, false);
	deep(4200, true, false);
	deep(4200, true, true);
	deep(4300, true, false);
	deep(20000, true, false); /* more than there are slots */
	deep(20000, false, true);
}

static void as_many_entries_as_there_are_slots(void **state)
{
	struct world w;
	struct plan p;
	uint32_t i, most = 0;

	(void)state;
	plan_init(&p, 1);
	p.list_batch = 100000;
	p.control_latency_ns = 300 * NS_PER_MS; /* so that all are unfinished at once */
	world_init(&w, &p);
	for (i = 0; i < 20000; i++)
		world_add(&w, WIRE_FILE, i % 3 == 0 ? 0 : i);
	world_run(&w, 3600 * NS_PER_S);
	world_agreed(&w);
	most = w.most_live;
	assert_in_range(most, WIRE_SLOTS - 1000, WIRE_SLOTS);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_world_ends_well),
		cmocka_unit_test(any_world_resumes),
		cmocka_unit_test(a_cut_ends_both),
		cmocka_unit_test(without_streams_it_ends),
		cmocka_unit_test(a_deaf_side_ends_it),
		cmocka_unit_test(nothing_to_send),
		cmocka_unit_test(the_tail_does_not_wait),
		cmocka_unit_test(no_copies_without_need),
		cmocka_unit_test(copies_are_few_where_all_are_slow),
		cmocka_unit_test(all_stall_and_others_go_on),
		cmocka_unit_test(acknowledged_but_never_read),
		cmocka_unit_test(a_big_file),
		cmocka_unit_test(directories_within_each_other),
		cmocka_unit_test(as_many_entries_as_there_are_slots),
	};
	return cmocka_run_group_tests_name("engine/worlds", tests, NULL, NULL);
}
