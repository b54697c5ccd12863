#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/yaml.h"
#include "conf/yaml_fields.h"

struct sample {
	char *name;
	uint64_t size, rate, time;
	bool flag;
	int list;
};

static const struct conf_field fields[] = {
	{ "name", CONF_TEXT, offsetof(struct sample, name), 1 },
	{ "size", CONF_SIZE, offsetof(struct sample, size), 0 },
	{ "rate", CONF_RATE, offsetof(struct sample, rate), 0 },
	{ "time", CONF_TIME, offsetof(struct sample, time), 0 },
	{ "flag", CONF_BOOL, offsetof(struct sample, flag), 0 },
	{ "list", CONF_NODE, offsetof(struct sample, list), 0 },
	{ NULL, CONF_TEXT, 0, 0 }
};

static int read_text(const char *text, size_t n, struct sample *s, struct ptcp_err *e)
{
	struct conf_doc *d = NULL;
	int r;

	*s = (struct sample){ .size = CONF_UNSET, .rate = CONF_UNSET, .time = CONF_UNSET };
	if ((r = conf_doc_parse(&d, text, n, "f.yaml", e)) == 0)
		r = conf_read_map(d, conf_doc_root(d), "sample", fields, s, e);
	conf_doc_free(d);
	free(s->name);
	s->name = NULL;
	return r;
}

static void reads_every_type(void **state)
{
	static const char text[] = "# comment\nname: \"x y\"\nsize: 1.5GB\nrate: 400Mbit/s\n"
	    "time: 20ms\nflag: true\nlist: [a, b]\n";
	struct sample s;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(read_text(text, sizeof text - 1, &s, &e), 0);
	assert_int_equal(s.size, 1500000000);
	assert_int_equal(s.rate, 400000000);
	assert_int_equal(s.time, 20000000);
	assert_true(s.flag);
	assert_true(s.list > 0);
}

static void defaults_stay(void **state)
{
	struct sample s;

	(void)state;
	assert_int_equal(read_text("name: x", 7, &s, NULL), 0);
	assert_true(s.size == CONF_UNSET && s.rate == CONF_UNSET && !s.flag && s.list == 0);
}

/* What is wrong, and where and how the message says so. */
static void errors_say_where_and_what(void **state)
{
	static const struct { const char *text, *want; } bad[] = {
		{ "", "f.yaml:1:1: expected a map" },
		{ "# nothing\n", "f.yaml:1:1: expected a map" },
		{ "- a\n", "f.yaml:1:1: sample: expected a map of keys, got a list" },
		{ "size: 1\n", "f.yaml:1:1: sample: expected the key 'name'" },
		{ "name: x\nsise: 1\n", "f.yaml:2:1: sample: expected name, size, rate, time, flag "
		    "or list, got the unknown key 'sise'" },
		{ "name: x\nname: y\n", "f.yaml:2:1: sample: expected each key once, got 'name'" },
		{ "name: x\nrate: -1Mbit/s\n", "f.yaml:2:7: sample: rate: expected a rate such as "
		    "400Mbit/s, got '-1Mbit/s'" },
		{ "name: x\nrate: 1MB\n", "f.yaml:2:7: sample: rate: expected a rate" },
		{ "name: x\nsize: 5s\n", "f.yaml:2:7: sample: size: expected a size such as 40GB" },
		{ "name: x\ntime: soon\n", "f.yaml:2:7: sample: time: expected a time" },
		{ "name: x\ntime:\n", "sample: time: expected a time such as 20ms or 2h, got ''" },
		{ "name: x\nflag: yes\n", "f.yaml:2:7: sample: flag: expected true or false" },
		{ "name: ''\n", "f.yaml:1:7: sample: name: expected text" },
		{ "name: [x]\n", "f.yaml:1:7: name: expected a single value, got a list" },
		{ "name: !!int 5\n", "f.yaml:1:7: name: expected no tag" },
		{ "name: !mine 5\n", "f.yaml:1:7: name: expected no tag, got !mine" },
		{ "name: \"a\\nb\"\n", "f.yaml:1:7: name: expected text without control" },
		{ "\"na\\x00me\": x\n", "expected text without control" },
		{ "name: x\n? [a]\n: b\n", "f.yaml:2:3: sample: expected a single value" },
		{ "name: x\n---\nname: y\n", "f.yaml:3:1: expected the end of the file" },
		{ "name: [x\n", "expected YAML" },
		{ "name: x\n\tsize: 1\n", "f.yaml:2:" },
		{ "name: *nobody\n", "f.yaml:1:7: expected YAML" },
		{ "name: \xff\n", "f.yaml:1:1: expected UTF-8 text" },
		{ "<<: {name: x}\n", "unknown key '<<'" },
		{ "name: x\n\"\\e[31m\": 1\n", "expected text without control" },
		{ "name: x\n\xc3\xa4: 1\n", "got the unknown key '\\xc3\\xa4'" },
	};
	struct sample s;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		memset(&e, 0, sizeof e);
		assert_int_equal(read_text(bad[i].text, strlen(bad[i].text), &s, &e),
		    PTCP_ECONFIG);
		if (strstr(e.msg, bad[i].want) == NULL || strncmp(e.msg, "f.yaml:", 7) != 0)
			fail_msg("for <%s>: <%s>, wanted <%s>", bad[i].text, e.msg, bad[i].want);
	}
}

/* Every prefix and every damaged byte of a good file: an answer, no crash. */
static void survives_damage(void **state)
{
	static const char good[] = "name: &a x\nsize: 1.5GB\nlist: [*a, {b: c}, \"d\\n\"]\n"
	    "flag: false\n";
	char text[sizeof good];
	struct sample s;
	size_t i;
	int c, ok = 0;

	(void)state;
	for (i = 0; i < sizeof good; i++)
		ok += read_text(good, i, &s, NULL) == 0;
	assert_in_range(ok, 1, sizeof good - 1);
	for (i = 0; i + 1 < sizeof good; i++)
		for (c = 0; c < 256; c += 3) {
			memcpy(text, good, sizeof good);
			text[i] = (char)c;
			read_text(text, sizeof good - 1, &s, NULL);
		}
}

static void limits(void **state)
{
	size_t n = CONF_SCALAR_MAX_BYTES + 100, i;
	char *text = malloc(n + 10), *p;
	struct sample s;
	struct ptcp_err e;

	(void)state;
	memcpy(text, "name: ", 6);
	memset(text + 6, 'x', n);
	assert_int_equal(read_text(text, n, &s, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "expected at most 4096 bytes"));
	free(text);

	/* libyaml alone would take hours. */
	n = 2000000;
	text = malloc(n);
	memset(text, '[', n);
	assert_int_equal(read_text(text, n, &s, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "f.yaml:1:33: expected at most 32 levels"));
	free(text);

	n = (size_t)CONF_FILE_MAX_BYTES + 1;
	text = malloc(n);
	for (i = 0, p = text; i < n; i++)
		*p++ = '\n';
	assert_int_equal(read_text(text, n, &s, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "expected at most 16777216 bytes"));
	free(text);
}

static void files(void **state)
{
	char dir[] = "/tmp/ptcp-yaml-XXXXXX", path[64];
	struct conf_doc *d = NULL;
	struct ptcp_err e;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(conf_doc_load(&d, dir, NULL, &e), PTCP_EIO);
	snprintf(path, sizeof path, "%s/a.yaml", dir);
	assert_int_equal(conf_doc_load(&d, path, NULL, &e), PTCP_EIO);
	assert_non_null(strstr(e.msg, "No such file"));
	assert_non_null(f = fopen(path, "w"));
	fputs("a: 1\n", f);
	fclose(f);
	assert_int_equal(conf_doc_load(&d, path, NULL, &e), 0);
	assert_int_equal(conf_doc_mark(d, conf_doc_root(d)).line, 1);
	conf_doc_free(d);
	unlink(path);
	rmdir(dir);
}

static void quoting(void **state)
{
	char b[CONF_QUOTED_BYTES], longer[300];

	(void)state;
	assert_string_equal(conf_quoted(b, "plain"), "plain");
	assert_string_equal(conf_quoted(b, "\x1b[0m\n"), "\\x1b[0m\\x0a");
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	assert_true(strlen(conf_quoted(b, longer)) < CONF_QUOTED_BYTES);
	assert_string_equal(b + strlen(b) - 2, "..");
	memset(longer, 1, sizeof longer - 1);
	assert_true(strlen(conf_quoted(b, longer)) < CONF_QUOTED_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_type),
		cmocka_unit_test(defaults_stay),
		cmocka_unit_test(errors_say_where_and_what),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(limits),
		cmocka_unit_test(files),
		cmocka_unit_test(quoting),
	};
	return cmocka_run_group_tests_name("conf/yaml", tests, NULL, NULL);
}
