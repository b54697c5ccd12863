/* Who is admitted next, who is refused, and which position is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/session_queue.h"

static const struct queue_limits limits = { .sessions = 4, .client_sessions = 3, .waiting = 12, .client_waiting = 8 };

static void arrive(struct session_queue *q, struct queue_entry *s, const char *client)
{
	assert_int_equal(queue_enter(q, s, client, &limits, NULL), 0);
	queue_wait(q, s);
}

/* Admits all that the limits permit, and returns the last letters of their clients, in order. */
static const char *admit(struct session_queue *q, const struct queue_limits *l, struct queue_entry *of,
    const char *names)
{
	static char order[64];
	struct queue_entry *s;
	size_t n = 0;

	while ((s = queue_next(q, l)) != NULL) {
		order[n++] = names[s - of];
		queue_admit(q, s);
	}
	order[n] = '\0';
	return order;
}

static void leave_all(struct session_queue *q, struct queue_entry *s, size_t n)
{
	while (n > 0)
		queue_leave(q, &s[--n], &limits);
	assert_int_equal(q->n_admitted, 0);
	assert_int_equal(q->n_waiting, 0);
	assert_true(list_empty(&q->clients) && list_empty(&q->waiting));
}

static void all_arrive(struct session_queue *q, struct queue_entry *s, const char *names)
{
	char name[2] = "";

	for (; *names != '\0'; names++) {
		name[0] = *names;
		arrive(q, s++, name);
	}
}

static void first_come_first_served(void **state)
{
	struct queue_entry s[5];
	struct session_queue q;

	(void)state;
	queue_init(&q);
	all_arrive(&q, s, "abcde");
	assert_string_equal(admit(&q, &limits, s, "abcde"), "abcd");
	assert_int_equal(queue_ahead(&q, &s[4], &limits), 0);
	queue_leave(&q, &s[1], &limits);
	assert_string_equal(admit(&q, &limits, s, "abcde"), "e");
	leave_all(&q, s, 5);
}

/* One client with many sessions, others with few, one session at a time. */
static void round_robin(void **state)
{
	static const char names[] = "aaaaabbc";
	const struct queue_limits one = { .sessions = 1, .client_sessions = 1, .waiting = 12, .client_waiting = 8 };
	char order[9] = "";
	struct queue_entry s[8], *next;
	struct session_queue q;
	size_t n = 0;

	(void)state;
	queue_init(&q);
	all_arrive(&q, s, names);
	while ((next = queue_next(&q, &one)) != NULL) {
		queue_admit(&q, next);
		assert_null(queue_next(&q, &one));
		order[n++] = names[next - s];
		queue_leave(&q, next, &one);
	}
	assert_string_equal(order, "abcabaaa");
	leave_all(&q, s, 8);
}

/* A newcomer gets the turn of the present, and none of the past: nobody starves. */
static void newcomers_do_not_starve_others(void **state)
{
	const struct queue_limits one = { .sessions = 1, .client_sessions = 1, .waiting = 12, .client_waiting = 8 };
	char name[2] = "b";
	struct queue_entry old[3], new[20], *next;
	struct session_queue q;
	unsigned i, served = 0;

	(void)state;
	queue_init(&q);
	all_arrive(&q, old, "aaa");
	for (i = 0; i < 20; i++) {
		name[0] = (char)('b' + i);
		arrive(&q, &new[i], name);
		next = queue_next(&q, &one);
		assert_non_null(next);
		queue_admit(&q, next);
		served += next >= old && next < old + 3;
		queue_leave(&q, next, &one);
		if (served == 3)
			break;
	}
	assert_in_range(i, 3, 14);
	leave_all(&q, new, i + 1);
}

static void limits_of_a_client(void **state)
{
	struct queue_entry s[6];
	struct session_queue q;
	struct ptcp_err why;

	(void)state;
	queue_init(&q);
	all_arrive(&q, s, "aaaaab");
	assert_string_equal(admit(&q, &limits, s, "aaaaab"), "abaa");
	queue_leave(&q, &s[5], &limits);
	assert_null(queue_next(&q, &limits)); /* there is room, but not for this client */
	assert_int_equal(queue_ahead(&q, &s[3], &limits), 0);
	assert_int_equal(queue_ahead(&q, &s[4], &limits), 1);
	assert_int_equal(queue_reason(&q, &s[3], &limits, &why), PTCP_EBUSY);
	assert_non_null(strstr(why.msg, "this client has 3 sessions"));
	queue_leave(&q, &s[0], &limits);
	assert_string_equal(admit(&q, &limits, s, "aaaaab"), "a");
	leave_all(&q, s, 6);
}

/* A client that its own limit held back does not go first afterwards. */
static void limited_clients_earn_no_precedence(void **state)
{
	struct queue_entry a[5], b[20];
	struct session_queue q;
	unsigned i;

	(void)state;
	queue_init(&q);
	all_arrive(&q, a, "aaaaa");
	assert_string_equal(admit(&q, &limits, a, "aaaaa"), "aaa");
	for (i = 0; i < 16; i++) { /* b comes and goes */
		arrive(&q, &b[i], "b");
		assert_ptr_equal(queue_next(&q, &limits), &b[i]);
		queue_admit(&q, &b[i]);
		if (i < 15)
			queue_leave(&q, &b[i], &limits);
	}
	arrive(&q, &b[16], "b");
	arrive(&q, &b[17], "b");
	queue_leave(&q, &a[0], &limits);
	assert_ptr_equal(queue_next(&q, &limits), &a[3]); /* a turn of the present, and b has just had one */
	queue_admit(&q, &a[3]);
	queue_leave(&q, &a[1], &limits);
	assert_ptr_equal(queue_next(&q, &limits), &b[16]);
	assert_int_equal(queue_ahead(&q, &a[4], &limits), 1);
	queue_leave(&q, &b[15], &limits);
	queue_leave(&q, &b[16], &limits);
	queue_leave(&q, &b[17], &limits);
	leave_all(&q, a, 5);
}

static void full(void **state)
{
	struct queue_entry s[14];
	struct session_queue q;
	struct ptcp_err why;

	(void)state;
	queue_init(&q);
	memset(s, 0, sizeof s);
	all_arrive(&q, s, "aaaaaaaa");
	assert_int_equal(queue_enter(&q, &s[8], "a", &limits, &why), PTCP_EBUSY);
	assert_non_null(strstr(why.msg, "8 sessions of this client wait"));
	all_arrive(&q, s + 8, "bbcc");
	assert_int_equal(queue_enter(&q, &s[12], "d", &limits, &why), PTCP_EBUSY);
	assert_non_null(strstr(why.msg, "12 sessions wait"));
	assert_null(s[12].client);
	queue_leave(&q, &s[12], &limits);
	queue_leave(&q, &s[3], &limits); /* gives up */
	assert_int_equal(queue_enter(&q, &s[12], "d", &limits, NULL), 0);
	assert_ptr_equal(queue_next(&q, &limits), &s[0]); /* d has not opened yet */
	queue_leave(&q, &s[12], &limits);
	leave_all(&q, s, 12);
}

static void positions(void **state)
{
	struct queue_entry s[8];
	struct session_queue q;
	unsigned i;

	(void)state;
	queue_init(&q);
	all_arrive(&q, s, "abcd");
	admit(&q, &limits, s, "abcd");
	all_arrive(&q, s + 4, "effg");
	assert_int_equal(queue_ahead(&q, &s[4], &limits), 0);
	assert_int_equal(queue_ahead(&q, &s[5], &limits), 1);
	assert_int_equal(queue_ahead(&q, &s[7], &limits), 2);
	assert_int_equal(queue_ahead(&q, &s[6], &limits), 3);
	for (i = 0; i < 4; i++) {
		queue_leave(&q, &s[i], &limits);
		queue_admit(&q, queue_next(&q, &limits));
	}
	assert_int_equal(s[6].state, QUEUE_ADMITTED);
	leave_all(&q, s, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(first_come_first_served), cmocka_unit_test(round_robin),
		cmocka_unit_test(newcomers_do_not_starve_others), cmocka_unit_test(limits_of_a_client),
		cmocka_unit_test(limited_clients_earn_no_precedence), cmocka_unit_test(full),
		cmocka_unit_test(positions) };

	return cmocka_run_group_tests_name("server/session_queue", tests, NULL, NULL);
}
