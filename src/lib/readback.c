/* What is there already of a file that comes is read back and hashed before it counts, on I/O threads, a
 * step at a time and few files at once, while missing blocks flow. And what large files have
 * got is made durable from time to time. */
#include <stdlib.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/receiving_impl.h"
#include "lib/why.h"

#define READERS_MAX 2u                /* of a session, of the I/O threads that all share */
#define SYNC_BYTES (256u << 20)       /* a power cut costs at most so much, */
#define SYNC_NS (2 * NS_PER_S)        /* or what came in so long */

/* A step, on its way. */
struct readback {
	struct party *party;
	struct item *item;
	struct sink_run run[SINK_RUNS];
	unsigned n_runs;
	struct digest sum;
	int result;
	struct ptcp_err why;
	struct io_job io;
	struct msg msg;
};

static void finish(struct party *p, struct item *t)
{
	t->reading = false;
	if (t->over)
		receiving_item_over(p, t);
}

/* A step has been read. True: there is more. */
static bool tell(struct readback *b, struct rcv *rcv)
{
	bool compare = b->item->compare;
	uint64_t id = b->item->id;
	struct ptcp_err bare;
	char path[DIR_PATH_TEXT_BYTES];
	unsigned i;

	if (b->result < 0) {
		why_bare(&bare, &b->why, sink_path_text(b->item->sink, path, sizeof path));
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
	struct readback *b = CONTAINER_OF(m, struct readback, msg);
	struct party *p = b->party;
	struct item *t = b->item;

	p->rcv->n_reading--;
	session_progress(p->session, mono_now());
	if (!p->over && !t->over && tell(b, session_rcv(p->session)) && !t->over)
		list_append(&p->rcv->readers, &t->in_readers);
	else
		finish(p, t);
	free(b);
	party_pump(p);
}

/* On an I/O thread. */
static void step(struct io_job *io)
{
	struct readback *b = CONTAINER_OF(io, struct readback, io);
	struct sink *s = b->item->sink;

	b->result = b->item->compare ? sink_same_next(s, &b->sum, &b->why) :
	    sink_verify_next(s, b->run, &b->n_runs, &b->why);
	b->msg.run = on_step;
	loop_post(b->party->o.host->control, &b->msg);
}

void readback_start(struct party *p, struct item *t, bool same)
{
	t->compare = same;
	t->reading = true;
	list_append(&p->rcv->readers, &t->in_readers);
}

static void start_step(struct party *p, struct item *t)
{
	struct readback *b = calloc(1, sizeof *b);
	struct ptcp_err why;

	if (b == NULL) {
		err_nomem(&why);
		party_fail(p, &why);
		finish(p, t);
		return;
	}
	b->party = p;
	b->item = t;
	b->io.run = step;
	p->rcv->n_reading++;
	io_submit(p->o.host->io, &b->io);
}

void readback_pump(struct party *p)
{
	struct receiving *r = p->rcv;
	struct item *t;

	while (!list_empty(&r->readers) && (r->n_reading < READERS_MAX || p->over)) {
		t = CONTAINER_OF(r->readers.next, struct item, in_readers);
		list_remove(&t->in_readers);
		if (p->over || t->over)
			finish(p, t);
		else
			start_step(p, t);
	}
}

/* ---- What large files have got ---- */

struct syncing {
	struct party *party;
	struct sink *sink;
	struct io_job io;
	struct msg msg;
};

static void on_synced(struct msg *m)
{
	struct syncing *y = CONTAINER_OF(m, struct syncing, msg);
	struct party *p = y->party;

	p->rcv->n_syncing--;
	sink_unref(y->sink);
	free(y);
	party_pump(p);
}

/* On an I/O thread. What fails here fails the file at its next write. */
static void sync_sink(struct io_job *io)
{
	struct syncing *y = CONTAINER_OF(io, struct syncing, io);
	struct ptcp_err why;

	sink_sync(y->sink, &why);
	y->msg.run = on_synced;
	loop_post(y->party->o.host->control, &y->msg);
}

void readback_written(struct party *p, uint64_t id, uint32_t block, struct mono now)
{
	struct receiving *r = p->rcv;
	struct syncing *y;
	struct sink *s;

	intake_wrote(&r->intake, id, block, now);
	if (r->sync == STORE_SYNC_NONE || r->n_syncing > 0 ||
	    (s = intake_due(&r->intake, id, SYNC_BYTES, SYNC_NS, now)) == NULL)
		return;
	if ((y = calloc(1, sizeof *y)) == NULL) {
		sink_unref(s);
		return; /* the next time, or at the end */
	}
	y->party = p;
	y->sink = s;
	y->io.run = sync_sink;
	r->n_syncing++;
	io_submit(p->o.host->io, &y->io);
}
