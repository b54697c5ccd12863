/* against: strangers */
#include "net/admission.h"

#include <stdio.h>

#include "fixture.h"

#define WAITING 8u
#define STREAMS 4u

static struct admission *admission;
static struct mono now;

static int setup(void **state)
{
	now = (struct mono){ 1000 * NS_PER_S };
	if (nf_setup(state) != 0)
		return -1;
	return admission_new(&admission, WAITING, 2, STREAMS, NULL);
}

static int teardown(void **state)
{
	admission_free(admission);
	return nf_teardown(state);
}

static struct peer_address *knock(const char *address)
{
	return admission_begin(admission, address, now);
}

/* From host i of a flood of many. */
static struct peer_address *knock_from(unsigned i)
{
	char address[40];

	snprintf(address, sizeof address, "10.%u.%u.%u:1", i >> 16 & 255, i >> 8 & 255, i & 255);
	return knock(address);
}

static void sources_are_addresses(void **state)
{
	struct peer_address *a = knock("192.0.2.1:1000");

	(void)state;
	assert_non_null(a);
	assert_ptr_equal(knock("192.0.2.1:2"), a);
	assert_ptr_equal(knock("[::ffff:192.0.2.1]:2"), a);
	assert_ptr_not_equal(knock("192.0.2.2:1000"), a);
	a = knock("[2001:db8:0:1::1]:5");
	assert_ptr_equal(knock("[2001:db8:0:1:ffff::2]:5"), a);
	assert_ptr_not_equal(knock("[2001:db8:0:2::1]:5"), a);
	assert_ptr_equal(knock("[fe80::1%lo]:5"), knock("[fe80::2]:5"));
	assert_non_null(knock("ssh"));
}

static void who_has_the_most_goes(void **state)
{
	struct peer_address *flood = NULL, *client;
	unsigned i;

	(void)state;
	for (i = 0; i < WAITING; i++) {
		flood = knock("192.0.2.1:1");
		assert_null(admission_excess(admission, flood));
	}
	client = knock("192.0.2.2:1");
	assert_ptr_equal(admission_excess(admission, client), flood);
	admission_leave(admission, flood, ADMISSION_LOST);
	assert_null(admission_excess(admission, client));
	flood = knock("192.0.2.1:1");
	assert_ptr_equal(admission_excess(admission, flood), flood);
}

/* Each from an address of its own: then the oldest goes. */
static void of_equals_the_oldest_goes(void **state)
{
	struct peer_address *s[WAITING + 1];
	unsigned i;

	(void)state;
	for (i = 0; i <= WAITING; i++) {
		now = mono_add_ns(now, 1000);
		s[i] = knock_from(i);
	}
	assert_ptr_equal(admission_excess(admission, s[WAITING]), s[0]);
	admission_leave(admission, s[0], ADMISSION_LOST);
	now = mono_add_ns(now, 1000);
	s[0] = knock_from(0); /* again: now it is the youngest */
	assert_ptr_equal(admission_excess(admission, s[0]), s[1]);
}

/* 64 a second for ever, 1,024 at once, and not more; others are not shut out with it. */
static void too_fast_is_shut_out(void **state)
{
	unsigned i, in = 0;
	struct peer_address *s;

	(void)state;
	for (i = 0; i < 2000; i++)
		if ((s = knock("192.0.2.1:1")) != NULL) {
			in++;
			admission_leave(admission, s, ADMISSION_LOST);
		}
	assert_int_equal(in, 1024);
	assert_non_null(knock("192.0.2.2:1"));
	for (in = 0, i = 0; i < 1000; i++) {
		now = mono_add_ns(now, 10 * NS_PER_MS);
		if ((s = knock("192.0.2.1:1")) != NULL) {
			in++;
			admission_leave(admission, s, ADMISSION_LOST);
		}
	}
	assert_in_range(in, 635, 645); /* in 10 s */
	now = mono_add_ns(now, 16 * NS_PER_S);
	for (in = 0, i = 0; i < 2000; i++)
		in += knock("192.0.2.1:1") != NULL;
	assert_int_equal(in, 1024);
}

static void clients_pay_nothing_and_the_bad_pay_more(void **state)
{
	unsigned i, in = 0;
	struct peer_address *s;

	(void)state;
	for (i = 0; i < 5000; i++) {
		s = knock("192.0.2.1:1");
		assert_non_null(s);
		admission_leave(admission, s, ADMISSION_GOOD);
	}
	for (i = 0; i < 2000; i++)
		if ((s = knock("192.0.2.1:1")) != NULL) {
			in++;
			admission_leave(admission, s, ADMISSION_BAD);
		}
	assert_int_equal(in, 128);
}

/* Whatever strangers do, from there or elsewhere, streams of a running session have their place. */
static void sessions_have_room_of_their_own(void **state)
{
	struct peer_address *client = knock("192.0.2.1:1"), *s;
	unsigned i;

	(void)state;
	assert_false(admission_has_session(client));
	admission_session(admission, client, true);
	assert_true(admission_has_session(client));
	admission_leave(admission, client, ADMISSION_GOOD);
	for (i = 0; i < 3 * WAITING; i++) {
		s = knock_from(i);
		if (admission_excess(admission, s) != NULL)
			admission_leave(admission, admission_excess(admission, s), ADMISSION_LOST);
	}
	for (i = 0; i < 2 * STREAMS; i++) {
		assert_ptr_equal(knock("192.0.2.1:1"), client);
		assert_null(admission_excess(admission, client));
	}
	assert_ptr_equal(knock("192.0.2.1:1"), client); /* beyond: its own oldest */
	assert_ptr_equal(admission_excess(admission, client), client);
	admission_leave(admission, client, ADMISSION_LOST);
	for (i = 0; i < 5000; i++) { /* at any speed */
		assert_ptr_equal(knock("192.0.2.1:1"), client);
		admission_leave(admission, client, ADMISSION_BAD);
	}
	admission_session(admission, client, false); /* those that wait are strangers again, and in debt */
	assert_null(knock("192.0.2.1:1"));
	s = knock_from(9999);
	assert_ptr_equal(admission_excess(admission, s), client);
}

/* Addresses without number are forgotten, but none of which something waits or runs. */
static void many_addresses(void **state)
{
	struct peer_address *client = knock("192.0.2.1:1"), *s;
	unsigned i;

	(void)state;
	admission_session(admission, client, true);
	admission_leave(admission, client, ADMISSION_GOOD);
	for (i = 0; i < 100000; i++) {
		s = knock_from(i);
		assert_non_null(s);
		assert_ptr_not_equal(s, client);
		admission_leave(admission, s, ADMISSION_BAD);
	}
	assert_ptr_equal(knock("192.0.2.1:1"), client);
}

static void patience_is_bounded(void **state)
{
	static const char *const others[] = { "", "0", "-5", "61", "100", "5x", " 5", "+5", "1e1",
		"99999999999999999999", "0x9" };
	size_t i;

	(void)state;
	assert_int_equal(admission_patience_parse(NULL), 1);
	assert_int_equal(admission_patience_parse("1"), 1);
	assert_int_equal(admission_patience_parse("07"), 7);
	assert_int_equal(admission_patience_parse("60"), ADMISSION_PATIENCE_MAX);
	for (i = 0; i < sizeof others / sizeof *others; i++)
		assert_int_equal(admission_patience_parse(others[i]), 1);
	setenv(ADMISSION_PATIENCE, "3", 1);
	assert_int_equal(admission_limit_ns(10), 30);
	unsetenv(ADMISSION_PATIENCE);
	assert_int_equal(admission_limit_ns(10), 10);
}

#define admission_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		admission_test(sources_are_addresses), admission_test(who_has_the_most_goes),
		admission_test(of_equals_the_oldest_goes), admission_test(too_fast_is_shut_out),
		admission_test(clients_pay_nothing_and_the_bad_pay_more),
		admission_test(sessions_have_room_of_their_own), admission_test(many_addresses),
		admission_test(patience_is_bounded),
	};
	return cmocka_run_group_tests_name("net/admission", tests, NULL, NULL);
}
