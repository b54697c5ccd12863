/* Records of sessions: a session that is run again from its record decides the same, and comes to the same end. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "player.h"
#include "world.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define WORLDS 100
#else
#define WORLDS 150
#endif
#define LIMIT_NS (600 * NS_PER_S)

/* Everything happens in some of them. */
static void plan_random(struct plan *p, uint64_t seed)
{
	struct rng r = { seed * 91 + 5 };

	plan_init(p, seed);
	p->receiver_starts = seed & 1;
	p->lines = 1 + rng_below(&r, 6);
	p->max_entries = rng_one_in(&r, 3) ? 30 + rng_below(&r, 30) : WIRE_SLOTS;
	p->control_split = rng_one_in(&r, 2) ? 1 + rng_below(&r, 100) : 0;
	p->list_batch = 1 + rng_below(&r, 40);
	p->early = rng_one_in(&r, 2);
	p->dry_run = rng_one_in(&r, 10);
	p->later = rng_below(&r, 4);
	p->refuse = p->commit_fails = p->changes = p->spoils = rng_below(&r, 30);
	p->have_it = p->exists = rng_below(&r, 5);
	p->write_fails = p->read_fails = rng_below(&r, 20);
	p->bad_blocks = p->rots = rng_below(&r, 10);
	p->sparse = p->links = p->unsized = rng_below(&r, 4);
	p->deaths = rng_below(&r, 10);
	p->stalls = rng_below(&r, 4);
	p->fault_ns = 2 * NS_PER_S;
	p->cut = rng_one_in(&r, 10);
	p->movers = rng_below(&r, 4);
	p->region_bytes = (1 + rng_below(&r, 50)) * 100000;
}

/* Numbers of engines count up in a process. */
static unsigned first_engine(FILE *record)
{
	unsigned n;

	rewind(record);
	assert_int_equal(fscanf(record, "tape: %u", &n), 1);
	rewind(record);
	return n;
}

static void plays_as(FILE *record, unsigned engine, uint64_t seed, const struct side *sd)
{
	struct play play;

	rewind(record);
	play_record(&play, record, engine, NULL);
	check_that(play.outcome == PLAYED_SAME && play.text[0] == '\0', "seed %llu, the %s: outcome %d, %s",
	    (unsigned long long)seed, sd->sends ? "sender" : "receiver", (int)play.outcome, play.text);
	check_that(play.over && play.decisions > 0, "seed %llu, the %s: %lu calls, %lu decisions",
	    (unsigned long long)seed, sd->sends ? "sender" : "receiver", play.calls, play.decisions);
	assert_int_equal(play.code, sd->failed ? sd->why.code : 0);
}

/* Both sessions of a world, whose second one resumes what the first one has left. */
static void any_world_is_played_again(void **state)
{
	uint64_t seed, failed = 0, resumed = 0;
	unsigned first, again;
	struct world w;
	struct plan p;
	FILE *record;

	(void)state;
	for (seed = 1; seed <= WORLDS; seed++) {
		assert_non_null(record = tmpfile());
		plan_random(&p, seed);
		world_init_recorded(&w, &p, record);
		world_grow(&w, rng_below(&w.rng, 40));
		for (again = 0; again < 2; again++) {
			if (again > 0) {
				if (p.dry_run || !rng_one_in(&w.rng, 2) || w.n_unsized > 0)
					break;
				w.plan.cut = false;
				world_again(&w, 0);
			}
			world_run(&w, LIMIT_NS);
		}
		first = first_engine(record) + (again > 1 ? 2 : 0);
		plays_as(record, first, seed, &w.side[0]);
		plays_as(record, first + 1, seed, &w.side[1]);
		failed += w.side[0].failed;
		resumed += w.resumed;
		world_fini(&w);
		fclose(record);
	}
	assert_true(failed > 0 && resumed > 0);
}

/* ---- Records that are cut, or were never written by a session ---- */

static char *text;
static size_t n_text;

static int record_one(void **state)
{
	struct world w;
	struct plan p;
	FILE *record = open_memstream(&text, &n_text);

	(void)state;
	plan_random(&p, 4);
	p.cut = false;
	world_init_recorded(&w, &p, record);
	world_grow(&w, 20);
	world_run(&w, LIMIT_NS);
	world_fini(&w);
	return fclose(record);
}

static int forget_one(void **state)
{
	(void)state;
	free(text);
	return 0;
}

static void play_text(struct play *play, char *bytes, size_t n)
{
	FILE *f = fmemopen(bytes, n, "r");

	assert_non_null(f);
	play_record(play, f, 0, NULL);
	fclose(f);
}

/* As far as it goes, it goes. */
static void cut_records(void **state)
{
	struct rng r = { 3 };
	struct play play;
	unsigned i;

	(void)state;
	for (i = 0; i < 40; i++) {
		play_text(&play, text, 2000 + rng_below(&r, (uint32_t)n_text - 2000));
		check_that(play.outcome == PLAYED_SAME, "%s", play.text);
	}
}

static void no_records(void **state)
{
	static char none[] = "2026-11-29T02:13:15.484Z info session: nothing\n", odd[] = "tape: 1 call 0 tick at=5\n";
	struct play play;

	(void)state;
	play_text(&play, none, sizeof none - 1);
	assert_int_equal(play.outcome, PLAYED_NOTHING);
	play_text(&play, odd, sizeof odd - 1);
	assert_int_equal(play.outcome, PLAYED_NOTHING);
}

/* Whatever the bytes are, the caller hears of an outcome; and a change of a decision is found. */
static void changed_records(void **state)
{
	static const char digits[] = "0123456789 =,\n";
	unsigned i, k, found = 0;
	struct rng r = { 11 };
	struct play play;
	char *copy = malloc(n_text);

	(void)state;
	assert_non_null(copy);
	for (i = 0; i < 200; i++) {
		memcpy(copy, text, n_text);
		for (k = 0; k <= i / 50; k++)
			copy[rng_below(&r, (uint32_t)n_text)] = digits[rng_below(&r, sizeof digits - 1)];
		play_text(&play, copy, n_text);
		assert_in_range(play.outcome, PLAYED_SAME, PLAYED_NOTHING);
		found += play.outcome != PLAYED_SAME;
	}
	assert_true(found > 50);
	free(copy);
}

static void another_decision_is_found(void **state)
{
	char *copy = strndup(text, n_text), *at;
	struct play play;

	(void)state;
	assert_non_null(copy);
	assert_non_null(at = strstr(copy, " op job u="));
	at += strlen(" op job u=");
	*at = *at == '1' ? '2' : '1';
	play_text(&play, copy, n_text);
	assert_int_equal(play.outcome, PLAYED_OTHERWISE);
	assert_non_null(strstr(play.text, "job"));
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_world_is_played_again), cmocka_unit_test(cut_records),
		cmocka_unit_test(no_records), cmocka_unit_test(changed_records),
		cmocka_unit_test(another_decision_is_found),
	};

	return cmocka_run_group_tests_name("engine/tape", tests, record_one, forget_one);
}
