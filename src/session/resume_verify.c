/* What is there already of a file that comes is read back and hashed before it counts, on I/O threads, a
 * step at a time and few files at once, while missing blocks flow. And what large files have
 * got is made durable from time to time. */
#include <stdlib.h>

#include "conn/err_path.h"
#include "core/err.h"
#include "core/units.h"
#include "session/receive_impl.h"

#define READERS_MAX 2u                /* of a session, of the I/O threads that all share */
#define SYNC_BYTES (256u << 20)       /* a power cut costs at most so much, */
#define SYNC_NS (2 * NS_PER_S)        /* or what came in so long */

/* A step, on its way. */
struct resume_verify {
	struct session *session;
	struct item *item;
	struct sink_run run[SINK_RUNS];
	unsigned n_runs;
	struct digest sum;
	int result;
	struct ptcp_err why;
	struct io_job io;
	struct msg msg;
};

static void finish(struct session *sess, struct item *t)
{
	t->reading = false;
	if (t->over)
		receive_item_over(sess, t);
}

/* A step has been read. True: there is more. */
static bool tell(struct resume_verify *b, struct rcv *rcv)
{
	bool compare = b->item->compare;
	uint64_t id = b->item->id;
	struct ptcp_err bare;
	char path[DIR_PATH_TEXT_BYTES];
	unsigned i;

	if (b->result < 0) {
		err_path_strip(&bare, &b->why, sink_path_text(b->item->sink, path, sizeof path));
		if (compare)
			rcv_compared(rcv, id, b->sum, &bare);
		else
			rcv_broken(rcv, id, &bare);
		return false;
	}
	for (i = 0; i < b->n_runs; i++)
		rcv_verified(rcv, id, b->run[i].first, b->run[i].n, b->run[i].good, b->run[i].sum);
	if (b->result == 0 && compare)
		rcv_compared(rcv, id, b->sum, NULL);
	return b->result > 0;
}

static void on_step(struct msg *m)
{
	struct resume_verify *b = CONTAINER_OF(m, struct resume_verify, msg);
	struct session *sess = b->session;
	struct item *t = b->item;

	sess->receive->n_reading--;
	engine_progress(sess->engine, mono_now());
	if (!sess->over && !t->over && tell(b, engine_rcv(sess->engine)) && !t->over)
		list_append(&sess->receive->readers, &t->in_readers);
	else
		finish(sess, t);
	free(b);
	session_pump(sess);
}

/* On an I/O thread. */
static void step(struct io_job *io)
{
	struct resume_verify *b = CONTAINER_OF(io, struct resume_verify, io);
	struct sink *s = b->item->sink;

	b->result = b->item->compare ? sink_same_next(s, &b->sum, &b->why) :
	    sink_verify_next(s, b->run, &b->n_runs, &b->why);
	b->msg.run = on_step;
	loop_post(b->session->o.host->control, &b->msg);
}

void resume_verify_start(struct session *sess, struct item *t, bool same)
{
	t->compare = same;
	t->reading = true;
	list_append(&sess->receive->readers, &t->in_readers);
}

static void start_step(struct session *sess, struct item *t)
{
	struct resume_verify *b = calloc(1, sizeof *b);
	struct ptcp_err why;

	if (b == NULL) {
		err_nomem(&why);
		engine_fail(sess->engine, &why);
		finish(sess, t);
		return;
	}
	b->session = sess;
	b->item = t;
	b->io.run = step;
	sess->receive->n_reading++;
	io_submit(sess->o.host->io, &b->io);
}

void resume_verify_pump(struct session *sess)
{
	struct receive_side *r = sess->receive;
	struct item *t;

	while (!list_empty(&r->readers) && (r->n_reading < READERS_MAX || sess->over)) {
		t = CONTAINER_OF(r->readers.next, struct item, in_readers);
		list_remove(&t->in_readers);
		if (sess->over || t->over)
			finish(sess, t);
		else
			start_step(sess, t);
	}
}

/* ---- What large files have got ---- */

struct syncing {
	struct session *session;
	struct sink *sink;
	struct io_job io;
	struct msg msg;
};

static void on_synced(struct msg *m)
{
	struct syncing *y = CONTAINER_OF(m, struct syncing, msg);
	struct session *sess = y->session;

	sess->receive->n_syncing--;
	sink_unref(y->sink);
	free(y);
	session_pump(sess);
}

/* On an I/O thread. What fails here fails the file at its next write. */
static void sync_sink(struct io_job *io)
{
	struct syncing *y = CONTAINER_OF(io, struct syncing, io);
	struct ptcp_err why;

	sink_sync(y->sink, &why);
	y->msg.run = on_synced;
	loop_post(y->session->o.host->control, &y->msg);
}

void resume_verify_written(struct session *sess, uint64_t id, uint32_t block, struct mono now)
{
	struct receive_side *r = sess->receive;
	struct syncing *y;
	struct sink *s;

	open_files_wrote(&r->intake, id, block, now);
	if (r->sync == STORE_SYNC_NONE || r->n_syncing > 0 ||
	    (s = open_files_due(&r->intake, id, SYNC_BYTES, SYNC_NS, now)) == NULL)
		return;
	if ((y = calloc(1, sizeof *y)) == NULL) {
		sink_unref(s);
		return; /* the next time, or at the end */
	}
	y->session = sess;
	y->sink = s;
	y->io.run = sync_sink;
	r->n_syncing++;
	io_submit(sess->o.host->io, &y->io);
}
