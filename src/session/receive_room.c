/* Room for entries: in the file system of the destination, in the quota of the client, and for new names in the
 * destination itself. An entry is counted when the receiver accepts it, before the data moves. */
#include <errno.h>
#include <string.h>

#include "core/err.h"
#include "fs/fs_err.h"
#include "fs/quota.h"
#include "session/receive_impl.h"

static void fail(struct session *sess, const struct ptcp_err *why)
{
	struct ptcp_err whole = *why;

	if (why->code == PTCP_ENOSPC)
		err_while(&whole, whole.code, "destination");
	else
		fs_err_at(&whole, why, sess->receive->place.base, NULL, session_is_users(sess));
	engine_fail(sess->engine, &whole);
}

bool receive_disk_full(struct session *sess, const struct ptcp_err *why)
{
	if (why->code != PTCP_ENOSPC)
		return false;
	fail(sess, why);
	return true;
}

/* ---- In the file system ---- */

/* A file system that is mounted below the destination has room of its own. */
static bool is_counted(const struct session *sess, const struct receive_entry *t)
{
	const struct receive_side *r = sess->receive;

	return (engine_open(sess->engine)->flags & WIRE_OPEN_NO_PREFLIGHT) == 0 && r->place.room.dev != 0 &&
	    t->dir != NULL && room_dev(t->dir) == r->place.room.dev;
}

static bool in_base(const struct session *sess, const struct receive_entry *t)
{
	return t->dir == sess->receive->place.base && sess->receive->place.room.no_names != 0;
}

static void lack_permission(struct session *sess, struct ptcp_err *e)
{
	err_set(e, PTCP_EIO, "no permission to create files there: %s (write to another directory, or try with "
	    "--no-preflight)", strerror(sess->receive->place.room.no_names));
	e->sys = sess->receive->place.room.no_names;
}

/* At most the space of the replaced file is free later. */
static uint64_t needed_bytes(const struct receive_entry *t, bool fresh)
{
	if (t->type != WIRE_FILE || t->unsized || sink_is_sparse(t->sink))
		return 0;
	if (fresh)
		return t->size_bytes;
	return t->size_bytes > t->existing.held_bytes ? t->size_bytes - t->existing.held_bytes : 0;
}

void receive_room_count(struct session *sess, const struct receive_entry *t, bool fresh)
{
	struct receive_room *m = &sess->receive->room;

	if (!is_counted(sess, t))
		return;
	m->bytes += needed_bytes(t, fresh);
	m->entries += fresh || t->existing.is_new;
	/* A file in place needs no new name. */
	if (m->lacks.code == 0 && in_base(sess, t) && (t->sink == NULL || !sink_is_in_place(t->sink)))
		lack_permission(sess, &m->lacks);
}

bool receive_room_denied(struct session *sess, const struct receive_entry *t)
{
	struct receive_room *m = &sess->receive->room;

	if (t->type != WIRE_DIR || !is_counted(sess, t) || !in_base(sess, t) ||
	    t->why.sys != sess->receive->place.room.no_names)
		return false;
	lack_permission(sess, &m->lacks);
	fail(sess, &m->lacks);
	return true;
}

bool receive_room_suffices(struct session *sess)
{
	struct receive_room *m = &sess->receive->room;

	if (m->lacks.code == 0 && room_check(&sess->receive->place.room, m->bytes, m->entries, false, &m->lacks) == 0)
		return true;
	fail(sess, &m->lacks);
	return false;
}

/* ---- In the quota ---- */

void receive_reserve(struct receive_side *r, const struct receive_entry *t)
{
	if (r->room.lacks.code == 0)
		sink_reserve(t->sink, &r->room.lacks);
}

void receive_lend_room(struct receive_side *r)
{
	if (r != NULL && r->place.base != NULL)
		quota_lend(dir_quota(r->place.base));
}

void receive_reclaim_room(struct receive_side *r)
{
	if (r != NULL && r->place.base != NULL && r->room.lacks.code == 0)
		quota_reclaim(dir_quota(r->place.base), &r->room.lacks);
}

/* The reason names the space that the whole transfer needs, once it is known. */
void receive_check_room(struct session *sess)
{
	struct receive_side *r = sess->receive;
	const struct ptcp_progress done = rcv_stats(engine_rcv(sess->engine)).done;

	if (sess->end.over)
		return;
	if (r->room.lacks.code == 0 && ((engine_open(sess->engine)->flags & WIRE_OPEN_DRY_RUN) != 0 ||
	    room_check(&r->place.room, r->room.bytes, r->room.entries,
	    !r->total_known || r->total_bytes > done.resumed_bytes + r->room.bytes, &r->room.lacks) == 0))
		return;
	if (r->room.lacks.sys == EDQUOT && r->total_known && !r->room.sparse && r->total_bytes > done.resumed_bytes &&
	    r->total_files > done.files)
		quota_err(dir_quota(r->place.base), r->total_files - done.files, r->total_bytes - done.resumed_bytes,
		    &r->room.lacks);
	fail(sess, &r->room.lacks);
}
