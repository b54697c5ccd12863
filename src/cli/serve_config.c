/* The configuration file of a daemon: each key is an option of `ptcp serve` without its dashes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/serve.h"
#include "core/err.h"
#include "core/text.h"

/* What only a command line can say. */
static bool belongs(const struct opt *o)
{
	return o != NULL && o->set != NULL && strcmp(o->name, "config") != 0 && strcmp(o->name, "one-time") != 0;
}

static int no_such_key(const struct command *c, const struct conf_setting *s, struct ptcp_err *e)
{
	const struct opt *const *t;
	const struct opt *o;
	char list[300] = "", q[CONF_QUOTED_BYTES];
	size_t n = 0;

	for (t = c->options; *t != NULL; t++)
		for (o = *t; o->name != NULL; o++)
			if (belongs(o) && n < sizeof list)
				n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n > 0 ? ", " : "",
				    o->name);
	return err_set(e, PTCP_ECONFIG, "expected one of %s, got the unknown key '%s'", list,
	    conf_quoted(q, s->key));
}

static int set_one(struct serve_args *a, const struct command *c, const struct conf_setting *s,
    struct ptcp_err *e)
{
	const struct opt *o = options_find(c, s->key);
	char q[CONF_QUOTED_BYTES];

	if (!belongs(o))
		return no_such_key(c, s, e);
	if (o->value != NULL)
		return o->set(a, o, s->text, e);
	if (strcmp(s->text, "true") != 0 && strcmp(s->text, "false") != 0)
		return err_set(e, PTCP_ECONFIG, "%s: expected true or false, got '%s'", o->name,
		    conf_quoted(q, s->text));
	return s->text[0] == 't' ? o->set(a, o, NULL, e) : 0;
}

static int default_path(char out[PTCP_PATH_BYTES], struct ptcp_err *e)
{
	int r;

	if ((r = ptcp_config_dir(out, PTCP_PATH_BYTES - sizeof "/config.yaml", e)) == 0)
		strcat(out, "/config.yaml");
	return r;
}

int serve_configure(struct serve_args *a, const struct command *c, const struct options_given *given,
    struct ptcp_err *e)
{
	char path[PTCP_PATH_BYTES];
	size_t i;
	int r;

	if (a->config == NULL && (r = default_path(path, e)) < 0)
		return r;
	r = conf_settings_load(&a->file, a->config != NULL ? a->config : path, e);
	if (r == PTCP_EIO && e->sys == ENOENT && a->config == NULL)
		return 0;
	if (r < 0) {
		e->code = PTCP_ECONFIG;
		return PTCP_ECONFIG;
	}
	for (i = 0; i < a->file->n; i++) {
		const struct conf_setting *s = &a->file->of[i];
		const struct opt *o = options_find(c, s->key);

		if (belongs(o) && options_is_given(given, o))
			continue;
		if (set_one(a, c, s, e) < 0)
			return conf_settings_blame(a->file, belongs(o) ? s->mark : s->key_mark, e);
	}
	return 0;
}
