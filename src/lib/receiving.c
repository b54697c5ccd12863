/* A party that receives: makes what will receive each entry, and has the store finish it. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "lib/party_impl.h"
#include "lib/why.h"
#include "store/sink.h"

#define PATH_BYTES 4200

enum work { WORK_NONE, WORK_MKDIR, WORK_COMMIT, WORK_LINK, WORK_FINISH_DIR, WORK_DISCARD };

/* The cookie of an entry in the engine. */
struct item {
	struct item *next;      /* in the queue or batch */
	uint64_t id;
	uint8_t type;
	enum work work;         /* what it is in the queue for */
	bool over;              /* the engine has let go of it */
	bool discard;           /* what was written is to be removed */
	struct dir *dir;        /* what it is in */
	struct dir *self;       /* of a directory: itself */
	struct sink *sink;      /* of a file */
	char *name, *target;
	char *source;           /* of a top-level directory under another name: its own */
	struct meta meta;
	int result;
	struct ptcp_err why;
};

static void item_free(struct item *t)
{
	dir_unref(t->dir);
	dir_unref(t->self);
	sink_unref(t->sink);
	free(t->name);
	free(t->target);
	free(t->source);
	free(t);
}

int receiving_new(struct party *p, struct ptcp_err *e)
{
	if ((p->rcv = calloc(1, sizeof *p->rcv)) == NULL)
		return err_nomem(e);
	p->rcv->party = p;
	p->rcv->last = &p->rcv->first;
	intake_init(&p->rcv->intake);
	return 0;
}

void receiving_free(struct party *p)
{
	if (p->rcv == NULL)
		return;
	intake_fini(&p->rcv->intake);
	place_fini(&p->rcv->place);
	free(p->rcv);
	p->rcv = NULL;
}

int party_receive_into(struct party *p, struct place *place, struct ptcp_err *e)
{
	int r;

	if ((r = receiving_new(p, e)) < 0) {
		place_fini(place);
		return r;
	}
	p->rcv->place = *place;
	*place = (struct place){ 0 };
	return 0;
}

bool receiving_idle(const struct party *p)
{
	return p->rcv->first == NULL && p->rcv->batch == NULL;
}

/* ---- The store's work, in batches ---- */

static void enqueue(struct party *p, struct item *t, enum work work)
{
	t->work = work;
	t->next = NULL;
	*p->rcv->last = t;
	p->rcv->last = &t->next;
}

static int make_dir(struct item *t)
{
	int r;

	if (t->source != NULL && (r = landing_mark(t->dir, t->name, t->source, &t->why)) < 0)
		return r;
	if ((r = store_mkdir(t->dir, t->name, &t->meta, NULL, &t->why)) < 0 && t->source != NULL)
		landing_unmark(t->dir, t->name);
	return r;
}

static void do_work(struct item *t)
{
	switch (t->work) {
	case WORK_NONE:
		break;
	case WORK_MKDIR:
		t->result = make_dir(t);
		break;
	case WORK_COMMIT:
		t->result = sink_commit(t->sink, &t->why);
		break;
	case WORK_LINK:
		t->result = store_symlink(t->dir, t->name, t->target, &t->meta, &t->why);
		break;
	case WORK_FINISH_DIR:
		t->result = store_dir_finish(t->self, &t->meta, &t->why);
		if (t->result == 0 && t->source != NULL)
			landing_unmark(t->dir, t->name);
		break;
	case WORK_DISCARD:
		sink_discard(t->sink);
		break;
	}
}

/* Only what is on disk waits for the store: else a sender could offer and fail files faster than a slow
 * disk lets go of them, without end, as they hold no slot any more. */
static void item_over(struct party *p, struct item *t)
{
	if (t->discard && t->sink != NULL && !sink_give_up(t->sink)) {
		t->discard = false;
		enqueue(p, t, WORK_DISCARD);
	} else {
		item_free(t);
	}
}

/* Our own disk is full: that is not this file's fault alone, it ends the session. */
static bool disk_full(struct party *p, const struct ptcp_err *why)
{
	if (why->code != PTCP_ENOSPC)
		return false;
	party_fail(p, why);
	return true;
}

static void work_done(struct party *p, struct item *t)
{
	enum work work = t->work;
	struct ptcp_err why, *failed = NULL;
	char text[DIR_PATH_TEXT_BYTES];

	t->work = WORK_NONE;
	if (t->over) {
		item_over(p, t);
		return;
	}
	if (p->over)
		return; /* nothing new is begun; session_drop() ends it */
	if (t->result < 0) {
		if (disk_full(p, &t->why))
			return;
		why_bare(&why, &t->why, dir_path_text(t->dir, t->name, text, sizeof text));
		failed = &why;
	}
	if (work == WORK_MKDIR)
		rcv_prepared(session_rcv(p->session), t->id, failed != NULL ? RCV_REFUSE : RCV_ACCEPT, NULL,
		    failed);
	else
		rcv_committed(session_rcv(p->session), t->id, failed);
}

/* On the control thread. */
static void on_done(struct msg *m)
{
	struct receiving *r = CONTAINER_OF(m, struct receiving, done);
	struct item *t = r->batch, *next;

	r->batch = NULL;
	for (; t != NULL; t = next) {
		next = t->next;
		work_done(r->party, t);
	}
	party_pump(r->party);
}

/* On an I/O thread. */
static void run_batch(struct io_job *io)
{
	struct receiving *r = CONTAINER_OF(io, struct receiving, io);
	struct item *t;

	for (t = r->batch; t != NULL; t = t->next)
		do_work(t);
	r->done.run = on_done;
	loop_post(r->party->o.host->control, &r->done);
}

void receiving_pump(struct party *p)
{
	struct receiving *r = p->rcv;
	struct item *t;
	unsigned n;

	if (r->batch != NULL || r->first == NULL)
		return;
	r->batch = t = r->first;
	for (n = 1; n < WORK_BATCH && t->next != NULL; n++)
		t = t->next;
	if ((r->first = t->next) == NULL)
		r->last = &r->first;
	t->next = NULL;
	r->io.run = run_batch;
	io_submit(p->o.host->io, &r->io);
}

/* ---- The engine's decisions ---- */

static void set_meta(struct party *p, struct meta *m, const struct wire_entry *f)
{
	uint32_t flags = session_open(p->session)->flags;

	m->set_mode = (flags & WIRE_OPEN_MODE) != 0;
	m->set_mtime = (flags & WIRE_OPEN_TIMES) != 0;
	m->mode = f->mode;
	m->mtime.tv_sec = f->mtime_s;
	m->mtime.tv_nsec = f->mtime_ns;
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

/* Where a top-level entry goes: into the base by its own name, unless it is renamed, or an unfinished
 * copy of it is to be completed. */
static bool place_item(struct receiving *r, struct item *t, const struct wire_entry *f)
{
	const struct place *at = &r->place;
	const char *name = NULL;

	if (at->rename[0] != '\0') {
		t->dir = dir_ref(at->base);
		name = at->rename;
	} else if (at->above != NULL && f->type == WIRE_DIR && f->name.n == strlen(at->source) &&
	    memcmp(f->name.p, at->source, f->name.n) == 0) {
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

static struct item *item_new(struct party *p, uint64_t id, const struct wire_entry *f,
    struct item *parent)
{
	struct item *t = calloc(1, sizeof *t);
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
	if (ok && f->type == WIRE_DIR)
		ok = (t->self = dir_child(t->dir, t->name)) != NULL;
	if (ok && f->type == WIRE_FILE)
		ok = (t->sink = sink_new(t->dir, t->name, f->size_bytes, &t->meta, NULL)) != NULL;
	if (ok && f->type == WIRE_SYMLINK)
		ok = (t->target = copy(f->target)) != NULL;
	if (!ok) {
		item_free(t);
		return NULL;
	}
	return t;
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
    void **cookie, uint64_t **claimed, struct ptcp_err *e)
{
	struct party *p = arg;
	struct item *t;

	(void)claimed; /* nothing is kept between sessions */
	if (f->type == WIRE_HARDLINK) {
		err_set(e, PTCP_ENOTYET, "hard links are not available yet");
		return RCV_REFUSE;
	}
	if (parent == NULL && p->rcv->placed) {
		err_set(e, PTCP_EPROTO, "more than one source for one name");
		return RCV_REFUSE;
	}
	if ((t = item_new(p, id, f, parent)) == NULL) {
		err_nomem(e);
		return RCV_REFUSE;
	}
	*cookie = t;
	if (sink_is_own_name(t->name)) {
		err_set(e, PTCP_EREFUSED, "a name that ptcp keeps for unfinished files (rename it)");
		return RCV_REFUSE;
	}
	if (parent == NULL && !p->rcv->placed && p->o.ops->wanted != NULL &&
	    !p->o.ops->wanted(p->o.arg, t->name)) {
		err_set(e, PTCP_EREFUSED, "not asked for");
		return RCV_REFUSE;
	}
	if (f->type != WIRE_DIR)
		return RCV_ACCEPT;
	enqueue(p, t, WORK_MKDIR);
	return RCV_LATER;
}

static void on_accepted(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts)
{
	struct party *p = arg;
	struct item *t = cookie;

	(void)parts;
	intake_set(&p->rcv->intake, id, t->sink, size_bytes);
}

/* Nothing is compared yet. */
static void on_differs(void *arg, uint64_t id, void *cookie)
{
	(void)arg;
	(void)id;
	(void)cookie;
}

/* What is never written is a hole. */
static void on_hole(void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count)
{
	(void)arg;
	(void)id;
	(void)cookie;
	(void)first;
	(void)count;
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	struct party *p = arg;
	struct item *t = cookie;

	if (t->type == WIRE_FILE)
		intake_clear(&p->rcv->intake, id);
	if (end != NULL)
		set_meta(p, &t->meta, end);
	enqueue(p, t, t->type == WIRE_FILE ? WORK_COMMIT : t->type == WIRE_DIR ? WORK_FINISH_DIR :
	    WORK_LINK);
}

static void on_ended(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why)
{
	struct party *p = arg;
	struct item *t = cookie;
	char path[PATH_BYTES];

	if (t->type == WIRE_FILE)
		intake_clear(&p->rcv->intake, id);
	dir_path_raw(t->dir, t->name, path, sizeof path);
	if (why != NULL && why->code != PTCP_ECANCELED)
		p->o.ops->file(p->o.arg, path, PTCP_FILE_FAILED, why);
	else if (why == NULL && t->type != WIRE_DIR)
		p->o.ops->file(p->o.arg, path, skipped ? PTCP_FILE_SKIPPED : PTCP_FILE_DONE, NULL);
	t->over = true;
	t->discard = why != NULL;
	if (t->work == WORK_NONE)
		item_over(p, t); /* else when that is done */
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	struct party *p = arg;

	p->rcv->total_files = files;
	p->rcv->total_bytes = bytes;
	p->rcv->total_known = final;
}

const struct rcv_ops receiving_rcv_ops = { on_prepare, on_differs, on_accepted, on_hole, on_commit, on_ended,
	on_totals };

void receiving_received(void *arg, struct stream *s, struct stream_news *news)
{
	struct party *p = arg;
	struct ptcp_err nomem, *why;
	unsigned i;

	(void)s;
	session_progress(p->session, mono_now());
	for (i = 0; i < news->n; i++) {
		why = news->of[i].why;
		if (!p->over && news->of[i].what == RCV_BLOCK_FAILED) {
			err_nomem(&nomem);
			why = why != NULL ? why : &nomem;
			if (!disk_full(p, why))
				rcv_block(session_rcv(p->session), news->of[i].id, news->of[i].block,
				    RCV_BLOCK_FAILED, news->of[i].term, why);
		} else if (!p->over) {
			rcv_block(session_rcv(p->session), news->of[i].id, news->of[i].block,
			    news->of[i].what, news->of[i].term, NULL);
		}
		free(news->of[i].why);
	}
	party_pump(p);
}
