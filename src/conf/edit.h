/* Changes rates and delays of links in the text of an overlay file; the remaining text, including comments,
 * order and formatting, stays byte for byte the same. */
#ifndef CONF_EDIT_H
#define CONF_EDIT_H

#include <ptcp/err.h>
#include <stddef.h>

#define CONF_CHANGE_BYTES 32

struct conf_change {
	int link;                                          /* index; at most one change per link */
	char rate[CONF_CHANGE_BYTES], delay[CONF_CHANGE_BYTES]; /* texts that the file has; "": unchanged */
};

/* Returns the changed text, freed by the caller. Replaces present values in place and appends missing ones
 * to their link. If a link that follows from 'all' changes, all links of 'all' are appended to the list first.
 * PTCP_ECONFIG for a text that is no overlay or not UTF-8, and for a value by YAML alias, whose change would affect
 * other links. The result is parsed and compared with the changes; a mismatch is an error. `name` names the file in
 * errors. */
int conf_overlay_edit(char **out, size_t *out_bytes, const char *text, size_t n, const char *name,
    const struct conf_change *changes, size_t count, struct ptcp_err *e);

/* Appends `shared`, lines of items of the list, to an overlay that has no shared bottlenecks. PTCP_ECONFIG for a text
 * to which no key can be appended. */
int conf_overlay_add_shared(char **out, size_t *out_bytes, const char *text, size_t n, const char *name,
    const char *shared, struct ptcp_err *e);

/* Replaces a file atomically: writes and syncs a new file beside it, then renames; keeps the mode, and
 * follows a symbolic link. PTCP_EIO or PTCP_ENOSPC leave the old file unchanged. */
int conf_save(const char *path, const char *text, size_t n, struct ptcp_err *e);

#endif
