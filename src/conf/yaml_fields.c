#include "conf/yaml_fields.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

static int bad_value(const struct conf_doc *d, int node, const char *what, const char *key,
    const char *expected, const char *text, struct ptcp_err *e)
{
	char q[CONF_QUOTED_BYTES];

	return conf_fail(d, node, e, "%s: %s: expected %s, got '%s'", what, key, expected,
	    conf_quoted(q, text));
}

/* Digits and a dot: strtod() alone would accept "1e1", "inf". */
static int parse_percent(const char *text, double *ratio)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || text[strspn(text, "0123456789.")] != '\0' || *end != '\0' || v > 100)
		return -1;
	*ratio = v / 100;
	return 0;
}

static int read_field(const struct conf_doc *d, int node, const char *what,
    const struct conf_field *f, void *dst, struct ptcp_err *e)
{
	static const struct {
		int (*parse)(const char *, uint64_t *);
		const char *expected;
	} numbers[] = {
		[CONF_SIZE] = { units_parse_size, "a size such as 40GB" },
		[CONF_RATE] = { units_parse_rate, "a rate such as 400Mbit/s" },
		[CONF_TIME] = { units_parse_time, "a time such as 20ms or 2h" },
	};
	char *at = (char *)dst + f->offset;
	const char *text;
	uint64_t v;
	int r;

	if (f->type == CONF_NODE) {
		*(int *)(void *)at = node;
		return 0;
	}
	if ((r = conf_want_text(d, node, f->key, &text, e)) < 0)
		return r;
	switch (f->type) {
	case CONF_TEXT:
		if (text[0] == '\0')
			return bad_value(d, node, what, f->key, "text", text, e);
		*(char **)(void *)at = strdup(text);
		return *(char **)(void *)at != NULL ? 0 : err_nomem(e);
	case CONF_BOOL:
		if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
			return bad_value(d, node, what, f->key, "true or false", text, e);
		*(bool *)(void *)at = text[0] == 't';
		return 0;
	case CONF_PERCENT:
		if (parse_percent(text, (double *)(void *)at) < 0)
			return bad_value(d, node, what, f->key, "per cent from 0 to 100", text, e);
		return 0;
	default:
		if (numbers[f->type].parse(text, &v) < 0 || v == CONF_UNSET)
			return bad_value(d, node, what, f->key, numbers[f->type].expected, text, e);
		*(uint64_t *)(void *)at = v;
		return 0;
	}
}

static int unknown_key(const struct conf_doc *d, int node, const char *what, const char *key,
    const struct conf_field *fields, struct ptcp_err *e)
{
	const struct conf_field *f;
	char list[200], q[CONF_QUOTED_BYTES];
	size_t n = 0;

	list[0] = '\0';
	for (f = fields; f->key != NULL && n < sizeof list; f++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
		    f == fields ? "" : f[1].key != NULL ? ", " : " or ", f->key);
	return conf_fail(d, node, e, "%s: expected %s, got the unknown key '%s'", what, list,
	    conf_quoted(q, key));
}

int conf_read_map(const struct conf_doc *d, int node, const char *what,
    const struct conf_field *fields, void *dst, struct ptcp_err *e)
{
	const struct conf_field *f;
	const char *key;
	size_t i, n;
	unsigned long seen = 0;
	int r;

	if ((r = conf_want_map(d, node, what, 64, &n, e)) < 0)
		return r;
	for (i = 0; i < n; i++) {
		if ((r = conf_want_text(d, conf_key(d, node, i), what, &key, e)) < 0)
			return r;
		for (f = fields; f->key != NULL && strcmp(f->key, key) != 0; f++)
			;
		if (f->key == NULL)
			return unknown_key(d, conf_key(d, node, i), what, key, fields, e);
		if ((r = read_field(d, conf_value(d, node, i), what, f, dst, e)) < 0)
			return r;
		seen |= 1ul << (f - fields);
	}
	for (f = fields; f->key != NULL; f++)
		if (f->required && !(seen & 1ul << (f - fields)))
			return conf_fail(d, node, e, "%s: expected the key '%s'", what, f->key);
	return 0;
}

int conf_lookup(const struct conf_doc *d, int map, const char *key)
{
	const char *text;
	size_t i, n;

	if (conf_want_map(d, map, "", SIZE_MAX, &n, NULL) < 0)
		return map;
	for (i = 0; i < n; i++)
		if (conf_want_text(d, conf_key(d, map, i), "", &text, NULL) == 0 && strcmp(text, key) == 0)
			return conf_value(d, map, i);
	return map;
}
