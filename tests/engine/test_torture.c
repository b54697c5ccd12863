/* Every allocation of the engine fails once. Linked with --wrap for each function below; what a
 * failure leaks is found by the address sanitizer. */
#include "core/bitmap.h"
#include "core/err.h"
#include "world_impl.h"

static volatile int armed, countdown, hit;

static int fails(void)
{
	if (!armed || world_allocating > 0 || --countdown != 0)
		return 0;
	hit = 1;
	return 1;
}

#define WRAP(name, type, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params { return fails() ? NULL : __real_##name args; }

WRAP(malloc, void *, (size_t n), (n))
WRAP(calloc, void *, (size_t n, size_t m), (n, m))
WRAP(realloc, void *, (void *p, size_t n), (p, n))

/* Of an earlier session, every third block and all of the end. */
static void claim(struct node *n)
{
	uint32_t i;

	n->part = n->version;
	n->content = world_alloc(NULL, n->n_blocks * sizeof *n->content);
	n->journal = world_alloc(NULL, bitmap_bytes(n->n_blocks));
	for (i = 0; i < n->n_blocks; i += i < 60 ? 3 : 1) {
		bitmap_add(n->journal, i);
		n->content[i] = i % 4 == 0 ? 99 : n->version;
	}
}

/* A tree with everything that takes memory. */
static void fill(struct world *w)
{
	struct node *n;
	unsigned i;

	for (i = 0; i < 70; i++) /* more than the stack of directories has at first */
		world_add(w, WIRE_DIR, 0);
	world_add(w, WIRE_FILE, 0)->changed = true;
	for (i = 0; i < 70; i++)
		world_leave(w);
	world_add(w, WIRE_FILE, 90u << 18);
	world_add(w, WIRE_DIR, 0)->refused = true;
	world_add(w, WIRE_FILE, 10);
	world_add(w, WIRE_SYMLINK, 0);
	world_leave(w);
	world_add(w, WIRE_FILE, 70u << 18)->read_fails_at = 60;
	claim(world_add(w, WIRE_FILE, 80u << 18));
	world_add(w, WIRE_FILE, 70u << 18)->here = 2;
	n = world_add(w, WIRE_FILE, 100u << 18);
	n->holes = world_alloc(NULL, bitmap_bytes(100));
	bitmap_set(n->holes, true, 5, 90);
	world_add(w, WIRE_HARDLINK, 0)->link_to = n;
	for (i = 0; i < 20; i++)
		world_add(w, WIRE_FILE, 1000);
}

/* Either the session ends for it, on both sides, or a file fails, on both sides, or nothing is lost. */
static void run(struct world *w, unsigned nth)
{
	struct plan p;

	plan_init(&p, 4);
	p.later = 2;
	p.bad_blocks = 20;
	p.deaths = 10;
	p.movers = 3;
	p.region_bytes = 1 << 20;
	p.list_batch = 90;
	world_init(w, &p);
	fill(w);
	hit = 0;
	countdown = (int)nth;
	armed = 1;
	world_run(w, 100 * NS_PER_S);
	armed = 0;
	assert_int_equal(w->side[0].failed, w->side[1].failed);
	if (w->side[0].failed)
		assert_true(w->side[0].why.code == PTCP_ENOMEM || w->side[1].why.code == PTCP_ENOMEM);
	else
		world_agreed(w);
	if (!hit)
		assert_false(w->side[0].failed);
}

static void everything(void **state)
{
	unsigned nth = 0, sessions = 0;
	struct world w;

	(void)state;
	do {
		run(&w, ++nth);
		sessions += w.side[0].failed;
		world_fini(&w);
	} while (hit);
	assert_in_range(nth, 200, 10000);
	assert_in_range(sessions, 5, nth - 50); /* some are borne, some are not */
}

static void a_session_that_cannot_be(void **state)
{
	static const uint8_t path[] = { 0, 0, 1, 'p' };
	static const struct engine_ops none;
	struct engine_opts o = { .starter = true, .software = "x", .timeout_ns = NS_PER_S,
		.max_entries = WIRE_EARLY_ENTRIES, .max_streams = 1, .ops = &none };
	struct wire_open open = { .n_paths = 1, .paths = { path, sizeof path }, .role = 1, .streams = 1 };
	struct engine *s = NULL;
	struct ptcp_err e;
	int i, r;

	(void)state;
	for (i = 1; i <= 2; i++) {
		countdown = i;
		armed = 1;
		r = engine_new(&s, &o, &open, (struct mono){ 1 }, &e);
		armed = 0;
		assert_true(r == PTCP_ENOMEM && e.code == PTCP_ENOMEM && s == NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),
		cmocka_unit_test(a_session_that_cannot_be),
	};
	return cmocka_run_group_tests_name("engine/torture", tests, NULL, NULL);
}
