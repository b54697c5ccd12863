/* Standard input and output, or any descriptor of the caller, in place of files.
 *
 * The sender announces its input as a file of unknown size. The receiver of an output requests blocks only so far ahead
 * of what is written that the blocks which wait for earlier ones fit in memory. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "session/receive_impl.h"
#include "session/send_impl.h"
#include "wire/attrs.h"

/* ---- Sending ---- */

static void on_input(struct msg *m)
{
	struct send_side *t = CONTAINER_OF(m, struct send_side, pipe_changed);

	atomic_store(&t->pipe_notified, false);
	session_pump(t->session);
}

/* On the thread of the pipe. */
static void notify_input(void *arg)
{
	struct send_side *t = arg;

	if (atomic_exchange(&t->pipe_notified, true))
		return;
	t->pipe_changed.run = on_input;
	loop_post(t->session->o.context->control, &t->pipe_changed);
}

bool send_pipe_idle(const struct session *sess)
{
	struct send_side *t = sess->send;

	if (t->pipe == NULL)
		return true;
	if (sess->end.over)
		pipe_source_detach(t->pipe);
	return !atomic_load(&t->pipe_notified);
}

bool send_pipe_busy(const struct send_side *t)
{
	return t->pipe != NULL && !t->end && pipe_source_state(t->pipe, NULL).waits;
}

/* The receiver gives the file the name of the destination, and the attributes of a new file. */
static void offer(struct session *sess)
{
	struct send_side *t = sess->send;
	struct wire_attrs a = { .unsized = true };
	struct wire_entry f = { .type = WIRE_FILE, .mtime_s = time(NULL), .mode = 0666,
		.name = { (const uint8_t *)"-", 1 } };
	struct send_entry *o = calloc(1, sizeof *o);
	struct ptcp_err why;

	if (o == NULL || (o->source = source_of_pipe(t->pipe)) == NULL) {
		free(o);
		err_nomem(&why);
		engine_fail(sess->engine, &why);
		return;
	}
	f.attrs = (struct span){ t->attrs, wire_attrs_encode(t->attrs, &a) };
	t->files = 1;
	t->piped = o;
	t->pipe_id = snd_offer(engine_snd(sess->engine), &f, o);
}

/* True: everything is reported. With PARTIAL all that was read is delivered before the check of the source reports a
 * failure of the input. */
static bool report(struct session *sess)
{
	bool partial = (engine_open(sess->engine)->flags & WIRE_OPEN_PARTIAL) != 0;
	struct snd *snd = engine_snd(sess->engine);
	struct send_side *t = sess->send;
	struct pipe_source_state s;
	struct ptcp_err why;

	s = pipe_source_state(t->pipe, &why);
	if (!s.ended)
		snd_grown(snd, t->pipe_id, s.blocks);
	if (!s.ended || (s.failed && !partial))
		return s.ended && snd_input_failed(snd, t->pipe_id, &why);
	t->bytes = s.size_bytes;
	return snd_sized(snd, t->pipe_id, s.size_bytes);
}

void send_pipe_pump(struct session *sess)
{
	struct snd *snd = engine_snd(sess->engine);
	struct send_side *t = sess->send;
	struct ptcp_err why;

	if (t->end || sess->end.over)
		return;
	if (t->files == 0 && (sess->running ? snd_room(snd) > 0 : snd_early_room(snd, SEND_PLAIN_ENTRY_BYTES)))
		offer(sess);
	if (!sess->running || t->files == 0)
		return;
	if (t->piped != NULL && pipe_source_start(t->pipe, notify_input, t, &why) < 0)
		engine_fail(sess->engine, &why);
	else if (t->piped == NULL || report(sess)) {
		t->end = true;
		snd_listed(snd, t->files, t->bytes, true);
	}
}

void send_release(void *arg, void *cookie, uint32_t block)
{
	struct session *sess = arg;

	(void)cookie;
	pipe_source_release(sess->send->pipe, block);
}

/* ---- Receiving: the output of the pipe's thread ---- */

static void on_output(struct msg *m)
{
	struct receive_side *r = CONTAINER_OF(m, struct receive_side, pipe_changed);

	atomic_store(&r->pipe_notified, false);
	engine_progress(r->session->engine, mono_now());
	session_pump(r->session);
}

static void notify_output(void *arg)
{
	struct receive_side *r = arg;

	if (atomic_exchange(&r->pipe_notified, true))
		return;
	r->pipe_changed.run = on_output;
	loop_post(r->session->o.context->control, &r->pipe_changed);
}

void receive_pipe_attach(struct receive_side *r, struct pipe_sink *pipe)
{
	r->pipe = pipe;
	pipe_sink_attach(pipe, notify_output, r);
}

void receive_pipe_detach(struct receive_side *r)
{
	if (r->pipe != NULL)
		pipe_sink_detach(r->pipe);
}

bool receive_pipe_idle(const struct session *sess)
{
	if (sess->receive->pipe == NULL)
		return true;
	if (sess->end.over)
		pipe_sink_detach(sess->receive->pipe);
	return !atomic_load(&sess->receive->pipe_notified);
}

bool receive_pipe_busy(const struct receive_side *r)
{
	struct pipe_sink_state s;

	if (r->pipe == NULL || r->piped == NULL)
		return false;
	s = pipe_sink_state(r->pipe, NULL);
	return s.written < s.taken;
}

/* ---- The entry ---- */

static int refuse(const struct receive_side *r, const struct wire_entry *f, struct ptcp_err *e)
{
	if (f->type != WIRE_FILE)
		return err_set(e, PTCP_EUSAGE,
		    "%s: only a regular file can be written to standard output (name one file)",
		    f->type == WIRE_DIR ? "a directory" : "a link");
	if (r->has_piped)
		return err_set(e, PTCP_EUSAGE,
		    "a second file: only one can be written to standard output (name one file)");
	return 0;
}

static struct receive_entry *piped_new(struct receive_side *r, uint64_t id, const struct wire_entry *f)
{
	struct receive_entry *t = receive_entry_calloc(r->session, NULL);

	if (t == NULL || (t->sink = sink_of_pipe(r->pipe)) == NULL ||
	    (t->name = strndup((const char *)f->name.p, f->name.n)) == NULL) {
		if (t != NULL)
			receive_entry_free(r->session, t);
		return NULL;
	}
	t->id = id;
	t->type = f->type;
	t->size_bytes = f->size_bytes;
	t->grid = wire_grid_of(f->size_bytes);
	return t;
}

static int begin(struct receive_side *r, const struct receive_entry *t, const struct wire_entry *f, struct ptcp_err *e)
{
	struct pipe_sink_file file = { .size_bytes = f->size_bytes, .mtime_s = f->mtime_s,
		.mtime_ns = f->mtime_ns, .block_bytes = t->grid.block_bytes, .n_blocks = wire_grid_blocks(t->grid) };
	struct wire_attrs a;
	int err;

	if ((err = wire_attrs_decode(&a, f, e)) < 0)
		return err;
	if (a.unsized)
		return err_set(e, PTCP_EPROTO, "the host offers a file of unknown size, which cannot be received");
	file.has_version = a.has_version;
	memcpy(file.version, a.version, sizeof file.version);
	return pipe_sink_begin(r->pipe, &file, e);
}

/* Blocks that an earlier session of this run has taken are claimed. */
enum rcv_prep receive_pipe_prepare(struct session *sess, uint64_t id, const struct wire_entry *f, void **cookie,
    uint64_t **claimed, struct ptcp_err *e)
{
	struct receive_side *r = sess->receive;
	struct pipe_sink_state s;
	struct receive_entry *t;
	uint32_t n;

	if ((t = piped_new(r, id, f)) == NULL) {
		err_nomem(e);
		return RCV_REFUSE;
	}
	*cookie = t;
	if (wire_entry_is_base(f)) /* The output has no attributes. */
		return RCV_ACCEPT;
	if (refuse(r, f, e) < 0 || begin(r, t, f, e) < 0)
		return RCV_REFUSE;
	r->piped = t;
	r->has_piped = true;
	if ((n = wire_grid_blocks(t->grid)) == 0)
		return RCV_ACCEPT;
	if ((*claimed = bitmap_new(n)) == NULL) {
		err_nomem(e);
		return RCV_REFUSE;
	}
	s = pipe_sink_state(r->pipe, NULL);
	r->resumed = s.taken;
	r->resumed_sum = s.sum;
	bitmap_set(*claimed, true, 0, r->resumed);
	return RCV_PARTS;
}

void receive_pipe_accepted(struct session *sess, struct receive_entry *t, bool parts)
{
	struct receive_side *r = sess->receive;

	r->lacks_memory = !parts && wire_grid_blocks(t->grid) > 0;
	rcv_limit(engine_rcv(sess->engine), t->id, pipe_sink_state(r->pipe, NULL).end);
}

/* The last block was taken; DONE follows once it is written. */
void receive_pipe_commit(struct session *sess) { sess->receive->committing = true; }

void receive_pipe_ended(struct session *sess, struct receive_entry *t)
{
	if (sess->receive->piped == t)
		sess->receive->piped = NULL;
	receive_entry_free(sess, t);
}

static void fail(struct session *sess, const struct ptcp_err *why)
{
	struct rcv *rcv = engine_rcv(sess->engine);
	uint64_t id = sess->receive->piped->id;

	if (sess->receive->committing)
		rcv_committed(rcv, id, why);
	else
		rcv_broken(rcv, id, why);
}

void receive_pipe_pump(struct session *sess)
{
	struct receive_side *r = sess->receive;
	struct pipe_sink_state s;
	struct ptcp_err why;
	uint32_t n;

	if (r->pipe == NULL || r->piped == NULL || sess->end.over)
		return;
	s = pipe_sink_state(r->pipe, &why);
	if (r->lacks_memory) {
		err_nomem(&why);
		fail(sess, &why);
	} else if (s.failed) {
		fail(sess, &why);
	} else if (r->committing && s.written == wire_grid_blocks(r->piped->grid)) {
		rcv_committed(engine_rcv(sess->engine), r->piped->id, NULL);
	} else {
		rcv_limit(engine_rcv(sess->engine), r->piped->id, s.end);
		n = r->resumed;
		r->resumed = 0;
		if (n > 0)
			rcv_verified(engine_rcv(sess->engine), r->piped->id, 0, n, true, r->resumed_sum);
	}
}
