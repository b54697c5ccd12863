#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static unsigned n_suggested;

static const char *nearest(const char *text)
{
	static const char *const words[] = { "streams", "rate", "retry-for", "no-resume", "serve",
		"send", "recv", "key" };
	struct suggest s;
	size_t i;

	suggest_init(&s, text, strlen(text));
	for (i = 0; i < sizeof words / sizeof *words; i++)
		suggest_offer(&s, words[i]);
	return s.best != NULL ? s.best : "";
}

static void nearest_word(void **state)
{
	(void)state;
	assert_string_equal(nearest("stream"), "streams");
	assert_string_equal(nearest("stremas"), "streams"); /* two swapped */
	assert_string_equal(nearest("sned"), "send");
	assert_string_equal(nearest("snd"), "send");
	assert_string_equal(nearest("rcv"), "recv");
	assert_string_equal(nearest("kye"), "key");
	assert_string_equal(nearest("retry"), "retry-for"); /* an abbreviation */
	assert_string_equal(nearest("noresume"), "no-resume");
}

static void nothing_near(void **state)
{
	char much[200];

	(void)state;
	memset(much, 's', sizeof much - 1);
	much[sizeof much - 1] = '\0';
	assert_string_equal(nearest(""), "");
	assert_string_equal(nearest("k"), "");
	assert_string_equal(nearest("frobnicate"), "");
	assert_string_equal(nearest("ls"), "");
	assert_string_equal(nearest("parallel"), "");
	assert_string_equal(nearest(much), "");
}

static void habits(void **state)
{
	(void)state;
	assert_non_null(strstr(suggest_option("limit-rate", 10), "--rate"));
	assert_null(suggest_option("limit-rat", 9));
	assert_null(suggest_option("", 0));
	assert_non_null(strstr(suggest_command("get"), "ptcp recv"));
	assert_non_null(strstr(suggest_command("put"), "ptcp send"));
	assert_null(suggest_command("send"));
}

/* No misspelling of any option leads to one that removes files: letters left out, doubled, swapped, replaced, words
 * cut off
 * or joined. */
static void tries(const struct command *c, const char *name)
{
	char line[80], *argv[] = { line, NULL };
	struct ptcp_err e;
	const char *near;
	char found[64];
	int operands, r;

	if (options_find(c, name) != NULL || strlen(name) > 60)
		return;
	snprintf(line, sizeof line, "--%s", name);
	r = options_parse(c, 1, argv, NULL, &operands, NULL, &e);
	if (r >= 0 || (near = strstr(e.msg, "did you mean --")) == NULL || sscanf(near,
	    "did you mean --%63[a-z0-9-]", found) != 1)
		return;
	if (strstr(found, "delete") != NULL || strstr(found, "remove") != NULL || (strcmp(found, "recursive") == 0 &&
	    strcmp(c->name, "rm") == 0))
		fail_msg("ptcp %s --%s: did you mean --%s?", c->name, name, found);
	n_suggested++;
}

static void misspell(const struct command *c, const char *name)
{
	size_t n = strlen(name), i;
	char s[80];

	for (i = 0; i < n && n < 60; i++) {
		snprintf(s, sizeof s, "%.*s%s", (int)i, name, name + i + 1);
		tries(c, s);
		snprintf(s, sizeof s, "%.*s%s", (int)i + 1, name, name + i);
		tries(c, s);
		snprintf(s, sizeof s, "%s", name);
		s[i] = 'x';
		tries(c, s);
		if (i + 1 < n) {
			s[i] = name[i + 1];
			s[i + 1] = name[i];
			tries(c, s);
		}
		snprintf(s, sizeof s, "%.*s", (int)i, name);
		tries(c, s);
		tries(c, name + i);
	}
}

static void nothing_removes(void **state)
{
	const struct command *c;
	const struct opt_group *g;
	const struct opt *o;
	size_t i;

	(void)state;
	for (i = 0; (c = command_at(i)) != NULL; i++)
		for (g = c->options; g != NULL && g->options != NULL; g++)
			for (o = g->options; o->name != NULL; o++)
				misspell(c, o->name);
	assert_true(n_suggested > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearest_word), cmocka_unit_test(nothing_near), cmocka_unit_test(habits),
		cmocka_unit_test(nothing_removes),
	};

	return cmocka_run_group_tests_name("cli/suggest", tests, NULL, NULL);
}
