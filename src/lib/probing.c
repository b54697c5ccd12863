#include "lib/probing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"

/* ---- Making and freeing ---- */

static int probing_new(struct party *p, struct ptcp_err *e)
{
	struct probing *b = calloc(1, sizeof *b);
	unsigned i;

	if (b == NULL)
		return err_nomem(e);
	intake_init(&b->intake);
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		b->tap[i] = -1;
	b->granted = p->n_wanted;
	p->prb = b;
	return 0;
}

int party_probe(struct party *p, const struct probing_ops *ops, void *arg, struct ptcp_err *e)
{
	struct probing *b;
	int r;

	if ((r = probing_new(p, e)) < 0)
		return r;
	b = p->prb;
	b->ops = ops;
	b->arg = arg;
	p->n_wanted = 0;
	if ((b->data = malloc(STREAM_FLOOD_BLOCK)) == NULL)
		return err_nomem(e);
	/* Nothing on the way can make it smaller. */
	return tls_random(b->data, STREAM_FLOOD_BLOCK, e);
}

int party_drop(struct party *p, struct ptcp_err *e)
{
	return probing_new(p, e);
}

static void close_tap(struct probing *b, unsigned number)
{
	if (b->tap[number] >= 0)
		close(b->tap[number]);
	b->tap[number] = -1;
}

void probing_free(struct party *p)
{
	unsigned i;

	if (p->prb == NULL)
		return;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		close_tap(p->prb, i);
	intake_fini(&p->prb->intake);
	free(p->prb->data);
	free(p->prb);
	p->prb = NULL;
}

/* ---- A level ---- */

unsigned probing_granted(const struct party *p) { return p->prb->granted; }

/* All streams are up. */
static void begin(struct party *p)
{
	struct probing *b = p->prb;
	unsigned i;

	b->begun = true;
	p->n_wanted = 0; /* who is lost from now on is not replaced */
	for (i = 0; i < b->streams && !b->open; i++) {
		if (!b->flooding[i])
			stream_flood(p->stream[i]);
		b->flooding[i] = true;
	}
	b->ops->begun(b->arg);
}

static void begin_level(struct party *p, unsigned streams, uint64_t stream_bytes, bool open)
{
	struct probing *b = p->prb;
	struct mono now = mono_now();
	unsigned i;

	b->open = open;
	b->streams = streams < b->granted ? streams : b->granted;
	b->stream_bytes = stream_bytes;
	b->begun = b->clearing = false;
	b->give_up = mono_add_ns(now, p->o.timeout_ns);
	for (i = 0; i < b->streams; i++)
		p->retry_at[i] = now;
	p->n_wanted = b->streams;
	p->none_since = now;
	party_pump(p);
}

void probing_level(struct party *p, unsigned streams, uint64_t stream_bytes)
{
	begin_level(p, streams, stream_bytes, false);
}

void probing_open(struct party *p, unsigned streams)
{
	begin_level(p, streams, 0, true);
}

void probing_message(struct party *p, uint64_t bytes)
{
	struct probing *b = p->prb;
	unsigned i;

	for (i = 0; i < b->streams; i++)
		stream_flood_more(p->stream[i], bytes / b->streams + (i < bytes % b->streams));
}

void probing_stream_opts(const struct party *p, struct stream_opts *o)
{
	struct probing *b = p->prb;

	if (b->ops == NULL) {
		o->intake = &b->intake;
		o->most_bytes = PROBING_STREAM_BYTES;
	} else {
		o->flood_data = b->data;
		o->flood_bytes = b->stream_bytes;
		o->flood_open = b->open;
	}
}

void probing_stream_up(struct party *p, unsigned number, int fd)
{
	struct probing *b = p->prb;

	b->since[number] = mono_now();
	if (b->ops == NULL)
		return;
	b->tap[number] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	b->flooding[number] = false;
	if (p->n_up == b->streams && !b->begun && !b->clearing)
		begin(p);
}

void probing_stream_lost(struct party *p, struct stream *s, const struct ptcp_err *why)
{
	struct probing *b = p->prb;
	struct mono from, until;
	bool whole = stream_flooded(s, &from, &until);

	if (b->ops != NULL && b->begun && !b->clearing)
		b->ops->ended(b->arg, stream_number(s), from, until, whole ? NULL : why);
	close_tap(b, stream_number(s)); /* or the connection would not close with the stream */
}

bool probing_look(const struct party *p, unsigned number, struct tcpinfo *out)
{
	return p->prb->tap[number] >= 0 && tcpinfo_read(out, p->prb->tap[number]) == 0;
}

void probing_clear(struct party *p)
{
	struct probing *b = p->prb;
	struct linger now = { 1, 0 };
	unsigned i;

	b->clearing = true;
	p->n_wanted = 0;
	joining_stop(p);
	for (i = 0; i < PTCP_STREAMS_MAX; i++) {
		/* Megabytes in buffers would go on for seconds, into the next level. */
		if (b->tap[i] >= 0)
			setsockopt(b->tap[i], SOL_SOCKET, SO_LINGER, &now, sizeof now);
		close_tap(b, i);
		if (p->stream[i] != NULL)
			stream_stop(p->stream[i]);
	}
	party_pump(p);
}

void probing_finish(struct party *p)
{
	session_finish(p->session);
	party_pump(p);
}

/* ---- Time ---- */

/* An acceptor closes streams that have gone on for too long. */
static void close_old(struct party *p, struct mono now)
{
	struct ptcp_err why;
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL && mono_diff_ns(now, p->prb->since[i]) >= PROBING_STREAM_NS) {
			err_set(&why, PTCP_EREFUSED, "a stream of a probe has lasted for longer than this host takes");
			party_stream_lost(p, p->stream[i], &why);
		}
}

static void begin_late(struct party *p, struct mono now)
{
	struct probing *b = p->prb;
	struct ptcp_err why;

	b->give_up = MONO_NEVER;
	err_set(&why, PTCP_ECONNECT, "only %u of %u streams could be had: %s", p->n_up, b->streams,
	    p->join_why.code != 0 ? p->join_why.msg : "no answer");
	b->ops->ended(b->arg, 0, now, now, &why);
}

void probing_pump(struct party *p, struct mono now)
{
	struct probing *b = p->prb;

	if (b->ops == NULL) {
		close_old(p, now);
		return;
	}
	if (b->streams > 0 && !b->begun && !b->clearing && now.ns >= b->give_up.ns)
		begin_late(p, now);
	if (b->clearing && p->n_up + p->n_ending == 0) {
		b->clearing = false;
		b->streams = 0;
		b->ops->clear(b->arg);
	}
}

struct mono probing_deadline(const struct party *p)
{
	const struct probing *b = p->prb;
	struct mono at = MONO_NEVER, t;
	unsigned i;

	if (b->ops != NULL)
		return b->streams > 0 && !b->begun && !b->clearing ? b->give_up : at;
	for (i = 0; i < PTCP_STREAMS_MAX; i++) {
		t = mono_add_ns(b->since[i], PROBING_STREAM_NS);
		if (p->stream[i] != NULL && t.ns < at.ns)
			at = t;
	}
	return at;
}
