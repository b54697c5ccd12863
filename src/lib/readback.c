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

struct readback {
	struct list in_list;
	struct party *party;
	struct item *item;
	bool same;                    /* a complete file, not a part */
	struct sink_run run[SINK_RUNS];
	unsigned n_runs;
	struct digest sum;
	int result;
	struct ptcp_err why;
	struct io_job io;
	struct msg msg;
};

static void finish(struct readback *b)
{
	struct party *p = b->party;
	struct item *t = b->item;

	free(b);
	t->reading = false;
	if (t->over)
		receiving_item_over(p, t);
}

/* A step has been read. True: there is more. */
static bool tell(struct readback *b, struct rcv *rcv)
{
	uint64_t id = b->item->id;
	struct ptcp_err bare;
	char path[DIR_PATH_TEXT_BYTES];
	unsigned i;

	if (b->result < 0) {
		why_bare(&bare, &b->why, sink_path_text(b->item->sink, path, sizeof path));
		if (b->same)
			rcv_compared(rcv, id, b->sum, &bare);
		else
			rcv_broken(rcv, id, &bare);
		return false;
	}
	for (i = 0; i < b->n_runs; i++)
		rcv_verified(rcv, id, b->run[i].first, b->run[i].n, b->run[i].good, b->run[i].sum);
	if (b->result == 0 && b->same)
		rcv_compared(rcv, id, b->sum, NULL);
	return b->result > 0;
}

static void on_step(struct msg *m)
{
	struct readback *b = CONTAINER_OF(m, struct readback, msg);
	struct party *p = b->party;

	p->rcv->n_reading--;
	session_progress(p->session, mono_now());
	if (!p->over && !b->item->over && tell(b, session_rcv(p->session)) && !b->item->over)
		list_append(&p->rcv->readers, &b->in_list);
	else
		finish(b);
	party_pump(p);
}

/* On an I/O thread. */
static void step(struct io_job *io)
{
	struct readback *b = CONTAINER_OF(io, struct readback, io);

	b->n_runs = 0;
	b->result = b->same ? sink_same_next(b->item->sink, &b->sum, &b->why) :
	    sink_verify_next(b->item->sink, b->run, &b->n_runs, &b->why);
	b->msg.run = on_step;
	loop_post(b->party->o.host->control, &b->msg);
}

void readback_start(struct party *p, struct item *t, bool same)
{
	struct readback *b = calloc(1, sizeof *b);
	struct ptcp_err why;

	if (b == NULL) {
		err_nomem(&why);
		party_fail(p, &why);
		return;
	}
	b->party = p;
	b->item = t;
	b->same = same;
	t->reading = true;
	list_append(&p->rcv->readers, &b->in_list);
}

void readback_pump(struct party *p)
{
	struct receiving *r = p->rcv;
	struct readback *b;

	while (!list_empty(&r->readers) && (r->n_reading < READERS_MAX || p->over)) {
		b = CONTAINER_OF(r->readers.next, struct readback, in_list);
		list_remove(&b->in_list);
		if (p->over || b->item->over) {
			finish(b);
			continue;
		}
		r->n_reading++;
		b->io.run = step;
		io_submit(p->o.host->io, &b->io);
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

	if (r->sync == STORE_SYNC_NONE || r->n_syncing > 0 ||
	    (s = intake_due(&r->intake, id, block, SYNC_BYTES, SYNC_NS, now)) == NULL)
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
