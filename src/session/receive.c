/* Receiving side of a session: entries and blocks between the engine and the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/charged.h"
#include "core/err.h"
#include "core/units.h"
#include "fs/fd_budget.h"
#include "session/attributes.h"
#include "store/expand.h"
#include "store/part.h"
#include "wire/attrs.h"
#include "wire/block.h"

static const struct payload_ops receive_payload;

int session_receive_into(struct session *sess, struct destination *place, struct ptcp_err *e)
{
	struct receive_side *r = memory_calloc(sess->o.memory, sizeof *r, e);
	uint8_t fsync = engine_open(sess->engine)->fsync;
	uint32_t flags = engine_open(sess->engine)->flags;
	int code;

	if (r == NULL) {
		destination_fini(place);
		return PTCP_ENOMEM;
	}
	r->linked.records.memory = sess->o.memory;
	r->own_published.now.memory = sess->o.memory;
	r->own_published.max = sess->o.open != NULL ? SESSION_NAMES_MAX : SESSION_CLIENT_NAMES_MAX;
	r->published = &r->own_published;
	r->rules.reads = (flags & WIRE_OPEN_REMOVE_SOURCES) != 0; /* a wrong answer would cost the only copy */
	r->rules.flags = flags & RULES_ALL & ~(uint32_t)((flags & WIRE_OPEN_VERIFY) == 0 ? RULE_CHECKSUM : 0);
	r->rules.window_s = engine_open(sess->engine)->modify_window_s;
	r->session = sess;
	spares_init(&r->entries, sess->o.memory, sizeof(struct receive_entry), RECEIVE_ENTRY_BYTES);
	r->last = &r->first;
	r->closing.last = &r->closing.first;
	r->fd_last = &r->fd_first;
	list_init(&r->verify_queue);
	list_init(&r->match_queue);
	r->search.pace.left_bytes = SEARCH_BEGIN_BYTES;
	open_files_init(&r->files);
	r->sync = fsync == WIRE_FSYNC_NONE ? STORE_SYNC_NONE : fsync == WIRE_FSYNC_FILE ? STORE_SYNC_FILE : STORE_SYNC_GROUP;
	r->place = *place;
	*place = (struct destination){ 0 };
	sess->receive = r;
	streams_carry(sess, &receive_payload);
	if (((engine_open(sess->engine)->preserve & (WIRE_PRESERVE_OWNER | WIRE_PRESERVE_ACL)) != 0 &&
	    (code = owners_new(&r->owners, &owner_db_real, sess->o.memory, e)) < 0) ||
	    (sess->striping.movers != NULL && (code = receive_movers_new(sess, e)) < 0))
		return code;
	if ((flags & WIRE_OPEN_RENAMES) != 0 && (flags & (WIRE_OPEN_WHOLE | WIRE_OPEN_NO_RESUME | WIRE_OPEN_DRY_RUN)) == 0 &&
	    (code = receive_renames_new(sess, e)) < 0)
		return code;
	return (flags & WIRE_OPEN_DELETE) != 0 ? receive_prune_new(sess, e) : 0;
}

int session_receive_pipe(struct session *sess, struct pipe_sink *pipe, struct ptcp_err *e)
{
	struct destination none = { .base = NULL };
	int r = session_receive_into(sess, &none, e);

	if (r == 0)
		receive_pipe_attach(sess->receive, pipe);
	return r;
}

void receive_free(struct session *sess)
{
	if (sess->receive == NULL)
		return;
	receive_pipe_detach(sess->receive);
	open_files_fini(&sess->receive->files);
	receive_movers_free(sess->receive);
	receive_prune_free(sess->receive);
	renames_free(sess->receive->renames);
	dir_unref(sess->receive->top);
	if (sess->receive->of_base != NULL)
		receive_entry_free(sess, sess->receive->of_base);
	linked_files_fini(&sess->receive->linked);
	published_fini(&sess->receive->own_published);
	backup_free(sess->receive->backup);
	references_free(sess->receive->references);
	destination_fini(&sess->receive->place);
	owners_free(sess->receive->owners);
	spares_fini(&sess->receive->entries);
	memory_free(sess->o.memory, sess->receive, sizeof *sess->receive);
	sess->receive = NULL;
}

bool session_has_locked(const struct session *sess, uint64_t dev, uint64_t ino)
{
	return sess->receive != NULL && open_files_contains(&sess->receive->files, dev, ino);
}

/* ---- Entries ---- */

void session_receive_published(struct session *sess, struct published *p)
{
	p->max = SESSION_NAMES_MAX;
	sess->receive->published = p;
}

int session_receive_backup(struct session *sess, struct backup_opts o, struct ptcp_err *e)
{
	o.durable = sess->receive->sync != STORE_SYNC_NONE;
	return backup_new(&sess->receive->backup, &o, sess->o.memory, e);
}

int session_receive_reference(struct session *sess, const struct session_reference *o, struct ptcp_err *e)
{
	struct references **r = &sess->receive->references;
	int err = *r == NULL ? references_new(r, o->kind, o->own, sess->o.memory, e) : 0;

	return err < 0 ? err : references_add(*r, o->path, e);
}

int session_receive_match(struct session *sess, const char *version, struct ptcp_err *e)
{
	return store_match_parse(&sess->receive->match, version, e);
}

static char *copy(struct span s) { return strndup((const char *)s.p, s.n); }

static bool take_target(struct session *sess, struct receive_entry *t, struct span target, struct ptcp_err *e)
{
	if ((t->target = memory_calloc(sess->o.memory, target.n + 1, e)) == NULL)
		return false;
	span_copy(t->target, target);
	return true;
}

/* Destination of a top-level entry: the base directory, by its own name, unless the user gave a new name, or an
 * unfinished copy of the directory is to be completed. */
static bool set_place(struct receive_side *r, struct receive_entry *t, const struct wire_entry *f)
{
	const struct destination *at = &r->place;
	const char *name;

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

static struct sink *make_sink(struct session *sess, const struct receive_entry *t, const struct wire_attrs *a)
{
	struct sink_opts o = { .block_bytes = t->grid.block_bytes, .rules = *t->rules, .match = sess->receive->match,
		.has_version = a->has_version && wire_grid_blocks(t->grid) > 1, .sparse = a->sparse };

	if (t->unsized)
		o.rules.flags |= RULE_IGNORE_TIMES;
	o.matches = !t->shared && !t->unsized;
	o.delta = o.matches && t->size_bytes >= RECEIVE_DELTA_BYTES && (engine_open(sess->engine)->flags & (WIRE_OPEN_WHOLE | WIRE_OPEN_NO_RESUME)) == 0;
	o.renames = o.matches && t->size_bytes > 0 && !t->rules->write_once ? sess->receive->renames : NULL;
	o.in_place = (engine_open(sess->engine)->flags & WIRE_OPEN_INPLACE) != 0 && !t->rules->write_once;
	o.owner = sess->receive->only_new;
	o.direct_io = session_direct_io(sess);
	o.shared = t->shared;
	o.unsized = t->unsized;
	memcpy(o.version, a->version, sizeof o.version);
	return sink_new(t->dir, t->name, t->grid.size_bytes, &t->meta, &o);
}

static bool make_dir_node(struct receive_side *r, struct receive_entry *t)
{
	if ((t->self = t->name == NULL ? dir_ref(t->dir) : dir_child(t->dir, t->name)) == NULL)
		return false;
	if (t->source != NULL)
		r->top = dir_ref(t->self);
	return true;
}

static struct receive_entry *receive_entry_new(struct session *sess, uint64_t id, const struct wire_entry *f,
    struct receive_entry *parent, struct ptcp_err *e)
{
	struct receive_entry *t = receive_entry_calloc(sess, e);
	struct wire_attrs a;
	bool ok;

	if (t == NULL)
		return NULL;
	err_nomem(e); /* unless a limit refuses */
	t->id = id;
	t->type = f->type;
	t->size_bytes = f->size_bytes;
	t->rules = &sess->receive->rules;
	t->shared = sess->receive->shared != NULL && f->type == WIRE_FILE && f->size_bytes > 0;
	attributes_take_meta(sess, &t->meta, f);
	if (wire_entry_is_base(f)) {
		t->dir = dir_ref(sess->receive->place.base);
		ok = true;
	} else if (parent == NULL) {
		ok = set_place(sess->receive, t, f);
	} else {
		t->dir = dir_ref(parent->self);
		ok = (t->name = copy(f->name)) != NULL;
	}
	ok = ok && wire_attrs_decode(&a, f, NULL) == 0 && attributes_take(sess, t, &a, e);
	if (ok) {
		t->linked = a.linked;
		t->link_id = a.link_id;
		t->unsized = a.unsized;
		t->grid = a.unsized ? wire_grid_unsized(WIRE_UNSIZED_MAX) : wire_grid_of(f->size_bytes);
		memcpy(t->version, a.version, sizeof t->version);
	}
	if (ok && f->type == WIRE_DIR)
		ok = make_dir_node(sess->receive, t);
	sess->receive->room.sparse |= ok && a.sparse;
	if (ok && f->type == WIRE_FILE)
		ok = (t->sink = make_sink(sess, t, &a)) != NULL;
	if (ok && f->type == WIRE_SYMLINK)
		ok = take_target(sess, t, f->target, e);
	if (!ok) {
		receive_entry_free(sess, t);
		return NULL;
	}
	return t;
}

/* `fresh`: nothing exists that could be used, or kept. */
static enum rcv_prep prepare_file(struct session *sess, struct receive_entry *t, bool fresh, bool dry_run)
{
	uint32_t flags = engine_open(sess->engine)->flags;

	fresh = fresh && t->meta.references == NULL && !receive_renames_may_have(sess->receive, t);
	if (fresh)
		receive_room_count(sess, t, true);
	fresh |= rules_ask_nothing(t->rules) && (flags & WIRE_OPEN_INPLACE) == 0;
	if (fresh && !dry_run)
		receive_reserve(sess->receive, t);
	t->compares = dry_run && (flags & WIRE_OPEN_CHECKSUM) != 0 && (flags & WIRE_OPEN_VERIFY) != 0;
	if ((!dry_run || (t->compares && !fresh)) &&
	    !receive_reserve_fds(sess, t, fresh ? WORK_ACCEPT : dry_run ? WORK_DRY_FILE : WORK_RESUME))
		return RCV_LATER;
	if (fresh && !t->shared)
		return RCV_ACCEPT;
	receive_enqueue(sess, t, fresh ? WORK_ACCEPT : dry_run ? WORK_DRY_FILE : WORK_RESUME);
	return RCV_LATER;
}

static enum rcv_prep prepare_link(struct session *sess, struct receive_entry *t, bool fresh)
{
	if (t->type == WIRE_HARDLINK) {
		t->file = linked_files_find(&sess->receive->linked, t->link_id);
		t->self = dir_ref(receive_named(sess->receive));
	}
	if (t->type == WIRE_HARDLINK && t->file == NULL) /* the rules judge the entry that is offered next */
		return RCV_NO_LINK;
	fresh = fresh && t->meta.references == NULL;
	if (fresh && t->type == WIRE_SYMLINK)
		receive_room_count(sess, t, true);
	if (fresh || rules_ask_nothing(t->rules))
		return RCV_ACCEPT;
	receive_enqueue(sess, t, WORK_FIND_LINK);
	return RCV_LATER;
}

/* ---- Names that a peer may choose ---- */

/* A server may not choose names: a top-level entry must be one of the requested sources, by its last component,
 * unless the client requested the contents of a source (unknown names), or match the last component of a pattern. */
static bool is_requested(const struct session *sess, const struct wire_open *o, const char *name)
{
	struct span rest = o->paths, path;
	char pattern[WIRE_PATH_MAX + 1];
	size_t n = strlen(name);
	uint8_t flags;

	while (wire_path_next(&rest, &flags, &path)) {
		if (!wire_path_is_place(flags))
			continue;
		if (flags == WIRE_PATH_CONTENTS ||
		    (path.n >= n && memcmp(path.p + path.n - n, name, n) == 0 &&
		    (path.n == n || path.p[path.n - n - 1] == '/')))
			return true;
		if (sess->sources_expanded && expand_can_match(span_copy(pattern, path), name))
			return true;
	}
	return false;
}

static int check_name(const struct session *sess, const char *name, bool top_level, struct ptcp_err *e)
{
	const struct wire_open *o = engine_open(sess->engine);

	if (part_is_own_name(name))
		return err_set(e, PTCP_EIO, "a name that ptcp reserves for unfinished files (rename it)");
	if (top_level && !sess->receive->placed && o->role == WIRE_ACCEPTOR_SENDS && !is_requested(sess, o, name))
		return err_set(e, PTCP_EREFUSED, "not requested");
	return 0;
}

/* An existing base keeps its attributes unless owners are preserved, and the root of a server is the operator's. The first
 * source counts. */
static bool wants_base(const struct session *sess)
{
	const struct receive_side *r = sess->receive;

	if (r->of_base != NULL || (engine_open(sess->engine)->flags & WIRE_OPEN_DRY_RUN) != 0)
		return false;
	return r->place.made || ((engine_open(sess->engine)->preserve & WIRE_PRESERVE_OWNER) != 0 && !r->rules.write_once &&
	    !r->place.served);
}

static enum rcv_prep prepare_base(struct session *sess, struct receive_entry *t, struct ptcp_err *e)
{
	if (sess->receive->place.rename[0] != '\0') {
		err_set(e, PTCP_EPROTO, "the contents of a directory for the name of one file (both ptcp must have the same version)");
		return RCV_REFUSE;
	}
	if (check_name(sess, ".", true, e) < 0)
		return RCV_REFUSE;
	if (!wants_base(sess))
		return RCV_ACCEPT;
	sess->receive->of_base = t;
	if (!sess->receive->place.made)
		return RCV_ACCEPT;
	receive_enqueue(sess, t, WORK_MKDIR);
	return RCV_LATER;
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
    void **cookie, uint64_t **claimed, struct ptcp_err *e)
{
	struct session *sess = arg;
	uint32_t flags = engine_open(sess->engine)->flags;
	struct receive_entry *t, *in = parent;
	bool fresh, dry_run;

	if (sess->receive->pipe != NULL)
		return receive_pipe_prepare(sess, id, f, cookie, claimed, e);
	if (in == NULL && sess->receive->placed) {
		err_set(e, PTCP_EPROTO, "more than one source for one name");
		return RCV_REFUSE;
	}
	if ((t = receive_entry_new(sess, id, f, in, e)) == NULL)
		return RCV_REFUSE;
	*cookie = t;
	if (t->name == NULL)
		return prepare_base(sess, t, e);
	if (t->rules->write_once && !receive_new_takes(f, e))
		return RCV_REFUSE;
	if (sess->receive->match.set && f->type != WIRE_FILE) {
		err_set(e, PTCP_EREFUSED, "not a file, and the version of a file is to be replaced (send a file)");
		return RCV_REFUSE;
	}
	if (t->unsized && sess->receive->shared != NULL) {
		err_set(e, PTCP_ENOTYET, "movers: a file of unknown size: not available yet (send a file)");
		return RCV_REFUSE;
	}
	if (t->shared && (flags & WIRE_OPEN_INPLACE) != 0) {
		err_set(e, PTCP_ENOTYET, "movers: --inplace: not available yet (leave one of them out)");
		return RCV_REFUSE;
	}
	if (check_name(sess, t->name, in == NULL, e) < 0 || receive_prune_note(sess->receive, t, in, e) < 0)
		return RCV_REFUSE;
	receive_renames_note(sess->receive, t, in);
	if (f->type == WIRE_NAME)
		return RCV_UP_TO_DATE;
	/* A directory made in this session contains no data of an earlier run. */
	fresh = in != NULL ? in->fresh : sess->receive->place.missing;
	t->dry_run = dry_run = (flags & WIRE_OPEN_DRY_RUN) != 0;
	t->absent = (in != NULL && in->absent) || (fresh && (t->rules->flags & RULE_EXISTING) != 0);
	if (f->type == WIRE_DIR) {
		t->fresh = fresh;
		if (dry_run && fresh && !t->absent)
			receive_room_count(sess, t, true);
		if ((dry_run && fresh) || t->absent)
			return RCV_ACCEPT;
		receive_enqueue(sess, t, dry_run ? WORK_DRY_DIR : WORK_MKDIR);
		return RCV_LATER;
	}
	if (t->absent)
		return RCV_UP_TO_DATE;
	t->durable = (flags & WIRE_OPEN_REMOVE_SOURCES) != 0 && !dry_run;
	return f->type == WIRE_FILE ? prepare_file(sess, t, fresh, dry_run) : prepare_link(sess, t, fresh);
}

/* The file differs; its first block creates the part. */
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
	struct receive_entry *t = cookie;

	(void)size_bytes;
	open_files_set(&sess->receive->files, id, t->sink, t->grid);
	if (sess->receive->pipe != NULL) {
		receive_pipe_accepted(sess, t, parts);
		return;
	}
	receive_reserve(sess->receive, t);
	if (parts)
		resume_verify_start(sess, t, VERIFY_PART);
	else if (t->existing.found == SINK_PART) /* claimed data would stay where the source now has holes */
		sink_restart(t->sink);
	if (t->shared)
		receive_movers_accepted(sess, t, !parts && t->existing.found == SINK_PART);
}

static void on_sized(void *arg, uint64_t id, void *cookie, uint64_t size_bytes)
{
	struct session *sess = arg;
	struct receive_entry *t = cookie;

	t->size_bytes = size_bytes;
	t->grid = wire_grid_unsized(size_bytes);
	open_files_set(&sess->receive->files, id, t->sink, t->grid);
	sink_set_size(t->sink, size_bytes);
}

static void on_beginning(void *arg, uint64_t id, void *cookie, uint64_t bytes)
{
	struct session *sess = arg;
	struct receive_entry *t = cookie;

	(void)id;
	if ((engine_open(sess->engine)->flags & WIRE_OPEN_PARTIAL) != 0)
		t->beginning_bytes = bytes;
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	static const enum work work[] = { [WIRE_DIR] = WORK_FINISH_DIR, [WIRE_FILE] = WORK_COMMIT,
		[WIRE_SYMLINK] = WORK_SYMLINK, [WIRE_HARDLINK] = WORK_HARDLINK };
	struct session *sess = arg;
	struct receive_entry *t = cookie;

	if (t->type == WIRE_FILE)
		open_files_clear(&sess->receive->files, id);
	if (sess->receive->pipe != NULL && t->type == WIRE_FILE) {
		receive_pipe_commit(sess);
		return;
	}
	if (end != NULL)
		attributes_take_meta(sess, &t->meta, end);
	if (sess->receive->pipe != NULL || t->name == NULL) { /* the destination itself, see receive_end() */
		rcv_committed(engine_rcv(sess->engine), id, NULL);
		return;
	}
	if (t->shared && receive_movers_close(sess, t, true))
		return;
	receive_enqueue(sess, t, work[t->type]);
}

/* Without memory its hard links will fail. */
static void remember_linked(struct receive_side *r, const struct receive_entry *t, bool skipped)
{
	struct linked_file f = { .id = t->id, .size_bytes = t->size_bytes, .is_symlink = t->type == WIRE_SYMLINK,
		.dev = t->made.dev, .ino = t->made.ino };
	bool known = f.is_symlink ? f.ino != 0 : sink_part_id(t->sink, &f.dev, &f.ino);
	char *path;

	/* A dry run knows of what it would receive: the links to it are to be listed as such. */
	if ((!known && (!t->dry_run || skipped)) || (path = dir_path_below(t->dir, receive_named(r), t->name)) == NULL)
		return;
	linked_files_add(&r->linked, &f, path);
	free(path);
}

static void on_ended(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why)
{
	struct session *sess = arg;
	struct receive_entry *t = cookie;
	char path[DIR_PATH_RAW_BYTES];

	if (t->type == WIRE_FILE)
		open_files_clear(&sess->receive->files, id);
	if (sess->receive->pipe != NULL)
		snprintf(path, sizeof path, "%s", t->name);
	else
		dir_path_raw(t->dir, t->name, path, sizeof path);
	if (why != NULL && why->code != PTCP_ECANCELED)
		session_file_failed(sess, path, why);
	else if (why == NULL && t->type != WIRE_DIR && t->type != WIRE_NAME && !t->not_linked)
		sess->o.ops->file(sess->o.arg, &(struct session_file){ .path = path,
		    .status = skipped ? PTCP_FILE_SKIPPED : PTCP_FILE_DONE, .is_link = t->type != WIRE_FILE,
		    .size_bytes = t->size_bytes });
	if (why != NULL && t->type == WIRE_DIR)
		receive_prune_close(sess->receive, t, true);
	if (why == NULL && t->linked)
		remember_linked(sess->receive, t, skipped);
	t->ended = true;
	if (why != NULL && t == sess->receive->of_base)
		sess->receive->of_base = NULL;
	t->release = why != NULL;
	/* A later run can resume the part unless its data is wrong, the source has changed, or its name is taken. */
	t->keep = why != NULL && why->code != PTCP_EVERIFY && why->code != PTCP_ECHANGED && why->code != PTCP_EVANISHED &&
	    why->code != PTCP_EREFUSED;
	if (sess->receive->pipe != NULL)
		receive_pipe_ended(sess, t);
	else if (t->work == WORK_NONE && !t->verifying)
		receive_entry_done(sess, t); /* else at the end of the work in progress */
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	struct session *sess = arg;

	sess->receive->total_files = files;
	sess->receive->total_bytes = bytes;
	sess->receive->total_known = final;
}

/* A part is zero outside its verified blocks, see sink_inspect(). */
static void on_hole(void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count)
{
	struct session *sess = arg;

	(void)id;
	(void)cookie;
	if (sess->receive->pipe != NULL)
		pipe_sink_hole(sess->receive->pipe, first, count);
}

static void on_incomplete(void *arg, void *cookie, bool failed)
{
	struct session *sess = arg;

	receive_prune_close(sess->receive, cookie, failed);
}

const struct rcv_ops receive_rcv_ops = {
	.prepare = on_prepare, .differs = on_differs, .accepted = on_accepted,
	.hole = on_hole, .commit = on_commit, .ended = on_ended, .totals = on_totals, .same = on_same,
	.hashes = resume_verify_hashes, .pieces = resume_verify_pieces, .sized = on_sized, .beginning = on_beginning, .incomplete = on_incomplete
};

/* ---- Blocks ---- */

/* Bytes received over streams. */
static uint64_t stream_bytes(const struct session *sess)
{
	return engine_rcv(sess->engine) != NULL ?
	    rcv_stats(engine_rcv(sess->engine)).done.wire_bytes - sess->receive->omitted_bytes : 0;
}

static void take(struct session *sess, struct stream *s, struct stream_results *results, unsigned i, struct mono now)
{
	enum rcv_block_result what = results->of[i].what;
	const struct ptcp_err *why = results->of[i].why;
	uint64_t id = results->of[i].id;
	uint32_t block = results->of[i].block;
	struct ptcp_err late;
	uint64_t before;

	if (what == RCV_BLOCK_FAILED && why == NULL) {
		err_nomem(&late);
		why = &late;
	}
	if (what == RCV_BLOCK_WRITTEN && sess->receive->shared != NULL &&
	    !receive_movers_wrote(sess, s, id, block, results->of[i].hash, &results->of[i].term, &late)) {
		what = RCV_BLOCK_FAILED;
		why = &late;
	}
	if (what == RCV_BLOCK_WRITTEN && !sess->end.over)
		resume_verify_written(sess, id, block, now);
	if (!sess->end.over && !(what == RCV_BLOCK_FAILED && receive_disk_full(sess, why))) {
		before = stream_bytes(sess);
		rcv_block(engine_rcv(sess->engine), id, block, what, results->of[i].term, why);
		if (stream_bytes(sess) > before)
			sess->receive->omitted_bytes += results->of[i].omitted_bytes;
	}
	free(results->of[i].why);
}

void receive_blocks(struct session *sess, struct stream *s, struct stream_results *results)
{
	uint64_t before = stream_bytes(sess);
	struct mono now = mono_now();
	unsigned i;

	engine_progress(sess->engine, now);
	for (i = 0; i < results->n; i++)
		take(sess, s, results, i, now);
	sess->carried[stream_path(s)] += stream_bytes(sess) - before;
	session_reported(sess, s);
}

static void set_opts(const struct session *sess, struct stream_opts *o) { o->files = &sess->receive->files; }

static void on_outage(struct session *sess, bool begins)
{
	if (begins)
		receive_lend_room(sess->receive);
	else
		receive_reclaim_room(sess->receive);
}

static const struct payload_ops receive_payload = { .outage = on_outage, .opts = set_opts, .received = receive_blocks,
	.locked = receive_part_locked };
