/* Sending side of a session: lists the sources, assigns blocks to the streams. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "core/text.h"
#include "fs/fs_err.h"
#include "session/attributes.h"
#include "session/send_impl.h"
#include "store/named_acl.h"

static const struct payload_ops send_payload;

static int send_new(struct session *sess, struct ptcp_err *e)
{
	uint32_t flags = engine_open(sess->engine)->flags, preserve = engine_open(sess->engine)->preserve;
	struct walk_limits limits;
	int r;

	if (sess->send != NULL)
		return 0;
	if ((sess->send = memory_calloc(sess->o.memory, sizeof *sess->send, e)) == NULL)
		return PTCP_ENOMEM;
	sess->send->hardlinks.records.memory = sess->o.memory;
	sess->send->session = sess;
	streams_carry(sess, &send_payload);
	list_init(&sess->send->digest_queue);
	list_init(&sess->send->sums_queue);
	list_init(&sess->send->linked_done);
	list_init(&sess->send->again);
	sess->send->removes = (flags & WIRE_OPEN_REMOVE_SOURCES) != 0 && (flags & WIRE_OPEN_VERIFY) != 0 &&
	    (flags & WIRE_OPEN_DRY_RUN) == 0 && engine_open(sess->engine)->fsync != WIRE_FSYNC_NONE;
	sess->send->xattr_kinds = attributes_sent(sess);
	sess->send->narrows = (preserve & WIRE_PRESERVE_ACL) == 0;
	sess->send->selecting = sess->o.open == NULL && (flags & WIRE_OPEN_SELECTED) != 0;
	limits = (struct walk_limits){ engine_open(sess->engine)->max_depth, (flags & WIRE_OPEN_ONE_FILE_SYSTEM) != 0,
		(flags & WIRE_OPEN_COPY_LINKS) != 0 ? WALK_LINKS_FOLLOW : (flags & WIRE_OPEN_COPY_UNSAFE_LINKS) != 0 ?
		WALK_LINKS_UNSAFE : WALK_LINKS_STAY };
	if ((r = walk_new(&sess->send->walk, sess->o.memory, e)) < 0 ||
	    ((preserve & (WIRE_PRESERVE_OWNER | WIRE_PRESERVE_ACL)) != 0 && (r = owners_new(&sess->send->owners, &owner_db_real, sess->o.memory, e)) < 0) ||
	    (sess->send->selecting && (r = selection_new(&sess->send->selection, sess->o.memory, e)) < 0))
		send_free(sess);
	else
		walk_limit(sess->send->walk, &limits);
	return r;
}

/* The next entry of the batch is offered, or dropped. */
static void forget_listed(struct send_side *t)
{
	unsigned i = t->offered++;

	walk_entry_fini(&t->entry[i]);
	free(t->lacking[i]);
	t->lacking[i] = NULL;
	t->in_place_of[i] = NULL;
	xattrs_fini(&t->xattrs[i]);
	if (t->offered == t->n) {
		memory_release(t->session->o.memory, t->batch_bytes);
		t->batch_bytes = 0;
	}
}

void send_free(struct session *sess)
{
	if (sess->send == NULL)
		return;
	while (sess->send->offered < sess->send->n)
		forget_listed(sess->send);
	if (sess->send->pipe != NULL)
		pipe_source_detach(sess->send->pipe);
	walk_free(sess->send->walk);
	owners_free(sess->send->owners);
	selection_free(sess->send->selection);
	send_digest_queue_fini(sess->send);
	send_linked_free(sess->send);
	hardlinks_fini(&sess->send->hardlinks);
	memory_free(sess->o.memory, sess->send, sizeof *sess->send);
	sess->send = NULL;
}

int session_send_from(struct session *sess, struct dir *dir, const char *name, struct ptcp_err *e)
{
	int r = send_new(sess, e);

	if (r == 0 && name == NULL)
		r = walk_add(sess->send->walk, dir, ".", e);
	return r < 0 ? r : walk_add(sess->send->walk, dir, name, e);
}

int session_send_pipe(struct session *sess, struct pipe_source *pipe, struct ptcp_err *e)
{
	int r = send_new(sess, e);

	if (r == 0)
		sess->send->pipe = pipe;
	return r;
}

int session_send_filtered(struct session *sess, const struct filter *f, bool own, struct ptcp_err *e)
{
	int r = send_new(sess, e);

	if (r == 0)
		walk_filter(sess->send->walk, f, own);
	return r;
}

int session_send_selected(struct session *sess, const struct selection *s, struct ptcp_err *e)
{
	int r = send_new(sess, e);

	if (r == 0)
		walk_select(sess->send->walk, s);
	return r;
}

int session_send_removed(struct session *sess, struct published *p, struct ptcp_err *e)
{
	int r = send_new(sess, e);

	p->max = SESSION_NAMES_MAX;
	if (r == 0)
		sess->send->removed = p;
	return r;
}

int session_send_digests(struct session *sess, unsigned digests, const struct sums_expected *expected,
    struct ptcp_err *e)
{
	int r = send_new(sess, e);

	if (r < 0)
		return r;
	sess->send->digests = digests;
	if (expected != NULL)
		sess->send->expected = *expected;
	return 0;
}

int session_send_missing(struct session *sess, const char *path, const struct ptcp_err *why)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err e, bare;
	int r;

	if ((r = send_new(sess, &e)) < 0)
		return r;
	fs_err_strip(&bare, why, text_escape(text, sizeof text, path));
	engine_warn(sess->engine, WIRE_WARNING_FAILED, path, &bare);
	session_file_failed(sess, path, &bare);
	return 0;
}

bool send_idle(const struct session *sess)
{
	return !sess->send->listing && sess->send->n_checks == 0 && sess->send->n_sums == 0 && send_pipe_idle(sess);
}

enum wire_busy send_busy(const struct session *sess)
{
	if (sess->send != NULL && send_pipe_busy(sess->send))
		return WIRE_READING;
	if (sess->send == NULL || (!sess->send->listing && sess->send->n_checks == 0))
		return WIRE_IDLE;
	return sess->send->n_digests > 0 ? WIRE_VERIFYING : WIRE_READING;
}

/* ---- The engine's decisions ---- */

static void warn_of_growth(struct session *sess, const struct source *s, const char *path)
{
	struct ptcp_err why;

	err_set(&why, PTCP_ECHANGED, "grew while it was sent: the destination has the first %llu bytes",
	    (unsigned long long)source_size_bytes(s));
	engine_warn(sess->engine, WIRE_WARNING_ONLY, path, &why);
	sess->o.ops->warning(sess->o.arg, path, why.msg);
}

static void warn_of_no_digest(struct session *sess, const char *path, const struct ptcp_err *why)
{
	char text[sizeof why->msg + 40];

	snprintf(text, sizeof text, "no digest: %s (ptcp sum prints it)", why->msg);
	sess->o.ops->warning(sess->o.arg, path, text);
}

static const char *raw_path(const struct send_entry *o, char path[DIR_PATH_RAW_BYTES])
{
	return o->source != NULL ? source_path_raw(o->source, path, DIR_PATH_RAW_BYTES) :
	    dir_path_raw(o->dir, o->name, path, DIR_PATH_RAW_BYTES);
}

static void report(struct session *sess, struct send_entry *o, enum snd_fate fate)
{
	char path[DIR_PATH_RAW_BYTES];

	raw_path(o, path);
	if (fate != SND_DROPPED && !o->is_dir && !o->is_name) {
		sess->o.ops->file(sess->o.arg, &(struct session_file){ .path = path,
		    .status = fate == SND_DONE ? PTCP_FILE_DONE : PTCP_FILE_SKIPPED, .is_link = o->source == NULL,
		    .size_bytes = o->source != NULL ? source_size_bytes(o->source) : 0,
		    .digests = fate == SND_DONE ? send_sums_hex(o) : NULL });
		if (fate == SND_DONE && send_sums_why(o) != NULL)
			warn_of_no_digest(sess, path, send_sums_why(o));
		if (o->source != NULL && source_has_grown(o->source))
			warn_of_growth(sess, o->source, path);
	}
	send_sums_free(o);
	if (!send_remove(sess, o, fate))
		send_entry_free(o);
}

void send_ended(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why)
{
	struct session *sess = arg;
	struct send_entry *o = cookie;
	char path[DIR_PATH_RAW_BYTES], text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err bare;

	if (o == sess->send->piped)
		sess->send->piped = NULL;
	if (sess->striping.movers != NULL && o->id != 0)
		movers_forget(sess->striping.movers, o->id);
	if (fate <= SND_SKIPPED && send_sums_end(sess, o, fate))
		return;
	if (fate != SND_FAILED && send_sums_unexpected(o) != NULL) {
		fate = SND_FAILED;
		why = send_sums_unexpected(o);
	}
	if (fate != SND_FAILED) {
		report(sess, o, fate);
		return;
	}
	if (o->hardlink != NULL) {
		o->hardlink->failed = true;
		o->hardlink->failed_id = o->hardlink->id;
	}
	fs_err_strip(&bare, why, o->source != NULL ? source_path_text(o->source, text, sizeof text) :
	    dir_path_text(o->dir, o->name, text, sizeof text));
	session_file_failed(sess, raw_path(o, path), &bare);
	send_sums_free(o);
	if (!send_remove(sess, o, fate))
		send_entry_free(o);
}

/* A stream that still takes bytes is slow, not dead: on a new connection each block would begin again, for ever. */
void send_stream_stalled(struct session *sess, unsigned number)
{
	struct stream *s = sess->slot[number].stream;
	uint64_t *before = &sess->slot[number].moved_bytes;
	struct ptcp_err why;

	if (s == NULL || stream_on_disk(s))
		return;
	if (stream_moved(s) != *before) {
		*before = stream_moved(s);
		return;
	}
	err_set(&why, PTCP_ETIMEOUT, "no acknowledgment for too long");
	streams_lost(sess, s, &why);
}

static void on_stalled(void *arg, unsigned number) { send_stream_stalled(arg, number); }

const struct snd_ops send_snd_ops = {
	.ended = send_ended, .again = send_again, .check = send_check, .compare = send_compare, .hash = send_hash, .pieces = send_pieces, .map = send_map, .release = send_release,
	.stalled = on_stalled
};

/* ---- Listing ---- */

/* Offers the batch; before the peer has accepted the session only its first entries, so far as they may be early. */
static void offer_batch(struct session *sess)
{
	struct send_side *t = sess->send;

	while (t->offered < t->n && !sess->end.over && (sess->running || send_is_early(sess, t->offered))) {
		send_offer(sess, t->offered);
		forget_listed(t);
	}
	if (sess->end.over || !sess->running)
		return;
	t->offering = false;
	if (t->call.result < 0) {
		engine_fail(sess->engine, &t->call.why);
	} else {
		t->end = t->call.result == 0;
		snd_listed(engine_snd(sess->engine), t->files, t->bytes, t->end);
	}
}

unsigned send_streams(const struct session *sess)
{
	const struct send_side *t = sess->send;
	uint64_t bytes = t->bytes;
	unsigned i;

	if (!t->end && !(t->offering && t->call.result == 0))
		return t->pipe == NULL && t->listing && t->files == 0 ? 0 : PTCP_STREAMS_MAX;
	for (i = t->end ? t->n : t->offered; i < t->n; i++)
		bytes += t->entry[i].type == WALK_FILE ? t->entry[i].size_bytes : 0;
	return bytes / SND_JOB_BYTES < PTCP_STREAMS_MAX ? (unsigned)(bytes / SND_JOB_BYTES) + 1 : PTCP_STREAMS_MAX;
}

/* On the control thread: a batch of the list is complete. */
static void on_listed(struct io_call *k)
{
	struct send_side *t = CONTAINER_OF(k, struct send_side, call);

	t->listing = false;
	t->offering = true;
	offer_batch(t->session);
	session_pump(t->session);
}

/* Extended attributes. Without its ACL, the file or directory has the permissions of the owning group, not the mask. */
static int describe_xattrs(struct send_side *t, unsigned i, const struct acl_names *names, mode_t *mode, struct ptcp_err *why)
{
	struct walk_entry *w = &t->entry[i];
	int left_out = xattrs_read(&t->xattrs[i], w->dir, w->name, t->xattr_kinds, why), r = left_out;

	if (left_out >= 0)
		r = acls_describe(&t->xattrs[i], names, w->dir, w->name, w->type == WALK_DIR, mode, left_out > 0 ? NULL : why);
	if (r >= 0)
		return left_out + r;
	xattrs_fini(&t->xattrs[i]);
	*mode = acls_narrowed(w->dir, w->name, *mode);
	return r;
}

/* Optional attributes. Symbolic links have no extended attributes. */
static void describe(struct send_side *t, unsigned i)
{
	struct walk_entry *w = &t->entry[i];
	const struct acl_names names = { t->owners, t->session->o.map };
	mode_t mode = w->mode;
	struct ptcp_err why;

	if (w->type != WALK_FILE && w->type != WALK_DIR && w->type != WALK_SYMLINK)
		return;
	if (t->owners != NULL) {
		owners_describe(t->owners, w->uid, w->gid, &t->owner[i]);
		attr_map_owner(names.map, &t->owner[i]);
	}
	if (w->type == WALK_SYMLINK)
		return;
	if (t->narrows)
		mode = acls_narrowed(w->dir, w->name, mode);
	if (t->xattr_kinds != 0 && describe_xattrs(t, i, &names, &mode, &why) != 0 &&
	    why.sys != ENOENT) /* opening the file will tell */
		t->lacking[i] = strdup(why.msg);
	walk_entry_set_mode(w, attr_map_mode(names.map, mode, w->type == WALK_DIR));
}

int send_listed(struct send_side *t, struct ptcp_err *e)
{
	unsigned i = t->n++;
	struct walk_entry *w = &t->entry[i];
	uint64_t bytes;
	int r;

	if (source_lacks_size(w) && (r = send_find_size(w, e)) < 0)
		return r;
	describe(t, i);
	bytes = LISTED_BYTES + (w->target != NULL ? strlen(w->target) : 0) + t->xattrs[i].packed.cap;
	if ((r = memory_charge(t->session->o.memory, bytes, e)) < 0)
		return r;
	t->batch_bytes += bytes;
	return 1;
}

/* On an I/O thread. */
static void list_again(struct io_call *k)
{
	struct send_side *t = CONTAINER_OF(k, struct send_side, call);
	unsigned i;

	for (k->result = 1; k->result > 0 && t->n < t->max;) {
		send_examine_again(&t->entry[t->n]);
		k->result = send_listed(t, &k->why);
	}
	for (i = t->n; i < t->max; i++)
		walk_entry_fini(&t->entry[i]);
	if (k->result > 0)
		k->result = !t->end;
}

/* The peer's selection, before the first entry. */
static int begin_list(struct send_side *t)
{
	int r;

	if (t->selection == NULL || t->selected)
		return 1;
	if ((r = selection_sort(t->selection, &t->call.why)) < 0)
		return r;
	walk_select(t->walk, t->selection);
	t->selected = true;
	return 1;
}

/* On an I/O thread. */
static void list_batch(struct io_call *k)
{
	struct send_side *t = CONTAINER_OF(k, struct send_side, call);

	k->result = begin_list(t);
	while (k->result > 0 && t->n < t->max && (k->result = walk_next(t->walk, &t->entry[t->n], &k->why)) > 0)
		k->result = send_listed(t, &k->why);
}

static void begin_batch(struct send_side *t, void (*list)(struct io_call *))
{
	t->listing = true;
	io_call_start(&t->call, t->session->o.context, list, on_listed);
}

static void list_more(struct session *sess)
{
	struct send_side *t = sess->send;
	struct snd *snd = engine_snd(sess->engine);
	unsigned room = snd_room(snd);

	if (sess->send->pipe != NULL) {
		send_pipe_pump(sess);
		return;
	}
	if (!t->listing && !t->offering && !list_empty(&t->again)) {
		t->n = t->offered = 0;
		t->max = send_take_again(t);
		begin_batch(t, list_again);
		return;
	}
	/* Lists full batches, unless the receiver allows fewer entries than a batch. */
	if (t->listing || t->offering || t->end || t->selecting || room == 0 ||
	    (room < WALK_BATCH && snd_stats(snd).live > WALK_BATCH + snd_depth(snd)))
		return;
	t->max = room < WALK_BATCH ? room : WALK_BATCH;
	t->n = t->offered = 0;
	walk_set_levels(t->walk, snd_levels(snd));
	begin_batch(t, list_batch);
}

/* ---- Jobs for the streams ---- */

/* Sends the next blocks on a stream that has room. False: no blocks. */
static bool feed(struct session *sess, unsigned number, struct mono now)
{
	struct snd *s = engine_snd(sess->engine);
	struct send_entry *o;
	struct stream_job *job;
	unsigned i;

	if (sess->slot[number].stream == NULL || snd_stream_waits(s, number) ||
	    (job = stream_free_job(sess->slot[number].stream)) == NULL)
		return false;
	if (!snd_take(s, number, now, &job->job)) {
		path_select_starved(&sess->adapt.path_select);
		return false;
	}
	for (i = 0; i < job->job.n; i++) {
		o = job->job.extent[i].cookie;
		o->id = job->job.extent[i].id;
		job->source[i] = source_ref(o->source);
		send_sums_reached(sess, o, job->job.extent[i].offset + job->job.extent[i].length);
	}
	stream_send(sess->slot[number].stream);
	return true;
}

static void feed_streams(struct session *sess, struct mono now)
{
	struct snd *s = engine_snd(sess->engine);
	unsigned i;
	bool more = true;

	/* A rate below the demand holds blocks up. Dead streams take nothing, and the rate then holds up nobody. */
	snd_set_paced(s, engine_spooled(sess->engine) || pacer_throttles(&sess->o.context->pacing.out, now) ||
	    pacer_throttles(&sess->adapt.path_rates.all, now) || striping_is_paced(sess) ||
	    engine_peer_busy(sess->engine) != WIRE_IDLE); /* the peer may also be briefly busy with other work */
	/* In rounds: every stream gets its first job before a stream gets its second. */
	while (more) {
		more = false;
		for (i = 0; i < sess->streams.n_active; i++)
			more |= feed(sess, i, now);
	}
}

void send_pump(struct session *sess, struct mono now)
{
	if (sess->send == NULL)
		return;
	if (sess->send->offering)
		offer_batch(sess);
	if (sess->end.over)
		return;
	list_more(sess);
	feed_streams(sess, now);
	send_remove_linked(sess);
}

void send_early(struct session *sess)
{
	if (sess->send != NULL && engine_snd(sess->engine) != NULL)
		list_more(sess);
}

static void on_sent(struct session *sess, struct stream *s, struct stream_job *job)
{
	struct mono now = mono_now();
	struct ptcp_err nomem;
	unsigned i;

	err_nomem(&nomem);
	sess->send->saved_bytes += job->saved_bytes;
	for (i = 0; i < job->job.n; i++) {
		const struct snd_extent *x = &job->job.extent[i];
		uint32_t omitted = x->omit == 0 ? 0 : x->length - wire_patch_bytes(x->length, x->omit);

		if (!job->failed[i]) {
			sess->send->sent_bytes += x->length - omitted;
			sess->send->omitted_bytes += omitted;
			sess->carried[stream_path(s)] += x->length - omitted;
		}
		if (!sess->end.over)
			snd_read(engine_snd(sess->engine), stream_number(s), x->id, x->block, job->term[i],
			    !job->failed[i] ? NULL : job->why[i] != NULL ? job->why[i] : &nomem, now);
	}
}

/* The movers at both ends of the connected stream; 0: none. */
static uint64_t movers_of(const struct session *sess, unsigned number)
{
	const struct remote_stream *r = sess->striping.movers != NULL ? stream_remote(sess->slot[number].stream) : NULL;

	return (uint64_t)(r != NULL ? remote_mover(r) : 0) << 32 | sess->slot[number].far;
}

static void on_connected(struct session *sess, unsigned number)
{
	snd_set_mover(engine_snd(sess->engine), number, movers_of(sess, number));
	snd_stream_up(engine_snd(sess->engine), number, mono_now());
}

static void on_lost(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	(void)why;
	if (engine_snd(sess->engine) != NULL)
		snd_stream_lost(engine_snd(sess->engine), stream_number(s));
}

static const struct payload_ops send_payload = { .connected = on_connected, .lost = on_lost, .sent = on_sent };
