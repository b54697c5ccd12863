/* When an idle stream may copy a block in flight on another one. Where all streams queue at one bottleneck, a copy
 * takes as much from the others as it gains: bytes are sent twice only once a stream's silence shows that its blocks
 * are not merely queued, and else as a small part of what was acknowledged. */
#include "engine/sender_impl.h"
#include "model/parameters.h"

/* Time between two acknowledgments of a stream, if the streams share one path fairly: where a deep queue fills, the
 * latencies of the streams lag behind it. */
static uint64_t fair_gap_ns(const struct snd *s)
{
	unsigned i, n = 0;

	for (i = 0; i < INFLIGHT_STREAMS; i++)
		n += s->up[i];
	return n * s->flights.each_ns;
}

/* Whether waiting is in vain: an earlier stream failed to deliver the block, the new connection of this one
 * acknowledges nothing, or it has stalled. */
static bool in_vain(const struct inflights *t, const struct inflight *f)
{
	return f->proven || t->lost[f->stream] || t->stalls[f->stream] > 0;
}

/* The time from which on a copy on `stream` needs no other reason: the silence of the other stream shows that its
 * blocks are not merely queued. {0}: waiting is in vain, or the other stream has another rate. */
static struct mono proven_at(const struct snd *s, const struct inflight *f, unsigned stream)
{
	const struct inflights *t = &s->flights;
	const struct inflight *oldest = CONTAINER_OF(t->stream[f->stream].next, struct inflight, in_stream);
	uint64_t most = s->terms.timeout_ns / 3, usual = inflight_patience_ns(t, stream), silence;

	if (in_vain(t, f) || t->rate_of[f->stream] != t->rate_of[stream])
		return (struct mono){ 0 };
	silence = COPY_SILENCE * (t->each_ns > 0 ? fair_gap_ns(s) : usual);
	silence = silence > usual ? silence : usual;
	return mono_add_ns(mono_max(t->last_ack[f->stream], oldest->since), silence < most ? silence : most);
}

/* When a copy of so many bytes on `stream` is worth some of the few that are spent without a proof: the block would
 * arrive earlier even if this stream took as much longer as a full queue makes it. */
static struct mono worth_at(const struct snd *s, unsigned other, unsigned stream, uint32_t bytes, struct mono now)
{
	double most = COPY_UNPROVEN_PART * (double)s->flights.all_acked_bytes;
	double least = COPY_GAIN * (double)s->flights.latency_ns[stream];
	double drains = (double)inflight_drains_ns(&s->flights, other, now);

	if (s->unproven_bytes > 0 && (double)(s->unproven_bytes + bytes) > most)
		return MONO_NEVER;
	return drains >= least ? now : mono_add_ns(now, (uint64_t)(least - drains) + 1);
}

struct mono snd_copy_at(const struct snd *s, const struct inflight *f, unsigned stream, struct mono now, bool *proven)
{
	const struct snd_entry *file = f->file;
	struct mono at = proven_at(s, f, stream);

	*proven = at.ns <= now.ns;
	return *proven ? at : mono_min(at, worth_at(s, f->stream, stream, wire_grid_length(file->grid, f->block), now));
}
