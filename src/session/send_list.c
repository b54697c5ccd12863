/* Offers listed entries, with their attributes, to the engine. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "fs/fs_err.h"
#include "session/send_impl.h"
#include "wire/attrs.h"
#include "wire/block.h"

/* Reports an entry, or an attribute, that is not sent to the users of both sides. */
static void not_sent(struct session *sess, const struct walk_entry *w, enum wire_warning_kind kind, const char *text)
{
	char path[DIR_PATH_RAW_BYTES], shown[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why, bare;

	err_set(&why, w->type == WALK_FAILED ? w->code : PTCP_EIO, "%s", text);
	why.sys = w->type == WALK_FAILED ? w->sys : 0;
	fs_err_strip(&bare, &why, dir_path_text(w->dir, w->name, shown, sizeof shown));
	dir_path_raw(w->dir, w->name, path, sizeof path);
	engine_warn(sess->engine, kind, path, &bare);
	if (kind != WIRE_WARNING_ONLY)
		session_file_failed(sess, path, &bare);
	else
		sess->o.ops->warning(sess->o.arg, path, bare.msg);
}

static struct send_entry *send_entry_new(struct session *sess, struct walk_entry *w, uint8_t type,
    struct ptcp_err *e)
{
	uint64_t bytes = SEND_ENTRY_BYTES + (w->content != NULL ? w->size_bytes : 0);
	struct send_entry *o;

	if (memory_charge(sess->o.memory, bytes, e) < 0)
		return NULL;
	if ((o = calloc(1, sizeof *o)) == NULL || (type == WIRE_FILE && (o->source = source_new(w)) == NULL)) {
		memory_release(sess->o.memory, bytes);
		free(o);
		err_nomem(e);
		return NULL;
	}
	o->memory = sess->o.memory;
	o->memory_bytes = bytes;
	if (type == WIRE_FILE) {
		source_use_direct_io(o->source, session_direct_io(sess));
		if (sess->send->expected.digest != 0)
			source_expect(o->source, &sess->send->expected);
		if ((engine_open(sess->engine)->flags & WIRE_OPEN_NO_GROWING) == 0 && !source_sparse(o->source))
			source_permit_growth(o->source); /* holes are not part of the digest to compare with */
		return o;
	}
	o->stamp = walk_stamp(w);
	o->dir = w->dir;
	o->name = w->name;
	o->is_dir = w->type == WALK_DIR;
	o->followed = w->followed;
	w->dir = NULL;
	w->name = NULL;
	return o;
}

void send_entry_free(struct send_entry *o)
{
	source_unref(o->source);
	dir_unref(o->dir);
	free(o->name);
	memory_release(o->memory, o->memory_bytes);
	free(o);
}

static struct span pack_xattrs(struct send_side *t, const struct xattrs *x)
{
	struct xattr each;
	size_t at = 0, n = 0;

	while (xattrs_next(x, &at, &each))
		n += wire_xattr_encode(t->packed + n,
		    (struct span){ (const uint8_t *)each.name, each.name_n }, (struct span){ each.value, each.n });
	return (struct span){ t->packed, n };
}

/* Optional attributes of an entry, encoded. */
static struct span attributes(struct session *sess, const struct send_entry *o, const struct hardlink *link_to,
    unsigned i)
{
	struct wire_attrs a = { .link_id = link_to != NULL ? link_to->id : 0, .linked = o->hardlink != NULL };
	struct send_side *t = sess->send;
	size_t n;

	if (link_to == NULL && (engine_open(sess->engine)->preserve & WIRE_PRESERVE_OWNER) != 0) {
		a.has_owner = true;
		a.uid = t->owner[i].uid;
		a.gid = t->owner[i].gid;
		a.user = (struct span){ (const uint8_t *)t->owner[i].user, strlen(t->owner[i].user) };
		a.group = (struct span){ (const uint8_t *)t->owner[i].group, strlen(t->owner[i].group) };
	}
	if (link_to == NULL && t->xattr_kinds != 0)
		a.xattrs = pack_xattrs(t, &t->xattrs[i]);
	if (o->source != NULL) {
		a.sparse = source_sparse(o->source);
		/* A file of a single block is never resumed; one that is to be removed must not be its own copy. */
		if ((a.has_version = wire_grid_blocks(wire_grid_of(source_size_bytes(o->source))) > 1 || t->removes))
			source_version(o->source, a.version);
	}
	assert(wire_attrs_bytes(&a) <= sizeof t->attrs);
	n = wire_attrs_encode(t->attrs, &a);
	return (struct span){ t->attrs, n };
}

/* `link_to`: target of a HARDLINK; `first`: of an inode with several names, its record. */
static void offer(struct session *sess, unsigned i, uint8_t type, struct hardlink *link_to, struct hardlink *first)
{
	struct walk_entry *w = &sess->send->entry[i];
	struct send_entry *old = sess->send->in_place_of[i];
	/* The cookie takes the name of the entry; the frame borrows from these copies. */
	char name[256], target[WIRE_PATH_MAX + 1];
	struct wire_entry f = {
		.type = type, .size_bytes = type == WIRE_FILE ? w->size_bytes : 0, .mode = w->mode & 07777,
		.mtime_s = w->mtime.tv_sec, .mtime_ns = (uint32_t)w->mtime.tv_nsec,
	};
	struct send_entry *o;
	struct ptcp_err why;
	uint64_t id;

	f.name = (struct span){ (const uint8_t *)name, strlen(w->name) };
	memcpy(name, w->name, f.name.n);
	if (type == WIRE_SYMLINK) {
		f.target = (struct span){ (const uint8_t *)target, strnlen(w->target, WIRE_PATH_MAX) };
		memcpy(target, w->target, f.target.n);
	}
	if ((o = send_entry_new(sess, w, type, &why)) == NULL) {
		engine_fail(sess->engine, &why);
		return;
	}
	o->hardlink = first;
	f.attrs = attributes(sess, o, link_to, i);
	if (type == WIRE_FILE) {
		sess->send->files++;
		sess->send->bytes += f.size_bytes;
	}
	o->link.file = link_to != NULL ? link_to->id : 0;
	o->link.retried = old != NULL && old->link.failed;
	o->link.second = old != NULL && (!old->link.failed || old->link.retried);
	id = old != NULL ? snd_offer_again(engine_snd(sess->engine), old->link.id, &f, o) :
	    snd_offer(engine_snd(sess->engine), &f, o);
	if (old != NULL)
		send_entry_free(old);
	if (first != NULL)
		first->id = id;
}

/* The entry is left out; a receiver that deletes learns that the source has it. */
static void leave_out(struct session *sess, unsigned i)
{
	struct walk_entry *w = &sess->send->entry[i];
	struct wire_entry f = { .type = WIRE_NAME };
	struct send_entry *o;
	struct ptcp_err why;
	char name[256];

	if ((engine_open(sess->engine)->flags & WIRE_OPEN_DELETE) == 0)
		return;
	f.name = (struct span){ (const uint8_t *)name, strlen(w->name) };
	memcpy(name, w->name, f.name.n);
	if ((o = send_entry_new(sess, w, WIRE_NAME, &why)) == NULL) {
		engine_fail(sess->engine, &why);
		return;
	}
	o->is_name = true;
	snd_offer(engine_snd(sess->engine), &f, o);
}

/* Whether the limits of OPEN leave the file out. */
static bool beyond_limits(const struct session *sess, const struct walk_entry *w)
{
	const struct wire_open *o = engine_open(sess->engine);

	return w->type == WALK_FILE && (w->size_bytes < o->min_bytes || (o->max_bytes > 0 && w->size_bytes > o->max_bytes) ||
	    (o->newer_s != 0 && w->mtime.tv_sec < o->newer_s) || (o->older_s != 0 && w->mtime.tv_sec >= o->older_s));
}

/* A file or symbolic link, perhaps as a further name of one that was offered. */
static void offer_inode(struct session *sess, unsigned i, uint8_t type)
{
	struct walk_entry *w = &sess->send->entry[i];
	const struct send_entry *old = sess->send->in_place_of[i];
	struct hardlinks *links = &sess->send->hardlinks;
	struct hardlink *l;

	if (w->nlink < 2 || (engine_open(sess->engine)->preserve & WIRE_PRESERVE_LINKS) == 0) {
		offer(sess, i, type, NULL, NULL);
		return;
	}
	l = hardlinks_find(links, w->dev, w->ino);
	if (l != NULL && !l->failed && (old == NULL || (l->id != old->link.file && !old->link.second))) {
		offer(sess, i, WIRE_HARDLINK, l, NULL);
		return;
	}
	/* Without a record the next name is sent in the same way, too. */
	if (!snd_may_link(engine_snd(sess->engine), old != NULL ? old->link.id : 0, strlen(w->name)))
		l = NULL;
	else if (l == NULL)
		l = hardlinks_add(links, w->dev, w->ino, NULL);
	if (l != NULL)
		l->failed = false;
	offer(sess, i, type, NULL, l);
}

bool send_is_early(struct session *sess, unsigned i)
{
	const struct send_side *t = sess->send;
	const struct walk_entry *w = &t->entry[i];
	bool links = (engine_open(sess->engine)->preserve & WIRE_PRESERVE_LINKS) != 0;

	if (t->lacking[i] != NULL || t->xattrs[i].n > 0 || !snd_early_room(engine_snd(sess->engine), SEND_PLAIN_ENTRY_BYTES))
		return false;
	return w->type == WALK_DIR || w->type == WALK_DIR_END || (w->type == WALK_FILE && w->size_bytes <= WIRE_FILE_MAX) ||
	    (w->type == WALK_SYMLINK && links);
}

/* ---- Hard links that the receiver has not made ---- */

/* The receiver keeps what the file's first name was, its file system lacks room or hard links, or the first name has
 * failed: then the next name has the content. */
void send_again(void *arg, void *cookie, uint64_t id)
{
	struct session *sess = arg;
	struct send_entry *o = cookie;
	const struct hardlink *l = hardlinks_find(&sess->send->hardlinks, o->stamp.dev, o->stamp.ino);

	o->link.id = id;
	o->link.failed = l != NULL && l->failed_id == o->link.file;
	list_append(&sess->send->again, &o->in_linked);
}

unsigned send_take_again(struct send_side *t)
{
	struct send_entry *o;
	unsigned n = 0;

	while (n < WALK_BATCH && !list_empty(&t->again)) {
		o = CONTAINER_OF(t->again.next, struct send_entry, in_linked);
		list_remove(&o->in_linked);
		t->entry[n] = (struct walk_entry){ .type = WALK_FAILED, .dir = dir_ref(o->dir), .name = strdup(o->name),
			.followed = o->followed };
		t->in_place_of[n++] = o;
	}
	return n;
}

void send_examine_again(struct walk_entry *e)
{
	const struct walk_limits limits = { .links = e->followed ? WALK_LINKS_FOLLOW : WALK_LINKS_STAY };
	struct walk_entry now = { .type = WALK_FAILED };
	struct ptcp_err why;
	struct walk *w;

	if (walk_new(&w, NULL, &why) == 0 && e->name != NULL && walk_add(w, e->dir, e->name, &why) == 0) {
		walk_limit(w, &limits);
		walk_next(w, &now, &why);
	}
	walk_free(w);
	if (now.type == WALK_FILE || now.type == WALK_SYMLINK || now.why != NULL) {
		walk_entry_fini(e);
		*e = now;
		return;
	}
	walk_entry_fini(&now);
	e->code = PTCP_EIO;
	e->why = strdup("removed or replaced meanwhile (run the same command again)");
}

int send_find_size(struct walk_entry *w, struct ptcp_err *e)
{
	struct ptcp_err why;
	int r = source_find_size(w, &why);

	if (r == 0)
		return 0;
	w->type = WALK_FAILED;
	w->code = r;
	w->sys = why.sys;
	return (w->why = strdup(why.msg)) != NULL ? 0 : err_nomem(e);
}

/* Why the entry cannot be offered; NULL: it can. */
static const char *obstacle(const struct session *sess, const struct walk_entry *w)
{
	struct published *removed = sess->send->removed;
	char path[DIR_PATH_RAW_BYTES];

	if (w->type == WALK_FAILED)
		return w->why;
	if (w->type == WALK_FILE && w->size_bytes > WIRE_FILE_MAX)
		return "larger than 256 TiB (split it)";
	if (removed != NULL && (w->type == WALK_FILE || w->type == WALK_SYMLINK) &&
	    published_source_before(removed, dir_path_raw(w->dir, w->name, path, sizeof path)))
		return "a source of this name was transferred and removed before the interruption (rename one of them, or send it "
		    "to another directory)";
	return NULL;
}

/* The entry of the batch has failed; one that was offered before is known to the receiver. */
static void lost(struct session *sess, unsigned i, const char *text)
{
	const struct walk_entry *w = &sess->send->entry[i];
	/* The source lacks a file that has vanished: its directory is complete. */
	bool gone = w->type == WALK_FAILED && w->code == PTCP_EVANISHED && w->name != NULL;
	bool inside = gone || sess->send->in_place_of[i] != NULL || snd_lack(engine_snd(sess->engine));

	not_sent(sess, w, inside ? WIRE_WARNING_INSIDE : WIRE_WARNING_FAILED, text);
}

static void skip(struct session *sess, unsigned i, const char *text)
{
	struct walk_entry *w = &sess->send->entry[i];

	not_sent(sess, w, WIRE_WARNING_ONLY, text);
	if (w->format != S_IFREG && w->format != S_IFDIR) /* what nobody may know of, or parts of files */
		leave_out(sess, i);
}

void send_offer(struct session *sess, unsigned i)
{
	const struct send_entry *old = sess->send->in_place_of[i];
	struct walk_entry *w = &sess->send->entry[i];
	const char *why = obstacle(sess, w);
	bool itself, closed;

	if (old == NULL && beyond_limits(sess, w)) {
		leave_out(sess, i);
		return;
	}
	if (sess->send->lacking[i] != NULL)
		not_sent(sess, w, WIRE_WARNING_ONLY, sess->send->lacking[i]);
	if (why != NULL) {
		if (old != NULL)
			snd_give_up(engine_snd(sess->engine), old->link.id);
		lost(sess, i, why);
		return;
	}
	switch (w->type) {
	case WALK_DIR:
		itself = strcmp(w->name, ".") == 0;
		closed = w->closed;
		offer(sess, i, WIRE_DIR, NULL, NULL);
		if (itself)
			snd_leave(engine_snd(sess->engine));
		else if (closed)
			snd_close(engine_snd(sess->engine));
		break;
	case WALK_DIR_END:
		snd_leave(engine_snd(sess->engine));
		break;
	case WALK_FILE:
		offer_inode(sess, i, WIRE_FILE);
		break;
	case WALK_SYMLINK:
		if ((engine_open(sess->engine)->preserve & WIRE_PRESERVE_LINKS) == 0)
			skip(sess, i, "a symbolic link: skipped");
		else
			offer_inode(sess, i, WIRE_SYMLINK);
		break;
	case WALK_SKIPPED:
		skip(sess, i, w->why);
		break;
	case WALK_FAILED: /* is an obstacle */
		break;
	}
}
