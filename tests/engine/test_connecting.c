/* Decisions about attempts to connect streams. */
#include "engine/connecting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/units.h"

#define TIMEOUT_NS (30 * NS_PER_S)

static uint64_t patience_s(struct connecting c) { return connecting_patience_ns(&c, TIMEOUT_NS) / NS_PER_S; }

static void patience(void **state)
{
	struct connecting c = { .n_paths = 1 };

	(void)state;
	assert_int_equal(patience_s((struct connecting){ .n_paths = 0 }), 10);
	assert_int_equal(patience_s((struct connecting){ .n_paths = 1 }), 10);
	assert_int_equal(patience_s((struct connecting){ .n_paths = 2 }), 5);
	assert_int_equal(patience_s((struct connecting){ .n_paths = 1, .has_name = true }), 5); /* the name is next */
	assert_int_equal(patience_s((struct connecting){ .n_paths = 1, .has_name = true, .by_name = true }), 10);
	assert_int_equal(patience_s((struct connecting){ .n_paths = 2, .slow = true }), 20);
	assert_true(connecting_patience_ns(&c, NS_PER_S) == NS_PER_S); /* not longer than the session would wait */
}

static void patience_for_movers_of_the_acceptor(void **state)
{
	struct connecting c = { .n_paths = 1, .to_endpoint = true, .n_endpoints = 3 };

	(void)state;
	assert_int_equal(patience_s(c), 4);
	c.endpoint_failures = 1;
	assert_int_equal(patience_s(c), 10);
	c.endpoint_failures = 0;
	c.n_endpoints = 1; /* no other could carry the stream */
	assert_int_equal(patience_s(c), 10);
}

static void blocks_ahead_only_without_a_failure(void **state)
{
	(void)state;
	assert_true(connecting_sends_ahead(&(struct connecting){ .retries = 0 }));
	assert_false(connecting_sends_ahead(&(struct connecting){ .retries = 1 }));
	assert_false(connecting_sends_ahead(&(struct connecting){ .control = true }));
}

static enum connecting_blame blame(struct connecting c, struct connecting_failure f)
{
	return connecting_blame(&c, &f);
}

/* Each fact that excuses the path, alone. */
static void a_path_is_blamed_once(void **state)
{
	const struct connecting two = { .starter = true, .n_paths = 2, .n_relays = 1 };
	const struct connecting_failure f = { .hop = 1 };
	struct connecting c = two;

	(void)state;
	assert_int_equal(blame(two, f), CONNECTING_PATH);
	c.path_reported = true;
	assert_int_equal(blame(c, f), CONNECTING_NOBODY);
	c = two;
	c.path_streams = 1; /* another stream carries the path */
	assert_int_equal(blame(c, f), CONNECTING_NOBODY);
	c = two;
	c.starter = false;
	assert_int_equal(blame(c, f), CONNECTING_NOBODY);
	c = two;
	c.n_paths = 1; /* its failure ends the session, with the reason */
	assert_int_equal(blame(c, f), CONNECTING_NOBODY);
	c.n_paths = c.n_relays = 0;
	assert_int_equal(blame(c, f), CONNECTING_NOBODY);
}

static void a_slow_path_has_another_attempt(void **state)
{
	struct connecting c = { .starter = true, .n_paths = 2 };

	(void)state;
	assert_int_equal(blame(c, (struct connecting_failure){ .slow = true }), CONNECTING_NOBODY);
	c.slow = true;
	assert_int_equal(blame(c, (struct connecting_failure){ .slow = true }), CONNECTING_PATH);
}

static void the_only_relay_refuses_movers(void **state)
{
	struct connecting c = { .starter = true, .by_mover = true, .n_paths = 1, .n_relays = 1 };

	(void)state;
	assert_int_equal(blame(c, (struct connecting_failure){ .refused = true }), CONNECTING_PATH);
	assert_int_equal(blame(c, (struct connecting_failure){ .refused = false }), CONNECTING_NOBODY);
	c.by_mover = false;
	assert_int_equal(blame(c, (struct connecting_failure){ .refused = true }), CONNECTING_NOBODY);
	c.by_mover = true;
	c.n_relays = 0; /* the server itself refuses */
	assert_int_equal(blame(c, (struct connecting_failure){ .refused = true }), CONNECTING_NOBODY);
}

/* A mover of the acceptor is blamed on a direct path, or behind the last relay of the only path. */
static void movers_of_the_acceptor(void **state)
{
	struct connecting c = { .starter = true, .to_endpoint = true, .n_endpoints = 2 };

	(void)state;
	assert_int_equal(blame(c, (struct connecting_failure){ .hop = 0 }), CONNECTING_ENDPOINT);
	c.n_paths = 1;
	c.n_relays = 2;
	assert_int_equal(blame(c, (struct connecting_failure){ .hop = 2 }), CONNECTING_ENDPOINT);
	assert_int_equal(blame(c, (struct connecting_failure){ .hop = 1 }), CONNECTING_NOBODY);
	c.n_paths = 2; /* other paths may lead there */
	assert_int_equal(blame(c, (struct connecting_failure){ .hop = 2 }), CONNECTING_PATH);
	c.n_relays = 0;
	assert_int_equal(blame(c, (struct connecting_failure){ .hop = 0 }), CONNECTING_ENDPOINT);
}

static void without_any_stream(void **state)
{
	(void)state;
	assert_true(connecting_none_ns(false, false, 0, TIMEOUT_NS) == TIMEOUT_NS);
	assert_true(connecting_none_ns(false, false, 600 * NS_PER_S, TIMEOUT_NS) == TIMEOUT_NS);
	assert_true(connecting_none_ns(false, true, 600 * NS_PER_S, TIMEOUT_NS) == 600 * NS_PER_S);
	assert_true(connecting_none_ns(false, true, NS_PER_S, TIMEOUT_NS) == TIMEOUT_NS);
	assert_true(connecting_none_ns(true, false, 600 * NS_PER_S, TIMEOUT_NS) == 10 * NS_PER_S);
	assert_true(connecting_none_ns(true, false, 0, 6 * NS_PER_S) == 2 * NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patience),
		cmocka_unit_test(patience_for_movers_of_the_acceptor),
		cmocka_unit_test(blocks_ahead_only_without_a_failure),
		cmocka_unit_test(a_path_is_blamed_once),
		cmocka_unit_test(a_slow_path_has_another_attempt),
		cmocka_unit_test(the_only_relay_refuses_movers),
		cmocka_unit_test(movers_of_the_acceptor),
		cmocka_unit_test(without_any_stream),
	};

	return cmocka_run_group_tests_name("engine/connecting", tests, NULL, NULL);
}
