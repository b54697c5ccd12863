/* What the engine decides about entries that come: what will receive each, and its end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/err_path.h"
#include "core/err.h"
#include "session/receive_impl.h"
#include "store/part.h"
#include "wire/attrs.h"

static void set_meta(struct session *sess, struct meta *m, const struct wire_entry *f)
{
	uint32_t flags = engine_open(sess->engine)->flags;

	m->set_mode = (flags & WIRE_OPEN_MODE) != 0;
	m->set_mtime = (flags & WIRE_OPEN_TIMES) != 0;
	/* At a server of root's they would be whatever a client likes to run as root. */
	m->setid = (flags & WIRE_OPEN_SETID) != 0 && (sess->o.open != NULL || geteuid() != 0);
	m->mode = f->mode;
	m->mtime.tv_sec = f->mtime_s;
	m->mtime.tv_nsec = f->mtime_ns;
}

/* What of the attributes is to be set, and may be. */
static bool take_attributes(struct session *sess, struct item *t, const struct wire_attrs *a)
{
	uint32_t flags = engine_open(sess->engine)->flags;
	struct span rest = a->xattrs, name, value;

	if ((flags & WIRE_OPEN_OWNER) != 0 && a->has_owner) {
		if ((t->owner = calloc(1, sizeof *t->owner)) == NULL)
			return false;
		t->owner->uid = a->uid;
		t->owner->gid = a->gid;
		memcpy(t->owner->user, a->user.p, a->user.n);
		memcpy(t->owner->group, a->group.p, a->group.n);
		t->meta.owner = t->owner;
		t->meta.owners = sess->o.host->owners;
	}
	if ((flags & WIRE_OPEN_XATTR) == 0)
		return true;
	while (wire_xattr_next(&rest, &name, &value))
		if (xattr_name_ok((const char *)name.p, name.n) &&
		    xattrs_add(&t->xattrs, (const char *)name.p, name.n, value.p, value.n, NULL) == PTCP_ENOMEM)
			return false;
	if (t->xattrs.n > 0)
		t->meta.xattrs = &t->xattrs;
	return true;
}

static char *copy(struct span s)
{
	char *p = malloc(s.n + 1);

	if (p != NULL) {
		memcpy(p, s.p, s.n);
		p[s.n] = '\0';
	}
	return p;
}

static bool is_name(struct span s, const char *name)
{
	return s.n == strlen(name) && memcmp(s.p, name, s.n) == 0;
}

/* Where a top-level entry goes: into the base by its own name, unless it is renamed, or an unfinished
 * copy of it is to be completed. */
static bool place_item(struct receive_side *r, struct item *t, const struct wire_entry *f)
{
	const struct destination *at = &r->place;
	const char *name;

	if (at->rename[0] != '\0') {
		t->dir = dir_ref(at->base);
		name = at->rename;
	} else if (at->above != NULL && f->type == WIRE_DIR && is_name(f->name, at->source)) {
		t->dir = dir_ref(at->above);
		name = at->name;
	} else {
		t->dir = dir_ref(at->base);
		t->name = copy(f->name);
		return t->name != NULL;
	}
	r->placed = true;
	t->name = strdup(name);
	t->source = f->type == WIRE_DIR ? copy(f->name) : NULL;
	return t->name != NULL && (f->type != WIRE_DIR || t->source != NULL);
}

static struct sink *make_sink(const struct item *t, const struct wire_entry *f,
    const struct wire_attrs *a)
{
	struct sink_opts o = { .block_bytes = wire_grid_bytes(f->size_bytes),
		.has_version = a->has_version, .sparse = a->sparse };

	memcpy(o.version, a->version, sizeof o.version);
	return sink_new(t->dir, t->name, f->size_bytes, &t->meta, &o);
}

/* The existing file is named by its path below the destination, where what was renamed has its new name. */
static bool take_link(struct receive_side *r, struct item *t, const struct wire_entry *f)
{
	bool renamed = r->place.rename[0] != '\0';
	const char *name = renamed ? r->place.rename : r->place.name, *rest;
	char *path = copy(f->target);

	t->self = dir_ref(r->placed && !renamed ? r->place.above : r->place.base);
	t->target = path;
	if (path == NULL || !r->placed)
		return path != NULL;
	rest = strchr(path, '/');
	rest = rest != NULL ? rest : "";
	if ((t->target = malloc(strlen(name) + strlen(rest) + 1)) != NULL)
		stpcpy(stpcpy(t->target, name), rest);
	free(path);
	return t->target != NULL;
}

static struct item *item_new(struct session *sess, uint64_t id, const struct wire_entry *f,
    struct item *parent)
{
	struct item *t = calloc(1, sizeof *t);
	struct wire_attrs a;
	bool ok;

	if (t == NULL)
		return NULL;
	t->id = id;
	t->type = f->type;
	set_meta(sess, &t->meta, f);
	if (parent == NULL) {
		ok = place_item(sess->receive, t, f);
	} else {
		t->dir = dir_ref(parent->self);
		ok = (t->name = copy(f->name)) != NULL;
	}
	ok = ok && wire_attrs_decode(&a, f, NULL) == 0 && take_attributes(sess, t, &a);
	if (ok && f->type == WIRE_DIR)
		ok = (t->self = dir_child(t->dir, t->name)) != NULL;
	if (ok && f->type == WIRE_FILE)
		ok = (t->sink = make_sink(t, f, &a)) != NULL;
	if (ok && f->type == WIRE_SYMLINK)
		ok = (t->target = copy(f->target)) != NULL;
	if (ok && f->type == WIRE_HARDLINK)
		ok = take_link(sess->receive, t, f);
	if (!ok) {
		item_free(sess, t);
		return NULL;
	}
	return t;
}

/* Who was asked to send may choose no names: what lies on top must be one of the sources, by its last component,
 * unless a source's contents were asked for (then nobody knows their names). */
static bool asked_for(const struct wire_open *o, const char *name)
{
	struct span rest = o->paths, path;
	size_t n = strlen(name);
	uint8_t flags;

	while (wire_path_next(&rest, &flags, &path)) {
		if ((flags & (WIRE_PATH_EXCLUDE | WIRE_PATH_INCLUDE)) != 0)
			continue;
		if ((flags & WIRE_PATH_CONTENTS) != 0 ||
		    (path.n >= n && memcmp(path.p + path.n - n, name, n) == 0 &&
		    (path.n == n || path.p[path.n - n - 1] == '/')))
			return true;
	}
	return false;
}

/* Whether it may come at all. */
static int admit(struct session *sess, const struct item *t, bool on_top, struct ptcp_err *e)
{
	const struct wire_open *o = engine_open(sess->engine);

	if (part_is_own_name(t->name))
		return err_set(e, PTCP_EREFUSED, "a name that ptcp keeps for unfinished files (rename it)");
	if (on_top && !sess->receive->placed && o->role == WIRE_ACCEPTOR_SENDS && !asked_for(o, t->name))
		return err_set(e, PTCP_EREFUSED, "not asked for");
	return 0;
}

/* `anew`: whatever may be there of it is of no interest. */
static enum rcv_prep prepare_file(struct session *sess, struct item *t, bool anew, bool dry_run)
{
	if (!dry_run && !receive_room(sess, t, anew ? WORK_ACCEPT : WORK_LOOK))
		return RCV_LATER;
	if (anew)
		return RCV_ACCEPT;
	receive_enqueue(sess, t, dry_run ? WORK_LOOK_SAME : WORK_LOOK);
	return RCV_LATER;
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
    void **cookie, uint64_t **claimed, struct ptcp_err *e)
{
	struct session *sess = arg;
	uint32_t flags = engine_open(sess->engine)->flags;
	struct item *t, *in = parent;
	bool fresh, dry_run;

	(void)claimed;
	if (in == NULL && sess->receive->placed) {
		err_set(e, PTCP_EPROTO, "more than one source for one name");
		return RCV_REFUSE;
	}
	if ((t = item_new(sess, id, f, in)) == NULL) {
		err_nomem(e);
		return RCV_REFUSE;
	}
	*cookie = t;
	if (admit(sess, t, in == NULL, e) < 0)
		return RCV_REFUSE;
	/* Nothing can be there of an earlier run where this one made the directory. */
	fresh = in != NULL ? in->fresh : sess->receive->place.missing;
	dry_run = (flags & WIRE_OPEN_DRY_RUN) != 0;
	if (f->type == WIRE_DIR) {
		t->fresh = fresh;
		if (dry_run && fresh)
			return RCV_ACCEPT;
		receive_enqueue(sess, t, dry_run ? WORK_LOOK_DIR : WORK_MKDIR);
		return RCV_LATER;
	}
	return f->type == WIRE_FILE ? prepare_file(sess, t, fresh || (flags & WIRE_OPEN_NO_RESUME) != 0, dry_run) :
	    RCV_ACCEPT;
}

/* Not the same after all: its part is begun with the first block. */
static void on_differs(void *arg, uint64_t id, void *cookie)
{
	(void)id;
	receive_enqueue(arg, cookie, WORK_ACCEPT);
}

static void on_same(void *arg, uint64_t id, void *cookie)
{
	(void)id;
	receive_enqueue(arg, cookie, WORK_REFRESH);
}

static void on_accepted(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts)
{
	struct session *sess = arg;
	struct item *t = cookie;

	open_files_set(&sess->receive->intake, id, t->sink, size_bytes);
	if (parts)
		resume_verify_start(sess, t, false);
	else if (t->look.found == SINK_PART) /* where there may be holes now, nobody writes */
		sink_restart(t->sink);
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	static const enum work work[] = { [WIRE_DIR] = WORK_FINISH_DIR, [WIRE_FILE] = WORK_COMMIT,
		[WIRE_SYMLINK] = WORK_SYMLINK, [WIRE_HARDLINK] = WORK_HARDLINK };
	struct session *sess = arg;
	struct item *t = cookie;

	if (t->type == WIRE_FILE)
		open_files_clear(&sess->receive->intake, id);
	if (end != NULL)
		set_meta(sess, &t->meta, end);
	receive_enqueue(sess, t, work[t->type]);
}

/* What has been written is of use to a later run unless it is wrong, or of a source that is no more. */
static bool worth_keeping(const struct ptcp_err *why)
{
	return why->code != PTCP_EVERIFY && why->code != PTCP_ECHANGED;
}

static void on_ended(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why)
{
	struct session *sess = arg;
	struct item *t = cookie;
	char path[DIR_PATH_RAW_BYTES];

	if (t->type == WIRE_FILE)
		open_files_clear(&sess->receive->intake, id);
	dir_path_raw(t->dir, t->name, path, sizeof path);
	if (why != NULL && why->code != PTCP_ECANCELED)
		sess->o.ops->file(sess->o.arg, path, PTCP_FILE_FAILED, why);
	else if (why == NULL && t->type != WIRE_DIR)
		sess->o.ops->file(sess->o.arg, path, skipped ? PTCP_FILE_SKIPPED : PTCP_FILE_DONE, NULL);
	t->over = true;
	t->let_go = why != NULL;
	t->keep = why != NULL && worth_keeping(why);
	if (t->work == WORK_NONE && !t->reading)
		receive_item_over(sess, t); /* else when that is done */
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	struct session *sess = arg;

	sess->receive->total_files = files;
	sess->receive->total_bytes = bytes;
	sess->receive->total_known = final;
}

/* No `.hole`: a part has zeros wherever it has no verified block, see sink_inspect(). */
const struct rcv_ops receive_rcv_ops = {
	.prepare = on_prepare, .differs = on_differs, .accepted = on_accepted,
	.commit = on_commit, .ended = on_ended, .totals = on_totals, .same = on_same
};

/* ---- Blocks ---- */

/* Over streams, so far. */
static uint64_t came(const struct session *sess)
{
	struct rcv_stats r;

	if (engine_rcv(sess->engine) == NULL)
		return 0;
	r = rcv_stats(engine_rcv(sess->engine));
	return r.bytes - r.resumed_bytes - r.hole_bytes;
}

void receive_received(void *arg, struct stream *s, struct stream_news *news)
{
	struct session *sess = arg;
	struct mono now = mono_now();
	struct ptcp_err nomem, *why;
	uint64_t before = came(sess);
	unsigned i;

	engine_progress(sess->engine, now);
	for (i = 0; i < news->n; i++) {
		why = news->of[i].why;
		if (!sess->over && news->of[i].what == RCV_BLOCK_FAILED) {
			err_nomem(&nomem);
			why = why != NULL ? why : &nomem;
			if (!receive_disk_full(sess, why))
				rcv_block(engine_rcv(sess->engine), news->of[i].id, news->of[i].block,
				    RCV_BLOCK_FAILED, news->of[i].term, why);
		} else if (!sess->over) {
			if (news->of[i].what == RCV_BLOCK_WRITTEN)
				resume_verify_written(sess, news->of[i].id, news->of[i].block, now);
			rcv_block(engine_rcv(sess->engine), news->of[i].id, news->of[i].block,
			    news->of[i].what, news->of[i].term, NULL);
		}
		free(news->of[i].why);
	}
	sess->carried[stream_path(s)] += came(sess) - before;
	session_pump(sess);
}
