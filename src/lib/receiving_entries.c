/* What the engine decides about entries that come: what will receive each, and its end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "lib/receiving_impl.h"
#include "lib/why.h"
#include "wire/attrs.h"

static void set_meta(struct party *p, struct meta *m, const struct wire_entry *f)
{
	uint32_t flags = session_open(p->session)->flags;

	m->set_mode = (flags & WIRE_OPEN_MODE) != 0;
	m->set_mtime = (flags & WIRE_OPEN_TIMES) != 0;
	/* At a server of root's they would be whatever a client likes to run as root. */
	m->setid = (flags & WIRE_OPEN_SETID) != 0 && (p->o.open != NULL || geteuid() != 0);
	m->mode = f->mode;
	m->mtime.tv_sec = f->mtime_s;
	m->mtime.tv_nsec = f->mtime_ns;
}

/* What of the attributes is to be set, and may be. */
static bool take_attributes(struct party *p, struct item *t, const struct wire_attrs *a)
{
	uint32_t flags = session_open(p->session)->flags;
	struct span rest = a->xattrs, name, value;

	if ((flags & WIRE_OPEN_OWNER) != 0 && a->has_owner) {
		if ((t->owner = calloc(1, sizeof *t->owner)) == NULL)
			return false;
		t->owner->uid = a->uid;
		t->owner->gid = a->gid;
		memcpy(t->owner->user, a->user.p, a->user.n);
		memcpy(t->owner->group, a->group.p, a->group.n);
		t->meta.owner = t->owner;
		t->meta.owners = p->o.host->owners;
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
static bool place_item(struct receiving *r, struct item *t, const struct wire_entry *f)
{
	const struct place *at = &r->place;
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
static bool take_link(struct receiving *r, struct item *t, const struct wire_entry *f)
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

static struct item *item_new(struct party *p, uint64_t id, const struct wire_entry *f,
    struct item *parent)
{
	struct item *t = calloc(1, sizeof *t);
	struct wire_attrs a;
	bool ok;

	if (t == NULL)
		return NULL;
	t->id = id;
	t->type = f->type;
	set_meta(p, &t->meta, f);
	if (parent == NULL) {
		ok = place_item(p->rcv, t, f);
	} else {
		t->dir = dir_ref(parent->self);
		ok = (t->name = copy(f->name)) != NULL;
	}
	ok = ok && wire_attrs_decode(&a, f, NULL) == 0 && take_attributes(p, t, &a);
	if (ok && f->type == WIRE_DIR)
		ok = (t->self = dir_child(t->dir, t->name)) != NULL;
	if (ok && f->type == WIRE_FILE)
		ok = (t->sink = make_sink(t, f, &a)) != NULL;
	if (ok && f->type == WIRE_SYMLINK)
		ok = (t->target = copy(f->target)) != NULL;
	if (ok && f->type == WIRE_HARDLINK)
		ok = take_link(p->rcv, t, f);
	if (!ok) {
		item_free(p, t);
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
static int admit(struct party *p, const struct item *t, bool on_top, struct ptcp_err *e)
{
	const struct wire_open *o = session_open(p->session);

	if (sink_is_own_name(t->name))
		return err_set(e, PTCP_EREFUSED, "a name that ptcp keeps for unfinished files (rename it)");
	if (on_top && !p->rcv->placed && o->role == WIRE_YOU_SEND && !asked_for(o, t->name))
		return err_set(e, PTCP_EREFUSED, "not asked for");
	return 0;
}

/* `anew`: whatever may be there of it is of no interest. */
static enum rcv_prep prepare_file(struct party *p, struct item *t, bool anew, bool dry_run)
{
	if (!dry_run && !receiving_room(p, t, anew ? WORK_ACCEPT : WORK_LOOK))
		return RCV_LATER;
	if (anew)
		return RCV_ACCEPT;
	receiving_enqueue(p, t, dry_run ? WORK_LOOK_SAME : WORK_LOOK);
	return RCV_LATER;
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
    void **cookie, uint64_t **claimed, struct ptcp_err *e)
{
	struct party *p = arg;
	uint32_t flags = session_open(p->session)->flags;
	struct item *t, *in = parent;
	bool fresh, dry_run;

	(void)claimed;
	if (in == NULL && p->rcv->placed) {
		err_set(e, PTCP_EPROTO, "more than one source for one name");
		return RCV_REFUSE;
	}
	if ((t = item_new(p, id, f, in)) == NULL) {
		err_nomem(e);
		return RCV_REFUSE;
	}
	*cookie = t;
	if (admit(p, t, in == NULL, e) < 0)
		return RCV_REFUSE;
	/* Nothing can be there of an earlier run where this one made the directory. */
	fresh = in != NULL ? in->fresh : p->rcv->place.missing;
	dry_run = (flags & WIRE_OPEN_DRY_RUN) != 0;
	if (f->type == WIRE_DIR) {
		t->fresh = fresh;
		if (dry_run && fresh)
			return RCV_ACCEPT;
		receiving_enqueue(p, t, dry_run ? WORK_LOOK_DIR : WORK_MKDIR);
		return RCV_LATER;
	}
	return f->type == WIRE_FILE ? prepare_file(p, t, fresh || (flags & WIRE_OPEN_NO_RESUME) != 0, dry_run) :
	    RCV_ACCEPT;
}

/* Not the same after all: its part is begun with the first block. */
static void on_differs(void *arg, uint64_t id, void *cookie)
{
	(void)id;
	receiving_enqueue(arg, cookie, WORK_ACCEPT);
}

static void on_same(void *arg, uint64_t id, void *cookie)
{
	(void)id;
	receiving_enqueue(arg, cookie, WORK_REFRESH);
}

static void on_accepted(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts)
{
	struct party *p = arg;
	struct item *t = cookie;

	intake_set(&p->rcv->intake, id, t->sink, size_bytes);
	if (parts)
		readback_start(p, t, false);
	else if (t->look.found == SINK_PART) /* where there may be holes now, nobody writes */
		sink_begin_anew(t->sink);
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	static const enum work work[] = { [WIRE_DIR] = WORK_FINISH_DIR, [WIRE_FILE] = WORK_COMMIT,
		[WIRE_SYMLINK] = WORK_SYMLINK, [WIRE_HARDLINK] = WORK_HARDLINK };
	struct party *p = arg;
	struct item *t = cookie;

	if (t->type == WIRE_FILE)
		intake_clear(&p->rcv->intake, id);
	if (end != NULL)
		set_meta(p, &t->meta, end);
	receiving_enqueue(p, t, work[t->type]);
}

/* What has been written is of use to a later run unless it is wrong, or of a source that is no more. */
static bool worth_keeping(const struct ptcp_err *why)
{
	return why->code != PTCP_EVERIFY && why->code != PTCP_ECHANGED;
}

static void on_ended(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why)
{
	struct party *p = arg;
	struct item *t = cookie;
	char path[DIR_PATH_RAW_BYTES];

	if (t->type == WIRE_FILE)
		intake_clear(&p->rcv->intake, id);
	dir_path_raw(t->dir, t->name, path, sizeof path);
	if (why != NULL && why->code != PTCP_ECANCELED)
		p->o.ops->file(p->o.arg, path, PTCP_FILE_FAILED, why);
	else if (why == NULL && t->type != WIRE_DIR)
		p->o.ops->file(p->o.arg, path, skipped ? PTCP_FILE_SKIPPED : PTCP_FILE_DONE, NULL);
	t->over = true;
	t->let_go = why != NULL;
	t->keep = why != NULL && worth_keeping(why);
	if (t->work == WORK_NONE && !t->reading)
		receiving_item_over(p, t); /* else when that is done */
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	struct party *p = arg;

	p->rcv->total_files = files;
	p->rcv->total_bytes = bytes;
	p->rcv->total_known = final;
}

/* No `.hole`: a part has zeros wherever it has no verified block, see sink_look(). */
const struct rcv_ops receiving_rcv_ops = {
	.prepare = on_prepare, .differs = on_differs, .accepted = on_accepted,
	.commit = on_commit, .ended = on_ended, .totals = on_totals, .same = on_same
};

/* ---- Blocks ---- */

/* Over streams, so far. */
static uint64_t came(const struct party *p)
{
	struct rcv_stats r;

	if (session_rcv(p->session) == NULL)
		return 0;
	r = rcv_stats(session_rcv(p->session));
	return r.bytes - r.resumed_bytes - r.hole_bytes;
}

void receiving_received(void *arg, struct stream *s, struct stream_news *news)
{
	struct party *p = arg;
	struct mono now = mono_now();
	struct ptcp_err nomem, *why;
	uint64_t before = came(p);
	unsigned i;

	session_progress(p->session, now);
	for (i = 0; i < news->n; i++) {
		why = news->of[i].why;
		if (!p->over && news->of[i].what == RCV_BLOCK_FAILED) {
			err_nomem(&nomem);
			why = why != NULL ? why : &nomem;
			if (!receiving_disk_full(p, why))
				rcv_block(session_rcv(p->session), news->of[i].id, news->of[i].block,
				    RCV_BLOCK_FAILED, news->of[i].term, why);
		} else if (!p->over) {
			if (news->of[i].what == RCV_BLOCK_WRITTEN)
				readback_written(p, news->of[i].id, news->of[i].block, now);
			rcv_block(session_rcv(p->session), news->of[i].id, news->of[i].block,
			    news->of[i].what, news->of[i].term, NULL);
		}
		free(news->of[i].why);
	}
	p->carried[stream_path(s)] += came(p) - before;
	party_pump(p);
}
