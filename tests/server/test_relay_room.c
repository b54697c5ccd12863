/* Which connections a relay has room for: sessions cannot lock each other out, nor can one client the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/relay_room.h"

#define MOST 32

static const struct mono start = { 1000 };

static struct {
	struct relay_room room;
	struct relay_place place[MOST];
	struct relay_limits limits;
	struct mono now;
	struct ptcp_err why;
} t;

static void begin(unsigned places)
{
	memset(&t, 0, sizeof t);
	relay_room_init(&t.room);
	t.limits = (struct relay_limits){ places, places };
	t.now = start;
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < MOST; i++)
		relay_room_leave(&t.room, &t.place[i]);
	assert_int_equal(t.room.places, 0);
	relay_room_fini(&t.room);
	assert_true(list_empty(&t.room.clients));
}

static bool enters(unsigned i, const char *client, uint64_t session, bool control)
{
	int r = relay_room_enter(&t.room, &t.place[i], client, session, control, &t.limits, t.now, &t.why);

	assert_true(r == 0 || (r == PTCP_EBUSY && t.why.code == PTCP_EBUSY && t.place[i].client == NULL));
	assert_true(t.room.places <= t.limits.places);
	return r == 0;
}

static bool control(unsigned i, const char *client, uint64_t session) { return enters(i, client, session, true); }
static bool data(unsigned i, const char *client, uint64_t session) { return enters(i, client, session, false); }
static void leave(unsigned i) { relay_room_leave(&t.room, &t.place[i]); }

static void a_session_has_a_stream(void **state)
{
	(void)state;
	begin(4);
	assert_true(control(0, "a", 1));
	assert_int_equal(t.room.places, 2);
	assert_false(control(1, "a", 2)); /* it would have no stream */
	assert_non_null(strstr(t.why.msg, "half of --max-relayed 4"));
	assert_true(control(2, "b", 1)); /* another client's, with the same number */
	assert_false(control(3, "c", 3));
	assert_non_null(strstr(t.why.msg, "--max-relayed 4 there"));
	assert_null(strstr(t.why.msg, "half"));
	assert_true(data(4, "a", 1));
	assert_true(data(5, "b", 1));
	assert_int_equal(t.room.places, 4);
	assert_false(data(6, "a", 1));
	assert_non_null(strstr(t.why.msg, "another stream"));
	leave(0); /* comes back, whoever asks meanwhile */
	leave(5);
	assert_false(data(6, "a", 1));
	assert_false(control(7, "c", 3));
	assert_true(data(5, "b", 1));
	assert_true(control(0, "a", 1));
	end();
}

/* Whatever the order: two sessions of a client, each with more streams than there is room for. */
static void no_order_locks_out(void **state)
{
	unsigned order, i, who, running[2];

	(void)state;
	for (order = 0; order < 1u << 10; order++) {
		begin(4);
		memset(running, 0, sizeof running);
		for (i = 0; i < 10; i++) {
			who = order >> i & 1;
			/* A client opens streams behind its control connection only. */
			if (running[who] == 0)
				running[who] += control(i, "a", 1 + who);
			else
				running[who] += data(i, "a", 1 + who);
		}
		assert_true(running[0] == 0 || running[1] == 0);
		for (i = 0; i < 10 && running[0] + running[1] == 1; i++) /* has only just got its control connection */
			running[0] += data(10, "a", running[0] > 0 ? 1 : 2);
		assert_int_equal(running[0] + running[1], 2);
		end();
	}
}

static void further_streams_leave_room_to_who_waits(void **state)
{
	(void)state;
	begin(8);
	assert_true(control(0, "a", 1) && data(1, "a", 1) && data(2, "a", 1) && data(3, "a", 1));
	assert_true(control(4, "b", 2) && data(5, "b", 2) && data(6, "b", 2) && data(7, "b", 2));
	assert_false(control(8, "c", 3));
	leave(3);
	assert_false(data(3, "a", 1));
	assert_false(control(8, "c", 3)); /* one place is not enough */
	leave(7);
	assert_false(data(7, "b", 2));
	assert_true(control(8, "c", 3));
	assert_true(data(9, "c", 3));
	end();
}

static void who_asks_no_more_keeps_nothing(void **state)
{
	(void)state;
	begin(4);
	assert_true(control(0, "a", 1) && control(1, "b", 2) && data(2, "b", 2));
	assert_false(control(3, "c", 3));
	leave(1);
	leave(2);
	assert_false(data(4, "d", 0));
	t.now = mono_add_ns(start, RELAY_WAIT_NS);
	assert_true(data(4, "d", 0));
	end();
}

static void who_waits_for_its_own_sessions_delays_nobody(void **state)
{
	(void)state;
	begin(8);
	assert_true(control(0, "a", 1) && data(1, "a", 1) && data(2, "a", 1) && data(3, "a", 1));
	assert_false(control(4, "a", 2));
	assert_true(control(5, "b", 3) && data(6, "b", 3) && data(7, "b", 3) && data(8, "b", 3));
	leave(3);
	assert_false(data(3, "a", 1)); /* its own further streams it does */
	leave(2);
	assert_true(control(4, "a", 2));
	end();
}

static void half_for_a_client(void **state)
{
	unsigned i;

	(void)state;
	begin(7);
	for (i = 0; i < 4; i++)
		assert_true(data(i, "a", 0)); /* of no session: each takes a place */
	assert_false(data(4, "a", 0));
	assert_false(data(4, "a", 9));
	assert_true(control(5, "b", 1));
	assert_true(data(6, "b", 1) && data(7, "b", 1));
	assert_false(data(8, "b", 1));
	end();
	begin(2); /* the smallest relay carries a session, though that is more than half */
	assert_true(control(0, "a", 1) && data(1, "a", 1));
	end();
}

static void descriptors_are_short(void **state)
{
	(void)state;
	begin(3);
	t.limits.max = 512;
	assert_true(control(0, "a", 1));
	assert_false(control(1, "b", 2));
	assert_non_null(strstr(t.why.msg, "ulimit -n there"));
	assert_null(strstr(t.why.msg, "512"));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_has_a_stream),
		cmocka_unit_test(no_order_locks_out),
		cmocka_unit_test(further_streams_leave_room_to_who_waits),
		cmocka_unit_test(who_asks_no_more_keeps_nothing),
		cmocka_unit_test(who_waits_for_its_own_sessions_delays_nobody),
		cmocka_unit_test(half_for_a_client),
		cmocka_unit_test(descriptors_are_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
