/* Which mover carries which blocks of a file, in simulated transfers. */
#include "world_impl.h"

#define REGION (64u << 20)
#define MOVERS 4u
#define LINES (2 * MOVERS)
#define LIMIT_NS (600 * NS_PER_S)

/* Movers with two streams of 10 MB/s each. */
static void begin(struct world *w)
{
	struct plan p;

	plan_init(&p, 1);
	p.lines = LINES;
	p.jobs = 2;
	p.movers = MOVERS;
	p.region_bytes = REGION;
	world_init(w, &p);
}

static unsigned count(uint16_t set)
{
	unsigned n = 0;

	for (; set != 0; set &= (uint16_t)(set - 1))
		n++;
	return n;
}

/* Regions of the file that several movers have sent. */
static unsigned shared(const struct node *n)
{
	unsigned i, k = 0;

	for (i = 0; i < WORLD_REGIONS; i++)
		k += count(n->movers[i]) > 1;
	return k;
}

/* Between the last blocks of the first and of the last stream with nothing to do. */
static uint64_t idle_ns(const struct world *w, unsigned from)
{
	uint64_t least = UINT64_MAX, most = 0;
	unsigned i;

	for (i = from; i < LINES; i++) {
		least = w->line[i].free_at < least ? w->line[i].free_at : least;
		most = w->line[i].free_at > most ? w->line[i].free_at : most;
	}
	return most - least;
}

static void end(struct world *w)
{
	world_run(w, LIMIT_NS);
	world_agreed(w);
	world_whole(w);
}

/* 18 regions: after four each, two movers help the two with a region. */
static void one_mover_sends_a_region(void **state)
{
	struct world w;
	struct node *n;

	(void)state;
	begin(&w);
	n = world_add(&w, WIRE_FILE, 18ull * REGION - 1000);
	end(&w);
	assert_in_range(shared(n), 1, 2 + MOVERS);
	assert_in_range(idle_ns(&w, 0), 0, 300 * NS_PER_MS);
	world_fini(&w);
}

/* One mover at a tenth of the rate keeps its region, until the other movers have nothing else to send. */
static void a_slow_mover_is_helped_at_the_end(void **state)
{
	struct world w;
	struct node *n;

	(void)state;
	begin(&w);
	w.line[0].bytes_per_s /= 10;
	w.line[MOVERS].bytes_per_s /= 10;
	n = world_add(&w, WIRE_FILE, 16ull * REGION);
	end(&w);
	assert_in_range(shared(n), 1, 2 + MOVERS);
	assert_in_range(idle_ns(&w, 0), 0, 1500 * NS_PER_MS);
	world_fini(&w);
}

/* Regions are multiples of the receiver's stripe, else of the sender's, and of blocks of 2 MiB if that is not too
 * much. */
static void regions_are_of_whole_stripes(void **state)
{
	static const struct { uint32_t stripe[2], region; } cases[] = { /* in units of 4 KiB */
		{ { 0, 0 }, 64 << 8 }, { { 1, 0 }, 64 << 8 }, { { 0, 1 << 8 }, 64 << 8 }, { { 64 << 8, 0 }, 64 << 8 },
		{ { 3 << 8, 0 }, 66 << 8 }, { { 0, 96 << 8 }, 96 << 8 }, { { 3 << 8, 96 << 8 }, 96 << 8 },
		{ { 96 << 8, 5 << 8 }, 70 << 8 }, { { 0, 128 << 8 }, 128 << 8 }, { { 257, 0 }, 514 << 8 },
		    { { 0, 1 << 18 }, 1 << 18 },
		{ { 0, (100 << 8) + 1 }, (100 << 8) + 1 },
	};
	struct world w;
	struct node *n;
	struct plan p;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0] * 2; i++) {
		plan_init(&p, 1);
		p.lines = LINES;
		p.jobs = 2;
		p.movers = MOVERS;
		p.receiver_starts = i % 2 == 1;
		p.striped = true;
		p.stripe[0] = cases[i / 2].stripe[0];
		p.stripe[1] = cases[i / 2].stripe[1];
		p.region_bytes = cases[i / 2].region * (uint64_t)WIRE_STRIPE_BYTES;
		world_init(&w, &p);
		n = world_add(&w, WIRE_FILE, 16 * p.region_bytes);
		end(&w);
		if (shared(n) > 2 + MOVERS)
			fail_msg("case %zu: %u of 16 regions were shared", i / 2, shared(n));
		world_fini(&w);
	}
}

static void a_small_file_stays_whole(void **state)
{
	struct world w;
	struct node *n[200];
	unsigned i, divided = 0;

	(void)state;
	begin(&w);
	for (i = 0; i < 200; i++)
		n[i] = world_add(&w, WIRE_FILE, 5 * (256u << 10));
	end(&w);
	for (i = 0; i < 200; i++)
		divided += shared(n[i]);
	assert_in_range(divided, 0, MOVERS);
	world_fini(&w);
}

/* Its regions go to the other movers, without it the file is complete. */
static void the_regions_of_a_lost_mover_go_to_others(void **state)
{
	struct world w;
	struct node *n;
	unsigned i;

	(void)state;
	begin(&w);
	n = world_add(&w, WIRE_FILE, 18ull * REGION);
	world_run_for(&w, 5 * NS_PER_S);
	for (i = 0; i < LINES; i += MOVERS) {
		w.line[i].gone_for_good = true;
		line_lost(&w, i);
	}
	end(&w);
	assert_in_range(shared(n), 1, 3 + MOVERS); /* its last blocks in flight may be those of two regions */
	assert_int_equal(w.line[0].free_at, 0);
	world_fini(&w);
}

/* The other stream of the mover sends the blocks again. */
static void a_lost_stream_leaves_the_region_to_its_mover(void **state)
{
	struct world w;
	struct node *n;

	(void)state;
	begin(&w);
	n = world_add(&w, WIRE_FILE, 16ull * REGION);
	world_run_for(&w, NS_PER_S);
	line_lost(&w, 0);
	world_run_for(&w, NS_PER_S);
	assert_int_equal(shared(n), 0);
	end(&w);
	world_fini(&w);
}

/* A mover that joins takes regions of its own. */
static void a_mover_may_join(void **state)
{
	struct world w;
	struct node *n;
	unsigned i, late = 0;

	(void)state;
	begin(&w);
	for (i = 1; i < LINES; i += MOVERS)
		w.line[i].gone_for_good = true;
	n = world_add(&w, WIRE_FILE, 18ull * REGION);
	world_run_for(&w, 5 * NS_PER_S);
	for (i = 1; i < LINES; i += MOVERS) {
		w.line[i].gone_for_good = false;
		world_soon(&w, EV_UP, 0)->line = i;
	}
	end(&w);
	for (i = 0; i < WORLD_REGIONS; i++)
		late += n->movers[i] == 1u << 1;
	assert_in_range(late, 3, 5);
	assert_in_range(shared(n), 0, 2 + MOVERS);
	world_fini(&w);
}

/* What is missing of an interrupted file, in pieces of every region. */
static void a_resumed_file_has_regions(void **state)
{
	struct world w;
	struct node *n;

	(void)state;
	begin(&w);
	n = world_add(&w, WIRE_FILE, 16ull * REGION);
	world_run_for(&w, 7 * NS_PER_S);
	world_again(&w, 0);
	memset(n->movers, 0, sizeof n->movers);
	end(&w);
	assert_in_range(shared(n), 0, 2 + MOVERS);
	assert_true(w.resumed > 0);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_mover_sends_a_region),
		cmocka_unit_test(a_slow_mover_is_helped_at_the_end),
		cmocka_unit_test(regions_are_of_whole_stripes),
		cmocka_unit_test(a_small_file_stays_whole),
		cmocka_unit_test(the_regions_of_a_lost_mover_go_to_others),
		cmocka_unit_test(a_lost_stream_leaves_the_region_to_its_mover),
		cmocka_unit_test(a_mover_may_join),
		cmocka_unit_test(a_resumed_file_has_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
