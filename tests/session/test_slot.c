/* The slot of a stream number: its states, walked pair by pair and event by event. */
#include "session/slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/units.h"

static struct slot fx;
static char a_stream, another_stream;
static struct stream *const first = (struct stream *)&a_stream, *const second = (struct stream *)&another_stream;
static const struct mono now = { 1000 * NS_PER_S };

static int setup(void **state)
{
	(void)state;
	slot_init(&fx, NULL, 7, NULL);
	return 0;
}

/* The table of slot.h. */
static const char *const may_follow[SLOT_STATES] = {
	[SLOT_IDLE] = "waiting connecting connected", [SLOT_WAITING] = "idle connecting connected",
	[SLOT_CONNECTING] = "idle moving", [SLOT_CONNECTED] = "idle moving closing",
	[SLOT_MOVING] = "connecting connected", [SLOT_CLOSING] = "idle"
};

static bool names(const char *list, const char *name)
{
	size_t n = strlen(name);
	const char *p;

	for (p = strstr(list, name); p != NULL; p = strstr(p + n, name))
		if ((p == list || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' '))
			return true;
	return false;
}

/* Whether the program ends by an assertion. */
static bool aborts(enum slot_state from, enum slot_state to)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		fx.state = from;
		slot_set_state(&fx, to);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void each_pair_of_states(void **state)
{
	unsigned from, to, legal = 0;

	(void)state;
	for (from = 0; from < SLOT_STATES; from++)
		for (to = 0; to < SLOT_STATES; to++) {
			bool may = names(may_follow[from], slot_state_name(to));

			assert_int_equal(slot_permits(from, to), may);
			assert_int_equal(aborts(from, to), from != to && !may);
			legal += may;
		}
	assert_int_equal(legal, 14);
	assert_false(slot_permits(SLOT_STATES, SLOT_IDLE));
	assert_false(slot_permits(SLOT_IDLE, SLOT_STATES));
}

/* ---- Events ---- */

enum event { BEGIN, END, JOIN, LOSE, CLOSE, FAIL, RETRY, EVENTS };

static bool possible(enum event e)
{
	switch (e) {
	case BEGIN: return slot_may_begin(&fx);
	case JOIN: return fx.stream == NULL;
	case LOSE: return fx.stream != NULL;
	case CLOSE: return fx.stream != NULL && !slot_attempts(&fx);
	default: return true;
	}
}

static void happen(enum event e)
{
	switch (e) {
	case BEGIN: slot_attempt_begins(&fx); break;
	case END: slot_attempt_ended(&fx); break;
	case JOIN: slot_connected(&fx, first, 0, 0, now); break;
	case LOSE: assert_ptr_equal(slot_disconnected(&fx), first); break;
	case CLOSE: slot_closes(&fx); break;
	case FAIL: slot_retry_later(&fx, now, 0); break;
	case RETRY: slot_retry_at(&fx, now); break;
	case EVENTS: break;
	}
}

static void is_consistent(void)
{
	assert_int_equal(fx.stream != NULL, fx.state == SLOT_CONNECTED || fx.state == SLOT_MOVING ||
	    fx.state == SLOT_CLOSING);
	assert_int_equal(slot_attempts(&fx), fx.state == SLOT_CONNECTING || fx.state == SLOT_MOVING);
	if (fx.state == SLOT_WAITING)
		assert_true(fx.retries > 0 && fx.retry_at.ns > now.ns);
	assert_false(slot_attempts(&fx) && slot_may_begin(&fx));
}

/* Every sequence of seven events: none asserts, and each state is reached. */
static void each_sequence_of_events(void **state)
{
	unsigned n, code, i, rest, reached = 0;

	for (n = 1, i = 0; i < 7; i++)
		n *= EVENTS;
	for (code = 0; code < n; code++) {
		setup(state);
		for (i = 0, rest = code; i < 7; i++, rest /= EVENTS) {
			if (!possible(rest % EVENTS))
				break;
			happen(rest % EVENTS);
			is_consistent();
			reached |= 1u << fx.state;
		}
	}
	assert_int_equal(reached, (1u << SLOT_STATES) - 1);
}

/* ---- Facts ---- */

static void a_connection_has_its_generation(void **state)
{
	(void)state;
	assert_int_equal(fx.generation, 0);
	slot_connected(&fx, first, 5, 0, now);
	assert_int_equal(fx.generation, 1);
	assert_true(fx.far == 5 && fx.since.ns == now.ns);
	fx.moved_bytes = 100;
	assert_ptr_equal(slot_disconnected(&fx), first);
	assert_int_equal(fx.generation, 1);
	assert_true(fx.stream == NULL && fx.far == 0 && fx.moved_bytes == 0);
	slot_connected(&fx, second, 0, 0, now); /* within the same nanosecond */
	assert_int_equal(fx.generation, 2);
}

/* The attempt leads to another mover of the peer, while the stream is connected to the earlier one. */
static void a_move_changes_the_end_with_the_connection(void **state)
{
	(void)state;
	fx.attempt.to = 1;
	slot_attempt_begins(&fx);
	slot_attempt_ended(&fx);
	slot_connected(&fx, first, 0, 0, now);
	assert_int_equal(fx.connected_to, 1);
	fx.attempt.to = 2;
	slot_attempt_begins(&fx);
	assert_int_equal(fx.state, SLOT_MOVING);
	assert_int_equal(fx.connected_to, 1);
	slot_attempt_ended(&fx);
	assert_int_equal(fx.state, SLOT_CONNECTED);
	slot_disconnected(&fx);
	slot_connected(&fx, second, 0, 0, now);
	assert_int_equal(fx.connected_to, 2);
}

static void pauses_grow_until_a_success(void **state)
{
	uint64_t pause_ns, before_ns = 0;
	unsigned i;

	(void)state;
	for (i = 0; i < 12; i++) {
		slot_retry_later(&fx, now, 128);
		pause_ns = mono_diff_ns(fx.retry_at, now);
		assert_true(i < 8 ? pause_ns > before_ns : pause_ns == before_ns);
		before_ns = pause_ns;
	}
	assert_true(before_ns > 12 * NS_PER_S && before_ns < 14 * NS_PER_S);
	assert_int_equal(fx.state, SLOT_WAITING);
	slot_reached(&fx);
	slot_retry_later(&fx, now, 128);
	assert_true(mono_diff_ns(fx.retry_at, now) < NS_PER_S / 5);
	slot_retry_at(&fx, now);
	assert_int_equal(fx.state, SLOT_IDLE);
	assert_true(fx.retries == 0 && fx.retry_at.ns == now.ns);
}

/* A failed move leaves the stream where it is. */
static void a_failed_move_waits_beside_the_stream(void **state)
{
	(void)state;
	slot_connected(&fx, first, 0, 0, now);
	slot_attempt_begins(&fx);
	slot_attempt_ended(&fx);
	slot_retry_later(&fx, now, 0);
	assert_int_equal(fx.state, SLOT_CONNECTED);
	assert_ptr_equal(fx.stream, first);
	assert_true(fx.retry_at.ns > now.ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_pair_of_states, setup),
		cmocka_unit_test_setup(each_sequence_of_events, setup),
		cmocka_unit_test_setup(a_connection_has_its_generation, setup),
		cmocka_unit_test_setup(a_move_changes_the_end_with_the_connection, setup),
		cmocka_unit_test_setup(pauses_grow_until_a_success, setup),
		cmocka_unit_test_setup(a_failed_move_waits_beside_the_stream, setup),
	};

	return cmocka_run_group_tests_name("session/slot", tests, NULL, NULL);
}
