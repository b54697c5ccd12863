/* A party that receives: what the store has to do that is not writing blocks is queued, given a batch at a time to
 * an I/O thread (receiving_work.c), and what has come of it told to the engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/receiving_impl.h"
#include "lib/why.h"
#include "store/fds.h"

#define CONTENDED_RETRY_NS (50 * NS_PER_MS)
#define CONTENDED_NS (5 * NS_PER_S)
#define DYING_NS (2 * NS_PER_S) /* how long a killed process may take */
#define ROOM_RETRY_NS (20 * NS_PER_MS) /* what other sessions have is given back unheard */

void item_free(struct party *p, struct item *t)
{
	dir_unref(t->dir);
	dir_unref(t->self);
	sink_unref(t->sink);
	p->rcv->fds -= t->fds; /* which are closed only now */
	fds_give(t->fds);
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

int party_receive_into(struct party *p, struct place *place, struct ptcp_err *e)
{
	struct receiving *r = calloc(1, sizeof *r);

	if (r == NULL || (r->ends = calloc(WORK_BATCH, sizeof *r->ends)) == NULL) {
		free(r);
		place_fini(place);
		return err_nomem(e);
	}
	r->party = p;
	r->last = &r->first;
	r->no_room_last = &r->no_room;
	list_init(&r->readers);
	intake_init(&r->intake);
	r->sync = sync_asked(session_open(p->session));
	r->place = *place;
	*place = (struct place){ 0 };
	p->rcv = r;
	return 0;
}

void receiving_free(struct party *p)
{
	if (p->rcv == NULL)
		return;
	intake_fini(&p->rcv->intake);
	place_fini(&p->rcv->place);
	free(p->rcv->ends);
	free(p->rcv);
	p->rcv = NULL;
}

bool receiving_idle(const struct party *p)
{
	const struct receiving *r = p->rcv;

	return r->first == NULL && r->no_room == NULL && r->batch == NULL && r->contended == NULL &&
	    r->n_reading == 0 && r->n_syncing == 0 && list_empty(&r->readers);
}

enum wire_busy receiving_busy(const struct party *p)
{
	const struct receiving *r = p->rcv;

	if (r->batch != NULL)
		return atomic_load(&r->completing) && r->sync != STORE_SYNC_NONE ? WIRE_SYNCING : WIRE_WRITING;
	if (r->n_reading > 0 || !list_empty(&r->readers))
		return WIRE_VERIFYING;
	if (r->n_syncing > 0)
		return WIRE_SYNCING;
	return r->first != NULL ? WIRE_WRITING : WIRE_IDLE;
}

void receiving_enqueue(struct party *p, struct item *t, enum work work)
{
	t->work = work;
	t->next = NULL;
	*p->rcv->last = t;
	p->rcv->last = &t->next;
}

/* Only what is on disk waits for the store: else a sender could offer and fail files faster than a slow
 * disk lets go of them, without end, as they hold no slot any more. */
void receiving_item_over(struct party *p, struct item *t)
{
	if (t->let_go && t->sink != NULL && !sink_give_up(t->sink)) {
		t->let_go = false;
		receiving_enqueue(p, t, WORK_LET_GO);
	} else {
		item_free(p, t);
	}
}

bool receiving_disk_full(struct party *p, const struct ptcp_err *why)
{
	struct ptcp_err full = *why;

	if (why->code != PTCP_ENOSPC)
		return false;
	err_while(&full, full.code, "destination");
	party_fail(p, &full);
	return true;
}

/* Another session has the part, that inode. An older one of the same client, as after a connection that died
 * without a word, is ended. */
static bool is_ours(struct party *p, uint64_t dev, uint64_t ino)
{
	return p->o.ops->contended != NULL && p->o.ops->contended(p->o.arg, p, dev, ino);
}

/* It may be a process that was killed just before we began, and has not let go of everything yet. */
static bool may_be_dying(const struct party *p, struct mono now)
{
	return mono_diff_ns(now, p->began) < DYING_NS;
}

static bool contended(struct party *p, struct item *t)
{
	struct mono now = mono_now();
	uint64_t dev, ino;

	if (t->why.sys != EWOULDBLOCK || !sink_part_id(t->sink, &dev, &ino))
		return false;
	t->ours |= is_ours(p, dev, ino);
	if (!t->ours && !may_be_dying(p, now))
		return false;
	if (t->look_since.ns == 0)
		t->look_since = now;
	if (mono_diff_ns(now, t->look_since) > CONTENDED_NS)
		return false;
	t->look_at = mono_add_ns(now, CONTENDED_RETRY_NS);
	t->work = WORK_LOOK;
	t->next = p->rcv->contended;
	p->rcv->contended = t;
	return true;
}

/* Both users hear of it. */
static void warn(struct party *p, const struct item *t, const char *text)
{
	struct ptcp_err why;
	char path[DIR_PATH_RAW_BYTES];

	dir_path_raw(t->dir, t->name, path, sizeof path);
	err_set(&why, PTCP_EIO, "%s", text);
	session_note(p->session, WIRE_NOTE_WARNING, path, &why);
	p->o.ops->warning(p->o.arg, path, text);
}

bool receiving_held(void *arg, uint64_t dev, uint64_t ino)
{
	struct party *p = arg;

	return !p->over && (is_ours(p, dev, ino) || may_be_dying(p, mono_now()));
}

static void looked(struct party *p, struct item *t)
{
	struct rcv *rcv = session_rcv(p->session);
	bool verify = (session_open(p->session)->flags & WIRE_OPEN_VERIFY) != 0;
	uint64_t *claimed = t->look.claimed;

	t->look.claimed = NULL;
	if (t->look.anew != NULL)
		warn(p, t, t->look.anew);
	switch (t->look.found) {
	case SINK_NOTHING:
		rcv_prepared(rcv, t->id, RCV_ACCEPT, NULL, NULL);
		break;
	case SINK_PART:
		rcv_prepared(rcv, t->id, RCV_PARTS, claimed, NULL);
		break;
	case SINK_SAME:
		if (!verify) {
			receiving_enqueue(p, t, WORK_REFRESH);
			break;
		}
		readback_start(p, t, true);
		rcv_prepared(rcv, t->id, RCV_COMPARE, NULL, NULL);
		break;
	}
}

/* Something that could not be kept, of what is there else. */
static void warn_of_lack(struct party *p, const struct item *t)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	if (!t->lacking)
		return;
	why_bare(&why, &t->why, dir_path_text(t->dir, t->name, text, sizeof text));
	warn(p, t, why.msg);
}

static void work_failed(struct party *p, struct item *t, enum work work)
{
	struct rcv *rcv = session_rcv(p->session);
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	if (receiving_disk_full(p, &t->why) || (work == WORK_LOOK && contended(p, t)))
		return;
	why_bare(&why, &t->why, dir_path_text(t->dir, t->name, text, sizeof text));
	if (work < WORK_COMMIT)
		rcv_prepared(rcv, t->id, RCV_REFUSE, NULL, &why);
	else
		rcv_committed(rcv, t->id, &why);
}

static void work_done(struct party *p, struct item *t)
{
	struct rcv *rcv = session_rcv(p->session);
	enum work work = t->work;

	t->work = WORK_NONE;
	if (t->over) {
		receiving_item_over(p, t);
		return;
	}
	if (p->over)
		return; /* nothing new is begun; session_drop() ends it */
	if (t->result < 0) {
		work_failed(p, t, work);
		return;
	}
	switch (work) {
	case WORK_ACCEPT:
	case WORK_MKDIR:
	case WORK_LOOK_DIR:
		rcv_prepared(rcv, t->id, RCV_ACCEPT, NULL, NULL);
		break;
	case WORK_LOOK:
		looked(p, t);
		break;
	case WORK_LOOK_SAME:
		rcv_prepared(rcv, t->id, t->same ? RCV_HAVE_IT : RCV_ACCEPT, NULL, NULL);
		break;
	case WORK_REFRESH:
		warn_of_lack(p, t);
		rcv_prepared(rcv, t->id, RCV_HAVE_IT, NULL, NULL);
		break;
	case WORK_COMMIT:
	case WORK_SYMLINK:
	case WORK_HARDLINK:
	case WORK_FINISH_DIR:
		warn_of_lack(p, t);
		rcv_committed(rcv, t->id, NULL);
		break;
	case WORK_NONE:
	case WORK_LET_GO: /* only of what is over */
		break;
	}
}

static void on_done(struct msg *m)
{
	struct receiving *r = CONTAINER_OF(m, struct receiving, done);
	struct item *t = r->batch, *next;

	r->batch = NULL;
	session_progress(r->party->session, mono_now());
	for (; t != NULL; t = next) {
		next = t->next;
		work_done(r->party, t);
	}
	party_pump(r->party);
}

static void look_again(struct party *p, struct mono now)
{
	struct item **at = &p->rcv->contended, *t;

	while ((t = *at) != NULL) {
		if (t->look_at.ns > now.ns && !t->over && !p->over) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		t->work = WORK_NONE;
		if (t->over)
			receiving_item_over(p, t);
		else if (!p->over)
			receiving_enqueue(p, t, WORK_LOOK);
	}
}

/* ---- Descriptors ---- */

static bool take_fds(struct receiving *r, struct item *t)
{
	unsigned n = sink_fds(t->sink);

	if (r->fds == 0)
		fds_take_anyway(n);
	else if (!fds_take(n))
		return false;
	t->fds = n;
	r->fds += n;
	return true;
}

bool receiving_room(struct party *p, struct item *t, enum work work)
{
	struct receiving *r = p->rcv;

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
static void make_room(struct party *p)
{
	struct receiving *r = p->rcv;
	struct item *t;

	if (r->no_room == NULL || (r->fds > r->few_fds && !p->over))
		return;
	while ((t = r->no_room) != NULL && (t->over || p->over || take_fds(r, t))) {
		if ((r->no_room = t->next) == NULL)
			r->no_room_last = &r->no_room;
		t->next = NULL;
		if (t->over || p->over || t->work == WORK_ACCEPT)
			work_done(p, t);
		else
			receiving_enqueue(p, t, t->work);
	}
	r->few_fds = r->fds / 2;
}

struct mono receiving_deadline(const struct party *p)
{
	struct mono at = MONO_NEVER;
	const struct item *t;

	if (p->rcv->no_room != NULL)
		at = mono_add_ns(mono_now(), ROOM_RETRY_NS);
	for (t = p->rcv->contended; t != NULL; t = t->next)
		at = mono_min(at, t->look_at);
	return at;
}

void receiving_pump(struct party *p, struct mono now)
{
	struct receiving *r = p->rcv;
	struct item *t;
	unsigned n;

	look_again(p, now);
	make_room(p);
	readback_pump(p);
	if (r->batch != NULL || r->first == NULL)
		return;
	r->batch = t = r->first;
	for (n = 1; n < WORK_BATCH && t->next != NULL; n++)
		t = t->next;
	if ((r->first = t->next) == NULL)
		r->last = &r->first;
	t->next = NULL;
	r->io.run = receiving_work;
	r->done.run = on_done;
	io_submit(p->o.host->io, &r->io);
}
