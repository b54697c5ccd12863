/* Text and JSON of ptcp advise --from-probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "cli/command.h"
#include "cli/show/plot.h"

static struct capture cap;
static const char *const out = cap.out, *const err = cap.err;

/* Runs "ptcp advise LINE" and captures the output. */
static int advise(const char *line)
{
	char words[1024], *rest = words, *argv[16];
	int argc = 0, status;

	assert_true(strlen(line) < sizeof words);
	strcpy(words, line);
	while (rest != NULL)
		argv[argc++] = strsep(&rest, " ");
	capture_begin(&cap);
	status = command_advise.run(&command_advise, argc, argv);
	capture_end(&cap);
	return status;
}

/* The object printed for `line` with --json. */
static json_t *object(const char *line)
{
	char with[1024];
	json_error_t je;
	json_t *o;

	snprintf(with, sizeof with, "--json %s", line);
	assert_int_equal(advise(with), 0);
	assert_string_equal(err, "");
	assert_int_equal(lines_of(out), 1);
	assert_non_null(o = json_loads(out, JSON_REJECT_DUPLICATES, &je));
	return o;
}

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "(no string)";
}

static void assert_close(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fabs(b)))
		fail_msg("%.15g is not %.15g", a, b);
}

/* By hand: y(1) = 0.1, y(10) = 0.2 with rates in Mbit/s, so a = 0.1/9, b = 0.1 - a, and
 * impact(n) = 1 - 0.1 / (a n + b) is 10 % at n = 2 exactly. */
static void json_of_a_worked_example(void **state)
{
	json_t *o = object("--from-probes 1:10Mbit/s,10:50Mbit/s --max-streams 12"), *list, *model;
	size_t i;

	(void)state;
	assert_int_equal(json_object_size(o), 27);
	assert_close(number(o, "streams"), 2);
	assert_close(number(o, "throughput_bps"), 18e6);
	assert_close(number(o, "impact_percent"), 10);
	assert_close(number(o, "budget_percent"), 10);
	assert_string_equal(text(o, "limited_by"), "impact");
	assert_close(number(o, "impact_total_percent"), 20);
	assert_true(number(o, "throughput_low_bps") < 18e6 && number(o, "throughput_high_bps") > 18e6);
	assert_true(number(o, "impact_low_percent") < 10 && number(o, "impact_high_percent") > 10);
	assert_string_equal(text(o, "others"), "unknown");
	list = json_object_get(o, "choices");
	assert_int_equal(json_array_size(list), 3);
	assert_close(number(json_array_get(list, 0), "impact_percent"), 10);
	assert_string_equal(text(json_array_get(list, 0), "command"), "ptcp send --streams 2");
	assert_close(number(json_array_get(list, 1), "streams"), 1);
	assert_close(number(json_array_get(list, 2), "streams"), 12);
	assert_close(number(json_array_get(list, 2), "throughput_bps"), 54e6);
	assert_true(json_is_null(json_object_get(o, "congestion")));
	assert_true(json_is_null(json_object_get(o, "congestion_advice")));
	assert_string_equal(text(o, "limit"), "unknown");
	assert_true(json_is_false(json_object_get(o, "from_history")));
	assert_true(json_is_null(json_object_get(o, "age_s")) && json_is_null(json_object_get(o, "check_bps")));
	assert_true(json_is_null(json_object_get(o, "path_limit")));
	assert_true(json_is_null(json_object_get(o, "path_rate_bps")));
	list = json_object_get(o, "probes");
	assert_int_equal(json_array_size(list), 2);
	assert_close(number(json_array_get(list, 1), "streams"), 10);
	assert_close(number(json_array_get(list, 1), "throughput_bps"), 50e6);
	model = json_object_get(o, "model");
	assert_int_equal(json_object_size(model), 5);
	assert_string_equal(text(model, "name"), "fair-share");
	assert_close(number(model, "a"), 1e-7 / 9);
	assert_close(number(model, "b"), 8e-7 / 9);
	assert_close(number(model, "raw_a"), 1e-7 / 9);
	assert_close(number(model, "raw_b"), 8e-7 / 9);
	list = json_object_get(o, "curve");
	assert_int_equal(json_array_size(list), 12);
	for (i = 0; i < 12; i++) {
		const json_t *p = json_array_get(list, i);
		double n = (double)i + 1, y = (n + 8) / 9 * 1e-7;

		assert_close(number(p, "streams"), n);
		assert_close(number(p, "throughput_bps"), n / y);
		assert_true(fabs(number(p, "impact_percent") - 100 * (1 - 1e-7 / y)) < 1e-9);
	}
	json_decref(o);
}

static void each_model_by_name(void **state)
{
	json_t *o = object("--model partial-quadratic --from-probes 1:10Mbit/s,10:50Mbit/s"), *m;

	(void)state;
	assert_close(number(json_object_get(o, "model"), "a"), 3e-14 / 99);
	assert_close(number(o, "streams"), 2);
	assert_int_equal(json_array_size(json_object_get(o, "curve")), 32);
	json_decref(o);
	o = object("--model linear --from-probes 1:10Mbit/s,10:50Mbit/s");
	assert_string_equal(text(json_object_get(o, "model"), "name"), "linear");
	json_decref(o);
	o = object("--model quadratic --from-probes 1:10Mbit/s,4:25Mbit/s,10:40Mbit/s");
	m = json_object_get(o, "model");
	assert_string_equal(text(m, "name"), "quadratic");
	assert_int_equal(json_object_size(m), 7);
	assert_close(number(m, "raw_a") + number(m, "raw_b") + number(m, "raw_c"), 1e-14);
	json_decref(o);
	assert_int_equal(advise("--model quadratic --from-probes 1:10Mbit/s,10:50Mbit/s"), 2);
	assert_int_equal(advise("--model cubic --from-probes 1:10Mbit/s,10:50Mbit/s"), 2);
	assert_non_null(strstr(err, "ptcp: --model 'cubic': "));
}

/* Throughput more than linear, or decreasing, in the number of streams. */
static void degenerate_probes(void **state)
{
	json_t *o = object("--from-probes 1:10Mbit/s,10:110Mbit/s --max-streams 20");

	(void)state;
	assert_close(number(o, "streams"), 20);
	assert_string_equal(text(o, "limited_by"), "max-streams");
	assert_string_equal(text(o, "confidence"), "low");
	assert_non_null(strstr(text(o, "warning"), "saw no congestion"));
	assert_close(number(json_object_get(o, "model"), "a") + 1, 1);
	assert_true(number(json_object_get(o, "model"), "raw_a") < 0);
	json_decref(o);
	o = object("--from-probes 1:10Mbit/s,10:5Mbit/s");
	assert_close(number(o, "streams"), 1);
	assert_string_equal(text(o, "limited_by"), "saturated");
	assert_true(number(json_object_get(o, "model"), "raw_b") < 0);
	json_decref(o);
	o = object("--from-probes 1:10Mbit/s,2:15Mbit/s");
	assert_non_null(strstr(text(o, "warning"), "lie close together"));
	assert_non_null(strstr(text(o, "warning"), "; "));
	json_decref(o);
	o = object("--from-probes 1:10Mbit/s,10:50Mbit/s --impact 0");
	assert_close(number(o, "streams"), 1);
	json_decref(o);
	o = object("--from-probes 1:10Mbit/s,10:50Mbit/s --impact 100 --min-gain 5");
	assert_string_equal(text(o, "limited_by"), "gain");
	json_decref(o);
}

static void text_for_people(void **state)
{
	(void)state;
	assert_int_equal(advise("--from-probes 1:10Mbit/s,10:50Mbit/s"), 0);
	assert_string_equal(err, "");
	assert_ptr_equal(strstr(out,
	    "2 streams: 18.0 Mbit/s; any transfer takes 11 % from competing flows here; 2 streams take 10 % more "
	    "(budget 10 %)\nIn 80 % of cases "), out);
	assert_non_null(strstr(out,
	    "\nAn additional stream would slow competing flows by 18.2 %, which exceeds the budget.\nConfidence: low"));
	assert_non_null(strstr(out, "\nthis budget  10 %: about 18.0 Mbit/s, impact 10 %: ptcp send --streams 2\n"));
	assert_non_null(strstr(out, "\nthe fastest 100 %: about "));
	assert_string_equal(strstr(out, "\nrun: "), "\nrun: ptcp send --streams 2 ...\n");
	assert_non_null(strstr(out, "\nto be more certain: ptcp advise --probes 1,10,"));
	assert_non_null(strstr(out, "\n      10    50.0 Mbit/s    50.0 Mbit/s\n"));
	assert_non_null(strstr(out, "model fair-share: n / (a n + b) bit/s, a = 1.11111e-08 b = "));
	assert_non_null(strstr(out, "(fitted: a = 1.11111e-08"));
	assert_non_null(strstr(out, "\n       2    18.0 Mbit/s   10.0 %         20.0 %  <\n"));
	assert_non_null(strstr(out, "\n      32 "));
	assert_int_equal(advise("--from-probes 1:10Mbit/s,10:50Mbit/s --congestion bbr"), 0);
	assert_non_null(strstr(out, ": ptcp send --streams 2 --congestion bbr\n"));
	assert_non_null(strstr(out, "\nto be more certain: ptcp advise --congestion bbr --probes 1,10,"));
	assert_string_equal(strstr(out, "\nrun: "), "\nrun: ptcp send --streams 2 --congestion bbr ...\n");
	assert_int_equal(advise("--direction recv --from-probes 1:10Mbit/s,10:50Mbit/s"), 0);
	assert_string_equal(strstr(out, "\nrun: "), "\nrun: ptcp recv --streams 2 ...\n");
	assert_non_null(strstr(out, "impact 10 %: ptcp recv --streams 2\n"));
	assert_int_equal(advise("--from-probes 1:10Mbit/s,10:110Mbit/s --max-streams 1"), 0);
	assert_ptr_equal(strstr(out, "1 stream: "), out);
	assert_non_null(strstr(out, "; a second stream would take 0 % more"));
	assert_non_null(strstr(out, "--max-streams"));
	assert_int_equal(advise("--from-probes 1:10Mbit/s,10:5Mbit/s"), 0);
	assert_non_null(strstr(out, "Additional streams would add no throughput."));
}

static void what_cannot_be_parsed(void **state)
{
	static const char *const bad[] = {
		"", "1", ":", "1:", ":5", "0:5", "1:0", "-1:5", "1:-5", "1:nan", "1:inf", "1:5,", "1:5,,2:5",
		"1:1e300", "1.5:3", "99999999999:1", "1:5Mbyte", "+1:5", "1: ",
	};
	char line[1200] = "--from-probes ";
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(line, sizeof line, "--from-probes=%s", bad[i]);
		if (advise(line) != 2 || *out != '\0' || lines_of(err) != 1)
			fail_msg("'%s': %s%s", bad[i], out, err);
		assert_non_null(strstr(err, "ptcp: --from-probes '"));
	}
	strcpy(line, "--from-probes=1:5");
	for (i = 0; i < PTCP_PROBES_MAX; i++)
		strcat(line, ",10:9");
	assert_int_equal(advise(line), 2);
	assert_non_null(strstr(err, "more than 64"));
	assert_int_equal(advise("--from-probes 1:5"), 2);
	assert_int_equal(advise("--from-probes 4:5,4:6"), 2);
	assert_non_null(strstr(err, "2 different numbers of streams"));
	assert_int_equal(advise("--from-probes 1:5,9:9 --impact 101"), 2);
	assert_int_equal(advise("--from-probes 1:5,9:9 --impact 1e1"), 2);
	assert_int_equal(advise("--from-probes 1:5,9:9 --impact ."), 2);
	assert_int_equal(advise("--from-probes 1:5,9:9 --min-gain -1"), 2);
	assert_int_equal(advise("--from-probes 1:5,9:9 --probe-time 2s"), 2);
	assert_int_equal(advise("--from-probes 1:5,9:9 --probe-time 51s"), 2);
	assert_int_equal(advise("--from-probes 1:5,9:9 --max-streams 0"), 2);
	assert_non_null(strstr(err, "ptcp: --max-streams '0': "));
	assert_int_equal(advise("--from-probes 1:5,9:9 host"), 2);
	assert_int_equal(advise("--help"), 0);
	assert_non_null(strstr(out, "usage: ptcp advise"));
}

static void plots(void **state)
{
	static const char *const texts[] = { "<?xml", "fill=\"#ffffff\"", ">throughput (Mbit/s)<",
		">impact: slowdown of each competing flow<", ">2 streams: 18.0 Mbit/s, impact 10 %<", ">streams<",
		">budget (right)<" };
	char file[] = "/tmp/ptcp-advise-test-XXXXXX", line[128], svg[100000];
	size_t i;
	FILE *f;
	int fd = mkstemp(file);

	(void)state;
	assert_true(fd >= 0);
	if (system("command -v gnuplot >/dev/null 2>&1") != 0) {
		close(fd);
		unlink(file);
		skip();
	}
	snprintf(line, sizeof line, "--from-probes 1:10Mbit/s,10:50Mbit/s --plot %s", file);
	assert_int_equal(advise(line), 0);
	assert_string_equal(err, "");
	assert_non_null(f = fdopen(fd, "r"));
	svg[fread(svg, 1, sizeof svg - 1, f)] = '\0';
	fclose(f);
	for (i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strstr(svg, texts[i]) == NULL)
			fail_msg("no %s in %s", texts[i], svg);
	unlink(file);
	assert_int_equal(advise("--from-probes 1:5,9:9 --plot /proc/nonexistent/a.svg"), 1);
	assert_non_null(strstr(err, "ptcp: --plot /proc/nonexistent/a.svg: gnuplot: "));
}

/* No two texts of an axis, which are in one line or column, are the same. Returns the number of texts. */
static size_t has_distinct_texts(const char *svg)
{
	struct { double x, y; char text[40]; } t[200];
	size_t n = 0, i, k;

	while ((svg = strstr(svg, "translate(")) != NULL) {
		assert_true(n < sizeof t / sizeof *t);
		n += sscanf(svg, "translate(%lf,%lf)%*[^>]>%*[^<]<text>%39[^<]", &t[n].x, &t[n].y, t[n].text) == 3;
		svg++;
	}
	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			if ((t[i].x == t[k].x || t[i].y == t[k].y) && strcmp(t[i].text, t[k].text) == 0 &&
			    strspn(t[i].text, "0123456789. %") == strlen(t[i].text) && strcmp(t[i].text, "0") != 0)
				fail_msg("%s is twice on an axis", t[i].text);
	return n;
}

static void ticks_are_distinct(void **state)
{
	static const char *const probes[] = { "1:100bit/s,10:300bit/s", "1:1Gbit/s,10:2Gbit/s",
		"1:90Gbit/s,10:100Gbit/s",
		"1:999kbit/s,2:1Mbit/s --max-streams 3", "1:1Mbit/s,64:30Mbit/s --max-streams 200" };
	char file[] = "/tmp/ptcp-advise-test-XXXXXX", line[200];
	static char svg[100000];
	int fd = mkstemp(file);
	size_t i;
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (i = 0; system("command -v gnuplot >/dev/null 2>&1") == 0 && i < sizeof probes / sizeof *probes; i++) {
		snprintf(line, sizeof line, "--plot %s --from-probes %s", file, probes[i]);
		assert_int_equal(advise(line), 0);
		assert_non_null(f = fopen(file, "r"));
		svg[fread(svg, 1, sizeof svg - 1, f)] = '\0';
		fclose(f);
		assert_true(has_distinct_texts(svg) > 10);
	}
	unlink(file);
	if (i == 0)
		skip();
}

static void units_of_axes(void **state)
{
	const char *prefix;

	(void)state;
	assert_true(plot_unit(1.3e9, &prefix) == 1e9);
	assert_string_equal(prefix, "G");
	assert_true(plot_unit(999e6, &prefix) == 1e6);
	assert_string_equal(prefix, "M");
	assert_true(plot_unit(0, &prefix) == 1);
	assert_string_equal(prefix, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_of_a_worked_example),
		cmocka_unit_test(each_model_by_name),
		cmocka_unit_test(degenerate_probes),
		cmocka_unit_test(text_for_people),
		cmocka_unit_test(what_cannot_be_parsed),
		cmocka_unit_test(plots),
		cmocka_unit_test(ticks_are_distinct),
		cmocka_unit_test(units_of_axes),
	};
	return cmocka_run_group_tests_name("cli/cmd_advise", tests, NULL, NULL);
}
