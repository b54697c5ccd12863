/* A path that drops large packets: suspected after two stalls in a row of connections that delivered little. */
#include "engine/mtu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void two_stalls(void **state)
{
	struct mtu m = { 0 };

	(void)state;
	assert_false(mtu_stalled(&m, 3000));
	assert_true(mtu_stalled(&m, MTU_PROOF_BYTES - 1));
	assert_true(m.reduced);
	assert_false(mtu_stalled(&m, 0)); /* once */
	assert_false(mtu_stalled(&m, 0));
}

/* A path whose MTU shrinks: the first connections to stall have delivered much. */
static void later(void **state)
{
	struct mtu m = { 0 };

	(void)state;
	assert_false(mtu_stalled(&m, MTU_PROOF_BYTES));
	assert_false(mtu_stalled(&m, 1000));
	assert_false(mtu_stalled(&m, 100 * MTU_PROOF_BYTES)); /* large packets do arrive */
	assert_false(mtu_stalled(&m, 1000));
	assert_true(mtu_stalled(&m, 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(two_stalls), cmocka_unit_test(later) };

	return cmocka_run_group_tests_name("engine mtu", tests, NULL, NULL);
}
