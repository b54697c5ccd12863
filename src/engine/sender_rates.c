/* Streams that share a rate, which the caller sees to: who may take more, so that little waits behind it. */
#include "core/units.h"
#include "engine/sender_impl.h"

#define HOLD_NS (500 * NS_PER_MS) /* at the rate: so much waits to go out, or one job */

void snd_share(struct snd *s, unsigned stream, unsigned rate)
{
	s->rate_of[stream] = (uint8_t)rate;
}

void snd_set_rate(struct snd *s, unsigned rate, uint64_t bps)
{
	s->rate[rate].idle = bps == SND_IDLE;
	if (bps != SND_IDLE) /* by the old one goes out what there is */
		s->rate[rate].bps = bps;
}

uint64_t snd_rate_bps(const struct snd *s, unsigned stream)
{
	return s->rate[s->rate_of[stream]].bps;
}

uint64_t snd_held_bytes(const struct snd *s, unsigned stream)
{
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < INFLIGHT_STREAMS; i++)
		if (s->rate_of[i] == s->rate_of[stream])
			bytes += s->flights.unread_bytes[i];
	return bytes;
}

bool snd_stream_waits(const struct snd *s, unsigned stream)
{
	uint64_t bps = snd_rate_bps(s, stream), held;

	if (s->rate[s->rate_of[stream]].idle)
		return true;
	if (bps == 0 || (held = snd_held_bytes(s, stream)) == 0)
		return false;
	return (double)(held + SND_JOB_BYTES) * 8 * NS_PER_S > (double)bps * HOLD_NS;
}
