/* A path that drops large packets: suspected after two stalls in a row of connections that delivered little. */
#include "engine/mtu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static bool lost(struct mtu *m, uint64_t delivered_bytes, double silent_s)
{
	return mtu_suspect(m, &(struct mtu_lost){ delivered_bytes, silent_s });
}

static void two_stalls(void **state)
{
	struct mtu m = { 0 };

	(void)state;
	assert_false(lost(&m, 3000, MTU_SILENT_S));
	assert_true(lost(&m, MTU_PROOF_BYTES - 1, MTU_SILENT_S));
	assert_true(m.reduced);
	assert_false(lost(&m, 0, MTU_SILENT_S)); /* once */
	assert_false(lost(&m, 0, MTU_SILENT_S));
}

/* A path whose MTU shrinks: the first connections to stall have delivered much. */
static void later(void **state)
{
	struct mtu m = { 0 };

	(void)state;
	assert_false(lost(&m, MTU_PROOF_BYTES, MTU_SILENT_S));
	assert_false(lost(&m, 1000, MTU_SILENT_S));
	assert_false(lost(&m, 100 * MTU_PROOF_BYTES, MTU_SILENT_S)); /* large packets do arrive */
	assert_false(lost(&m, 1000, MTU_SILENT_S));
	assert_true(lost(&m, 1000, MTU_SILENT_S));
}

/* A server that is killed resets all connections at once. */
static void lost_by_other_causes(void **state)
{
	struct mtu m = { 0 };
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++)
		assert_false(lost(&m, 1000, 0.2));
	assert_false(lost(&m, 1000, MTU_SILENT_S));
	assert_true(lost(&m, 1000, MTU_SILENT_S));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(two_stalls), cmocka_unit_test(later),
		cmocka_unit_test(lost_by_other_causes) };

	return cmocka_run_group_tests_name("engine/mtu", tests, NULL, NULL);
}
