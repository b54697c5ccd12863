#include "conf/settings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"

static int settings_add(struct conf_settings *s, const struct conf_doc *d, int key, int value, struct ptcp_err *e)
{
	struct conf_setting *more = realloc(s->of, (s->n + 1) * sizeof *more), *to;
	const char *name, *text;
	int r;

	if (more == NULL)
		return err_nomem(e);
	s->of = more;
	if ((r = conf_want_text(d, key, "settings", &name, e)) < 0 ||
	    (r = conf_want_text(d, value, name, &text, e)) < 0)
		return r;
	to = &s->of[s->n++];
	*to = (struct conf_setting){ strdup(name), strdup(text), conf_doc_mark(d, key), conf_doc_mark(d, value) };
	return to->key != NULL && to->text != NULL ? 0 : err_nomem(e);
}

static int add_list(struct conf_settings *s, const struct conf_doc *d, int key, int list, struct ptcp_err *e)
{
	const char *name;
	size_t i, n;
	int r;

	if ((r = conf_want_text(d, key, "settings", &name, e)) < 0 ||
	    (r = conf_want_list(d, list, name, CONF_SETTINGS_LIST_MAX, &n, e)) < 0)
		return r;
	if (n == 0)
		return conf_fail(d, list, e, "%s: expected a value, got an empty list (leave the key out)", name);
	for (i = 0; i < n && r == 0; i++)
		r = settings_add(s, d, key, conf_item(d, list, i), e);
	return r;
}

static int read_all(struct conf_settings *s, const struct conf_doc *d, struct ptcp_err *e)
{
	int root = conf_doc_root(d), r;
	size_t i, n, ignored;

	if ((r = conf_want_map(d, root, "settings", CONF_SETTINGS_MAX, &n, e)) < 0)
		return r;
	for (i = 0; i < n && r == 0; i++) {
		int key = conf_key(d, root, i), value = conf_value(d, root, i);

		if (conf_want_list(d, value, "", SIZE_MAX, &ignored, NULL) == 0)
			r = add_list(s, d, key, value, e);
		else
			r = settings_add(s, d, key, value, e);
	}
	return r;
}

int conf_settings_load(struct conf_settings **out, const char *path, struct ptcp_err *e)
{
	struct conf_settings *s = calloc(1, sizeof *s);
	struct conf_doc *d = NULL;
	const char *fault;
	char shown[TEXT_NAME_BYTES];
	int r;

	if (s == NULL || (s->file = strdup(text_escape(shown, sizeof shown, path))) == NULL) {
		free(s);
		return err_nomem(e);
	}
	if ((r = conf_doc_load(&d, path, &fault, e)) == 0)
		r = fault != NULL ? err_set(e, PTCP_ECONFIG, "%s: %s", s->file, fault) : read_all(s, d, e);
	conf_doc_free(d);
	if (r < 0)
		conf_settings_free(s);
	else
		*out = s;
	return r;
}

void conf_settings_free(struct conf_settings *s)
{
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; i < s->n; i++) {
		free(s->of[i].key);
		free(s->of[i].text);
	}
	free(s->of);
	free(s->file);
	free(s);
}

int conf_settings_blame(const struct conf_settings *s, struct conf_mark at, struct ptcp_err *e)
{
	return e->code = err_while(e, PTCP_ECONFIG, "%s:%d:%d", s->file, at.line, at.column);
}
