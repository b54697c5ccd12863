/* A party that sends: lists what there is, offers it, hands blocks to the streams. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "lib/party_impl.h"
#include "lib/why.h"

#define PATH_BYTES 4200

/* The cookie of an entry in the engine. */
struct outgoing {
	struct source *source;   /* of a file */
	struct dir *dir;         /* of anything else: what it is in, */
	char *name;              /* and its name there */
	bool is_dir;
};

static void outgoing_free(struct outgoing *o)
{
	source_unref(o->source);
	dir_unref(o->dir);
	free(o->name);
	free(o);
}

static const char *path_raw(const struct outgoing *o, char *out)
{
	return o->source != NULL ? source_path_raw(o->source, out, PATH_BYTES) :
	    dir_path_raw(o->dir, o->name, out, PATH_BYTES);
}

static const char *path_text(const struct outgoing *o, char *out, size_t cap)
{
	return o->source != NULL ? source_path_text(o->source, out, cap) :
	    dir_path_text(o->dir, o->name, out, cap);
}

int sending_new(struct party *p, struct ptcp_err *e)
{
	int r;

	if (p->snd != NULL)
		return 0;
	if ((p->snd = calloc(1, sizeof *p->snd)) == NULL)
		return err_nomem(e);
	if ((r = walk_new(&p->snd->walk, e)) < 0) {
		free(p->snd);
		p->snd = NULL;
	}
	return r;
}

void sending_free(struct party *p)
{
	if (p->snd == NULL)
		return;
	walk_free(p->snd->walk);
	free(p->snd);
	p->snd = NULL;
}

int party_send_from(struct party *p, struct dir *dir, const char *name, struct ptcp_err *e)
{
	int r;

	if ((r = sending_new(p, e)) < 0)
		return r;
	return walk_add(p->snd->walk, dir, name, e);
}

int party_send_filtered(struct party *p, const struct filter *f, struct ptcp_err *e)
{
	int r;

	if ((r = sending_new(p, e)) < 0)
		return r;
	walk_filter(p->snd->walk, f);
	return 0;
}

int party_send_missing(struct party *p, const char *path, const struct ptcp_err *why)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err e, bare;
	int r;

	if ((r = sending_new(p, &e)) < 0)
		return r;
	why_bare(&bare, why, text_escape(text, sizeof text, path));
	session_note(p->session, WIRE_NOTE_FAILED, path, &bare);
	p->o.ops->file(p->o.arg, path, PTCP_FILE_FAILED, &bare);
	return 0;
}

bool sending_idle(const struct party *p)
{
	return !p->snd->listing && p->snd->checks == 0;
}

/* ---- The engine's decisions ---- */

static void on_ended(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why)
{
	struct party *p = arg;
	struct outgoing *o = cookie;
	char path[PATH_BYTES], text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err shown;

	switch (fate) {
	case SND_DONE:
	case SND_SKIPPED:
		if (!o->is_dir)
			p->o.ops->file(p->o.arg, path_raw(o, path),
			    fate == SND_DONE ? PTCP_FILE_DONE : PTCP_FILE_SKIPPED, NULL);
		break;
	case SND_FAILED:
		why_bare(&shown, why, path_text(o, text, sizeof text));
		p->o.ops->file(p->o.arg, path_raw(o, path), PTCP_FILE_FAILED, &shown);
		break;
	case SND_DROPPED:
		break;
	}
	outgoing_free(o);
}

struct check {
	struct io_job io;
	struct msg msg;
	struct party *party;
	struct source *source;
	uint64_t id;
	int result;
	struct ptcp_err why;
};

static void on_checked(struct msg *m)
{
	struct check *c = CONTAINER_OF(m, struct check, msg);
	struct party *p = c->party;

	p->snd->checks--;
	if (!p->over)
		snd_checked(session_snd(p->session), c->id, c->result < 0 ? &c->why : NULL);
	source_unref(c->source);
	free(c);
	party_pump(p);
}

/* On an I/O thread. */
static void check_source(struct io_job *io)
{
	struct check *c = CONTAINER_OF(io, struct check, io);

	char path[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	if ((c->result = source_check(c->source, &why)) < 0)
		why_bare(&c->why, &why, source_path_text(c->source, path, sizeof path));
	c->msg.run = on_checked;
	loop_post(c->party->o.host->control, &c->msg);
}

static void on_check(void *arg, void *cookie, uint64_t id)
{
	struct party *p = arg;
	struct outgoing *o = cookie;
	struct check *c = calloc(1, sizeof *c);
	struct ptcp_err why;

	if (c == NULL) {
		err_nomem(&why);
		party_fail(p, &why);
		return;
	}
	c->party = p;
	c->source = source_ref(o->source);
	c->id = id;
	c->io.run = check_source;
	p->snd->checks++;
	io_submit(p->o.host->io, &c->io);
}

static void on_stalled(void *arg, unsigned number)
{
	struct party *p = arg;
	struct ptcp_err why;

	err_set(&why, PTCP_ETIMEOUT, "nothing acknowledged for long");
	if (p->stream[number] != NULL && !stream_on_disk(p->stream[number]))
		party_stream_lost(p, p->stream[number], &why);
}

/* A receiver of ours never asks for it. */
static void on_compare(void *arg, void *cookie, uint64_t id)
{
	struct party *p = arg;
	struct ptcp_err why;

	(void)cookie;
	(void)id;
	err_set(&why, PTCP_ENOTYET, "comparing is not available yet");
	party_fail(p, &why);
}

/* Files are not offered as sparse yet. */
static void on_map(void *arg, void *cookie, uint64_t id)
{
	struct party *p = arg;

	(void)cookie;
	snd_mapped(session_snd(p->session), id, NULL, NULL);
}

const struct snd_ops sending_snd_ops = { on_ended, on_check, on_compare, on_map, on_stalled };

/* ---- Listing ---- */

static void listed(struct party *p, struct walk_entry *w);

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
			listed(p, &t->entry[i]);
		walk_entry_fini(&t->entry[i]);
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

/* On an I/O thread. */
static void list_batch(struct io_job *io)
{
	struct sending *t = CONTAINER_OF(io, struct sending, io);
	struct ptcp_err why;

	t->n = 0;
	do
		t->result = walk_next(t->walk, &t->entry[t->n], &why);
	while (t->result > 0 && ++t->n < t->most);
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
	t->party = p;
	t->listing = true;
	t->io.run = list_batch;
	io_submit(p->o.host->io, &t->io);
}

/* Something that cannot be offered. */
static void not_sent(struct party *p, const struct walk_entry *w, enum wire_note_kind kind,
    const char *text)
{
	char path[PATH_BYTES], shown[DIR_PATH_TEXT_BYTES];
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

static struct outgoing *outgoing_new(struct walk_entry *w)
{
	struct outgoing *o = calloc(1, sizeof *o);

	if (o == NULL)
		return NULL;
	if (w->type == WALK_FILE) {
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

static void offer(struct party *p, struct walk_entry *w, uint8_t type)
{
	/* The name moves into the cookie; the frame borrows it from a copy. */
	char name[256], target[WIRE_PATH_MAX + 1];
	struct wire_entry f = {
		.type = type, .size_bytes = type == WIRE_FILE ? w->size_bytes : 0, .mode = w->mode & 07777,
		.mtime_s = w->mtime.tv_sec, .mtime_ns = (uint32_t)w->mtime.tv_nsec,
	};
	struct outgoing *o;
	struct ptcp_err why;

	f.name = (struct span){ (const uint8_t *)name, strlen(w->name) };
	memcpy(name, w->name, f.name.n);
	if (type == WIRE_SYMLINK) {
		f.target = (struct span){ (const uint8_t *)target, strnlen(w->target, WIRE_PATH_MAX) };
		memcpy(target, w->target, f.target.n);
	}
	if ((o = outgoing_new(w)) == NULL) {
		err_nomem(&why);
		party_fail(p, &why);
		return;
	}
	if (type == WIRE_FILE) {
		p->snd->files++;
		p->snd->bytes += f.size_bytes;
	}
	snd_offer(session_snd(p->session), &f, o);
}

static void listed(struct party *p, struct walk_entry *w)
{
	switch (w->type) {
	case WALK_DIR:
		offer(p, w, WIRE_DIR);
		break;
	case WALK_DIR_END:
		snd_leave(session_snd(p->session));
		break;
	case WALK_FILE:
		if (w->size_bytes > WIRE_FILE_MAX)
			not_sent(p, w, WIRE_NOTE_FAILED, "larger than 256 TiB (split it)");
		else
			offer(p, w, WIRE_FILE);
		break;
	case WALK_SYMLINK:
		if ((session_open(p->session)->flags & WIRE_OPEN_LINKS) == 0)
			not_sent(p, w, WIRE_NOTE_WARNING, "a symbolic link: skipped");
		else
			offer(p, w, WIRE_SYMLINK);
		break;
	case WALK_SKIPPED:
		not_sent(p, w, WIRE_NOTE_WARNING, w->why);
		break;
	case WALK_FAILED:
		not_sent(p, w, WIRE_NOTE_FAILED, w->why);
		break;
	}
}

/* ---- Jobs ---- */

void sending_feed(struct party *p, struct mono now)
{
	struct snd *s = session_snd(p->session);
	struct stream_job *job;
	unsigned i, k;
	bool more = true;

	/* Round by round, so that every stream has one job before any has its second. */
	while (more) {
		more = false;
		for (i = 0; i < p->n_wanted; i++) {
			if (p->stream[i] == NULL || (job = stream_free_job(p->stream[i])) == NULL)
				continue;
			if (snd_take(s, i, now, &job->job)) {
				for (k = 0; k < job->job.n; k++)
					job->source[k] = source_ref(((struct outgoing *)job->job.extent[k].cookie)->source);
				more = true;
			}
			stream_send(p->stream[i], job);
		}
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

		if (!job->failed[i])
			p->snd->wire_bytes += x->length;
		if (!p->over)
			snd_read(session_snd(p->session), stream_number(s), x->id, x->block, job->term[i],
			    !job->failed[i] ? NULL : job->why[i] != NULL ? job->why[i] : &nomem, now);
	}
}
