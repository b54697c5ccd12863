/* Names that a peer may choose for received entries. */
#include <string.h>

#include "core/err.h"
#include "session/receive_impl.h"
#include "store/expand.h"
#include "store/part.h"

/* A server may not choose names: a top-level entry must be one of the requested sources, by its last component,
 * unless the client requested the contents of a source (unknown names), or match the last component of a pattern. */
static bool is_requested(const struct session *sess, const struct wire_open *o, const char *name)
{
	struct span rest = o->paths, path;
	char pattern[WIRE_PATH_MAX + 1];
	size_t n = strlen(name);
	uint8_t flags;

	while (wire_path_next(&rest, &flags, &path)) {
		if ((flags & (WIRE_PATH_EXCLUDE | WIRE_PATH_INCLUDE)) != 0)
			continue;
		if ((flags & WIRE_PATH_CONTENTS) != 0 ||
		    (path.n >= n && memcmp(path.p + path.n - n, name, n) == 0 &&
		    (path.n == n || path.p[path.n - n - 1] == '/')))
			return true;
		if (sess->sources_expanded && expand_can_match(span_copy(pattern, path), name))
			return true;
	}
	return false;
}

int receive_check_name(const struct session *sess, const struct receive_entry *t, bool top_level, struct ptcp_err *e)
{
	const struct wire_open *o = engine_open(sess->engine);

	if (part_is_own_name(t->name))
		return err_set(e, PTCP_EIO, "a name that ptcp reserves for unfinished files (rename it)");
	if (top_level && !sess->receive->placed && o->role == WIRE_ACCEPTOR_SENDS && !is_requested(sess, o, t->name))
		return err_set(e, PTCP_EREFUSED, "not requested");
	return 0;
}
