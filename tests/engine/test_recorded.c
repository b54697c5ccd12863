/* Recorded sessions: each end must still understand the other end of released versions.
 *
 * recorded/send-1 and recorded/receive-1 are sessions of protocol version 1 (world.h has the format), started by the
 * sender and by the receiver. A release fixes them. A new version of the protocol adds its own:
 * XFER_RECORD=DIR build/tests/engine/test_recorded writes them. */
#include "core/bitmap.h"
#include "world_impl.h"

#define LIMIT_NS (60 * NS_PER_S)
#define BLOCK (256u << 10)
#define KEPT "tests/engine/recorded/"

/* Indices of the nodes of populate(). */
enum { A_DIR, EMPTY, TINY, TWO_BLOCKS, SPARSE, LINK, B_DIR, HARDLINK, SAME, DIFFERS, RESUMED, ALL_HERE, REFUSED,
	CHANGED, SPOILT, UNWRITABLE, UNNAMABLE, N_NODES };

/* Part of it has arrived before; the claim of block 1 is wrong. */
static void interrupted(struct node *n)
{
	uint32_t i;

	n->part = n->version;
	n->content = world_alloc(NULL, n->n_blocks * sizeof *n->content);
	n->journal = world_alloc(NULL, bitmap_bytes(n->n_blocks));
	for (i = 0; i < n->n_blocks; i++) {
		n->content[i] = i == 1 ? UINT32_MAX : i < 3 ? n->version : 0;
		if (i < 3)
			bitmap_add(n->journal, i);
	}
}

/* Each kind of entry, each verdict, and each way to fail. */
static void populate(struct world *w)
{
	struct node *n;

	world_add(w, WIRE_DIR, 0);
	world_add(w, WIRE_FILE, 0);
	world_add(w, WIRE_FILE, 1);
	n = world_add(w, WIRE_FILE, BLOCK + 1);
	world_add(w, WIRE_FILE, 5 * BLOCK)->holes = world_alloc(NULL, bitmap_bytes(5));
	bitmap_add(w->node[SPARSE]->holes, 1);
	bitmap_add(w->node[SPARSE]->holes, 3);
	world_add(w, WIRE_SYMLINK, 0);
	world_leave(w);
	world_add(w, WIRE_DIR, 0);
	world_add(w, WIRE_HARDLINK, 0)->link_to = n;
	world_add(w, WIRE_FILE, 1000)->here = 1;
	world_add(w, WIRE_FILE, 2000)->here = 100;
	interrupted(world_add(w, WIRE_FILE, 4 * BLOCK));
	world_add(w, WIRE_FILE, 3000)->have_it = true;
	world_leave(w);
	world_add(w, WIRE_FILE, 10)->refused = true;
	world_add(w, WIRE_FILE, 3 * BLOCK)->changed = true;
	world_add(w, WIRE_FILE, 2 * BLOCK)->spoilt = true;
	world_add(w, WIRE_FILE, 30)->write_fails_at = 0;
	world_add(w, WIRE_FILE, 40)->commit_fails = true;
	assert_int_equal(w->n_nodes, N_NODES);
}

static bool fails(uint32_t i) { return i >= REFUSED; }
static bool up_to_date(uint32_t i) { return i == SAME || i == ALL_HERE; }

static void begin(struct world *w, bool receiver_starts)
{
	struct plan p;

	plan_init(&p, 7);
	p.receiver_starts = receiver_starts;
	p.hashed = true;
	p.early = true;
	p.lines = 2;
	p.store_ns = NS_PER_MS / 1000; /* all is listed before the first ANSWER: ids do not depend on times */
	world_init(w, &p);
	populate(w);
}

static void record(FILE *tape, bool receiver_starts)
{
	struct world w;

	begin(&w, receiver_starts);
	w.tape = tape;
	world_run(&w, LIMIT_NS);
	world_agreed(&w);
	world_fini(&w);
}

static void expect_sender(const struct world *w)
{
	const struct node *n;
	uint32_t i;

	for (i = 0; i < N_NODES; i++) {
		n = w->node[i];
		check_that(n->type == WIRE_DIR || (n->told == 1 &&
		    n->fate == (fails(i) ? SND_FAILED : up_to_date(i) ? SND_SKIPPED : SND_DONE)),
		    "the sender says %d of entry %u (%u times)", (int)n->fate, i, n->told);
	}
}

static void expect_receiver(const struct world *w)
{
	const struct node *n;
	uint32_t i;

	for (i = 0; i < N_NODES; i++) {
		n = w->node[i];
		check_that(n->prepared && n->over && n->failed == fails(i) && n->skipped == up_to_date(i),
		    "the receiver did not end entry %u, or in another way", i);
		check_that(fails(i) || up_to_date(i) || n->type != WIRE_FILE ||
		    (n->n_written == n->n_blocks && n->here == n->version), "file %u is not whole", i);
	}
	assert_int_equal(w->resumed, 2);
	assert_int_equal(w->asked_again, 1);
	assert_int_equal(w->holes, 2);
}

static void understands(FILE *recording, unsigned side, bool receiver_starts)
{
	struct world w;

	assert_non_null(recording);
	begin(&w, receiver_starts);
	world_replay(&w, side, recording);
	check_that(w.side[side].ended == 1 && !w.side[side].failed, "the session %s: %s",
	    w.side[side].ended == 0 ? "has not ended" : "failed", w.side[side].why.msg);
	side == 0 ? expect_sender(&w) : expect_receiver(&w);
	world_fini(&w);
	fclose(recording);
}

static void receiver_understands_sender(void **state)
{
	(void)state;
	understands(fopen(KEPT "send-1", "r"), 1, false);
	understands(fopen(KEPT "receive-1", "r"), 1, true);
}

static void sender_understands_receiver(void **state)
{
	(void)state;
	understands(fopen(KEPT "send-1", "r"), 0, false);
	understands(fopen(KEPT "receive-1", "r"), 0, true);
}

static FILE *recorded_now(bool receiver_starts)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	record(f, receiver_starts);
	rewind(f);
	return f;
}

/* The recorder itself: else a later version could not add a session. */
static void recording_of_now_is_understood(void **state)
{
	unsigned side, starts;

	(void)state;
	for (side = 0; side < 2; side++)
		for (starts = 0; starts < 2; starts++)
			understands(recorded_now(starts), side, starts);
}

/* Replays send-1 to the receiver with one digit changed: that many digits after `where`. */
static void replay_changed(struct world *w, const char *where, size_t after)
{
	static char all[1 << 16];
	FILE *f = fopen(KEPT "send-1", "r");
	size_t n;
	char *at;

	assert_non_null(f);
	n = fread(all, 1, sizeof all - 1, f);
	fclose(f);
	all[n] = '\0';
	assert_non_null(at = strstr(all, where));
	at += strlen(where) + after;
	*at = *at == '0' ? '1' : '0';
	assert_non_null(f = fmemopen(all, n, "r"));
	begin(w, false);
	world_replay(w, 1, f);
	fclose(f);
}

static void other_bytes_are_found(void **state)
{
	struct world w;

	(void)state;
	/* the first byte of HELLO's fields */
	replay_changed(&w, "\nsender 0101", 12);
	assert_true(w.side[1].failed);
	world_fini(&w);
	/* a digit of the digest in FILE_END of TWO_BLOCKS */
	replay_changed(&w, "\nsender 15010000000000180000000000040003", 1);
	assert_true(w.node[TWO_BLOCKS]->over && w.node[TWO_BLOCKS]->failed);
	world_fini(&w);
}

static void write_recordings(const char *dir)
{
	static const char *const name[] = { "send", "receive" };
	char path[4096];
	unsigned starts;
	FILE *f;

	for (starts = 0; starts < 2; starts++) {
		snprintf(path, sizeof path, "%s/%s-%d", dir, name[starts], WIRE_VERSION);
		assert_non_null(f = fopen(path, "w"));
		record(f, starts);
		assert_int_equal(fclose(f), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver_understands_sender),
		cmocka_unit_test(sender_understands_receiver),
		cmocka_unit_test(recording_of_now_is_understood),
		cmocka_unit_test(other_bytes_are_found),
	};

	if (getenv("XFER_RECORD") != NULL)
		write_recordings(getenv("XFER_RECORD"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
