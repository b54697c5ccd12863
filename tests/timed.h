/* Tests that measure times or rates: one that fails beside others is repeated alone, see tests/run. */
#define timed_test(f) timed_test_setup_teardown(f, NULL, NULL)
#define timed_test_setup_teardown(f, setup, teardown) { #f " # measures time", f, setup, teardown, NULL }
