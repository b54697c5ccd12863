/* Metrics as Prometheus reads them, also with names of directories that need escapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/prometheus.h"

static void text_format(void **state)
{
	char text[256];
	FILE *f = fmemopen(text, sizeof text, "w");

	(void)state;
	assert_non_null(f);
	prometheus_gauge(f, "sessions", "Active sessions.", 3);
	prometheus_sample(f, "quota_bytes", "directory", "a \"b\\c\nd", 1234567890123456);
	fclose(f);
	assert_string_equal(text, "# HELP ptcp_sessions Active sessions.\n# TYPE ptcp_sessions gauge\n"
	    "ptcp_sessions 3\nptcp_quota_bytes{directory=\"a \\\"b\\\\c\\nd\"} 1234567890123456\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(text_format) };

	return cmocka_run_group_tests_name("core/prometheus", tests, NULL, NULL);
}
