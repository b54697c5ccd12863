/* A file of settings: a map of keys, each with one value or a list of them. What a key means is for the
 * caller to know, who says of what is wrong in it where it stands. */
#ifndef CONF_SETTINGS_H
#define CONF_SETTINGS_H

#include <stddef.h>

#include <ptcp/err.h>

#include "conf/yaml.h"

struct conf_setting {
	char *key, *text;
	struct conf_mark key_mark, mark; /* of the key, of the value */
};

/* In the order of the file; a key that has a list is there once for each member. */
struct conf_settings {
	char *file; /* escaped */
	struct conf_setting *of;
	size_t n;
};

#define CONF_SETTINGS_MAX 64
#define CONF_SETTINGS_LIST_MAX 256

/* PTCP_ECONFIG with "FILE:LINE:COLUMN: ..", PTCP_EIO for a file that cannot be read (e->sys says why). An
 * empty list is an error: it would say nothing. */
int conf_settings_load(struct conf_settings **out, const char *path, struct ptcp_err *e);
void conf_settings_free(struct conf_settings *s); /* NULL is fine */

/* Prefixes the sentence in `e` with "FILE:LINE:COLUMN: " and makes it PTCP_ECONFIG, which is returned. */
int conf_settings_blame(const struct conf_settings *s, struct conf_mark at, struct ptcp_err *e);

#endif
