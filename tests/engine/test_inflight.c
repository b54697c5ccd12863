/* Blocks in flight: found by file and number, in the order of their age, compared with a plain array. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/units.h"
#include "engine/inflight.h"
#include "model/rng.h"

static void inflights_find_each_other(void **state)
{
	struct inflights t;
	struct list f, g;
	struct inflight *a, *b, *c;
	struct mono t0 = { 1000 };

	(void)state;
	inflights_init(&t, NULL);
	list_init(&f);
	list_init(&g);
	a = inflight_add(&t, &f, &f, 1, 9, 0, t0);
	b = inflight_add(&t, &f, &f, 2, 9, 1, t0);
	assert_null(inflight_other(&t, a));
	c = inflight_add(&t, &f, &f, 1, 9, 2, t0);
	assert_ptr_equal(inflight_other(&t, a), c);
	assert_ptr_equal(inflight_other(&t, c), a);
	assert_null(inflight_other(&t, b));
	assert_int_equal(inflight_patience_ns(&t, 0), 50 * NS_PER_MS + 2 * NS_PER_S);
	assert_int_equal(inflight_acked(&t, &f, 1, 77, (struct mono){ 1000 + NS_PER_S }), -1); /* of a or c: unknown */
	assert_true(t.acked_bytes[0] == 0 && t.acked_bytes[2] == 0);
	inflight_sent(&t, 0, a, t0);
	assert_int_equal(inflight_acked(&t, &f, 1, 77, (struct mono){ 1000 + NS_PER_S }), 0);
	assert_int_equal(t.acked_bytes[0], 77);
	assert_int_equal(t.acked_bytes[1], 0);
	assert_int_equal(inflight_patience_ns(&t, 0), 50 * NS_PER_MS + 2 * (NS_PER_S + 1));
	assert_int_equal(inflight_patience_ns(&t, 1), inflight_patience_ns(&t, 0)); /* for want of its own */
	inflight_remove(&t, a);
	assert_null(inflight_other(&t, c));
	assert_ptr_equal(inflight_add(&t, &g, &g, 9, 9, 0, t0), a); /* used again */
	assert_false(a->copied);
	inflight_remove(&t, a);
	inflight_remove(&t, b);
	inflight_remove(&t, c);
	assert_true(list_empty(&f) && list_empty(&g) && t.n == 0 && list_empty(&t.stream[1]));
	inflights_fini(&t);
}

/* ---- Compared with a plain array ---- */

#define FILES 3
#define BLOCKS 300
#define STREAMS 5
#define FLIGHTS 2000

struct both {
	struct inflights t;
	struct list file[FILES];
	struct inflight *of[FLIGHTS]; /* in flight, in the order of handing out */
	unsigned n;
	struct rng rng;
	struct mono now;
};

static unsigned below(struct both *b, unsigned n) { return (unsigned)(rng_next(&b->rng) % n); }

static bool carries(const struct both *b, unsigned i, const void *file, uint32_t block)
{
	return b->of[i]->file == file && b->of[i]->block == block;
}

/* Every flight is found where the array has it. */
static void compare(const struct both *b, const void *file, uint32_t block)
{
	const struct inflight *on[STREAMS] = { 0 };
	unsigned i, n = 0;

	for (i = 0; i < b->n; i++)
		if (carries(b, i, file, block)) {
			on[b->of[i]->stream] = b->of[i];
			n++;
		}
	for (i = 0; i < STREAMS; i++) {
		assert_ptr_equal(inflight_on(&b->t, file, i, block), on[i]);
		if (on[i] != NULL)
			assert_true((inflight_other(&b->t, on[i]) != NULL) == (n > 1));
	}
}

/* Uncopied flights are in the list of their number of copies, in the order of `since`. */
static void compare_ages(const struct both *b)
{
	unsigned i, listed = 0, uncopied = 0, queued = 0;
	struct mono before;
	struct inflight *f;

	for (i = 0; i <= INFLIGHT_DOUBLINGS; i++) {
		before.ns = 0;
		LIST_EACH(&b->t.age[i], f, struct inflight, in_age) {
			assert_true(!f->copied && f->copies == i && f->since.ns >= before.ns);
			before = f->since;
			listed++;
		}
	}
	for (i = 0; i < b->n; i++)
		uncopied += !b->of[i]->copied;
	assert_int_equal(listed, uncopied);
	assert_int_equal(b->t.n, b->n);
	for (i = 0; i < STREAMS; i++)
		queued += (unsigned)b->t.unread_bytes[i];
	assert_int_equal(b->t.queued_bytes[0] + b->t.queued_bytes[1], queued);
}

static void forget(struct both *b, unsigned i)
{
	memmove(&b->of[i], &b->of[i + 1], (b->n - i - 1) * sizeof b->of[0]);
	b->n--;
}

static void add(struct both *b, const struct inflight *copy_of)
{
	unsigned file = below(b, FILES), stream = below(b, STREAMS);
	uint32_t block = below(b, BLOCKS);
	void *of = copy_of != NULL ? copy_of->file : &b->file[file];

	if (copy_of != NULL)
		block = copy_of->block;
	if (b->n == FLIGHTS || inflight_on(&b->t, of, stream, block) != NULL || (copy_of != NULL && copy_of->copied))
		return;
	b->of[b->n] = inflight_add(&b->t, of, of, block, 100, stream, b->now);
	assert_non_null(b->of[b->n]);
	if (copy_of != NULL)
		inflight_copy(&b->t, (struct inflight *)(uintptr_t)copy_of, stream);
	b->n++;
}

static void lose(struct both *b, unsigned i)
{
	struct inflight *f = b->of[i], *other = inflight_other(&b->t, f);

	inflight_remove(&b->t, f);
	if (other != NULL)
		inflight_uncopy(&b->t, other);
	forget(b, i);
}

static void remove_range(struct both *b)
{
	unsigned file = below(b, FILES), i;
	uint32_t first = below(b, BLOCKS), count = below(b, 4) == 0 ? UINT32_MAX : below(b, 5);

	for (i = b->n; i-- > 0;)
		if (b->of[i]->file == &b->file[file] && b->of[i]->block >= first && b->of[i]->block - first < count)
			forget(b, i);
	inflight_remove_blocks(&b->t, &b->file[file], &b->file[file], first, count);
	compare(b, &b->file[file], first);
}

static void as_a_plain_array(void **state)
{
	static struct both b;
	unsigned i, what;

	(void)state;
	b = (struct both){ .rng = { 7 }, .now = { 1000 } };
	inflights_init(&b.t, NULL);
	for (i = 0; i < FILES; i++)
		list_init(&b.file[i]);
	for (i = 0; i < 20000; i++) {
		b.now.ns += below(&b, 3);
		what = below(&b, 100);
		if (what < 60 || b.n == 0)
			add(&b, NULL);
		else if (what < 75)
			add(&b, b.of[below(&b, b.n)]);
		else if (what < 90)
			inflight_sent(&b.t, b.of[what % b.n]->stream, b.of[what % b.n], b.now);
		else if (what < 97)
			lose(&b, below(&b, b.n));
		else if (what < 99)
			inflight_share(&b.t, below(&b, STREAMS), below(&b, 2));
		else if (below(&b, 8) == 0)
			remove_range(&b);
		compare(&b, &b.file[below(&b, FILES)], below(&b, BLOCKS));
		if (i % 50 == 0)
			compare_ages(&b);
	}
	assert_true(b.t.n_index > INFLIGHT_FEW); /* the table has grown */
	for (i = 0; i < FILES; i++)
		inflight_remove_blocks(&b.t, &b.file[i], &b.file[i], 0, UINT32_MAX);
	assert_int_equal(b.t.n, 0);
	assert_int_equal(b.t.n_copies, 0);
	inflights_fini(&b.t);
}

/* Without memory for more, flights go on with the memory of those that ended. */
static void memory_is_limited(void **state)
{
	enum { MAX = 1 << 20 };
	struct memory_budget *b;
	struct memory_account *a;
	struct inflights t;
	struct list file;
	uint32_t n, i;

	(void)state;
	assert_int_equal(memory_budget_new(&b, MAX, NULL), 0);
	assert_int_equal(memory_account_new(&a, b, "client", NULL), 0);
	inflights_init(&t, a);
	list_init(&file);
	for (n = 0; inflight_add(&t, &file, &file, n, 9, 0, (struct mono){ 1000 }) != NULL; n++)
		;
	assert_in_range(n, MAX / 4 / 2 / sizeof(struct inflight), MAX / 4 / sizeof(struct inflight));
	inflight_remove_blocks(&t, &file, &file, 0, 10);
	for (i = 0; i < 10; i++)
		assert_non_null(inflight_add(&t, &file, &file, n + i, 9, 0, (struct mono){ 1000 }));
	assert_null(inflight_add(&t, &file, &file, n + i, 9, 0, (struct mono){ 1000 }));
	inflight_remove_blocks(&t, &file, &file, 0, UINT32_MAX);
	inflights_fini(&t);
	assert_int_equal(memory_budget_used(b), 0);
	memory_account_free(a);
	memory_budget_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inflights_find_each_other),
		cmocka_unit_test(as_a_plain_array), cmocka_unit_test(memory_is_limited),
	};

	return cmocka_run_group_tests_name("engine/inflight", tests, NULL, NULL);
}
