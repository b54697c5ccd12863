/* libFuzzer target: the settings file of serve. What is taken is what a command line could have said; what is not has a
 * sentence that says where. */
#include "cli/serve.h"
#include "conf/settings.h"
#include "core/err.h"
#include "fuzz.h"
#include "scratch.h"

static void load(const char *path)
{
	struct conf_settings *s = NULL;
	struct ptcp_err e = { 0 };
	int r = conf_settings_load(&s, path, &e);
	size_t i;

	MUST(r == 0 ? s != NULL : r == e.code && e.msg[0] != '\0');
	for (i = 0; r == 0 && i < s->n; i++)
		MUST(s->of[i].key != NULL && s->of[i].text != NULL);
	MUST(r < 0 || s->n <= CONF_SETTINGS_MAX * CONF_SETTINGS_LIST_MAX);
	conf_settings_free(s);
}

static void obey(const char *path)
{
	char option[] = "--config", *argv[] = { option, NULL, NULL };
	struct ptcp_err e = { 0 };
	struct serve_args a;
	int r;

	argv[1] = strdup(path);
	MUST(argv[1] != NULL);
	r = serve_parse(&a, &command_serve, 2, argv, &e);
	MUST(r == 0 || (r == e.code && e.msg[0] != '\0'));
	if (r == PTCP_ECONFIG)
		MUST(strstr(e.msg, "settings") != NULL);
	serve_args_fini(&a);
	free(argv[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	scratch_write("settings", (struct input){ data, n });
	load(scratch_path("settings"));
	obey(scratch_path("settings"));
	return 0;
}
