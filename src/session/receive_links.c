/* The store's work for received links, and for files of a dry run, on an I/O thread. */
#include "core/err.h"
#include "session/receive_impl.h"
#include "store/manage.h"

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
	if ((t->same = sink_keeps(t->sink, t->spare)) || t->no_resume)
		return;
	if (t->compares)
		t->result = sink_find_same(t->sink, &t->existing, &t->why);
	else
		t->same = sink_seems_same(t->sink);
}

void receive_sync_existing(struct receive_entry *t)
{
	struct ptcp_err why;

	if (t->durable && t->result >= 0 && manage_sync(t->dir, t->name, &why) < 0) {
		t->why = why;
		t->result = why.code;
	}
}
