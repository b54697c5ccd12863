#include "model/near.h"

#include <string.h>

#include "model/sender_limit.h"

static void what_holds_most(void **state)
{
	(void)state;
	assert_int_equal(limit_of(&(struct limit_times){ 0, 0, 0, 0 }), LIMIT_UNKNOWN);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 9.9, 0, 0 }), LIMIT_NETWORK);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 9.9, 3, 3 }), LIMIT_NETWORK);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 9.9, 6, 1 }), LIMIT_RECEIVE_WINDOW);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 9.9, 1, 6 }), LIMIT_SEND_BUFFER);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 3, 2, 0 }), LIMIT_APPLICATION);
}

static void what_holds_a_part(void **state)
{
	(void)state;
	assert_false(limit_by_parts(&(struct limit_times){ 0, 0, 0, 0 }));
	assert_false(limit_by_parts(&(struct limit_times){ 10, 8, 0.2, 0.1 }));
	assert_true(limit_by_parts(&(struct limit_times){ 10, 8, 0.5, 0 }));
	assert_true(limit_by_parts(&(struct limit_times){ 10, 8, 0, 0.5 }));
}

static void only_what_streams_do_not_cure_has_advice(void **state)
{
	(void)state;
	assert_null(limit_advice(LIMIT_UNKNOWN));
	assert_null(limit_advice(LIMIT_NETWORK));
	assert_non_null(strstr(limit_advice(LIMIT_SEND_BUFFER), "tcp_wmem"));
	assert_non_null(strstr(limit_advice(LIMIT_RECEIVE_WINDOW), "tcp_rmem"));
	assert_non_null(strstr(limit_advice(LIMIT_APPLICATION), "wrong cure"));
	assert_string_equal(limit_name(LIMIT_NETWORK), "network");
	assert_string_equal(limit_name(LIMIT_RECEIVE_WINDOW), "receive-window");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_holds_most),
		cmocka_unit_test(what_holds_a_part),
		cmocka_unit_test(only_what_streams_do_not_cure_has_advice),
	};
	return cmocka_run_group_tests_name("model/limit", tests, NULL, NULL);
}
