/* Rates and delays of links changed in the text of an overlay file: all else, comments, order and formatting
 * included, stays byte for byte what it was. */
#ifndef CONF_EDIT_H
#define CONF_EDIT_H

#include <stddef.h>

#include <ptcp/err.h>

#define CONF_CHANGE_BYTES 32

struct conf_change {
	int link;                                          /* its index, once in a list of changes */
	char rate[CONF_CHANGE_BYTES], delay[CONF_CHANGE_BYTES]; /* as they are written; "": stays */
};

/* The changed text, freed by the caller. A value that is there is replaced where it stands, one that is not is
 * added behind the last of its link. PTCP_ECONFIG for a text that is no overlay, or not UTF-8, or where a value
 * is a YAML alias, so that others would change with it. The result has been read again, and says what it
 * should; else nothing comes of it. `name` stands for the file in errors. */
int conf_overlay_edit(char **out, size_t *out_bytes, const char *text, size_t n, const char *name,
    const struct conf_change *changes, size_t count, struct ptcp_err *e);

#endif
