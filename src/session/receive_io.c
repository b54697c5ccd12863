/* The store's work for received entries, everything except writing blocks: queues it, runs it in batches on an I/O
 * thread and reports the results to the engine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "fs/fd_budget.h"
#include "fs/fs_err.h"
#include "session/receive_impl.h"

#define LOCK_RETRY_NS (50 * NS_PER_MS)
#define LOCK_TIMEOUT_NS (5 * NS_PER_S)
#define EXIT_NS (2 * NS_PER_S)       /* time that a killed process may take to release its locks */
#define FD_RETRY_NS (20 * NS_PER_MS) /* descriptors released by other sessions are not announced */

bool receive_idle(const struct session *sess)
{
	const struct receive_side *r = sess->receive;

	return r->closing.first == NULL && r->first == NULL && r->fd_first == NULL && r->batch == NULL &&
	    r->locked == NULL && r->n_verifying == 0 && r->syncing == NULL && list_empty(&r->verify_queue) &&
	    list_empty(&r->match_queue) && receive_pipe_idle(sess) && receive_prune_idle(r);
}

enum wire_busy receive_busy(const struct session *sess)
{
	const struct receive_side *r = sess->receive;

	if (r == NULL)
		return WIRE_IDLE;
	if (r->batch != NULL)
		return atomic_load(&r->completing) && r->sync != STORE_SYNC_NONE ? WIRE_SYNCING : WIRE_WRITING;
	if (r->n_verifying > 0 || !list_empty(&r->verify_queue))
		return WIRE_VERIFYING;
	if (r->syncing != NULL)
		return WIRE_SYNCING;
	return r->first != NULL || receive_pipe_busy(r) ? WIRE_WRITING : WIRE_IDLE;
}

/* ---- On an I/O thread ---- */

/* Of WORK_END: whether the base gets attributes. */
static bool is_of_base(const struct receive_entry *t) { return t->dir != NULL; }

static void finish_dir(struct receive_entry *t, struct dir *d)
{
	t->result = store_dir_finish(d, &t->meta, &t->why);
	t->lacking = t->result > 0;
}

/* File systems are tried before the first attribute is refused, and before the first time is compared. `last` is the
 * previously examined entry of the batch: most have the same directory. */
static void examine(struct receive_entry *t, const struct receive_entry **last)
{
	if (t->dir == NULL || t->dry_run || (t->work != WORK_RESUME && t->work != WORK_REFRESH &&
	    (t->work < WORK_COMMIT || t->work > WORK_END)))
		return;
	if (t->work == WORK_FINISH_DIR) {
		t->on = file_system_tried(t->self);
		return;
	}
	t->on = *last != NULL && (*last)->dir == t->dir ? (*last)->on : file_system_tried(t->dir);
	*last = t;
}

static void look(struct receive_entry *t)
{
	receive_look(t);
	if (t->result == 0 && !t->same && t->existing.found == SINK_NOTHING)
		t->result = receive_movers_open(t);
}

static void do_work(struct receive_entry *t)
{
	t->result = 0;
	switch (t->work) {
	case WORK_NONE:
	case WORK_COMMIT:
	case WORK_CLOSE:
		break;
	case WORK_ACCEPT:
		if (t->existing.found == SINK_SAME && !t->dry_run) /* The file was compared, and differs. */
			t->result = sink_inspect_other(t->sink, &t->existing, &t->why);
		if (t->result == 0)
			t->result = receive_movers_open(t);
		break;
	case WORK_OPEN:
		t->result = receive_movers_open(t);
		break;
	case WORK_MKDIR:
		t->result = receive_make_dir(t);
		break;
	case WORK_RESUME:
		look(t);
		break;
	case WORK_RENAMED:
		receive_look_renamed(t);
		break;
	case WORK_REFRESH:
		t->result = t->dry_run ? 0 : receive_refresh(t);
		t->lacking = t->result > 0;
		break;
	case WORK_DRY_DIR:
		receive_dry_dir(t);
		break;
	case WORK_DRY_FILE:
		receive_dry_file(t);
		break;
	case WORK_FIND_LINK:
		receive_find_link(t);
		break;
	case WORK_SYMLINK:
	case WORK_HARDLINK:
		t->result = receive_link_make(t);
		break;
	case WORK_END:
		if (t->self != NULL)
			leftovers_count(t->self, &t->left);
		if (is_of_base(t))
			finish_dir(t, t->dir);
		break;
	case WORK_FINISH_DIR:
		if ((t->rules->write_once && !t->fresh) || t->absent)
			break;
		if (!t->fresh) /* counted before the mode, which may forbid it */
			leftovers_count(t->self, &t->left);
		finish_dir(t, t->self);
		break;
	case WORK_PRUNE:
		receive_prune_step(t);
		break;
	case WORK_RELEASE:
		t->result = receive_release(t);
		break;
	}
}

/* The data of the file was on this host. */
static bool is_copied(const struct receive_entry *t)
{
	return (t->work == WORK_RESUME || t->work == WORK_REFRESH) && t->existing.found == SINK_COPIED;
}

/* The name was made before the entry was accepted. */
static bool is_linked(const struct receive_entry *t)
{
	return (t->work == WORK_RESUME || t->work == WORK_FIND_LINK) && t->existing.is_linked;
}

static bool is_complete(const struct receive_entry *t)
{
	if (is_copied(t) || is_linked(t))
		return t->result >= 0;
	return t->result >= 0 && ((t->work >= WORK_COMMIT && t->work <= WORK_FINISH_DIR && !t->absent &&
	    !t->not_linked) || (t->work == WORK_END && is_of_base(t)));
}

/* Gives complete files their names and syncs all complete entries of the batch to disk. */
static void complete(struct receive_side *r)
{
	struct store_item *end = r->ends;
	struct receive_entry *t;

	for (t = r->batch; t != NULL; t = t->next)
		if (is_complete(t))
			*end++ = (struct store_item){ .sink = t->work == WORK_COMMIT || is_copied(t) ? t->sink : NULL,
				.dir = t->work == WORK_FINISH_DIR ? t->self : t->dir,
				.finished = t->work == WORK_FINISH_DIR, .why = &t->why };
	if (end == r->ends)
		return;
	atomic_store(&r->completing, true);
	store_complete(r->ends, (unsigned)(end - r->ends), r->sync);
	atomic_store(&r->completing, false);
	end = r->ends;
	for (t = r->batch; t != NULL; t = t->next) {
		if (!is_complete(t))
			continue;
		t->result = end->result;
		t->lacking |= end++->attr_dropped;
		if (t->result == 0 && t->work == WORK_FINISH_DIR && t->source != NULL)
			destination_unmark(t->dir, t->name);
	}
}

/* Files are complete under the name that the user gave only while the directory has the name; a directory that was
 * never opened has no files. */
static void check_named(struct receive_side *r)
{
	const struct receive_entry *t;
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	for (t = r->batch; t != NULL && (t->work < WORK_COMMIT || t->work > WORK_END); t = t->next)
		;
	if (t == NULL || dir_dev(r->named) == 0 || dir_in_place(r->named, dir_check_new(r->named), &why) == 0)
		return;
	if (why.sys == ESTALE)
		err_set(&why, PTCP_EIO, "the directory was moved or replaced during the transfer, together with the "
		    "received files (move it back, then run the same command again)");
	/* The peer of a server must not learn the path of the root. */
	err_while(&why, why.code, "destination %s", r->session->o.open != NULL ?
	    dir_whole_path_text(r->named, text, sizeof text) : dir_path_text(r->named, NULL, text, sizeof text));
	r->moved = why;
}

static void run_batch(struct io_call *k)
{
	struct receive_side *r = CONTAINER_OF(k, struct receive_side, call);
	const struct receive_entry *last = NULL;
	struct receive_entry *t;
	struct ptcp_err why;

	backup_begin(r->backup, r->named);
	references_begin(r->references, r->named);
	for (t = r->batch; t != NULL; t = t->next) {
		examine(t, &last);
		do_work(t);
		if (t->same || t->work == WORK_DRY_DIR || t->work == WORK_DRY_FILE)
			published_add_name(t->meta.published, t->dir, t->name);
	}
	complete(r);
	if (backup_sync(r->backup, &why) < 0)
		r->moved = why;
	check_named(r);
}

/* ---- On the control thread ---- */

void receive_enqueue(struct session *sess, struct receive_entry *t, enum work work)
{
	t->work = work;
	t->next = NULL;
	*sess->receive->last = t;
	sess->receive->last = &t->next;
}

/* Only parts on disk wait for the store. If every failed file did, a sender could offer and fail files faster than a
 * slow disk releases them, without limit, as failed files occupy no slot of the engine. */
void receive_entry_done(struct session *sess, struct receive_entry *t)
{
	if (t->shared && receive_movers_close(sess, t, false))
		return;
	if (t == sess->receive->of_base) /* kept for receive_end() */
		return;
	if (t->release && t->sink != NULL && !sink_discard_unopened(t->sink)) {
		t->release = false;
		receive_enqueue(sess, t, WORK_RELEASE);
	} else {
		receive_entry_free(sess, t);
	}
}

/* Another session has locked the part with that inode. The server ends an older session of the same client, whose
 * connection may have died unnoticed, and knows live sessions. */
static enum part_holder ask_server(struct session *sess, uint64_t dev, uint64_t ino, struct mono since, bool alone)
{
	return sess->o.ops->contended != NULL ? sess->o.ops->contended(sess->o.arg, sess, dev, ino, since, alone) :
	    PART_OF_OTHERS;
}

/* The lock may belong to a process that was killed just before this session began. */
static bool may_be_exiting(const struct session *sess, struct mono now)
{
	return mono_diff_ns(now, sess->began) < EXIT_NS;
}

enum part_holder receive_part_locked(struct session *sess, uint64_t dev, uint64_t ino, struct mono since, bool alone)
{
	enum part_holder holder;

	if (sess->end.over)
		return PART_OF_OTHERS;
	holder = ask_server(sess, dev, ino, since, alone);
	return holder == PART_OF_OTHERS && may_be_exiting(sess, mono_now()) ? PART_RELEASED : holder;
}

/* Schedules a retry if the part is locked and may be released soon, or at once with a private part. */
static bool retry_locked(struct session *sess, struct receive_entry *t, enum work work)
{
	struct mono now = mono_now();
	enum part_holder holder;
	uint64_t dev, ino;

	if (t->why.sys != EWOULDBLOCK || !sink_part_id(t->sink, &dev, &ino))
		return false;
	if (t->locked_since.ns == 0)
		t->locked_since = now;
	holder = ask_server(sess, dev, ino, t->locked_since, sink_may_be_alone(t->sink));
	t->same_client |= holder != PART_OF_OTHERS;
	if (!t->same_client && !may_be_exiting(sess, now))
		return false;
	if (mono_diff_ns(now, t->locked_since) > LOCK_TIMEOUT_NS)
		return false;
	t->retry_at = holder == PART_OF_LIVING && sink_part_alone(t->sink) ? now : mono_add_ns(now, LOCK_RETRY_NS);
	t->work = t->retry = work;
	t->next = sess->receive->locked;
	sess->receive->locked = t;
	return true;
}

static void retry_due(struct session *sess, struct mono now)
{
	struct receive_entry **at = &sess->receive->locked, *t;

	while ((t = *at) != NULL) {
		if (t->retry_at.ns > now.ns && !t->ended && !sess->end.over) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		receive_retry(sess, t, false);
	}
}

/* Reports a warning to the users of both sides. */
static void warn_of(struct session *sess, const char *path, const char *text)
{
	struct ptcp_err why;

	err_set(&why, PTCP_EIO, "%s", text);
	engine_warn(sess->engine, WIRE_WARNING_ONLY, path, &why);
	sess->o.ops->warning(sess->o.arg, path, text);
}

static void warn(struct session *sess, const struct receive_entry *t, const char *text)
{
	char path[DIR_PATH_RAW_BYTES];

	warn_of(sess, dir_path_raw(t->dir, t->name, path, sizeof path), text);
}

/* The warning names the entry itself. */
static void warn_why(struct session *sess, const struct receive_entry *t)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	fs_err_strip(&why, &t->why, dir_path_text(t->dir, t->name, text, sizeof text));
	warn(sess, t, why.msg);
}

/* A file system without modes or times lacks them of each entry. */
static void warn_lacking(struct session *sess, const struct receive_entry *t)
{
	if (sess->receive->warnings++ < RECEIVE_WARNINGS)
		warn_why(sess, t);
	else if (sess->receive->warnings == RECEIVE_WARNINGS + 1)
		warn(sess, t,
		    "lacks attributes as well, and further entries may, without a warning (preserve fewer attributes)");
}

/* Abilities that the transfer needs. */
static uint32_t preserved(const struct session *sess)
{
	const uint32_t preserve = engine_open(sess->engine)->preserve;

	return 1 << ABILITY_CASE | ((preserve & WIRE_PRESERVE_TIMES) != 0) << ABILITY_TIMES |
	    ((preserve & WIRE_PRESERVE_MODE) != 0) << ABILITY_MODES |
	    ((preserve & WIRE_PRESERVE_OWNER) != 0) << ABILITY_OWNERS |
	    ((preserve & WIRE_PRESERVE_XATTR) != 0) << ABILITY_XATTRS |
	    ((preserve & WIRE_PRESERVE_ACL) != 0) << ABILITY_ACLS |
	    ((preserve & WIRE_PRESERVE_LINKS) != 0) << ABILITY_SYMLINKS |
	    ((preserve & WIRE_PRESERVE_LINKS) != 0) << ABILITY_HARD_LINKS;
}

/* Warns of a file system, rather than of each entry. */
static void tell_lacks(struct session *sess, const struct receive_entry *t)
{
	struct receive_side *r = sess->receive;
	char path[DIR_PATH_RAW_BYTES], lacks[FILE_SYSTEM_TEXT_BYTES], text[sizeof t->why.msg];
	const struct dir *d;
	bool is_root;
	unsigned i;

	for (i = 0; i < r->told.n && r->told.of[i] != t->on; i++)
		;
	if (t->on == NULL || i < r->told.n || i == sizeof r->told.of / sizeof *r->told.of)
		return;
	r->told.of[r->told.n++] = t->on;
	if (!file_system_text(t->on, preserved(sess), lacks))
		return;
	d = receive_named(r);
	dir_path_raw(file_system_known(d) == t->on ? d : t->dir, NULL, path, sizeof path);
	is_root = strcmp(path, ".") == 0;
	snprintf(text, sizeof text, "%s%s: compared so", is_root ? "destination: " : "", lacks);
	warn_of(sess, is_root ? "" : path, text);
}

static void report_beginning(struct session *sess, const struct receive_entry *t)
{
	char text[sizeof t->why.msg], size[UNITS_TEXT_BYTES], shown[TEXT_NAME_BYTES];

	snprintf(text, sizeof text, "its beginning, %s, is in %s" SINK_PARTIAL_SUFFIX,
	    units_size_text(size, t->beginning_bytes), text_escape(shown, sizeof shown, t->name));
	warn(sess, t, text);
}

/* Once: a file system without hard links would give a warning for each. */
static void tell_copies(struct session *sess, struct receive_entry *t)
{
	char text[sizeof t->why.msg];

	if (!sess->receive->told.copies && !(t->on != NULL && file_system_lacks(t->on, ABILITY_HARD_LINKS))) {
		snprintf(text, sizeof text, "cannot be a hard link (%s): sent as a file, like others after it",
		    strerror(t->why.sys));
		warn(sess, t, text);
	}
	sess->receive->told.copies = true;
}

/* Takes the claims. Without memory for matching, the file is received from scratch. */
static void accept_parts(struct session *sess, struct receive_entry *t, uint64_t *claimed)
{
	struct rcv *rcv = engine_rcv(sess->engine);

	if (receive_match_charge(sess, t)) {
		rcv_prepared(rcv, t->id, RCV_PARTS, claimed, NULL);
	} else {
		free(claimed);
		rcv_prepared(rcv, t->id, RCV_ACCEPT, NULL, NULL);
	}
}

static void resume_found(struct session *sess, struct receive_entry *t)
{
	struct rcv *rcv = engine_rcv(sess->engine);
	uint64_t *claimed = t->existing.claimed;

	t->existing.claimed = NULL;
	if (t->existing.restart_why != NULL)
		warn(sess, t, t->existing.restart_why);
	switch (t->existing.found) {
	case SINK_NOTHING:
		receive_room_count(sess, t, false);
		rcv_prepared(rcv, t->id, RCV_ACCEPT, NULL, NULL);
		break;
	case SINK_COPIED:
	case SINK_UNCHANGED:
		if (t->lacking)
			warn_lacking(sess, t);
		rcv_prepared(rcv, t->id, RCV_UP_TO_DATE, NULL, NULL);
		break;
	case SINK_KEPT:
		rcv_prepared(rcv, t->id, RCV_UP_TO_DATE, NULL, NULL);
		break;
	case SINK_PART:
		receive_room_count(sess, t, false);
		accept_parts(sess, t, claimed);
		break;
	case SINK_SAME:
		if ((engine_open(sess->engine)->flags & WIRE_OPEN_VERIFY) == 0) {
			receive_enqueue(sess, t, WORK_REFRESH);
			break;
		}
		resume_verify_start(sess, t, VERIFY_SAME);
		rcv_prepared(rcv, t->id, RCV_COMPARE, NULL, NULL);
		break;
	}
}

/* The entry fails, unless another try may succeed. */
static void work_failed(struct session *sess, struct receive_entry *t, enum work work)
{
	struct rcv *rcv = engine_rcv(sess->engine);
	struct ptcp_err why;

	if (receive_disk_full(sess, &t->why) || receive_room_denied(sess, t))
		return;
	if ((work == WORK_RESUME || work == WORK_ACCEPT) && retry_locked(sess, t, work))
		return;
	if (work >= WORK_COMMIT && receive_prune_make_way(sess, t)) {
		t->work = WORK_PRUNE;
		t->retry = work;
		return;
	}
	fs_err_at(&why, &t->why, t->dir, t->name, session_is_users(sess));
	if (work < WORK_COMMIT)
		rcv_prepared(rcv, t->id, RCV_REFUSE, NULL, &why);
	else
		rcv_committed(rcv, t->id, &why);
}

void receive_retry(struct session *sess, struct receive_entry *t, bool failed)
{
	t->work = WORK_NONE;
	if (t->ended)
		receive_entry_done(sess, t);
	else if (failed && !sess->end.over)
		work_failed(sess, t, t->retry);
	else if (!sess->end.over) /* else engine_drop() ends the entry */
		receive_enqueue(sess, t, t->retry);
}

/* A batch has completed the work. */
static void report(struct session *sess, struct receive_entry *t, enum work work)
{
	struct rcv *rcv = engine_rcv(sess->engine);
	uint64_t *claimed;

	switch (work) {
	case WORK_ACCEPT:
		claimed = t->existing.claimed; /* The file was compared, and differs. */
		t->existing.claimed = NULL;
		if (claimed != NULL)
			accept_parts(sess, t, claimed);
		else
			rcv_prepared(rcv, t->id, RCV_ACCEPT, NULL, NULL);
		break;
	case WORK_MKDIR:
	case WORK_DRY_DIR:
		if (t->fresh && !t->absent && t->name != NULL)
			receive_room_count(sess, t, true);
		rcv_prepared(rcv, t->id, RCV_ACCEPT, NULL, NULL);
		break;
	case WORK_RESUME:
	case WORK_RENAMED:
		if (t->result > 0)
			receive_enqueue(sess, t, WORK_RENAMED);
		else
			resume_found(sess, t);
		break;
	case WORK_DRY_FILE:
		resume_found(sess, t);
		break;
	case WORK_FIND_LINK:
		if (!t->same && !t->not_linked)
			receive_room_count(sess, t, false);
		rcv_prepared(rcv, t->id, t->same ? RCV_UP_TO_DATE : t->not_linked ? RCV_NO_LINK : RCV_ACCEPT, NULL,
		    NULL);
		break;
	case WORK_REFRESH:
		if (t->lacking)
			warn_lacking(sess, t);
		rcv_prepared(rcv, t->id, RCV_UP_TO_DATE, NULL, NULL);
		break;
	case WORK_COMMIT:
	case WORK_SYMLINK:
	case WORK_HARDLINK:
	case WORK_FINISH_DIR:
		if (t->not_linked) {
			tell_copies(sess, t);
			rcv_not_linked(rcv, t->id);
			break;
		}
		if (t->lacking)
			warn_lacking(sess, t);
		rcv_committed(rcv, t->id, NULL);
		break;
	default: /* only of ended entries, or not of the engine */
		break;
	}
}

static void work_done(struct session *sess, struct receive_entry *t)
{
	enum work work = t->work;

	if (work != WORK_PRUNE) /* else the next step may follow */
		t->work = WORK_NONE;
	leftover_count_add(&sess->receive->left, &t->left);
	if (!sess->end.over)
		tell_lacks(sess, t);
	if (work == WORK_END && t->lacking && !sess->end.over)
		warn_lacking(sess, t);
	if (work == WORK_PRUNE || work == WORK_END || work == WORK_OPEN) {
		(work == WORK_OPEN ? receive_movers_opened : receive_end_stepped)(sess, t);
		return;
	}
	if (t->ended) {
		if (work == WORK_RELEASE && t->beginning_bytes > 0 && !sess->end.over)
			(t->result == 0 ? report_beginning : warn_why)(sess, t);
		receive_entry_done(sess, t);
		return;
	}
	if (sess->end.over)
		return; /* no new work; engine_drop() ends the entry */
	if (t->result < 0) {
		work_failed(sess, t, work);
		return;
	}
	report(sess, t, work);
}

static void on_done(struct io_call *k)
{
	struct receive_side *r = CONTAINER_OF(k, struct receive_side, call);
	struct receive_entry *t = r->batch, *next;
	const char *warning;

	r->batch = NULL;
	while ((warning = references_warning(r->references)) != NULL && !r->session->end.over)
		warn_of(r->session, "", warning);
	engine_progress(r->session->engine, mono_now());
	if (r->moved.code != 0)
		engine_fail(r->session->engine, &r->moved);
	for (; t != NULL; t = next) {
		next = t->next;
		work_done(r->session, t);
	}
	session_pump(r->session);
}

static bool take_fds(struct receive_side *r, struct receive_entry *t)
{
	unsigned n = sink_fds(t->sink);

	if (r->fds == 0)
		fd_budget_take_unchecked(n);
	else if (!fd_budget_take(n))
		return false;
	t->fds = n;
	r->fds += n;
	return true;
}

bool receive_reserve_fds(struct session *sess, struct receive_entry *t, enum work work)
{
	struct receive_side *r = sess->receive;

	if (r->fd_first == NULL) {
		if (take_fds(r, t))
			return true;
		r->fds_low = r->fds / 2;
	}
	t->work = work;
	*r->fd_last = t;
	r->fd_last = &t->next;
	return false;
}

/* Serves the queue for descriptors in order, as large files would otherwise wait forever, and only when half of the
 * descriptors are free, as serving it for every complete file would split blocks, groups and wake-ups into single
 * files. */
static void serve_fd_queue(struct session *sess)
{
	struct receive_side *r = sess->receive;
	struct receive_entry *t;

	if (r->fd_first == NULL || (r->fds > r->fds_low && !sess->end.over))
		return;
	while ((t = r->fd_first) != NULL && (t->ended || sess->end.over || take_fds(r, t))) {
		if ((r->fd_first = t->next) == NULL)
			r->fd_last = &r->fd_first;
		t->next = NULL;
		if (t->ended || sess->end.over || (t->work == WORK_ACCEPT && !t->shared))
			work_done(sess, t);
		else
			receive_enqueue(sess, t, t->work);
	}
	r->fds_low = r->fds / 2;
}

struct mono receive_deadline(const struct session *sess)
{
	struct mono at = MONO_NEVER;
	const struct receive_entry *t;

	if (sess->receive == NULL)
		return MONO_NEVER;
	if (sess->receive->fd_first != NULL)
		at = mono_add_ns(mono_now(), FD_RETRY_NS);
	for (t = sess->receive->locked; t != NULL; t = t->next)
		at = mono_min(at, t->retry_at);
	return at;
}

void receive_pump(struct session *sess, struct mono now)
{
	struct receive_side *r = sess->receive;
	struct receive_entry *t;
	unsigned n;

	if (r == NULL)
		return;
	receive_check_room(sess);
	receive_pipe_pump(sess);
	retry_due(sess, now);
	serve_fd_queue(sess);
	resume_verify_pump(sess);
	receive_prune_pump(sess);
	if (r->batch != NULL || r->first == NULL)
		return;
	r->batch = t = r->first;
	for (n = 1; n < WORK_BATCH && t->next != NULL; n++)
		t = t->next;
	if ((r->first = t->next) == NULL)
		r->last = &r->first;
	t->next = NULL;
	r->named = receive_named(r);
	io_call_start(&r->call, sess->o.context, run_batch, on_done);
}
