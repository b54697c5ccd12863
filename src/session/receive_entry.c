/* Entries: on the control thread, their memory and their room; on an I/O thread, the store's work besides data: links,
 * directories, files that are up to date, that have failed, or that a dry run lists, and what clients may add who may
 * only add. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "fs/fd_budget.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "model/parameters.h"
#include "session/receive_impl.h"
#include "store/manage.h"
#include "store/source.h"

struct receive_entry *receive_entry_calloc(struct session *sess, struct ptcp_err *e)
{
	return spares_take(&sess->receive->entries, e);
}

void receive_entry_free(struct session *sess, struct receive_entry *t)
{
	dir_unref(t->dir);
	dir_unref(t->self);
	sink_unref(t->sink); /* closes the descriptors */
	sess->receive->fds -= t->fds;
	fd_budget_give(t->fds);
	free(t->name);
	memory_free(sess->o.memory, t->target, t->target != NULL ? strlen(t->target) + 1 : 0);
	free(t->source);
	memory_free(sess->o.memory, t->owner, sizeof *t->owner);
	xattrs_fini(&t->xattrs);
	free(t->existing.claimed);
	receive_match_fini(sess, t);
	spares_give(&sess->receive->entries, t);
}

/* ---- Entries ---- */

static struct store_file linked_file(const struct receive_entry *t)
{
	return (struct store_file){ .base = t->self, .path = t->file->path, .dev = t->file->dev, .ino = t->file->ino,
		.published = t->meta.published, .backup = t->meta.backup };
}

int receive_link_make(struct receive_entry *t)
{
	struct store_file to;
	int r;

	if (t->type == WIRE_SYMLINK)
		return store_symlink(t->dir, t->name, t->target, &t->meta, t->linked ? &t->made : NULL, &t->why);
	to = linked_file(t);
	if ((t->not_linked = t->on != NULL && file_system_lacks(t->on, ABILITY_HARD_LINKS)))
		return 0;
	if ((r = store_hardlink(&to, t->dir, t->name, &t->why)) == 0 || !fs_cannot(ABILITY_HARD_LINKS, t->why.sys))
		return r;
	t->not_linked = true;
	return 0;
}

/* Whoever removes the source needs DONE: SEND_NONE says of a link neither that it is durable, nor that it is not the
 * source itself. So the link is made again, a hard link to the file that was compared. */
static bool is_same_link(struct receive_entry *t)
{
	struct store_file to;

	if ((t->rules->flags & RULE_NO_RESUME) != 0 || t->durable)
		return false;
	if (t->type == WIRE_SYMLINK)
		return store_symlink_same(t->dir, t->name, t->target, &t->meta,
		    !t->dry_run && (t->rules->flags & RULE_IGNORE_EXISTING) == 0, &t->made);
	to = linked_file(t);
	return store_hardlink_same(&to, t->dir, t->name);
}

/* A further name of a symbolic link counts as one. */
static struct rules_entry offered(const struct receive_entry *t)
{
	static const enum rules_type type[] = { [WIRE_DIR] = RULES_DIR, [WIRE_FILE] = RULES_FILE,
		[WIRE_SYMLINK] = RULES_SYMLINK, [WIRE_HARDLINK] = RULES_HARDLINK };

	return (struct rules_entry){ .type = t->file != NULL && t->file->is_symlink ? RULES_SYMLINK : type[t->type],
		.mtime = t->meta.mtime, .size_bytes = t->file != NULL ? t->file->size_bytes : t->size_bytes };
}

/* An older copy has the symbolic link: true if nothing is to be made. */
static bool refer_link(struct receive_entry *t)
{
	const struct reference_entry link = { .dir = t->dir, .name = t->name, .meta = &t->meta, .rules = t->rules,
		.target = t->target };
	enum reference_use use = REFERENCE_NONE;

	if (t->type == WIRE_SYMLINK)
		use = references_use(t->meta.references, &link, t->dry_run, NULL);
	t->existing.is_linked = use == REFERENCE_LINKED && !t->dry_run;
	return use == REFERENCE_OMITTED || (use == REFERENCE_LINKED && t->dry_run);
}

void receive_find_link(struct receive_entry *t)
{
	const struct rules_entry o = offered(t);
	struct rules_entry there;
	enum rules_answer answer;

	if ((t->same = refer_link(t)) || (t->result = store_look(t->dir, t->name, &there, &t->why)) < 0)
		return;
	there.same = is_same_link(t);
	answer = rules_judge(t->rules, &o, &there);
	t->same = answer == RULES_KEEP || answer == RULES_SAME;
	if (answer == RULES_REFUSE)
		t->result = fs_err_set(&t->why, PTCP_EREFUSED, EEXIST, t->dir, t->name, STORE_EXISTS_WHY);
}

void receive_look(struct receive_entry *t)
{
	t->result = sink_inspect(t->sink, &t->existing, &t->why);
	t->same = t->result == 0 && t->existing.found == SINK_KEPT;
	t->lacking = t->result == 0 && t->existing.lacking;
	if (t->result == 0 && !t->same)
		receive_look_renamed(t);
	if (t->same && t->durable && t->rules->write_once) /* a file that this client has added before */
		t->result = manage_sync(t->dir, t->name, &t->why);
}

void receive_look_renamed(struct receive_entry *t)
{
	t->result = sink_inspect_renamed(t->sink, &t->existing, &t->why);
}

void receive_dry_file(struct receive_entry *t)
{
	t->result = sink_look(t->sink, t->compares, &t->existing, &t->why);
	t->same = t->result == 0 && t->existing.found == SINK_KEPT;
}

/* A missing directory, or a file in place of a directory, may have to stay. */
static int keep_absent(struct receive_entry *t)
{
	const struct rules_entry o = offered(t);
	struct rules_entry there;
	int r;

	if ((t->rules->flags & (RULE_EXISTING | RULE_IGNORE_EXISTING)) == 0)
		return 0;
	if ((r = store_look(t->dir, t->name, &there, &t->why)) == 0)
		t->absent = rules_judge(t->rules, &o, &there) == RULES_KEEP;
	t->fresh = t->absent;
	return r;
}

void receive_dry_dir(struct receive_entry *t)
{
	if ((t->result = keep_absent(t)) < 0 || t->absent)
		return;
	t->fresh = dir_fd(t->self, NULL) < 0;
	if (!t->fresh)
		dir_fd_done(t->self);
}

/* The version of a file, with its inode and ctime: equal for one and the same file only. */
static int check_other_file(struct receive_entry *t)
{
	uint8_t version[SOURCE_VERSION_BYTES];
	struct manage_stamp st;
	int r;

	if ((r = manage_stamp(t->dir, t->name, &st, &t->why)) < 0)
		return r;
	source_version_of(&st, version);
	return memcmp(version, t->version, sizeof version) != 0 ? 0 :
	    err_set(&t->why, PTCP_EIO, "source and destination are the same file: not removed");
}

int receive_refresh(struct receive_entry *t)
{
	int r, refreshed;

	if (!t->durable) {
		if ((r = sink_refresh(t->sink, &t->why)) == SINK_REFRESHED_COPY)
			t->existing.found = SINK_COPIED;
		return r == SINK_REFRESHED_COPY ? 0 : r;
	}
	if ((r = check_other_file(t)) < 0 || (r = refreshed = sink_refresh(t->sink, &t->why)) < 0)
		return r;
	return (r = manage_sync(t->dir, t->name, &t->why)) < 0 ? r : refreshed;
}

/* ---- Renamed files ---- */

int receive_renames_new(struct session *sess, struct ptcp_err *e)
{
	uint64_t quarter = memory_session_max(sess->o.memory) / 4;
	const struct renames_limits max = { .bytes = quarter < RENAMES_BYTES ? quarter : RENAMES_BYTES,
		.entries = RENAMES_STEP_ENTRIES };
	struct receive_side *r = sess->receive;

	if ((r->renames = renames_new(sess->o.memory, &max, e)) == NULL)
		return PTCP_ENOMEM;
	if (r->place.contents)
		renames_add(r->renames, r->place.base);
	return 0;
}

void receive_renames_note(struct receive_side *r, const struct receive_entry *t, const struct receive_entry *in)
{
	if (r->renames != NULL && in == NULL && t->type == WIRE_DIR && !r->place.contents)
		renames_add(r->renames, t->self);
}

bool receive_renames_may_have(struct receive_side *r, const struct receive_entry *t)
{
	return r->renames != NULL && t->size_bytes > 0 && !t->shared && !t->unsized &&
	    renames_may_have(r->renames, t->size_bytes);
}

/* ---- Directories and failed files ---- */

int receive_make_dir(struct receive_entry *t)
{
	struct meta early = { .set_mode = true, .mode = t->meta.mode & 0777 };
	int r;

	if (t->name == NULL) { /* the destination itself, which is new */
		if (!t->meta.set_mode)
			early.mode &= ~dir_umask(t->self);
		early.mode |= S_IRWXU;
		return store_dir_finish(t->self, &early, &t->why);
	}
	if ((r = keep_absent(t)) < 0 || t->absent || receive_new_has_dir(t))
		return r;
	if (t->source != NULL && (r = destination_mark(t->dir, t->name, t->source, &t->why)) < 0)
		return r;
	r = store_mkdir(t->dir, t->name, &t->meta, &t->fresh, &t->why);
	if (r < 0 && t->why.sys == EEXIST && (r = store_make_way(t->dir, t->name, t->rules,
	    &t->meta, &t->why)) == 0)
		r = store_mkdir(t->dir, t->name, &t->meta, &t->fresh, &t->why);
	if (r < 0 && t->source != NULL)
		destination_unmark(t->dir, t->name);
	return r;
}

int receive_release(struct receive_entry *t)
{
	if (t->keep && t->beginning_bytes > 0)
		return sink_keep_beginning(t->sink, t->beginning_bytes, &t->why);
	if (t->keep)
		sink_keep(t->sink);
	else
		sink_discard(t->sink);
	return 0;
}

/* ---- Clients who may only add: nothing that exists is compared, replaced or changed ---- */

void session_receive_only_new(struct session *sess, const char *client)
{
	sess->receive->only_new = client;
	sess->receive->rules.write_once = true;
	sess->receive->rules.flags &= RULE_EXISTING | RULE_IGNORE_EXISTING | RULE_EXCLUSIVE |
	    RULE_NO_RESUME;
}

bool receive_new_takes(const struct wire_entry *f, struct ptcp_err *e)
{
	if (f->type == WIRE_FILE || f->type == WIRE_DIR)
		return true;
	err_set(e, PTCP_EREFUSED, "a link, and this client may only add files (leave the link out, or send hard links "
	    "as files with --preserve times,mode)");
	return false;
}

bool receive_new_has_dir(struct receive_entry *t)
{
	if (!t->rules->write_once || dir_fd(t->self, NULL) < 0)
		return false;
	dir_fd_done(t->self);
	return true;
}
