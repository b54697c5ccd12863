/* A party that receives: what the store has to do that is not writing blocks is queued, given a batch at a time to
 * an I/O thread (receive_work.c), and what has come of it told to the engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn/err_path.h"
#include "core/err.h"
#include "core/units.h"
#include "session/receive_impl.h"
#include "store/fd_budget.h"

#define CONTENDED_RETRY_NS (50 * NS_PER_MS)
#define CONTENDED_NS (5 * NS_PER_S)
#define DYING_NS (2 * NS_PER_S) /* how long a killed process may take */
#define ROOM_RETRY_NS (20 * NS_PER_MS) /* what other sessions have is given back unheard */

void item_free(struct session *sess, struct item *t)
{
	dir_unref(t->dir);
	dir_unref(t->self);
	sink_unref(t->sink);
	sess->receive->fds -= t->fds; /* which are closed only now */
	fd_budget_give(t->fds);
	free(t->name);
	free(t->target);
	free(t->source);
	free(t->owner);
	xattrs_fini(&t->xattrs);
	free(t->look.claimed);
	free(t);
}

static enum store_sync sync_asked(const struct wire_open *o)
{
	switch ((enum wire_fsync)o->fsync) {
	case WIRE_FSYNC_NONE: return STORE_SYNC_NONE;
	case WIRE_FSYNC_FILE: return STORE_SYNC_FILE;
	default:              return STORE_SYNC_GROUP;
	}
}

int session_receive_into(struct session *sess, struct destination *place, struct ptcp_err *e)
{
	struct receive_side *r = calloc(1, sizeof *r);

	if (r == NULL || (r->ends = calloc(WORK_BATCH, sizeof *r->ends)) == NULL) {
		free(r);
		destination_fini(place);
		return err_nomem(e);
	}
	r->session = sess;
	r->last = &r->first;
	r->no_room_last = &r->no_room;
	list_init(&r->readers);
	open_files_init(&r->intake);
	r->sync = sync_asked(engine_open(sess->engine));
	r->place = *place;
	*place = (struct destination){ 0 };
	sess->receive = r;
	return 0;
}

void receive_free(struct session *sess)
{
	if (sess->receive == NULL)
		return;
	open_files_fini(&sess->receive->intake);
	destination_fini(&sess->receive->place);
	free(sess->receive->ends);
	free(sess->receive);
	sess->receive = NULL;
}

bool receive_idle(const struct session *sess)
{
	const struct receive_side *r = sess->receive;

	return r->first == NULL && r->no_room == NULL && r->batch == NULL && r->contended == NULL &&
	    r->n_reading == 0 && r->n_syncing == 0 && list_empty(&r->readers);
}

enum wire_busy receive_busy(const struct session *sess)
{
	const struct receive_side *r = sess->receive;

	if (r->batch != NULL)
		return atomic_load(&r->completing) && r->sync != STORE_SYNC_NONE ? WIRE_SYNCING : WIRE_WRITING;
	if (r->n_reading > 0 || !list_empty(&r->readers))
		return WIRE_VERIFYING;
	if (r->n_syncing > 0)
		return WIRE_SYNCING;
	return r->first != NULL ? WIRE_WRITING : WIRE_IDLE;
}

void receive_enqueue(struct session *sess, struct item *t, enum work work)
{
	t->work = work;
	t->next = NULL;
	*sess->receive->last = t;
	sess->receive->last = &t->next;
}

/* Only what is on disk waits for the store: else a sender could offer and fail files faster than a slow
 * disk lets go of them, without end, as they hold no slot any more. */
void receive_item_over(struct session *sess, struct item *t)
{
	if (t->let_go && t->sink != NULL && !sink_discard_unopened(t->sink)) {
		t->let_go = false;
		receive_enqueue(sess, t, WORK_LET_GO);
	} else {
		item_free(sess, t);
	}
}

bool receive_disk_full(struct session *sess, const struct ptcp_err *why)
{
	struct ptcp_err full = *why;

	if (why->code != PTCP_ENOSPC)
		return false;
	err_while(&full, full.code, "destination");
	session_fail(sess, &full);
	return true;
}

/* Another session has the part, that inode. An older one of the same client, as after a connection that died
 * without a word, is ended. */
static bool is_ours(struct session *sess, uint64_t dev, uint64_t ino)
{
	return sess->o.ops->contended != NULL && sess->o.ops->contended(sess->o.arg, sess, dev, ino);
}

/* It may be a process that was killed just before we began, and has not let go of everything yet. */
static bool may_be_dying(const struct session *sess, struct mono now)
{
	return mono_diff_ns(now, sess->began) < DYING_NS;
}

static bool contended(struct session *sess, struct item *t)
{
	struct mono now = mono_now();
	uint64_t dev, ino;

	if (t->why.sys != EWOULDBLOCK || !sink_part_id(t->sink, &dev, &ino))
		return false;
	t->ours |= is_ours(sess, dev, ino);
	if (!t->ours && !may_be_dying(sess, now))
		return false;
	if (t->look_since.ns == 0)
		t->look_since = now;
	if (mono_diff_ns(now, t->look_since) > CONTENDED_NS)
		return false;
	t->look_at = mono_add_ns(now, CONTENDED_RETRY_NS);
	t->work = WORK_LOOK;
	t->next = sess->receive->contended;
	sess->receive->contended = t;
	return true;
}

/* Both users hear of it. */
static void warn(struct session *sess, const struct item *t, const char *text)
{
	struct ptcp_err why;
	char path[DIR_PATH_RAW_BYTES];

	dir_path_raw(t->dir, t->name, path, sizeof path);
	err_set(&why, PTCP_EIO, "%s", text);
	engine_warn(sess->engine, WIRE_WARNING_ONLY, path, &why);
	sess->o.ops->warning(sess->o.arg, path, text);
}

bool receive_held(void *arg, uint64_t dev, uint64_t ino)
{
	struct session *sess = arg;

	return !sess->over && (is_ours(sess, dev, ino) || may_be_dying(sess, mono_now()));
}

static void looked(struct session *sess, struct item *t)
{
	struct rcv *rcv = engine_rcv(sess->engine);
	bool verify = (engine_open(sess->engine)->flags & WIRE_OPEN_VERIFY) != 0;
	uint64_t *claimed = t->look.claimed;

	t->look.claimed = NULL;
	if (t->look.restart_why != NULL)
		warn(sess, t, t->look.restart_why);
	switch (t->look.found) {
	case SINK_NOTHING:
		rcv_prepared(rcv, t->id, RCV_ACCEPT, NULL, NULL);
		break;
	case SINK_PART:
		rcv_prepared(rcv, t->id, RCV_PARTS, claimed, NULL);
		break;
	case SINK_SAME:
		if (!verify) {
			receive_enqueue(sess, t, WORK_REFRESH);
			break;
		}
		resume_verify_start(sess, t, true);
		rcv_prepared(rcv, t->id, RCV_COMPARE, NULL, NULL);
		break;
	}
}

/* Something that could not be kept, of what is there else. */
static void warn_of_lack(struct session *sess, const struct item *t)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	if (!t->lacking)
		return;
	err_path_strip(&why, &t->why, dir_path_text(t->dir, t->name, text, sizeof text));
	warn(sess, t, why.msg);
}

static void work_failed(struct session *sess, struct item *t, enum work work)
{
	struct rcv *rcv = engine_rcv(sess->engine);
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	if (receive_disk_full(sess, &t->why) || (work == WORK_LOOK && contended(sess, t)))
		return;
	err_path_strip(&why, &t->why, dir_path_text(t->dir, t->name, text, sizeof text));
	if (work < WORK_COMMIT)
		rcv_prepared(rcv, t->id, RCV_REFUSE, NULL, &why);
	else
		rcv_committed(rcv, t->id, &why);
}

static void work_done(struct session *sess, struct item *t)
{
	struct rcv *rcv = engine_rcv(sess->engine);
	enum work work = t->work;

	t->work = WORK_NONE;
	if (t->over) {
		receive_item_over(sess, t);
		return;
	}
	if (sess->over)
		return; /* nothing new is begun; engine_drop() ends it */
	if (t->result < 0) {
		work_failed(sess, t, work);
		return;
	}
	switch (work) {
	case WORK_ACCEPT:
	case WORK_MKDIR:
	case WORK_LOOK_DIR:
		rcv_prepared(rcv, t->id, RCV_ACCEPT, NULL, NULL);
		break;
	case WORK_LOOK:
		looked(sess, t);
		break;
	case WORK_LOOK_SAME:
		rcv_prepared(rcv, t->id, t->same ? RCV_HAVE_IT : RCV_ACCEPT, NULL, NULL);
		break;
	case WORK_REFRESH:
		warn_of_lack(sess, t);
		rcv_prepared(rcv, t->id, RCV_HAVE_IT, NULL, NULL);
		break;
	case WORK_COMMIT:
	case WORK_SYMLINK:
	case WORK_HARDLINK:
	case WORK_FINISH_DIR:
		warn_of_lack(sess, t);
		rcv_committed(rcv, t->id, NULL);
		break;
	case WORK_NONE:
	case WORK_LET_GO: /* only of what is over */
		break;
	}
}

static void on_done(struct msg *m)
{
	struct receive_side *r = CONTAINER_OF(m, struct receive_side, done);
	struct item *t = r->batch, *next;

	r->batch = NULL;
	engine_progress(r->session->engine, mono_now());
	for (; t != NULL; t = next) {
		next = t->next;
		work_done(r->session, t);
	}
	session_pump(r->session);
}

static void look_again(struct session *sess, struct mono now)
{
	struct item **at = &sess->receive->contended, *t;

	while ((t = *at) != NULL) {
		if (t->look_at.ns > now.ns && !t->over && !sess->over) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		t->work = WORK_NONE;
		if (t->over)
			receive_item_over(sess, t);
		else if (!sess->over)
			receive_enqueue(sess, t, WORK_LOOK);
	}
}

/* ---- Descriptors ---- */

static bool take_fds(struct receive_side *r, struct item *t)
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

bool receive_room(struct session *sess, struct item *t, enum work work)
{
	struct receive_side *r = sess->receive;

	if (r->no_room == NULL) {
		if (take_fds(r, t))
			return true;
		r->few_fds = r->fds / 2;
	}
	t->work = work;
	*r->no_room_last = t;
	r->no_room_last = &t->next;
	return false;
}

/* In the order they came, or large files would wait for ever; and many at once: one for each that is
 * complete would make blocks, groups and wake-ups of single files. */
static void make_room(struct session *sess)
{
	struct receive_side *r = sess->receive;
	struct item *t;

	if (r->no_room == NULL || (r->fds > r->few_fds && !sess->over))
		return;
	while ((t = r->no_room) != NULL && (t->over || sess->over || take_fds(r, t))) {
		if ((r->no_room = t->next) == NULL)
			r->no_room_last = &r->no_room;
		t->next = NULL;
		if (t->over || sess->over || t->work == WORK_ACCEPT)
			work_done(sess, t);
		else
			receive_enqueue(sess, t, t->work);
	}
	r->few_fds = r->fds / 2;
}

struct mono receive_deadline(const struct session *sess)
{
	struct mono at = MONO_NEVER;
	const struct item *t;

	if (sess->receive == NULL)
		return MONO_NEVER;
	if (sess->receive->no_room != NULL)
		at = mono_add_ns(mono_now(), ROOM_RETRY_NS);
	for (t = sess->receive->contended; t != NULL; t = t->next)
		at = mono_min(at, t->look_at);
	return at;
}

void receive_pump(struct session *sess, struct mono now)
{
	struct receive_side *r = sess->receive;
	struct item *t;
	unsigned n;

	if (r == NULL)
		return;
	look_again(sess, now);
	make_room(sess);
	resume_verify_pump(sess);
	if (r->batch != NULL || r->first == NULL)
		return;
	r->batch = t = r->first;
	for (n = 1; n < WORK_BATCH && t->next != NULL; n++)
		t = t->next;
	if ((r->first = t->next) == NULL)
		r->last = &r->first;
	t->next = NULL;
	r->io.run = receive_work;
	r->done.run = on_done;
	io_submit(sess->o.host->io, &r->io);
}
