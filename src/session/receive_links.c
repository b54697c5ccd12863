/* The store's work for received links, for files that are up to date, and for files of a dry run, on an I/O thread. */
#include <string.h>

#include "core/err.h"
#include "session/receive_impl.h"
#include "store/manage.h"
#include "store/source.h"

static struct store_file linked_file(const struct receive_entry *t)
{
	return (struct store_file){ .base = t->self, .path = t->file->path, .dev = t->file->dev, .ino = t->file->ino };
}

int receive_link_make(struct receive_entry *t)
{
	struct store_file to;

	if (t->type == WIRE_SYMLINK)
		return store_symlink(t->dir, t->name, t->target, &t->meta, &t->why);
	if (t->file == NULL)
		return err_set(&t->why, PTCP_EREFUSED, "the sender did not announce hard links to that file");
	to = linked_file(t);
	return store_hardlink(&to, t->dir, t->name, &t->why);
}

bool receive_link_found(const struct receive_entry *t)
{
	struct store_file to;

	if ((t->spare & SINK_KEEP_EXISTING) != 0 && store_exists(t->dir, t->name))
		return true;
	if (t->no_resume)
		return false;
	if (t->type == WIRE_SYMLINK)
		return store_symlink_same(t->dir, t->name, t->target, &t->meta, !t->dry_run);
	if (t->file == NULL)
		return false;
	to = linked_file(t);
	return store_hardlink_same(&to, t->dir, t->name);
}

void receive_dry_file(struct receive_entry *t)
{
	if (t->only_new) {
		receive_new_file(t);
		return;
	}
	if ((t->same = sink_keeps(t->sink, t->spare)) || t->no_resume)
		return;
	if (t->compares)
		t->result = sink_find_same(t->sink, &t->existing, &t->why);
	else
		t->same = sink_seems_same(t->sink);
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

	if (!t->durable)
		return sink_refresh(t->sink, &t->why);
	if ((r = check_other_file(t)) < 0 || (r = refreshed = sink_refresh(t->sink, &t->why)) < 0)
		return r;
	return (r = manage_sync(t->dir, t->name, &t->why)) < 0 ? r : refreshed;
}
