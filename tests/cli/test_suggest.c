#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/options.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearest_word), cmocka_unit_test(nothing_near), cmocka_unit_test(habits),
	};

	return cmocka_run_group_tests_name("cli/suggest", tests, NULL, NULL);
}
