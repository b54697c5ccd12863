/* What has been listed is offered to the engine, with the attributes that it has. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "lib/sending_impl.h"
#include "lib/why.h"
#include "wire/attrs.h"

/* Something that cannot be offered. */
static void not_sent(struct party *p, const struct walk_entry *w, enum wire_note_kind kind,
    const char *text)
{
	char path[DIR_PATH_RAW_BYTES], shown[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why, bare;

	err_set(&why, PTCP_EIO, "%s", text);
	why_bare(&bare, &why, dir_path_text(w->dir, w->name, shown, sizeof shown));
	dir_path_raw(w->dir, w->name, path, sizeof path);
	session_note(p->session, kind, path, &bare);
	if (kind == WIRE_NOTE_FAILED)
		p->o.ops->file(p->o.arg, path, PTCP_FILE_FAILED, &bare);
	else
		p->o.ops->warning(p->o.arg, path, bare.msg);
}

static struct outgoing *outgoing_new(struct walk_entry *w, uint8_t type)
{
	struct outgoing *o = calloc(1, sizeof *o);

	if (o == NULL)
		return NULL;
	if (type == WIRE_FILE) {
		if ((o->source = source_new(w)) == NULL) {
			free(o);
			return NULL;
		}
		return o;
	}
	o->dir = w->dir;
	o->name = w->name;
	o->is_dir = w->type == WALK_DIR;
	w->dir = NULL;
	w->name = NULL;
	return o;
}

static struct span pack_xattrs(struct sending *t, const struct xattrs *x)
{
	struct xattr each;
	size_t at = 0, n = 0;

	while (xattrs_next(x, &at, &each))
		n += wire_xattr_encode(t->packed + n,
		    (struct span){ (const uint8_t *)each.name, each.name_n }, (struct span){ each.value, each.n });
	return (struct span){ t->packed, n };
}

/* What not every entry has. */
static struct span attributes(struct party *p, const struct outgoing *o, const struct link *link_to,
    unsigned i)
{
	struct wire_attrs a = { .link_id = link_to != NULL ? link_to->id : 0 };
	struct sending *t = p->snd;
	size_t n;

	if (link_to == NULL && t->owner != NULL) {
		a.has_owner = true;
		a.uid = t->owner[i].uid;
		a.gid = t->owner[i].gid;
		a.user = (struct span){ (const uint8_t *)t->owner[i].user, strlen(t->owner[i].user) };
		a.group = (struct span){ (const uint8_t *)t->owner[i].group, strlen(t->owner[i].group) };
	}
	if (link_to == NULL && t->xattrs != NULL)
		a.xattrs = pack_xattrs(t, &t->xattrs[i]);

	if (o->source != NULL) {
		a.sparse = source_sparse(o->source);
		/* A file of one block is not resumed. */
		if ((a.has_version = wire_grid_blocks(source_size_bytes(o->source)) > 1))
			source_version(o->source, a.version);
	}
	assert(wire_attrs_bytes(&a) <= sizeof t->attrs);
	n = wire_attrs_encode(t->attrs, &a);
	return (struct span){ t->attrs, n };
}

/* `link_to` of a HARDLINK; `first` of a file with other names, to be remembered. */
static void offer(struct party *p, unsigned i, uint8_t type, struct link *link_to, struct link *first)
{
	struct walk_entry *w = &p->snd->entry[i];
	/* The name moves into the cookie; the frame borrows it from a copy. */
	char name[256], target[WIRE_PATH_MAX + 1];
	struct wire_entry f = {
		.type = type, .size_bytes = type == WIRE_FILE ? w->size_bytes : 0, .mode = w->mode & 07777,
		.mtime_s = w->mtime.tv_sec, .mtime_ns = (uint32_t)w->mtime.tv_nsec,
	};
	struct outgoing *o;
	struct ptcp_err why;
	const char *to = type == WIRE_SYMLINK ? w->target : link_to != NULL ? link_to->path : NULL;
	uint64_t id;

	f.name = (struct span){ (const uint8_t *)name, strlen(w->name) };
	memcpy(name, w->name, f.name.n);
	if (to != NULL) {
		f.target = (struct span){ (const uint8_t *)target, strnlen(to, WIRE_PATH_MAX) };
		memcpy(target, to, f.target.n);
	}
	if ((o = outgoing_new(w, type)) == NULL) {
		err_nomem(&why);
		party_fail(p, &why);
		return;
	}
	o->link = first;
	f.attrs = attributes(p, o, link_to, i);
	if (type == WIRE_FILE) {
		p->snd->files++;
		p->snd->bytes += f.size_bytes;
	}
	id = snd_offer(session_snd(p->session), &f, o);
	if (first != NULL)
		first->id = id;
}

/* The path at the destination: below the tree's root it may have more in front. */
static const char *path_there(const struct walk_entry *w, char *out)
{
	const char *at = dir_path_raw(w->dir, w->name, out, DIR_PATH_RAW_BYTES);
	size_t n = strlen(at);
	int components = w->depth + 1;

	while (n > 0 && (at[n - 1] != '/' || --components > 0))
		n--;
	return at + n;
}

static void offer_file(struct party *p, unsigned i)
{
	struct walk_entry *w = &p->snd->entry[i];
	struct links *links = &p->snd->links;
	char path[DIR_PATH_RAW_BYTES];
	struct link *l;

	if (w->nlink < 2 || (session_open(p->session)->flags & WIRE_OPEN_LINKS) == 0 ||
	    !session_takes_links(p->session)) {
		offer(p, i, WIRE_FILE, NULL, NULL);
		return;
	}
	if ((l = links_find(links, w->dev, w->ino)) != NULL && !l->failed) {
		offer(p, i, WIRE_HARDLINK, l, NULL);
		return;
	}
	if (l == NULL)
		l = links_add(links, w->dev, w->ino);
	/* What cannot be remembered counts as failed: each other name is sent as a file. */
	if (l != NULL)
		l->failed = !links_set_path(links, l, path_there(w, path));
	offer(p, i, WIRE_FILE, NULL, l);
}

void sending_offer(struct party *p, unsigned i)
{
	struct walk_entry *w = &p->snd->entry[i];

	if (p->snd->lacking[i] != NULL)
		not_sent(p, w, WIRE_NOTE_WARNING, p->snd->lacking[i]);
	switch (w->type) {
	case WALK_DIR:
		offer(p, i, WIRE_DIR, NULL, NULL);
		break;
	case WALK_DIR_END:
		snd_leave(session_snd(p->session));
		break;
	case WALK_FILE:
		if (w->size_bytes > WIRE_FILE_MAX)
			not_sent(p, w, WIRE_NOTE_FAILED, "larger than 256 TiB (split it)");
		else
			offer_file(p, i);
		break;
	case WALK_SYMLINK:
		if ((session_open(p->session)->flags & WIRE_OPEN_LINKS) == 0)
			not_sent(p, w, WIRE_NOTE_WARNING, "a symbolic link: skipped");
		else
			offer(p, i, WIRE_SYMLINK, NULL, NULL);
		break;
	case WALK_SKIPPED:
		not_sent(p, w, WIRE_NOTE_WARNING, w->why);
		break;
	case WALK_FAILED:
		not_sent(p, w, WIRE_NOTE_FAILED, w->why);
		break;
	}
}
