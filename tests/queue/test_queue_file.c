/* Files of jobs: what they say, and what is wrong with them, by line and column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/err.h"
#include "queue/queue_file.h"

static char path[80];

static int check(void *arg, const char *name, struct queue_task *t, struct ptcp_err *e)
{
	(void)arg, (void)t;
	return strcmp(name, "wrong") == 0 ? err_set(e, PTCP_ECONFIG, "not so") : 0;
}

static int read_text(struct queue_file *f, const char *text, struct ptcp_err *e)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	return queue_file_read(f, path, 1700000000, check, NULL, e);
}

static void good(void **state)
{
	const struct queue_task *t;
	struct queue_file f;
	struct ptcp_err e;

	(void)state;
	if (read_text(&f, "jobs:\n"
	    "  - name: nightly\n    source: [/data/run7/, /data/run8/]\n    destination: ptcp://archive/run7/\n"
	    "    options: {streams: 4, delete: true, checksum: false, exclude: ['*.tmp', core]}\n"
	    "    priority: 5\n    on_failure: mail -s failed x@y\n    on_overdue: page me\n"
	    "    after: [other]\n    start: 22:00\n    deadline: 08:00\n    retries: 3\n"
	    "  - name: other\n    sources: /x\n    destination: h:y\n"
	    "  - {name: list, pairs: pairs.txt, after: other, priority: -1, "
	    "blackout: ['08:00-18:00', Sun 00:00-24:00]}\n"
	    "blackout: Mon-Fri 09:00-17:00\n", &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(f.n, 3);
	t = &f.job[0].task;
	assert_string_equal(f.job[0].name, "nightly");
	assert_int_equal(t->sources.n, 2);
	assert_string_equal(t->sources.of[1], "/data/run8/");
	assert_string_equal(t->destination, "ptcp://archive/run7/");
	assert_int_equal(t->options.n, 4);
	assert_string_equal(t->options.of[0], "streams=4");
	assert_string_equal(t->options.of[1], "delete");
	assert_string_equal(t->options.of[2], "exclude=*.tmp");
	assert_string_equal(t->options.of[3], "exclude=core");
	assert_string_equal(t->on_failure, "mail -s failed x@y");
	assert_null(t->on_success);
	assert_string_equal(t->on_overdue, "page me");
	assert_int_equal(t->priority, 5);
	assert_int_equal(t->retries, 3);
	assert_string_equal(t->after.of[0], "other");
	assert_int_equal(t->start_s, 1700000000 - 1700000000 % 86400 + 79200 + (1700000000 % 86400 >= 79200 ?
	    86400 : 0));
	assert_int_equal(t->deadline_s, t->start_s + 10 * 3600); /* the morning after */
	assert_int_equal(f.job[1].task.retries, QUEUE_RETRIES);
	assert_string_equal(f.job[2].task.pairs, "pairs.txt");
	assert_int_equal(f.job[2].task.priority, -1);
	assert_string_equal(f.job[2].task.blackout, "08:00-18:00,Sun 00:00-24:00");
	assert_string_equal(f.blackout, "Mon-Fri 09:00-17:00");
	assert_null(f.job[1].task.blackout);
	queue_file_fini(&f);
}

/* The next time that the clock of the wall shows: on the day on which it is put forward or back, and after. */
static void summer_time(void **state)
{
	static const struct { int64_t now_s, start_s; const char *start; } days[] = {
		{ 1711836000, 1711864800, "08:00" },   /* 2024-03-30 23:00 in Berlin: 08:00 is an hour less away */
		{ 1729976400, 1730012400, "08:00" },   /* 2024-10-26 23:00: an hour more */
		{ 1711836000, 1711849500, "03:45" },
	};
	struct queue_file f;
	struct ptcp_err e;
	char text[200];
	size_t i;
	FILE *out;

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	for (i = 0; i < sizeof days / sizeof *days; i++) {
		snprintf(text, sizeof text, "jobs: [{name: a, source: b, destination: 'h:c', start: '%s'}]",
		    days[i].start);
		assert_non_null(out = fopen(path, "w"));
		fputs(text, out);
		fclose(out);
		assert_int_equal(queue_file_read(&f, path, days[i].now_s, check, NULL, &e), 0);
		assert_int_equal(f.job[0].task.start_s, days[i].start_s);
		queue_file_fini(&f);
	}
	setenv("TZ", "UTC", 1);
	tzset();
}

static void bad(void **state)
{
	static const struct { const char *text, *want; } rows[] = {
		{ "hosts: []\n", ":1:1: jobs: expected jobs or blackout, got the unknown key 'hosts'" },
		{ "jobs: 3\n", ":1:7: jobs" },
		{ "jobs: [{source: a}]\n", "expected the key 'name'" },
		{ "jobs: [{name: a, source: b, destination: 'h:c', start: '2027-01-31T22:00', "
		    "deadline: '2027-01-31'}]\n",
		    "deadline: not a time after the start" },
		{ "jobs: [{name: a, source: b, destination: 'h:c', deadline: '2027-02-31'}]\n",
		    "deadline: not a time" },
		{ "jobs: [{name: a}]\n", ":1:8: a: nothing to transfer (add a source and a destination, or pairs)" },
		{ "jobs: [{name: a, source: b}]\n", "a: nothing to transfer" },
		{ "jobs: [{name: a, pairs: p, source: b}]\n", "a: pairs and a source or destination" },
		{ "jobs: [{name: -a, source: b, destination: 'h:c'}]\n", "name: not a name (up to 64 letters" },
		{ "jobs: [{name: a/b, source: b, destination: 'h:c'}]\n", "name: not a name (up to 64 letters" },
		{ "jobs: [{name: a, source: b, destination: 'h:c', priority: high}]\n",
		    "priority: not a whole number (-1000 to 1000)" },
		{ "jobs: [{name: a, source: b, destination: 'h:c', retries: -1}]\n",
		    "retries: not a whole number (0 to 1000)" },
		{ "jobs: [{name: a, source: b, destination: 'h:c', start: soon}]\n", "start: not a time to come" },
		{ "jobs: [{name: a, source: b, destination: 'h:c', start: 2001-01-01}]\n",
		    "start: not a time to come" },
		{ "jobs: [{name: a, source: b, destination: 'h:c', options: [x]}]\n", "options" },
		{ "jobs: [{name: a, source: b, destination: 'h:c', blackout: never}]\n",
		    "blackout: 'never': not a window" },
		{ "blackout: [00:00-12:00, 12:00-24:00]\njobs: []\n",
		    ":1:11: blackout: '00:00-12:00,12:00-24:00': covers" },
		{ "jobs: [{name: a, source: {b: c}, destination: 'h:c'}]\n", "source" },
		{ "jobs: [{name: wrong, source: b, destination: 'h:c'}]\n", ":1:8: wrong: not so" },
		{ "jobs:\n - {name: a, source: b, destination: 'h:c'}\n - {name: a, source: d, destination: 'h:e'}\n",
		    "two jobs are named a" },
	};
	struct queue_file f;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(read_text(&f, rows[i].text, &e), PTCP_ECONFIG);
		if (strncmp(e.msg, path, strlen(path)) != 0 || strstr(e.msg, rows[i].want) == NULL)
			fail_msg("%s: %s", rows[i].text, e.msg);
	}
}

static int setup(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	snprintf(path, sizeof path, "%s/jobs.XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	return mkstemp(path) < 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(summer_time),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests_name("queue/queue_file", tests, setup, teardown);
}
