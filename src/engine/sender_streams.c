/* Streams with a shared rate, and stalled streams. */
#include "core/units.h"
#include "engine/sender_impl.h"

#define STALL_DOUBLINGS 6          /* doublings of the limit for a stalled stream */
#define QUEUE_NS (500 * NS_PER_MS) /* time of blocks at the shared rate, if more than one job */

/* ---- Shared rates ---- */

void snd_share(struct snd *s, unsigned stream, unsigned rate)
{
	inflight_share(&s->flights, stream, rate);
	s->stalls_at = (struct mono){ 0 };
}

void snd_set_rate(struct snd *s, unsigned rate, uint64_t bps)
{
	s->rate[rate].idle = bps == SND_IDLE;
	if (bps != SND_IDLE) /* queued blocks still leave at the old rate */
		s->rate[rate].bps = bps;
	s->stalls_at = (struct mono){ 0 };
}

/* Of all streams of the stream's rate: blocks that are not sent. */
static uint64_t queued_bytes(const struct snd *s, unsigned stream)
{
	return s->flights.queued_bytes[s->flights.rate_of[stream]];
}

bool snd_stream_waits(const struct snd *s, unsigned stream)
{
	unsigned rate = s->flights.rate_of[stream];
	uint64_t bps = s->rate[rate].bps, queued;

	if (s->rate[rate].idle || (s->flights.lost[stream] && snd_stream_carries(s, stream)))
		return true;
	if (bps == 0 || (queued = queued_bytes(s, stream)) == 0)
		return false;
	return (double)(queued + SND_JOB_BYTES) * 8 * NS_PER_S > (double)bps * QUEUE_NS;
}

void snd_set_paced(struct snd *s, bool paced)
{
	if (s->paced != paced)
		s->stalls_at = (struct mono){ 0 };
	s->paced = paced;
}

void snd_peer_busy(struct snd *s, struct mono now)
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

uint64_t snd_stream_drains_ns(const struct snd *s, unsigned stream, struct mono now)
{
	const struct list *carried = &s->flights.stream[stream], *l;
	uint64_t blocks = 0, age_ns, each_ns = s->flights.latency_ns[stream];
	struct mono since = s->flights.last_ack[stream], handed;

	if (!s->up[stream] || list_empty(carried))
		return 0;
	for (l = carried->next; l != carried; l = l->next)
		blocks++;
	handed = CONTAINER_OF(carried->next, struct inflight, in_stream)->handed;
	/* The block that is under way may take longer than the earlier ones. */
	age_ns = mono_diff_ns(now, handed.ns > since.ns ? handed : since);
	return blocks * (each_ns > age_ns ? each_ns : age_ns);
}

/* Without growing patience a path that needs longer than the time-out for a block (many streams, long buffers) would lose
 * each connection before its first acknowledgment, for ever. */
static uint64_t stall_limit_ns(const struct snd *s, unsigned stream)
{
	uint64_t first = s->terms.timeout_ns / 4 * 3, most = s->terms.linger_ns / 4 * 3;
	uint64_t limit = first << s->flights.stalls[stream], usual = inflight_patience_ns(&s->flights, stream);

	limit = limit > usual ? limit : usual;
	most = most > first ? most : first;
	return limit < most ? limit : most;
}

/* When a stream counts as stalled; MONO_NEVER without blocks. Early enough before the session's time-out for another
 * stream to take over, and with time for the blocks queued at the rate. */
static struct mono stalls_at(const struct snd *s, unsigned stream)
{
	const struct list *l = &s->flights.stream[stream];
	uint64_t bps = s->rate[s->flights.rate_of[stream]].bps, queued_ns;
	struct mono since = s->flights.handed[stream];

	if (s->paced || !snd_stream_carries(s, stream))
		return MONO_NEVER;
	if (!list_empty(l))
		since = CONTAINER_OF(l->next, struct inflight, in_stream)->since;
	if (since.ns < s->flights.last_ack[stream].ns)
		since = s->flights.last_ack[stream];
	queued_ns = bps > 0 ? (uint64_t)((double)queued_bytes(s, stream) * 8e9 / (double)bps) : 0;
	return mono_add_ns(since, stall_limit_ns(s, stream) + queued_ns);
}

void snd_stall_soon(struct snd *s, unsigned stream)
{
	s->stalls_at = mono_min(s->stalls_at, stalls_at(s, stream));
}

/* Acknowledgments postpone the time of each stream: the minimum may be too early, and is then computed again. */
static void find_stalls_at(struct snd *s)
{
	unsigned i;

	s->stalls_at = MONO_NEVER;
	for (i = 0; i < INFLIGHT_STREAMS; i++)
		snd_stall_soon(s, i);
}

struct mono snd_deadline(struct snd *s)
{
	if (s->holes_wait && buf_len(&s->out->b) <= BACKLOG_BYTES)
		return (struct mono){ 0 };
	if (s->stalls_at.ns == 0)
		find_stalls_at(s);
	return mono_min(s->tail_at, s->stalls_at);
}

void snd_tick(struct snd *s, struct mono now)
{
	unsigned i;

	snd_tick_holes(s);
	if (s->tail_at.ns <= now.ns)
		s->tail_at = MONO_NEVER;
	if (s->stalls_at.ns > now.ns)
		return;
	for (i = 0; i < INFLIGHT_STREAMS; i++)
		if (stalls_at(s, i).ns <= now.ns) {
			s->flights.last_ack[i] = now; /* report once */
			if (s->flights.stalls[i] < STALL_DOUBLINGS)
				s->flights.stalls[i]++;
			s->o.ops->stalled(s->o.arg, i);
		}
	find_stalls_at(s);
}
