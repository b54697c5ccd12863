#include <math.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/err.h"
#include "session/session_impl.h"

#define SAMPLE_NS (10 * NS_PER_MS) /* the least of the RTTs of a step counts: bursts of the sender
                                      delay its own segments */
#define SEGMENT_BITS (8 * 1448.0)

/* At least the stream's share of the floor; INFINITY: no limit. */
static void set_rate(const struct session *sess, unsigned number, double rate_bps)
{
	unsigned n = sess->streams.n_active > 0 ? sess->streams.n_active : 1;
	double bps = fmax(rate_bps, sess->adapt.floor_bps / n);
	uint64_t bytes = isinf(bps) ? UINT64_MAX : (uint64_t)(bps / 8);

	setsockopt(stream_tap(sess->slot[number].stream), SOL_SOCKET, SO_MAX_PACING_RATE, &bytes, sizeof bytes);
}

static void begin(struct yielding_stream *s, const struct session *sess, unsigned number, const struct tcpinfo *at,
    struct mono now)
{
	*s = (struct yielding_stream){ .generation = sess->slot[number].generation, .stepped = now, .last = *at };
	yield_step(&s->law, &(struct yield_sample){ YIELD_STEP_S, at->rtt_s, at->min_rtt_s, 0, SEGMENT_BITS, false });
	set_rate(sess, number, s->law.rate_bps);
}

static void step(struct session *sess, unsigned number, struct mono now)
{
	struct yielding_stream *s = &sess->yielding->stream[number];
	struct tcpinfo at;
	double elapsed_s;

	if (!streams_tcpinfo(sess, number, &at))
		return;
	if (s->generation != sess->slot[number].generation || (s->released && !isinf(sess->adapt.floor_bps))) {
		begin(s, sess, number, &at, now);
		return;
	}
	if (isinf(sess->adapt.floor_bps)) {
		if (!s->released)
			set_rate(sess, number, INFINITY);
		s->released = true;
		return;
	}
	s->least_s = s->least_s > 0 ? fmin(s->least_s, at.rtt_s) : at.rtt_s;
	elapsed_s = (double)mono_diff_ns(now, s->stepped) / 1e9;
	if (elapsed_s < fmax(YIELD_STEP_S, at.rtt_s))
		return;
	yield_step(&s->law, &(struct yield_sample){ elapsed_s, s->least_s, at.min_rtt_s,
	    8 * (double)(at.delivered_bytes - s->last.delivered_bytes) / elapsed_s, SEGMENT_BITS,
	    at.retransmits > s->last.retransmits });
	log_at(&sess->o.context->log, LOG_DEBUG, "yield", "stream=%u phase=%d rate_bps=%.0f rtt_ms=%.1f base_ms=%.1f "
	    "target_ms=%.1f delivered_bps=%.0f", number, s->law.phase, s->law.rate_bps, s->least_s * 1e3,
	    s->law.base_s * 1e3,
	    yield_target_s(&s->law) * 1e3, 8 * (double)(at.delivered_bytes - s->last.delivered_bytes) / elapsed_s);
	set_rate(sess, number, s->law.rate_bps);
	s->stepped = now;
	s->last = at;
	s->least_s = 0;
}

int yielding_start(struct session *sess, struct ptcp_err *e)
{
	if ((sess->yielding = calloc(1, sizeof *sess->yielding)) == NULL)
		return err_nomem(e);
	streams_tap(sess);
	return 0;
}

void yielding_pump(struct session *sess, struct mono now)
{
	unsigned i;

	if (now.ns < yielding_deadline(sess).ns)
		return;
	for (i = 0; i < sess->streams.n_granted && i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL)
			step(sess, i, now);
	sess->yielding->sampled = now;
}

struct mono yielding_deadline(const struct session *sess)
{
	return sess->yielding != NULL ? mono_add_ns(sess->yielding->sampled, SAMPLE_NS) : MONO_NEVER;
}

void yielding_free(struct session *sess)
{
	free(sess->yielding);
	sess->yielding = NULL;
}
