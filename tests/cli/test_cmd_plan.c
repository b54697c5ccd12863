/* Text and JSON of ptcp plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "cli/command.h"
#include "plan/worked.h"

static char dir[] = "/tmp/ptcp-plan-test-XXXXXX";
static char overlay[64];
static struct capture cap;
static const char *const out = cap.out, *const err = cap.err;

static const char worked[] = "slot: 0.5s\n" WORKED_OVERLAY;

static void write_overlay(const char *text)
{
	FILE *f = fopen(overlay, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void slurp(const char *file, char *buf, size_t size)
{
	FILE *f = fopen(file, "r");
	size_t n = fread(buf, 1, size - 1, f);

	buf[n] = '\0';
	fclose(f);
}

/* Runs "ptcp plan ARGS.. OVERLAY" and captures the output. */
static int plan(const char *a1, const char *a2, const char *a3, const char *a4)
{
	const char *args[] = { a1, a2, a3, a4 };
	char *argv[6];
	int argc = 0, i, status;

	for (i = 0; i < 4; i++)
		if (args[i] != NULL)
			argv[argc++] = (char *)args[i];
	argv[argc++] = overlay;
	capture_begin(&cap);
	status = command_plan.run(&command_plan, argc, argv);
	capture_end(&cap);
	return status;
}

static double number(const json_t *o, const char *a, const char *b)
{
	const json_t *v = json_object_get(o, a);

	if (b != NULL)
		v = json_object_get(v, b);
	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void json_of_the_worked_example(void **state)
{
	json_t *o, *list;
	json_error_t je;
	double bytes = 0;
	size_t i;

	(void)state;
	write_overlay(worked);
	assert_int_equal(plan("--json", NULL, NULL, NULL), 0);
	assert_string_equal(err, "");
	assert_int_equal(lines_of(out), 1);
	assert_non_null(o = json_loads(out, 0, &je));
	assert_string_equal(json_string_value(json_object_get(o, "method")), "pipelined");
	assert_true(fabs(number(o, "makespan_s", NULL) - 1) < 1e-6);
	assert_true(fabs(number(o, "baselines", "direct_s") - 2) < 1e-6);
	assert_true(fabs(number(o, "baselines", "best_path_s") - 2) < 1e-6);
	assert_true(fabs(number(o, "baselines", "coordinated_s") - 1.5) < 1e-6);
	assert_true(fabs(number(o, "baselines", "pipelined_s") - 1) < 1e-6);
	assert_true(number(o, "solve_s", NULL) > 0);
	assert_true(number(o, "storage_bytes", "K") <= 1);
	list = json_object_get(o, "schedule");
	assert_true(json_array_size(list) >= 3);
	for (i = 0; i < json_array_size(list); i++) {
		const json_t *s = json_array_get(list, i);

		assert_true(number(s, "start_s", NULL) < number(s, "end_s", NULL));
		if (strcmp(json_string_value(json_object_get(s, "to")), "D") == 0)
			bytes += number(s, "bytes", NULL);
		assert_true(json_is_string(json_object_get(s, "from")));
		assert_true(json_is_string(json_object_get(s, "source")));
	}
	assert_true(bytes == 2e9);
	json_decref(o);
}

static void impossible_baselines_are_null(void **state)
{
	json_t *o;
	json_error_t je;

	(void)state;
	write_overlay("destination: D\nhosts: {D: {}, S: {data: 1MB}, K: {relay: true, storage: 0}}\n"
	    "links: [{from: S, to: K, rate: 8Mbit/s}, {from: K, to: D, rate: 8Mbit/s}]\n");
	assert_int_equal(plan("--json", NULL, NULL, NULL), 0);
	assert_non_null(o = json_loads(out, 0, &je));
	assert_true(json_is_null(json_object_get(json_object_get(o, "baselines"), "direct_s")));
	assert_true(json_is_null(json_object_get(json_object_get(o, "baselines"),
	    "coordinated_s")));
	assert_true(fabs(number(o, "baselines", "best_path_s") - 1) < 1e-6);
	json_decref(o);
	assert_int_equal(plan("--method", "coordinated", NULL, NULL), 7);
	assert_string_equal(out, "");
	assert_non_null(strstr(err, "ptcp: source S cannot reach D: relay K has no storage"));
}

static void text_and_what_if(void **state)
{
	(void)state;
	write_overlay(worked);
	assert_int_equal(plan("--method=coordinated", NULL, NULL, NULL), 0);
	assert_non_null(strstr(out, "coordinated: 1.5 s"));
	assert_non_null(strstr(out, "slots of 0.5 s"));
	assert_non_null(strstr(out, "No coordinated plan is shorter."));
	assert_non_null(strstr(out, "S1>K"));
	assert_int_equal(plan("--what-if", "K>D=4Gbit/s", NULL, NULL), 0);
	assert_non_null(strstr(out, "pipelined: 1.33333 s"));
}

static void exit_statuses(void **state)
{
	(void)state;
	write_overlay(worked);
	assert_int_equal(plan("--deadline", "0.9s", NULL, NULL), 7);
	assert_non_null(strstr(err, "ptcp: the data cannot arrive by the deadline"));
	assert_int_equal(plan("--deadline", "1s", NULL, NULL), 0);
	assert_int_equal(plan("--deadline", "soon", NULL, NULL), 2);
	assert_non_null(strstr(err, "ptcp: --deadline 'soon': "));
	assert_int_equal(plan("--method", "best", NULL, NULL), 2);
	assert_int_equal(plan("--what-if", "K>D", NULL, NULL), 2);
	assert_int_equal(plan("--what-if", "K>X=1", NULL, NULL), 2);
	assert_non_null(strstr(err, "K>X"));
	assert_int_equal(plan("--frobnicate", NULL, NULL, NULL), 2);
	assert_int_equal(plan("extra.yaml", NULL, NULL, NULL), 2);
	assert_int_equal(plan("--help", NULL, NULL, NULL), 0);
	assert_non_null(strstr(out, "usage: ptcp plan"));
	write_overlay("destination: D\nhosts: {D: {}}\nlinks: [{from: D, to: X, rate: 1}]\n");
	assert_int_equal(plan(NULL, NULL, NULL, NULL), 2);
	assert_non_null(strstr(err, "overlay.yaml:3:23: to: expected one of the hosts"));
	unlink(overlay);
	assert_int_equal(plan(NULL, NULL, NULL, NULL), 1);
	assert_non_null(strstr(err, "overlay.yaml: No such file"));
	assert_int_equal(lines_of(err), 1);
}

static void plots(void **state)
{
	char file[64], text[32];
	const char *path = getenv("PATH");
	char *kept = path != NULL ? strdup(path) : NULL;
	int without;

	(void)state;
	write_overlay(worked);
	snprintf(file, sizeof file, "%s/it's.svg", dir);
	setenv("PATH", dir, 1);
	without = plan("--plot", file, NULL, NULL);
	if (kept != NULL)
		setenv("PATH", kept, 1);
	free(kept);
	assert_int_equal(without, 1);
	assert_non_null(strstr(err, "gnuplot is not installed"));
	if (system("command -v gnuplot >/dev/null 2>&1") != 0)
		skip();
	assert_int_equal(plan("--method", "coordinated", "--plot", file), 0);
	assert_string_equal(err, "");
	slurp(file, text, sizeof text);
	assert_non_null(strstr(text, "<?xml"));
	unlink(file);
}

static void has_text(const char *svg, const char *fmt, int i)
{
	char want[100];

	snprintf(want, sizeof want, fmt, i);
	if (strstr(svg, want) == NULL)
		fail_msg("no %s in the plot", want);
}

/* 50 hosts: each link has a row with its rate, each source a key, and all is within the picture. */
static void many_hosts_are_legible(void **state)
{
	static char svg[2000000], text[20000];
	char file[64], *end;
	double y, height;
	size_t n;
	int i;

	(void)state;
	if (system("command -v gnuplot >/dev/null 2>&1") != 0)
		skip();
	n = (size_t)snprintf(text, sizeof text, "destination: D\nhosts:\n  D: {}\n");
	for (i = 1; i < 50; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "  site-%d.example.org: {data: 10TB, path: /s}\n", i);
	n += (size_t)snprintf(text + n, sizeof text - n, "links:\n");
	for (i = 1; i < 50; i++)
		n += (size_t)snprintf(text + n, sizeof text - n,
		    "  - {from: site-%d.example.org, to: D, rate: %d00Mbit/s}\n", i, i);
	write_overlay(text);
	snprintf(file, sizeof file, "%s/many.svg", dir);
	assert_int_equal(plan("--plot", file, NULL, NULL), 0);
	slurp(file, svg, sizeof svg);
	unlink(file);
	assert_non_null(end = strstr(svg, "<rect x=\"0\" y=\"0\" width=\""));
	assert_int_equal(sscanf(strstr(end, "height"), "height=\"%lf\" fill=\"#ffffff\"", &height), 1);
	for (i = 1; i < 50; i++) {
		has_text(svg, ">data of site-%d.example.org<", i);
		has_text(svg, ">site-%d.example.org>D (", i);
	}
	has_text(svg, ">490 TB from 49 sources in ", 0);
	has_text(svg, ">time (hours)<", 0);
	for (end = svg; (end = strstr(end, "translate(")) != NULL; end++)
		if (sscanf(end, "translate(%*f,%lf)", &y) == 1)
			assert_true(y > 0 && y < height);
}

/* Plots with a gnuplot that only keeps its script, and returns the script. */
static const char *script_of(const char *method)
{
	static char text[20000];
	char path[300], program[100], file[100], *kept = strdup(getenv("PATH"));
	FILE *f;

	snprintf(program, sizeof program, "%s/gnuplot", dir);
	snprintf(file, sizeof file, "%s/script", dir);
	assert_non_null(f = fopen(program, "w"));
	fprintf(f, "#!/bin/sh\n/bin/cp \"$1\" %s\n", file);
	fclose(f);
	assert_int_equal(chmod(program, 0755), 0);
	snprintf(path, sizeof path, "%s:%.200s", dir, kept);
	setenv("PATH", path, 1);
	assert_int_equal(plan("--method", method, "--plot", "/dev/null"), 0);
	setenv("PATH", kept, 1);
	free(kept);
	slurp(file, text, sizeof text);
	unlink(program);
	unlink(file);
	return text;
}

/* Two sources share a link at half its rate each: their boxes are stacked. */
static void shared_links_are_plotted(void **state)
{
	double top = 0, bottom = 0, y, other_bottom = 0;
	const char *text, *rows;

	(void)state;
	write_overlay("destination: D\nslot: 1s\nhosts: {D: {}, A: {data: 10MB, path: /a, relay: true}, S: {data: "
	    "10MB, path: /s}}\nlinks:\n  - {from: S, to: A, rate: 80Mbit/s}\n  - {from: A, to: D, rate: 80Mbit/s}\n");
	text = script_of("pipelined");
	assert_non_null(strstr(text, "background rgb 'white'"));
	assert_non_null(strstr(text, "\"A>D (80.0 Mbit/s)\""));
	assert_non_null(strstr(text, "\"S>A (40.0 Mbit/s)\""));
	assert_non_null(strstr(text, "set xlabel 'time (s)'"));
	assert_non_null(strstr(text, "set title '20.0 MB from 2 sources in 2.00 s (pipelined plan)'"));
	assert_non_null(rows = strstr(text, "$source1 << EOD\n"));
	assert_int_equal(sscanf(rows, "$source1 << EOD\n%*f %lf %*f %*f %lf %lf", &y, &bottom, &top), 3);
	assert_non_null(rows = strstr(text, "$source2 << EOD\n"));
	assert_int_equal(sscanf(rows, "$source2 << EOD\n%*f %*f %*f %*f %lf", &other_bottom), 1);
	assert_true(fabs(bottom - y - 0.45) < 1e-6 && fabs(bottom - top - 0.45) < 1e-6);
	assert_true(fabs(other_bottom - top) < 1e-6);
	assert_null(strstr(text, "stored")); /* nothing is */
	text = script_of("coordinated");
	assert_non_null(strstr(text, "set ylabel 'stored data (MB)'"));
	assert_non_null(strstr(text, "title 'at A'"));
}

static int set_up(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(overlay, sizeof overlay, "%s/overlay.yaml", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(overlay);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_of_the_worked_example),
		cmocka_unit_test(impossible_baselines_are_null),
		cmocka_unit_test(text_and_what_if),
		cmocka_unit_test(exit_statuses),
		cmocka_unit_test(plots),
		cmocka_unit_test(many_hosts_are_legible),
		cmocka_unit_test(shared_links_are_plotted),
	};
	return cmocka_run_group_tests_name("cli/cmd_plan", tests, set_up, tear_down);
}
