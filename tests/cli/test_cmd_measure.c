/* Output of ptcp measure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "cli/command.h"
#include "fake_ptcp.h"

static struct capture cap;
static const double rates[] = { 2e6, 4e6 };
static const struct ptcp_round rounds[] = {
	{ 3, 2, NULL, 5e6, rates, 17, "cubic" },
	{ 4, 2, "a stream was cut", 0, NULL, 0, "cubic" },
};
static const struct ptcp_round of_htcp = { 1, 2, NULL, 5e6, rates, 0, "htcp" };
static const struct ptcp_level clear[] = {
	{ 2, 5, 0, 5e6, 4.9e6, 5.1e6, 1e5, 2.5e6, 0.9, 1, 2e6, 3e6, 3e5 },
	{ 30, 5, 0, 5.1e6, 5e6, 5.2e6, 1e5, 1.7e5, 0.75, 2, 1e5, 3e5, 7e4 },
};
static const struct ptcp_level levels[] = {
	{ 2, 3, 1, 5e6, 4e6, 6e6, 1e6, 2.5e6, 0.9, 1, 1.5e6, 4e6, 8e5 },
	{ 20, 2, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 },
	{ 30, 2, 0, 5.1e6, 5e6, 5.2e6, 1e5, 1.7e5, 0.75, 2, 1e5, 3e5, 7e4 },
};

static json_t *only_object(void)
{
	json_error_t je;
	json_t *o = json_loads(cap.out, JSON_REJECT_DUPLICATES, &je);

	assert_int_equal(lines_of(cap.out), 1);
	assert_non_null(o);
	return o;
}

/* Compares the output with the object `expected`. */
static void assert_json(const char *expected)
{
	json_t *want = json_loads(expected, 0, NULL), *got = only_object();

	assert_non_null(want);
	if (!json_equal(want, got))
		fail_msg("%s is not %s", cap.out, expected);
	json_decref(want);
	json_decref(got);
}

/* Runs "ptcp measure OPTION VALUE host" with the given rounds and levels. */
static void measure(const char *option, const char *value, const struct ptcp_round *round, size_t n_rounds,
    const struct ptcp_level *level, size_t n_levels, unsigned saturates_at)
{
	char *argv[4] = { NULL };
	int argc = 0;

	fake_reset();
	fake.rounds = round;
	fake.n_rounds = n_rounds;
	fake.levels = level;
	fake.n_levels = n_levels;
	fake.saturates_at = saturates_at;
	if (option != NULL)
		argv[argc++] = (char *)(uintptr_t)option;
	if (value != NULL)
		argv[argc++] = (char *)(uintptr_t)value;
	argv[argc++] = (char *)(uintptr_t)"host";
	capture_begin(&cap);
	assert_int_equal(command_measure.run(&command_measure, argc, argv), 0);
	capture_end(&cap);
	assert_string_equal(cap.err, "");
}

static void rounds_as_json(void **state)
{
	(void)state;
	measure("--json", NULL, rounds, 1, NULL, 0, 0);
	assert_json("{\"event\":\"round\",\"streams\":2,\"ok\":true,\"throughput_bps\":5000000.0,"
	    "\"per_stream_bps\":[2000000.0,4000000.0],\"retransmits\":17}");
	measure("--json", NULL, rounds + 1, 1, NULL, 0, 0);
	assert_json("{\"event\":\"round\",\"streams\":2,\"ok\":false,\"throughput_bps\":null,"
	    "\"per_stream_bps\":[],\"retransmits\":null,\"error\":\"a stream was cut\"}");
}

static void summary_as_json(void **state)
{
	(void)state;
	measure("--json", NULL, NULL, 0, levels, 1, 0);
	assert_json("{\"event\":\"summary\",\"levels\":[{\"streams\":2,\"rounds\":3,\"failed\":1,"
	    "\"mean_bps\":5000000.0,\"min_bps\":4000000.0,\"max_bps\":6000000.0,\"stddev_bps\":1000000.0,"
	    "\"per_stream_mean_bps\":2500000.0,\"per_stream_min_bps\":1500000.0,\"per_stream_max_bps\":4000000.0,"
	    "\"per_stream_stddev_bps\":800000.0,\"fairness\":0.9,\"clusters\":1}],\"saturates_at\":null,\"certain\":false,"
	    "\"congestion\":null}");
	measure("--json", NULL, NULL, 0, levels + 1, 1, 2);
	assert_json("{\"event\":\"summary\",\"levels\":[{\"streams\":20,\"rounds\":2,\"failed\":2,"
	    "\"mean_bps\":null,\"min_bps\":null,\"max_bps\":null,\"stddev_bps\":null,"
	    "\"per_stream_mean_bps\":null,\"per_stream_min_bps\":null,\"per_stream_max_bps\":null,"
	    "\"per_stream_stddev_bps\":null,\"fairness\":null,\"clusters\":1}],\"saturates_at\":2,\"certain\":true,"
	    "\"congestion\":null}");
}

static void text_for_people(void **state)
{
	(void)state;
	measure(NULL, NULL, rounds, 2, levels, 3, 2);
	assert_ptr_equal(strstr(cap.out, "round 3 with 2: 5.00 Mbit/s, per stream 2.00 Mbit/s to "
	    "4.00 Mbit/s, 17 retransmitted\nround 4 with 2: failed: a stream was cut\n"), cap.out);
	assert_non_null(strstr(cap.out, "\n      2      3      1  5.00 Mbit/s  4.00 Mbit/s  "
	    "6.00 Mbit/s  1.00 Mbit/s    0.900      1\n"
	    "           per stream  2.50 Mbit/s  1.50 Mbit/s  4.00 Mbit/s   800 kbit/s\n"));
	assert_non_null(strstr(cap.out, "\n     20      2      2            -\n"));
	measure(NULL, NULL, NULL, 0, clear, 2, 2);
	assert_non_null(strstr(cap.out, "Saturates at 2 streams: additional streams add less than 5 %.\n"
	    "run: ptcp send --streams 2 ...\n"));
	measure("--direction", "recv", NULL, 0, clear, 2, 2);
	assert_non_null(strstr(cap.out, "\nrun: ptcp recv --streams 2 ...\n"));
	measure("-q", NULL, rounds, 2, clear, 2, 2); /* with all that the rates depend on */
	assert_non_null(strstr(cap.out, "\nrun: ptcp send --streams 2 --congestion cubic ...\n"));
	measure("-q", NULL, &of_htcp, 1, clear, 2, 2);
	assert_non_null(strstr(cap.out, "\nrun: ptcp send --streams 2 --congestion system ...\n"));
	measure("--json", NULL, rounds + 1, 1, clear, 1, 0);
	assert_non_null(strstr(cap.out, "\"congestion\":\"cubic\"}\n"));
	measure(NULL, NULL, NULL, 0, clear, 2, 0);
	assert_non_null(strstr(cap.out, "still increases at the highest number of streams.\n"
	    "run: ptcp measure --streams 30,60 ...\n"));
	measure("-q", NULL, rounds, 2, NULL, 0, 0);
	assert_string_equal(cap.out, "");
}

/* Deviations as large as the means, and a single round, tell nothing: more rounds do. */
static void when_it_cannot_tell(void **state)
{
	static const struct ptcp_level noisy[] = {
		{ 1, 3, 0, 171e6, 1e6, 400e6, 158e6, 171e6, 1, 1, 1e6, 400e6, 158e6 },
		{ 4, 3, 0, 231e6, 1e6, 400e6, 181e6, 58e6, 1, 1, 1e5, 1e8, 45e6 },
	};
	static const struct ptcp_level once[] = { { 4, 1, 0, 231e6, 231e6, 231e6, 0, 58e6, 1, 1, 58e6, 58e6, 0 } };

	(void)state;
	measure(NULL, NULL, NULL, 0, noisy, 2, 4);
	assert_null(strstr(cap.out, "Saturates"));
	assert_non_null(strstr(cap.out, "too much to tell how many streams are best: a mean is off by 53 % (standard "
	    "error).\nrun: ptcp measure --rounds 86 --streams 1,4 ...\n"));
	measure("-q", NULL, rounds, 1, noisy, 2, 4);
	assert_non_null(strstr(cap.out, "\nrun: ptcp measure --rounds 86 --congestion cubic --streams 1,4 ...\n"));
	measure(NULL, NULL, NULL, 0, once, 1, 0);
	assert_non_null(strstr(cap.out, "One round does not tell how many streams are best.\n"
	    "run: ptcp measure --rounds 5 --streams 4 ...\n"));
}

static char *temp(char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	return path;
}

static void csv_for_tables(void **state)
{
	char file[] = "/tmp/ptcp-measure-test-XXXXXX", text[256];
	FILE *f;

	(void)state;
	measure("--csv", temp(file), rounds, 2, NULL, 0, 0);
	assert_non_null(f = fopen(file, "r"));
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	unlink(file);
	assert_string_equal(text, "round,streams,ok,throughput_bps,retransmits,stream,stream_bps\n"
	    "3,2,1,5000000,17,0,2000000\n3,2,1,5000000,17,1,4000000\n4,2,0,,,,\n");
}

static void plots(void **state)
{
	static const char *const texts[] = { "<?xml", "fill=\"#ffffff\"", ">throughput saturates at 2 streams<",
		">2 streams<",
		">throughput (Mbit/s)<", ">streams<", ">rate of each stream<",
		">rate of a stream (Mbit/s)<", ">round<" };
	char file[] = "/tmp/ptcp-measure-test-XXXXXX", svg[100000];
	size_t i;
	FILE *f;

	(void)state;
	if (system("command -v gnuplot >/dev/null 2>&1") != 0)
		skip();
	measure("--plot", temp(file), rounds, 2, clear, 2, 2);
	assert_non_null(f = fopen(file, "r"));
	svg[fread(svg, 1, sizeof svg - 1, f)] = '\0';
	fclose(f);
	unlink(file);
	for (i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strstr(svg, texts[i]) == NULL)
			fail_msg("no %s in %s", texts[i], svg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_as_json),
		cmocka_unit_test(summary_as_json),
		cmocka_unit_test(text_for_people),
		cmocka_unit_test(when_it_cannot_tell),
		cmocka_unit_test(csv_for_tables),
		cmocka_unit_test(plots),
	};
	return cmocka_run_group_tests_name("cli/cmd_measure", tests, NULL, NULL);
}
