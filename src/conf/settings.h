/* A settings file: a map of keys, each with a value or a list. The caller interprets the keys and reports
 * wrong values with their position. */
#ifndef CONF_SETTINGS_H
#define CONF_SETTINGS_H

#include <ptcp/err.h>
#include <stddef.h>

#include "conf/yaml.h"

struct conf_setting {
	char *key, *text;
	struct conf_mark key_mark, mark; /* places of the key and of the value */
};

/* In the order of the file; a key with a list has one element per member. */
struct conf_settings {
	char *file; /* escaped */
	struct conf_setting *of;
	size_t n;
};

#define CONF_SETTINGS_MAX 64
#define CONF_SETTINGS_LIST_MAX 256

/* PTCP_ECONFIG with "FILE:LINE:COLUMN: ..", PTCP_EIO for an unreadable file (with e->sys). Empty lists are
 * errors. */
int conf_settings_load(struct conf_settings **out, const char *path, struct ptcp_err *e);
void conf_settings_free(struct conf_settings *s); /* NULL is fine */

/* Prefixes the sentence in `e` with "FILE:LINE:COLUMN: "; sets and returns PTCP_ECONFIG. */
int conf_settings_blame(const struct conf_settings *s, struct conf_mark at, struct ptcp_err *e);

#endif
