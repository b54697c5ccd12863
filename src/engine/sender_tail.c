/* The tail, where blocks that others carry are copied, and when a stream counts as stalled. */
#include "core/units.h"
#include "engine/sender_impl.h"

#define DOUBLINGS_MAX 20

/* What one rate holds up all who share it: a copy there would only take from it. */
static bool is_held_up(const struct snd *s, const struct inflight *t, unsigned stream)
{
	return s->paced && s->rate_of[t->stream] == s->rate_of[stream];
}

static bool is_slower(const struct snd *s, unsigned stream, unsigned than)
{
	const uint64_t *latency_ns = s->flights.latency_ns;

	return latency_ns[than] > 0 && latency_ns[stream] / 2 >= latency_ns[than];
}

/* Copies of what others carry, oldest first, once older than this stream's patience; also of what has been acknowledged
 * while the stream has yet to say that it was read. A copy may be copied when it is twice as old: both may be on a path
 * that is dead; and so on, but so that a third comes before the peer has seen nothing for longer than it bears. They cost
 * what all share, so a stream that waits for news of its own takes only what is on one that is slower by half. While
 * nothing is known of any stream, one at a time has to do. */
void snd_take_copies(struct snd *s, unsigned stream, struct mono now, struct snd_job *job,
    uint32_t *bytes)
{
	uint64_t patience = inflight_patience_ns(&s->flights, stream);
	uint64_t most = s->o.peer_timeout_ns / 3, age;
	struct list *l, *next, *last = s->flights.all.prev;
	struct inflight *t;
	struct entry *f;
	bool carries = snd_stream_carries(s, stream);
	struct mono due;

	if (!s->flights.any_acked && s->flights.n_copies > 0)
		return;
	for (l = s->flights.all.next; l != &s->flights.all; l = next) {
		next = l->next;
		t = CONTAINER_OF(l, struct inflight, in_all);
		f = t->file;
		age = patience << (t->copies < DOUBLINGS_MAX ? t->copies : DOUBLINGS_MAX);
		due = mono_add_ns(t->since, age < most ? age : most);
		if (!t->copied && !is_held_up(s, t, stream) && (!carries || is_slower(s, t->stream, stream)) &&
		    !snd_settled(f, t->block) &&
		    inflight_on(&f->flights, stream, t->block) == NULL) {
			if (due.ns > now.ns && due.ns < s->tail_at.ns)
				s->tail_at = due;
			if (due.ns > now.ns && t->copies == 0)
				break; /* those behind it are younger */
			if (due.ns <= now.ns && !snd_job_add(s, job, bytes, f, t->block, stream, now))
				break;
			if (due.ns <= now.ns)
				inflight_copy(&s->flights, t, stream);
		}
		if (l == last)
			break;
	}
}

void snd_set_paced(struct snd *s, bool paced)
{
	s->paced = paced;
}

/* ---- Time ---- */

void snd_excuse(struct snd *s, struct mono now)
{
	unsigned i;

	for (i = 0; i < INFLIGHT_STREAMS; i++)
		s->flights.last_ack[i] = now;
}

bool snd_stream_carries(const struct snd *s, unsigned stream)
{
	return s->up[stream] && (!list_empty(&s->flights.stream[stream]) || s->flights.unread[stream] > 0);
}

struct mono snd_stream_acked(const struct snd *s, unsigned stream) { return s->flights.last_ack[stream]; }

uint64_t snd_stream_acked_bytes(const struct snd *s, unsigned stream) { return s->flights.acked_bytes[stream]; }

/* What waits to go out at the stream's rate takes so long. */
static uint64_t going_ns(const struct snd *s, unsigned stream)
{
	uint64_t bps = snd_rate_bps(s, stream);

	return bps > 0 ? (uint64_t)((double)snd_held_bytes(s, stream) * 8e9 / (double)bps) : 0;
}

/* When a stream counts as stalled; MONO_NEVER if it carries nothing. Before the session's
 * time-out, so that another one can still take over when all have stalled. */
static struct mono stalls_at(const struct snd *s, unsigned stream)
{
	const struct list *l = &s->flights.stream[stream];
	struct mono since = s->flights.handed[stream];

	if (s->paced || !snd_stream_carries(s, stream))
		return MONO_NEVER;
	if (!list_empty(l))
		since = CONTAINER_OF(l->next, struct inflight, in_stream)->since;
	if (since.ns < s->flights.last_ack[stream].ns)
		since = s->flights.last_ack[stream];
	return mono_add_ns(since, s->o.timeout_ns / 4 * 3 + going_ns(s, stream));
}

struct mono snd_deadline(const struct snd *s)
{
	struct mono at = s->tail_at;
	unsigned i;

	if (s->holes_wait && buf_len(&s->out->b) <= BACKLOG_BYTES)
		return (struct mono){ 0 };
	for (i = 0; i < INFLIGHT_STREAMS; i++)
		at = mono_min(at, stalls_at(s, i));
	return at;
}

void snd_tick(struct snd *s, struct mono now)
{
	unsigned i;

	snd_tick_holes(s);
	if (s->tail_at.ns <= now.ns)
		s->tail_at = MONO_NEVER;
	for (i = 0; i < INFLIGHT_STREAMS; i++)
		if (stalls_at(s, i).ns <= now.ns) {
			s->flights.last_ack[i] = now; /* said once */
			s->o.ops->stalled(s->o.arg, i);
		}
}
