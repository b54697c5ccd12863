/* Hooks: their input, their failures, their time limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "capture.h"
#include "cli/hook.h"

/* What the hook and ptcp write to standard error. */
static void says(const char *command, double limit_s, const char *want)
{
	static struct capture c;
	json_t *object = json_pack("{s:i, s:s}", "a", 1, "b", "\xc3\xa4");

	capture_begin(&c);
	hook_run("--on-end", command, object, limit_s);
	capture_end(&c);
	json_decref(object);
	assert_string_equal(c.out, "");
	assert_string_equal(c.err, want);
}

static void input(void **state)
{
	(void)state;
	says("cat", 60, "{\"a\":1,\"b\":\"\\u00E4\"}\n");
	says("exec <&-", 60, "");
	says("head -c 3; echo", 60, "{\"a\n");
}

static void failures(void **state)
{
	(void)state;
	says("exit 7", 60, "ptcp: warning: the command of --on-end exited with status 7\n");
	says("kill -9 $$", 60, "ptcp: warning: the command of --on-end was ended by a signal (Killed)\n");
	says("sleep 600", 0.05,
	    "ptcp: warning: the command of --on-end has not ended after 0.05 s, and was ended (start it in "
	    "the background)\n");
}

/* An object larger than a pipe does not wait for its reader. */
static void large(void **state)
{
	static char text[500000];
	json_t *object;
	static struct capture c;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	object = json_pack("{s:s}", "a", text);
	capture_begin(&c);
	hook_run("--on-end", "sleep 0.1; wc -c", object, 60);
	capture_end(&c);
	json_decref(object);
	assert_string_equal(c.err, "500008\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input),
		cmocka_unit_test(failures),
		cmocka_unit_test(large),
	};

	return cmocka_run_group_tests_name("cli/hook", tests, NULL, NULL);
}
