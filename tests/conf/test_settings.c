/* against: access */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/settings.h"

static char path[64];

static int load(struct conf_settings **s, const char *text, struct ptcp_err *e)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	*s = NULL;
	return conf_settings_load(s, path, e);
}

static void keys_and_lists(void **state)
{
	static const char *const want[][2] = {
		{ "root", "/a b" }, { "listen", ":1" }, { "listen", "[::1]:2" }, { "json", "true" },
	};
	struct conf_settings *s;
	struct ptcp_err e;
	size_t i;

	(void)state;
	assert_int_equal(load(&s, "# all kinds\nroot: \"/a b\"\nlisten:\n  - :1\n  - \"[::1]:2\"\njson: true\n", &e),
	    0);
	assert_int_equal(s->n, 4);
	for (i = 0; i < 4; i++) {
		assert_string_equal(s->of[i].key, want[i][0]);
		assert_string_equal(s->of[i].text, want[i][1]);
	}
	assert_int_equal(s->of[2].key_mark.line, 3);
	assert_int_equal(s->of[2].mark.line, 5);
	assert_int_equal(s->of[2].mark.column, 5);
	conf_settings_free(s);
	conf_settings_free(NULL);
}

static void blames(void **state)
{
	struct conf_settings *s;
	struct ptcp_err e;
	char want[128];

	(void)state;
	assert_int_equal(load(&s, "a: 1\n  \nroot:   x\n", &e), 0);
	e = (struct ptcp_err){ .code = PTCP_EUSAGE, .msg = "why" };
	assert_int_equal(conf_settings_blame(s, s->of[1].mark, &e), PTCP_ECONFIG);
	assert_int_equal(e.code, PTCP_ECONFIG);
	snprintf(want, sizeof want, "%s:3:9: why", path);
	assert_string_equal(e.msg, want);
	conf_settings_free(s);
}

/* Whatever is not keys with values is an error that says where. */
static void refused(void **state)
{
	static const struct {
		const char *text, *at, *says;
	} bad[] = {
		{ "", ":1:1: ", "got nothing" },
		{ "- a\n", ":1:1: ", "a map of keys" },
		{ "a: 1\na: 2\n", ":2:1: ", "each key once" },
		{ "a: []\n", ":1:4: ", "empty list" },
		{ "a: {b: 1}\n", ":1:4: ", "a single value" },
		{ "a: [1, [2]]\n", ":1:8: ", "a single value" },
		{ "a: !!int 1\n", ":1:4: ", "no tag" },
		{ "a: \"x\n", ":2:1: ", "YAML" },
		{ "a: 1\n---\nb: 2\n", ":3:1: ", "second document" },
	};
	struct conf_settings *s;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(load(&s, bad[i].text, &e), PTCP_ECONFIG);
		assert_null(s);
		if (strncmp(e.msg, path, strlen(path)) != 0 ||
		    strncmp(e.msg + strlen(path), bad[i].at, strlen(bad[i].at)) != 0 ||
		    strstr(e.msg, bad[i].says) == NULL)
			fail_msg("'%s': %s", bad[i].text, e.msg);
	}
	unlink(path);
	assert_int_equal(conf_settings_load(&s, path, &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOENT);
}

/* Settings decide what is served to whom. */
static void written_by_others(void **state)
{
	struct conf_settings *s;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(load(&s, "root: /a\n", &e), 0);
	conf_settings_free(s);
	assert_int_equal(chmod(path, 0620), 0);
	assert_int_equal(load(&s, "root: /a\n", &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "others can write it (chmod 600"));
	assert_null(s);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(load(&s, "root: /a\n", &e), 0);
	conf_settings_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_and_lists),
		cmocka_unit_test(blames),
		cmocka_unit_test(written_by_others),
		cmocka_unit_test(refused),
	};
	int fd, r;

	snprintf(path, sizeof path, "%s/ptcp-settings.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if ((fd = mkstemp(path)) < 0)
		return 1;
	close(fd);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return r;
}
