/* Changes of attributes on their way: modes as by chmod(1), users and groups by maps. The end that requests a transfer
 * applies them, whichever direction it has. Pure functions of constant maps; any thread. */
#ifndef STORE_ATTR_MAP_H
#define STORE_ATTR_MAP_H

#include "core/err.h"
#include "store/owner.h"

struct attr_map;

/* Texts as in ptcp-send(1); NULL: no change. */
struct attr_map_texts {
	const char *chmod;              /* "D755,F644", "g-w,o=" */
	const char *chown;              /* "USER:GROUP", "USER" or ":GROUP": a last rule of the next two */
	const char *user_map, *group_map; /* "FROM:TO,..": FROM is a pattern for names, a number, a range or "*" */
	bool numeric_ids;               /* names do not count */
	mode_t umask;                   /* bits that chmod leaves alone without a class, as in "+w" */
};

/* *out is NULL where nothing changes. PTCP_EUSAGE for a malformed text. */
int attr_map_new(struct attr_map **out, const struct attr_map_texts *texts, struct ptcp_err *e);
void attr_map_free(struct attr_map *m); /* NULL is fine */

/* Without a map the mode stays. */
mode_t attr_map_mode(const struct attr_map *m, mode_t mode, bool is_dir);
/* The number becomes ATTR_MAP_BY_NAME beside a new name: the name decides, and a destination without the name leaves
 * the user or group as it is. */
#define ATTR_MAP_BY_NAME UINT32_MAX
void attr_map_owner(const struct attr_map *m, struct owner *o);

/* Whether a mode may get setuid, setgid or sticky bits. */
bool attr_map_sets_special(const struct attr_map *m);

#endif
