#include "lib/probing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"

#define LOOK_NS (NS_PER_S / 2)

/* ---- Making and freeing ---- */

static int probing_new(struct party *p, bool floods, struct ptcp_err *e)
{
	struct probing *b = calloc(1, sizeof *b);

	if (b == NULL)
		return err_nomem(e);
	intake_init(&b->intake);
	b->floods = floods;
	b->give_up = MONO_NEVER;
	p->prb = b;
	p->tapped = true;
	if (!floods)
		return 0;
	if ((b->data = malloc(STREAM_FLOOD_BLOCK)) == NULL)
		return err_nomem(e);
	/* Nothing on the way can make it smaller. */
	return tls_random(b->data, STREAM_FLOOD_BLOCK, e);
}

int party_probe(struct party *p, const struct probing_ops *ops, void *arg, struct ptcp_err *e)
{
	int r;

	if ((r = probing_new(p, session_open(p->session)->role == WIRE_YOU_DROP, e)) < 0)
		return r;
	p->prb->ops = ops;
	p->prb->arg = arg;
	p->n_wanted = 0;
	return 0;
}

int party_drop(struct party *p, struct ptcp_err *e)
{
	return probing_new(p, false, e);
}

int party_flood(struct party *p, struct ptcp_err *e)
{
	int r;

	if ((r = probing_new(p, true, e)) < 0)
		return r;
	return party_tell_seen(p, e);
}

void probing_free(struct party *p)
{
	if (p->prb == NULL)
		return;
	intake_fini(&p->prb->intake);
	free(p->prb->data);
	free(p->prb);
	p->prb = NULL;
}

/* ---- A level ---- */

unsigned probing_granted(const struct party *p) { return p->n_granted; }
uint64_t probing_timeout_ns(const struct party *p) { return p->o.timeout_ns; }

/* Who connects may be the other side. */
static void tell_use(struct party *p, unsigned streams)
{
	struct wire_use use = { (uint16_t)streams, p->prb->floods ? 0 : p->prb->stream_bytes };

	p->n_wanted = streams;
	if (session_steered(p->session))
		session_use(p->session, &use);
}

static void begin_level(struct party *p, unsigned streams, uint64_t stream_bytes, bool open)
{
	struct probing *b = p->prb;
	struct mono now = mono_now();
	unsigned i;

	b->open = open;
	b->streams = streams < p->n_granted ? streams : p->n_granted;
	b->stream_bytes = stream_bytes;
	b->begun = b->clearing = false;
	memset(b->early, 0, sizeof b->early);
	b->n_early = 0;
	b->give_up = mono_add_ns(now, p->o.timeout_ns);
	for (i = 0; i < b->streams; i++)
		p->retry_at[i] = now;
	tell_use(p, b->streams);
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
		stream_flood(p->stream[i], bytes / b->streams + (i < bytes % b->streams));
}

void probing_use(struct party *p, uint64_t stream_bytes)
{
	struct probing *b = p->prb;

	if (!b->floods || p->n_wanted == 0)
		return;
	b->streams = p->n_wanted;
	b->stream_bytes = stream_bytes < PROBING_STREAM_BYTES ? stream_bytes : PROBING_STREAM_BYTES;
	b->begun = false;
}

/* What may come on a stream: the starter says how much that is. */
static uint64_t most_bytes(const struct probing *b)
{
	if (b->ops == NULL)
		return PROBING_STREAM_BYTES;
	return b->stream_bytes < UINT64_MAX ? b->stream_bytes : 0;
}

void probing_stream_opts(const struct party *p, struct stream_opts *o)
{
	struct probing *b = p->prb;

	if (b->floods) {
		o->flood_data = b->data;
		o->flood_open = b->open;
	} else {
		o->intake = &b->intake;
		o->most_bytes = most_bytes(b);
	}
}

void probing_stream_up(struct party *p, unsigned number)
{
	struct probing *b = p->prb;
	unsigned i;

	b->since[number] = mono_now();
	b->flooding[number] = false;
	if (b->streams == 0 || p->n_up + b->n_early < b->streams || b->begun || b->clearing)
		return;
	b->begun = true;
	b->from = b->looked = b->moved_at = b->since[number];
	b->moved = 0;
	b->times = (struct limit_times){ 0 };
	b->retransmits = 0;
	p->n_wanted = 0; /* who is lost from now on is not replaced */
	for (i = 0; b->floods && !b->open && i < b->streams; i++)
		if (p->stream[i] != NULL && !b->flooding[i]) {
			b->flooding[i] = true;
			stream_flood(p->stream[i], b->stream_bytes);
		}
	if (b->ops == NULL)
		return;
	if (b->floods)
		tell_use(p, 0);
	b->ops->begun(b->arg);
	for (i = 0; i < b->streams && !b->clearing; i++)
		if (b->early[i].is)
			b->ops->ended(b->arg, i, b->early[i].from, b->early[i].until, NULL);
}

/* Whether a stream has carried all that it was to, and when. */
static bool is_whole(const struct probing *b, const struct stream *s, struct mono *from, struct mono *until)
{
	if (b->floods)
		return stream_flooded(s, from, until);
	if (stream_taken(s, from, until) != b->stream_bytes)
		return false;
	if (b->begun && b->from.ns < from->ns)
		*from = b->from; /* it had to wait for its first byte */
	return true;
}

void probing_stream_lost(struct party *p, struct stream *s, const struct ptcp_err *why)
{
	struct probing *b = p->prb;
	struct mono from, until;
	bool whole = is_whole(b, s, &from, &until);

	if (b->ops == NULL || b->clearing)
		return;
	if (b->begun) {
		b->ops->ended(b->arg, stream_number(s), from, until, whole ? NULL : why);
	} else if (whole) { /* whoever connects begins when the last stream is up there, and may be done before we see that */
		b->early[stream_number(s)] = (struct probing_run){ true, from, until };
		b->n_early++;
	}
}

bool probing_look(const struct party *p, unsigned number, struct tcpinfo *out)
{
	if (!party_look(p, number, out))
		return false;
	if (!p->prb->floods) {
		out->acked_bytes = out->received_bytes;
		out->retransmits = 0;
		out->busy_s = out->window_s = out->buffer_s = 0;
		strcpy(out->congestion, p->prb->congestion);
	}
	return true;
}

bool probing_told(const struct party *p, struct limit_times *times, uint64_t *retransmits)
{
	*times = p->prb->times;
	*retransmits = p->prb->retransmits;
	return !p->prb->floods;
}

void probing_seen(struct party *p, const struct wire_seen *f)
{
	struct probing *b = p->prb;

	b->times.elapsed_s += (double)f->elapsed_us / 1e6;
	b->times.busy_s += (double)f->busy_us / 1e6;
	b->times.window_s += (double)f->window_us / 1e6;
	b->times.buffer_s += (double)f->buffer_us / 1e6;
	b->retransmits += f->retransmits;
	if (f->congestion.n == 0)
		return;
	memcpy(b->congestion, f->congestion.p, f->congestion.n);
	b->congestion[f->congestion.n] = '\0';
}

void probing_clear(struct party *p)
{
	struct probing *b = p->prb;
	struct linger now = { 1, 0 };
	unsigned i;

	b->clearing = true;
	tell_use(p, 0);
	joining_stop(p);
	for (i = 0; i < PTCP_STREAMS_MAX; i++) {
		/* Megabytes in buffers would go on for seconds, into the next level. */
		if (p->tap[i] >= 0)
			setsockopt(p->tap[i], SOL_SOCKET, SO_LINGER, &now, sizeof now);
		party_close_tap(p, i);
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

/* A level under way, that the starter waits for. */
static bool under_way(const struct probing *b)
{
	return b->ops != NULL && b->streams > 0 && b->begun && !b->clearing;
}

/* The peer owes us nothing in such a session, and may ping for ever: that bytes move is what tells. */
static void watch_level(struct party *p, struct mono now)
{
	struct probing *b = p->prb;
	uint64_t moved = 0;
	struct tcpinfo at;
	struct ptcp_err why;
	unsigned i;

	b->looked = now;
	for (i = 0; i < b->streams; i++)
		if (p->stream[i] != NULL && probing_look(p, i, &at))
			moved += at.acked_bytes;
	if (moved != b->moved) {
		b->moved = moved;
		b->moved_at = now;
	} else if (mono_diff_ns(now, b->moved_at) >= p->o.timeout_ns) {
		err_set(&why, PTCP_ETIMEOUT, "nothing has come through for %.3g s (check the network and the other host)",
		    (double)p->o.timeout_ns / 1e9);
		b->ops->ended(b->arg, 0, now, now, &why);
	}
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
	if (under_way(b) && mono_diff_ns(now, b->looked) >= LOOK_NS)
		watch_level(p, now);
	if (b->clearing && p->n_up + p->n_ending == 0) {
		b->clearing = false;
		b->streams = 0;
		b->ops->clear(b->arg);
	}
}

struct mono probing_deadline(const struct party *p)
{
	const struct probing *b = p->prb;
	struct mono at = MONO_NEVER;
	unsigned i;

	if (under_way(b))
		return mono_add_ns(b->looked, LOOK_NS);
	if (b->ops != NULL)
		return b->streams > 0 && !b->begun && !b->clearing ? b->give_up : at;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL)
			at = mono_min(at, mono_add_ns(b->since[i], PROBING_STREAM_NS));
	return at;
}
