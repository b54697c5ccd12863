/* A party that sends: lists what there is, hands blocks to the streams. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "lib/sending_impl.h"
#include "lib/why.h"

static void outgoing_free(struct outgoing *o)
{
	source_unref(o->source);
	dir_unref(o->dir);
	free(o->name);
	free(o);
}

static const char *path_raw(const struct outgoing *o, char *out)
{
	return o->source != NULL ? source_path_raw(o->source, out, DIR_PATH_RAW_BYTES) :
	    dir_path_raw(o->dir, o->name, out, DIR_PATH_RAW_BYTES);
}

static const char *path_text(const struct outgoing *o, char *out, size_t cap)
{
	return o->source != NULL ? source_path_text(o->source, out, cap) :
	    dir_path_text(o->dir, o->name, out, cap);
}

static int begin(struct party *p, struct ptcp_err *e)
{
	uint32_t flags = session_open(p->session)->flags;
	int r;

	if (p->snd != NULL)
		return 0;
	if ((p->snd = calloc(1, sizeof *p->snd)) == NULL)
		return err_nomem(e);
	p->snd->party = p;
	list_init(&p->snd->to_compare);
	if ((flags & WIRE_OPEN_OWNER) != 0)
		p->snd->owner = calloc(WALK_BATCH, sizeof *p->snd->owner);
	if ((flags & WIRE_OPEN_XATTR) != 0)
		p->snd->xattrs = calloc(WALK_BATCH, sizeof *p->snd->xattrs);
	if (((flags & WIRE_OPEN_OWNER) != 0 && p->snd->owner == NULL) ||
	    ((flags & WIRE_OPEN_XATTR) != 0 && p->snd->xattrs == NULL))
		r = err_nomem(e);
	else
		r = walk_new(&p->snd->walk, e);
	if (r < 0)
		sending_free(p);
	return r;
}

void sending_free(struct party *p)
{
	if (p->snd == NULL)
		return;
	walk_free(p->snd->walk);
	sending_forget_compares(p->snd);
	links_fini(&p->snd->links);
	free(p->snd->owner);
	free(p->snd->xattrs);
	free(p->snd);
	p->snd = NULL;
}

int party_send_from(struct party *p, struct dir *dir, const char *name, struct ptcp_err *e)
{
	int r;

	if ((r = begin(p, e)) < 0)
		return r;
	return walk_add(p->snd->walk, dir, name, e);
}

int party_send_filtered(struct party *p, const struct filter *f, struct ptcp_err *e)
{
	int r;

	if ((r = begin(p, e)) < 0)
		return r;
	walk_filter(p->snd->walk, f);
	return 0;
}

int party_send_missing(struct party *p, const char *path, const struct ptcp_err *why)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err e, bare;
	int r;

	if ((r = begin(p, &e)) < 0)
		return r;
	why_bare(&bare, why, text_escape(text, sizeof text, path));
	session_note(p->session, WIRE_NOTE_FAILED, path, &bare);
	p->o.ops->file(p->o.arg, path, PTCP_FILE_FAILED, &bare);
	return 0;
}

bool sending_idle(const struct party *p)
{
	return !p->snd->listing && p->snd->asked == 0;
}

/* ---- The engine's decisions ---- */

static void on_ended(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why)
{
	struct party *p = arg;
	struct outgoing *o = cookie;
	char path[DIR_PATH_RAW_BYTES], text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err shown;

	switch (fate) {
	case SND_DONE:
	case SND_SKIPPED:
		if (!o->is_dir)
			p->o.ops->file(p->o.arg, path_raw(o, path),
			    fate == SND_DONE ? PTCP_FILE_DONE : PTCP_FILE_SKIPPED, NULL);
		break;
	case SND_FAILED:
		if (o->link != NULL)
			o->link->failed = true;
		why_bare(&shown, why, path_text(o, text, sizeof text));
		p->o.ops->file(p->o.arg, path_raw(o, path), PTCP_FILE_FAILED, &shown);
		break;
	case SND_DROPPED:
		break;
	}
	outgoing_free(o);
}

static void on_stalled(void *arg, unsigned number)
{
	struct party *p = arg;
	struct ptcp_err why;

	err_set(&why, PTCP_ETIMEOUT, "nothing acknowledged for long");
	if (p->stream[number] != NULL && !stream_on_disk(p->stream[number]))
		party_stream_lost(p, p->stream[number], &why);
}

const struct snd_ops sending_snd_ops = {
	.ended = on_ended, .check = sending_check, .compare = sending_compare, .map = sending_map,
	.stalled = on_stalled
};

/* ---- Listing ---- */

/* On the control thread: a batch of the listing is here. */
static void on_listed(struct msg *m)
{
	struct sending *t = CONTAINER_OF(m, struct sending, done);
	struct party *p = t->party;
	struct ptcp_err why;
	unsigned i;

	t->listing = false;
	for (i = 0; i < t->n; i++) {
		if (!p->over)
			sending_offer(p, i);
		walk_entry_fini(&t->entry[i]);
		free(t->lacking[i]);
		t->lacking[i] = NULL;
		if (t->xattrs != NULL)
			xattrs_fini(&t->xattrs[i]);
	}
	if (!p->over && t->result < 0) {
		err_nomem(&why);
		party_fail(p, &why);
	} else if (!p->over) {
		t->end = t->result == 0;
		snd_listed(session_snd(p->session), t->files, t->bytes, t->end);
	}
	party_pump(p);
}

/* On an I/O thread: what only some transfers keep. Links have no attributes of ours. */
static void describe(struct sending *t, unsigned i)
{
	struct walk_entry *w = &t->entry[i];
	struct ptcp_err why;

	if (w->type != WALK_FILE && w->type != WALK_DIR && w->type != WALK_SYMLINK)
		return;
	if (t->owner != NULL)
		owners_describe(t->party->o.host->owners, w->uid, w->gid, &t->owner[i]);
	if (t->xattrs != NULL && w->type != WALK_SYMLINK && xattrs_read(&t->xattrs[i], w->dir, w->name, &why) != 0)
		t->lacking[i] = strdup(why.msg);
}

/* On an I/O thread. */
static void list_batch(struct io_job *io)
{
	struct sending *t = CONTAINER_OF(io, struct sending, io);
	struct ptcp_err why;

	t->n = 0;
	while (t->n < t->most && (t->result = walk_next(t->walk, &t->entry[t->n], &why)) > 0)
		describe(t, t->n++);
	t->done.run = on_listed;
	loop_post(t->party->o.host->control, &t->done);
}

void sending_pump(struct party *p)
{
	struct sending *t = p->snd;
	struct snd *snd = session_snd(p->session);
	unsigned room = snd_room(snd);

	/* Whole batches, unless the receiver takes so few entries that there is no such room. */
	if (t->listing || t->end || room == 0 ||
	    (room < WALK_BATCH && snd_stats(snd).live > WALK_BATCH + snd_depth(snd)))
		return;
	t->most = room < WALK_BATCH ? room : WALK_BATCH;
	t->listing = true;
	t->io.run = list_batch;
	io_submit(p->o.host->io, &t->io);
}

/* ---- Feeding the streams ---- */

/* What there is for a stream that has room goes to it; false: nothing. */
static bool feed(struct party *p, unsigned number, struct mono now)
{
	struct snd *s = session_snd(p->session);
	const struct outgoing *o;
	struct stream_job *job;
	bool any;
	unsigned i;

	if (p->stream[number] == NULL || snd_stream_waits(s, number) ||
	    (job = stream_free_job(p->stream[number])) == NULL)
		return false;
	if ((any = snd_take(s, number, now, &job->job)))
		for (i = 0; i < job->job.n; i++) {
			o = job->job.extent[i].cookie;
			job->source[i] = source_ref(o->source);
		}
	else
		choosing_starved(p);
	stream_send(p->stream[number], job);
	return any;
}

void sending_feed(struct party *p, struct mono now)
{
	struct snd *s = session_snd(p->session);
	unsigned i;
	bool more = true;

	snd_set_paced(s, session_held(p->session) || pacer_limits(&p->o.host->pacing.out) || pacer_limits(&p->rates.all) ||
	    session_peer_busy(p->session) != WIRE_IDLE); /* also if it is busy otherwise for a moment */
	/* Round by round, so that every stream has one job before any has its second. */
	while (more) {
		more = false;
		for (i = 0; i < p->n_wanted; i++)
			more |= feed(p, i, now);
	}
}

void sending_sent(void *arg, struct stream *s, struct stream_job *job)
{
	struct party *p = arg;
	struct mono now = mono_now();
	struct ptcp_err nomem;
	unsigned i;

	err_nomem(&nomem);
	for (i = 0; i < job->job.n; i++) {
		const struct snd_extent *x = &job->job.extent[i];

		if (!job->failed[i]) {
			p->snd->wire_bytes += x->length;
			p->carried[stream_path(s)] += x->length;
		}
		if (!p->over)
			snd_read(session_snd(p->session), stream_number(s), x->id, x->block, job->term[i],
			    !job->failed[i] ? NULL : job->why[i] != NULL ? job->why[i] : &nomem, now);
	}
}
