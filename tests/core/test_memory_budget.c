/* against: memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/memory_budget.h"

#define KIB UINT64_C(1024)
#define UNIT (512 * KIB)
#define MAX (64 * UNIT) /* a client 32, a session 16 units */

struct user {
	struct memory_claim claim;
	atomic_uint_fast64_t moved;
	unsigned granted, stalled;
};

static struct memory_budget *budget;
static unsigned order; /* of grants */

static void on_granted(struct memory_claim *c) { CONTAINER_OF(c, struct user, claim)->granted = ++order; }
static void on_stalled(struct memory_claim *c) { CONTAINER_OF(c, struct user, claim)->stalled++; }

static struct memory_account *account(const char *client)
{
	struct memory_account *a;

	assert_int_equal(memory_account_new(&a, budget, client, NULL), 0);
	memory_account_admit(a, true);
	return a;
}

static void user_init(struct user *u, struct memory_account *a)
{
	*u = (struct user){ .claim = { .granted = on_granted, .stalled = on_stalled } };
	u->claim.moved = &u->moved;
	memory_claim_init(&u->claim, a);
}

/* The first n of them; returns how many have it at once. */
static unsigned take_all(struct user *u, unsigned n, struct memory_account *a)
{
	unsigned i, got = 0;

	for (i = 0; i < n; i++) {
		user_init(&u[i], a);
		got += memory_take(&u[i].claim, UNIT);
	}
	return got;
}

static void give_all(struct user *u, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		memory_give(&u[i].claim);
}

static int setup(void **state)
{
	(void)state;
	order = 0;
	return memory_budget_new(&budget, MAX, NULL);
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(memory_budget_used(budget), 0);
	memory_budget_free(budget);
	return 0;
}

/* ---- Limits ---- */

static void each_limit(void **state)
{
	static struct user u[6][40];
	struct memory_account *a[6];
	static const char *const client[] = { "x", "x", "x", "y", "y", "z" };
	/* A session has a quarter. The third session of x and the later clients have less, as each session is charged
	 * for its guaranteed part from its beginning. */
	unsigned i, got, total = 0, of_x = 0;

	(void)state;
	for (i = 0; i < 6; i++)
		a[i] = account(client[i]);
	for (i = 0; i < 6; i++) {
		got = take_all(u[i], 40, a[i]);
		total += got;
		of_x += i < 3 ? got : 0;
		assert_true(got >= 1 && got <= 16);
		if (i == 0)
			assert_int_equal(got, 16);
		if (i == 2)
			assert_int_equal(of_x, 23); /* of 24, three quarters of its half: its third session is charged
			                               for more than its unit */
	}
	assert_in_range(total, 45, 48);
	assert_int_equal(memory_budget_used(budget), total * UNIT);
	for (i = 0; i < 6; i++) {
		give_all(u[i], 40);
		memory_account_free(a[i]);
	}
}

/* However much data is in transit, a new session and its streams are charged. */
static void room_for_charges(void **state)
{
	static struct user u[4][40];
	struct memory_account *a[4], *late;
	static const char *const client[] = { "x", "x", "y", "y" };
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		a[i] = account(client[i]);
		take_all(u[i], 40, a[i]);
	}
	late = account("x");
	assert_int_equal(memory_charge(late, 4 * UNIT, NULL), 0);
	memory_account_free(late);
	late = account("z");
	assert_int_equal(memory_charge(late, 4 * UNIT, NULL), 0);
	memory_account_free(late);
	for (i = 0; i < 4; i++) {
		give_all(u[i], 40);
		memory_account_free(a[i]);
	}
}

/* Whatever others hold, a new session has memory for a stream. */
static void guaranteed(void **state)
{
	static struct user u[8][40], late;
	struct memory_account *a[8], *b;
	char client[] = "a";
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++, client[0]++) {
		a[i] = account(client);
		take_all(u[i], 40, a[i]);
	}
	b = account("late");
	user_init(&late, b);
	assert_true(memory_take(&late.claim, UNIT));
	assert_false(memory_grow(&late.claim, UNIT));
	memory_give(&late.claim);
	memory_account_free(b);
	for (i = 0; i < 8; i++) {
		give_all(u[i], 40);
		memory_account_free(a[i]);
	}
}

static void no_limit(void **state)
{
	struct user u;

	(void)state;
	user_init(&u, NULL);
	assert_true(memory_take(&u.claim, UINT64_MAX));
	assert_true(memory_grow(&u.claim, UINT64_MAX));
	assert_false(memory_wanted(&u.claim));
	memory_shrink(&u.claim, 1);
	memory_give(&u.claim);
}

static void more_and_less(void **state)
{
	struct memory_account *a = account("x");
	struct user u;
	unsigned n = 0;

	(void)state;
	user_init(&u, a);
	assert_true(memory_take(&u.claim, UNIT));
	while (memory_grow(&u.claim, UNIT))
		n++;
	assert_int_equal(n, 15);
	assert_false(memory_wanted(&u.claim)); /* a refused one does not wait */
	memory_shrink(&u.claim, 2 * UNIT);
	assert_true(memory_grow(&u.claim, UNIT));
	assert_int_equal(memory_budget_used(budget), 15 * UNIT);
	memory_give(&u.claim);
	memory_account_free(a);
}

static void limit_raised(void **state)
{
	static struct user u[40];
	struct memory_account *a = account("x");
	unsigned i, granted = 0;

	(void)state;
	assert_int_equal(take_all(u, 40, a), 16);
	memory_budget_set(budget, 2 * MAX);
	for (i = 0; i < 40; i++)
		granted += u[i].granted > 0;
	assert_int_equal(granted, 16);
	memory_budget_set(budget, MAX); /* holders keep what they have */
	assert_int_equal(memory_budget_used(budget), 32 * UNIT);
	give_all(u, 40);
	memory_account_free(a);
}

/* ---- Charges ---- */

static void each_limit_of_charges(void **state)
{
	struct memory_account *a[5];
	static const char *const client[] = { "x", "x", "x", "y", "z" };
	struct ptcp_err e = { 0 };
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++)
		assert_int_equal(memory_account_new(&a[i], budget, client[i], NULL), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(memory_charge(a[i], 16 * UNIT, &e), 0);
		assert_int_equal(memory_charge(a[i], 1, &e), PTCP_ENOMEM);
		assert_non_null(strstr(e.msg, "quarter of the server's --max-memory, 8 MiB"));
	}
	assert_int_equal(memory_charge(a[2], 1, &e), PTCP_ENOMEM);
	assert_non_null(strstr(e.msg, "half of the server's --max-memory, 16 MiB"));
	assert_int_equal(memory_charge(a[3], 16 * UNIT, &e), 0);
	assert_int_equal(memory_charge(a[4], 9 * UNIT, &e), PTCP_ENOMEM);
	assert_int_equal(memory_charge(a[4], 4 * UNIT, &e), 0); /* a client with little may have of the last eighth */
	assert_int_equal(memory_budget_used(budget), 52 * UNIT);
	for (i = 3; i < 5; i++)
		memory_account_free(a[i]); /* releases its charges */
	assert_int_equal(memory_budget_used(budget), MAX / 2);
	memory_release(a[0], UNIT);
	assert_int_equal(memory_charge(a[2], UNIT, &e), 0);
	for (i = 0; i < 3; i++)
		memory_account_free(a[i]);
}

/* Two clients that keep all they can do not shut out others. */
static void total_of_charges(void **state)
{
	struct memory_account *a[4], *late[3];
	char client[] = "l";
	struct ptcp_err e = { 0 };
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(memory_account_new(&a[i], budget, i < 2 ? "a" : "b", NULL), 0);
		while (memory_charge(a[i], UNIT / 4, &e) == 0)
			;
	}
	assert_non_null(strstr(e.msg, "try again later"));
	for (i = 0; i < 3; i++, client[0]++) {
		assert_int_equal(memory_account_new(&late[i], budget, client, NULL), 0);
		assert_int_equal(memory_charge(late[i], 4 * UNIT, &e), i < 2 ? 0 : PTCP_ENOMEM);
	}
	for (i = 0; i < 4; i++)
		memory_account_free(a[i]);
	for (i = 0; i < 3; i++)
		memory_account_free(late[i]);
}

/* Streams move data whatever the sessions keep; a charge neither waits nor lets others wait for ever. */
static void charges_beside_claims(void **state)
{
	static struct user u[40];
	struct memory_account *a = account("x");
	unsigned i, got;

	(void)state;
	assert_int_equal(memory_charge(a, 15 * UNIT, NULL), 0);
	got = take_all(u, 40, a);
	assert_in_range(got, 1, 2);
	assert_int_equal(memory_charge(a, UNIT, NULL), 0); /* not held up by the claims that wait */
	memory_release(a, 16 * UNIT);
	for (i = got; i < 16; i++)
		assert_true(u[i].granted > 0);
	assert_int_equal(u[16].granted, 0);
	give_all(u, 40);
	assert_int_equal(memory_charge(a, 16 * UNIT, NULL), 0);
	user_init(&u[0], a);
	assert_true(memory_take(&u[0].claim, UNIT)); /* guaranteed */
	memory_give(&u[0].claim);
	memory_account_free(a);
}

static void allocations(void **state)
{
	struct memory_account *a = account("x");
	struct ptcp_err e = { 0 };
	unsigned char *p, *q;

	(void)state;
	p = memory_realloc(a, NULL, 0, 100, &e);
	assert_non_null(p);
	memset(p, 7, 100);
	assert_in_range(memory_budget_used(budget), 100, 128);
	p = memory_realloc(a, p, 100, 1 << 20, &e);
	assert_non_null(p);
	assert_int_equal(p[99], 7);
	assert_in_range(memory_budget_used(budget), 1 << 20, (1 << 20) + 64);
	q = memory_realloc(a, p, 1 << 20, 16 * UNIT + 1, &e);
	assert_null(q);
	assert_int_equal(e.code, PTCP_ENOMEM);
	assert_int_equal(p[99], 7); /* stays */
	assert_in_range(memory_budget_used(budget), 1 << 20, (1 << 20) + 64);
	memory_free(a, p, 1 << 20);
	assert_int_equal(memory_budget_used(budget), 0);
	memory_account_free(a);
	p = memory_realloc(NULL, NULL, 0, 100, &e); /* without an account */
	assert_non_null(p);
	memory_free(NULL, p, 100);
}

struct sums { uint64_t x, y; };

static void add_client(void *arg, const char *client, uint64_t bytes)
{
	struct sums *s = arg;

	*(client[0] == 'x' ? &s->x : &s->y) += bytes;
}

static void by_client(void **state)
{
	struct memory_account *a = account("x"), *b = account("x"), *c = account("y");
	struct sums s = { 0 };
	struct user u;

	(void)state;
	user_init(&u, a);
	assert_true(memory_take(&u.claim, UNIT));
	assert_int_equal(memory_charge(b, 3 * UNIT, NULL), 0);
	assert_int_equal(memory_charge(c, 5 * UNIT, NULL), 0);
	memory_budget_each(budget, add_client, &s);
	assert_int_equal(s.x, 4 * UNIT);
	assert_int_equal(s.y, 5 * UNIT);
	memory_give(&u.claim);
	memory_account_free(a);
	memory_account_free(b);
	memory_account_free(c);
}

/* ---- Turns ---- */

/* A client with many waiting claims has a turn, then a client with few. */
static void clients_in_rotation(void **state)
{
	static struct user u[4][16], greedy[100], small[2];
	struct memory_account *a[4], *g, *s;
	unsigned i, first;

	(void)state;
	for (i = 0; i < 4; i++) { /* fill it */
		a[i] = account(i < 2 ? "x" : "y");
		take_all(u[i], 16, a[i]);
	}
	g = account("greedy");
	s = account("small");
	take_all(greedy, 100, g);
	take_all(small, 2, s);
	assert_true(memory_wanted(&u[0][0].claim));
	order = 0;
	for (i = 0; i < 16; i++)
		memory_give(&u[0][i].claim);
	for (first = 0; first < 100 && greedy[first].granted == 0; first++)
		;
	assert_true(small[1].granted > 0);
	assert_in_range(small[1].granted, 1, 3); /* within two turns of the other */
	for (i = first; i + 1 < 100 && greedy[i + 1].granted > 0; i++)
		assert_true(greedy[i].granted < greedy[i + 1].granted); /* in order */
	for (i = 0; i < 4; i++) {
		give_all(u[i], 16);
		memory_account_free(a[i]);
	}
	give_all(greedy, 100);
	give_all(small, 2);
	memory_account_free(g);
	memory_account_free(s);
}

/* A newcomer does not overtake, even if it asks for less. */
static void no_overtaking(void **state)
{
	static struct user u[16];
	struct memory_account *a = account("x");
	struct user small;

	(void)state;
	assert_int_equal(take_all(u, 16, a), 16);
	user_init(&small, a);
	memory_shrink(&u[0].claim, UNIT / 2);
	memory_give(&u[1].claim);
	assert_true(memory_take(&u[1].claim, UNIT));
	assert_true(memory_take(&small.claim, UNIT / 2));
	memory_give(&small.claim);
	memory_give(&u[2].claim);
	assert_false(memory_take(&u[2].claim, 2 * UNIT));
	assert_false(memory_take(&small.claim, UNIT / 4));
	memory_give(&u[3].claim);
	assert_true(u[2].granted > 0 && small.granted > u[2].granted);
	give_all(u, 16);
	memory_give(&small.claim);
	memory_account_free(a);
}

/* A claim that waits no more does not stop those behind it. */
static void left_the_queue(void **state)
{
	static struct user u[18];
	struct memory_account *a = account("x");

	(void)state;
	assert_int_equal(take_all(u, 18, a), 16);
	memory_give(&u[16].claim);
	assert_int_equal(u[17].granted, 0);
	memory_give(&u[0].claim);
	assert_int_equal(u[16].granted, 0);
	assert_int_equal(u[17].granted, 1);
	give_all(u, 18);
	memory_account_free(a);
}

/* ---- Stalled holders ---- */

static void check_for(unsigned from_s, unsigned to_s)
{
	for (; from_s < to_s; from_s++)
		memory_budget_check(budget, (struct mono){ (from_s + 1) * NS_PER_S });
}

static void stalled(void **state)
{
	static struct user u[17];
	struct memory_account *a = account("x");
	unsigned i, s;

	(void)state;
	assert_int_equal(take_all(u, 16, a), 16);
	check_for(0, 60);
	for (i = 0; i < 16; i++)
		assert_int_equal(u[i].stalled, 0); /* nobody waits */
	for (s = 60; s < 70; s++) {
		u[3].moved++;
		check_for(s, s + 1);
	}
	user_init(&u[16], a);
	assert_false(memory_take(&u[16].claim, UNIT));
	check_for(70, 71);
	for (i = 0; i < 16; i++)
		assert_int_equal(u[i].stalled, i != 3); /* it has moved meanwhile */
	check_for(71, 79);
	assert_int_equal(u[3].stalled, 0);
	check_for(79, 82);
	assert_int_equal(u[3].stalled, 1);
	give_all(u, 17);
	memory_account_free(a);
}

/* Who has no more than its guaranteed part need not yield to other sessions. */
static void stalled_but_guaranteed(void **state)
{
	static struct user u[8][40], one;
	struct memory_account *a[8], *b = account("b");
	char client[] = "m";
	unsigned i;

	(void)state;
	user_init(&one, b);
	assert_true(memory_take(&one.claim, UNIT));
	for (i = 0; i < 8; i++, client[0]++) {
		a[i] = account(client);
		take_all(u[i], 40, a[i]);
	}
	assert_true(memory_wanted(&u[0][0].claim));
	assert_false(memory_wanted(&one.claim));
	check_for(0, 60);
	assert_int_equal(one.stalled, 0);
	assert_true(u[0][0].stalled > 0);
	for (i = 0; i < 8; i++) {
		give_all(u[i], 40);
		memory_account_free(a[i]);
	}
	memory_give(&one.claim);
	memory_account_free(b);
}

/* ---- All of it, at random ---- */

#define SESSIONS 12
#define STREAMS 30

static void random_use(void **state)
{
	static struct user u[SESSIONS][STREAMS];
	struct memory_account *a[SESSIONS];
	char client[] = "a";
	unsigned i, s, k, x = 1;
	struct user *v;
	uint64_t sum;

	(void)state;
	for (s = 0; s < SESSIONS; s++) {
		client[0] = (char)('a' + s / 3);
		a[s] = account(client);
		for (k = 0; k < STREAMS; k++)
			user_init(&u[s][k], a[s]);
	}
	for (i = 0; i < 200000; i++) {
		x = x * 1664525 + 1013904223;
		v = &u[x >> 8 & 0xffff ? (x >> 8) % SESSIONS : 0][(x >> 20) % STREAMS];
		if (v->claim.bytes == 0)
			memory_take(&v->claim, x >> 30 ? UNIT : UNIT + 96 * KIB);
		else if (x >> 31 || v->claim.waiting)
			memory_give(&v->claim);
		else if (x >> 29 & 1)
			memory_grow(&v->claim, 200 * KIB);
		else
			memory_shrink(&v->claim, v->claim.bytes / 3);
		assert_true(memory_budget_used(budget) <= MAX);
	}
	for (s = 0, sum = 0; s < SESSIONS; s++)
		for (k = 0; k < STREAMS; k++)
			sum += u[s][k].claim.waiting ? 0 : u[s][k].claim.bytes;
	assert_int_equal(sum, memory_budget_used(budget));
	for (i = 0; i < SESSIONS * STREAMS; i++) { /* when holders give it back, nobody waits for ever */
		for (s = 0, sum = 0; s < SESSIONS; s++)
			for (k = 0; k < STREAMS; k++) {
				if (u[s][k].claim.bytes > 0 && !u[s][k].claim.waiting)
					memory_give(&u[s][k].claim);
				sum += u[s][k].claim.waiting;
			}
		if (sum == 0)
			break;
	}
	assert_int_equal(sum, 0);
	assert_int_equal(memory_budget_used(budget), 0);
	for (s = 0; s < SESSIONS; s++)
		memory_account_free(a[s]);
}

#define budget_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		budget_test(each_limit), budget_test(guaranteed), budget_test(room_for_charges), budget_test(no_limit),
		budget_test(more_and_less), budget_test(limit_raised), budget_test(each_limit_of_charges),
		budget_test(total_of_charges), budget_test(charges_beside_claims), budget_test(allocations),
		budget_test(by_client), budget_test(clients_in_rotation), budget_test(no_overtaking),
		budget_test(left_the_queue), budget_test(stalled), budget_test(stalled_but_guaranteed),
		budget_test(random_use),
	};

	return cmocka_run_group_tests_name("core/memory_budget", tests, NULL, NULL);
}
