/* Times messages within a flow that never pauses: the streams first run until their rate has settled, then each
 * message is the next part of the flow, and its delay the time between the acknowledgments (or, if the acceptor sends,
 * the arrivals) of its ends. A message
 * alone would measure slow start, the burst that begins it, or the slowest stream. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/opts.h"
#include "core/processor.h"
#include "core/units.h"
#include "measure/prober.h"
#include "model/settle.h"

#define SAMPLE_NS (5 * NS_PER_MS)    /* resolution of the delays */
#define LARGEST_S 0.8                /* delay of the largest message */
#define LARGEST_RTTS 8               /* its delay in RTTs, if that is longer */
#define LEAST_BYTES (64u << 10)      /* min size of the largest message */
#define MAX_BYTES (UINT64_C(8) << 30)
#define SIZES 4                      /* each half of the next larger */
#define HELD_MAX 0.1                 /* share of a message's time in which its hosts, not the path, limit the flow */
#define STARVED_MAX 2                /* repeated messages of a starved host, per message asked for */

struct timing {
	struct prober base;
	struct ptcp_timing_opts o;
	struct mono began;                 /* the flow */
	struct settle settle;
	uint64_t before[PTCP_STREAMS_MAX]; /* delivered when the flow started */
	uint64_t largest;                /* 0: the rate has not settled */
	/* the present message */
	struct settle_flow first;        /* counters before it */
	struct mono since;
	struct processor processor;
	unsigned starved;                /* messages so far that were not taken */
	/* results */
	struct ptcp_message *message;
	size_t n;
	double round_trip_s;
};

static struct timing *of(struct prober *b)
{
	return CONTAINER_OF(b, struct timing, base);
}

/* The sending side has reported its limits. Its RTTs are not known here: only losses and limits show a used path. */
static void take_report(const struct timing *t, struct settle_flow *out)
{
	struct limit_times times;

	if (!probe_session_reported(t->base.session, &times, &out->retransmits))
		return;
	out->known_s = times.elapsed_s;
	out->busy_s = times.busy_s;
	out->window_s = times.window_s + times.buffer_s;
	out->rtt_s = 0;
}

/* Sums over the streams, `flow_s` after their start. False: not available. */
static bool read_flow(struct timing *t, double flow_s, struct settle_flow *out)
{
	struct tcpinfo now;
	unsigned i;

	*out = (struct settle_flow){ .known_s = t->o.streams * flow_s };
	for (i = 0; i < t->o.streams; i++) {
		if (!probe_session_tcpinfo(t->base.session, i, &now))
			return false;
		if (now.min_rtt_s > 0 && (t->round_trip_s == 0 || now.min_rtt_s < t->round_trip_s))
			t->round_trip_s = now.min_rtt_s;
		out->delivered_bytes += now.acked_bytes + now.sacked_bytes - t->before[i];
		out->retransmits += now.retransmits;
		out->rtt_s += now.rtt_s / t->o.streams;
		out->busy_s += now.busy_s;
		out->window_s += now.window_s + now.buffer_s;
	}
	out->min_rtt_s = t->round_trip_s;
	take_report(t, out);
	return true;
}

static void start_message(struct timing *t, const struct settle_flow *f, struct mono now)
{
	t->first = *f;
	t->since = now;
}

/* Whether this host lacked processor time for the message, which then tells less of the path: the streams had nothing
 * to send, or nobody received. */
static bool is_starved(struct timing *t, const struct settle_flow *f, struct mono now)
{
	double known_s = f->known_s - t->first.known_s, busy_s = f->busy_s - t->first.busy_s;

	return processor_is_starved(&t->processor, (double)now.ns / 1e9) &&
	    !(known_s - busy_s + f->window_s - t->first.window_s < HELD_MAX * known_s);
}

/* The rate has settled: chooses the sizes of the messages. */
static void start_messages(struct timing *t, const struct settle_flow *f, struct mono now)
{
	uint64_t max = t->o.most_bytes > 0 ? t->o.most_bytes : MAX_BYTES;
	double bytes = settle_rate_bps(&t->settle) / 8 * fmax(LARGEST_S, LARGEST_RTTS * t->round_trip_s);

	processor_is_starved(&t->processor, (double)now.ns / 1e9); /* the count begins here */
	t->largest = bytes < (double)max ? (uint64_t)bytes : max;
	if (t->largest < LEAST_BYTES)
		t->largest = LEAST_BYTES;
	log_at(t->base.log, LOG_DEBUG, "timing", "settled_s=%.3f rate_bps=%.0f largest=%llu", settle_took_s(&t->settle),
	    settle_rate_bps(&t->settle), (unsigned long long)t->largest);
	start_message(t, f, now);
}

static void give_up_starved(struct timing *t)
{
	struct ptcp_err why;

	err_set(&why, PTCP_ETIMEOUT, "timing of messages: other processes use the processors of the measuring host "
	    "(repeat the measurement when they have ended)");
	prober_fail(&t->base, &why);
}

static void give_up(struct timing *t)
{
	struct ptcp_err why;

	err_set(&why, PTCP_ETIMEOUT, "timing of messages: %llu bytes did not arrive within %.3g s (the path is too "
	    "slow to be measured, or needs a longer --timeout)", (unsigned long long)(t->largest >> (t->n % SIZES)),
	    (double)TIMING_TIMEOUTS * (double)probe_session_timeout_ns(t->base.session) / 1e9);
	prober_fail(&t->base, &why);
}

/* Takes the present message if it has been acknowledged. Its end is where the sample finds it, so that the
 * sampling interval adds no error. */
static void sample_message(struct timing *t, const struct settle_flow *f, struct mono now)
{
	uint64_t bytes = f->delivered_bytes - t->first.delivered_bytes, took_ns = mono_diff_ns(now, t->since);

	if (bytes < t->largest >> (t->n % SIZES)) {
		if (took_ns > TIMING_TIMEOUTS * probe_session_timeout_ns(t->base.session))
			give_up(t);
		return;
	}
	log_at(t->base.log, LOG_DEBUG, "timing", "bytes=%llu delay_s=%.6f", (unsigned long long)bytes,
	    (double)took_ns / 1e9);
	if (!is_starved(t, f, now)) {
		t->message[t->n++] = (struct ptcp_message){ bytes, (double)took_ns / 1e9 };
	} else if (++t->starved > STARVED_MAX * t->o.messages) {
		give_up_starved(t);
		return;
	}
	start_message(t, f, now);
}

static void on_timing_timer(void *arg)
{
	struct timing *t = arg;
	struct mono now = mono_now();
	struct settle_flow f;

	timer_set(t->base.timer, mono_add_ns(now, SAMPLE_NS));
	if (!read_flow(t, (double)mono_diff_ns(now, t->began) / 1e9, &f))
		return;
	if (t->largest > 0)
		sample_message(t, &f, now);
	else if (settle_add(&t->settle, &f, (double)mono_diff_ns(now, t->began) / 1e9))
		start_messages(t, &f, now);
	if (t->n == t->o.messages) {
		timer_set(t->base.timer, MONO_NEVER);
		probe_session_clear(t->base.session);
	}
}

static void on_begun(void *arg)
{
	struct timing *t = arg;
	struct tcpinfo now;
	unsigned i;

	for (i = 0; i < t->o.streams; i++)
		t->before[i] = probe_session_tcpinfo(t->base.session, i, &now) ? now.acked_bytes : 0;
	t->began = mono_now();
	timer_set(t->base.timer, mono_add_ns(t->began, SAMPLE_NS));
}

static void on_clear(void *arg)
{
	struct timing *t = arg;

	if (t->n == t->o.messages)
		probe_session_finish(t->base.session);
}

static const struct probe_session_ops probe_session_ops = { on_begun, prober_ended, on_clear };

static void running(struct prober *b, struct session *sess)
{
	struct timing *t = of(b);

	t->n = t->starved = 0;
	t->largest = 0;
	t->settle = (struct settle){ .windows = 0 };
	if (prober_begin(b, sess, &probe_session_ops, on_timing_timer, t->o.streams))
		probe_session_level(sess, t->o.streams, UINT64_MAX);
}

static void timing_free(struct prober *b)
{
	free(of(b)->message);
	prober_free(b);
}

static const struct prober_ops ops = { .running = running, .free = timing_free };

size_t timing_messages(const struct prober *b, struct ptcp_message *out, size_t max, double *round_trip_s)
{
	const struct timing *t = of((struct prober *)(uintptr_t)b);

	*round_trip_s = NAN;
	if (b == NULL || b->ops != &ops)
		return 0;
	if (t->round_trip_s > 0)
		*round_trip_s = t->round_trip_s;
	if (max > 0)
		memcpy(out, t->message, (t->n < max ? t->n : max) * sizeof *out);
	return t->n;
}

void ptcp_timing_opts_init(struct ptcp_timing_opts *o)
{
	*o = (struct ptcp_timing_opts){ .size = sizeof *o, .streams = 4, .messages = 8 };
}

int timing_opts_take(struct ptcp_timing_opts *out, const struct ptcp_timing_opts *o, struct ptcp_err *e)
{
	ptcp_timing_opts_init(out);
	if (opts_copy(out, sizeof *out, o, "ptcp_timing_opts_init", e) < 0)
		return PTCP_EUSAGE;
	if (out->streams < 1 || out->streams > PTCP_STREAMS_MAX || out->messages < 1 ||
	    out->messages > PTCP_MESSAGES_MAX || (out->most_bytes > 0 && out->most_bytes < SIZES * LEAST_BYTES))
		return err_set(e, PTCP_EUSAGE, "streams (1 to %d), messages (1 to %d) or message size (at least 256 "
		    "KiB): out of range", PTCP_STREAMS_MAX, PTCP_MESSAGES_MAX);
	return 0;
}

int timing_new(struct prober **out, const struct ptcp_timing_opts *o, struct ptcp_err *e)
{
	struct timing *t = calloc(1, sizeof *t);
	int r;

	if (t == NULL)
		return err_nomem(e);
	t->base.ops = &ops;
	if ((r = timing_opts_take(&t->o, o, e)) == 0 &&
	    (t->message = calloc(t->o.messages, sizeof *t->message)) == NULL)
		r = err_nomem(e);
	if (r < 0) {
		timing_free(&t->base);
		return r;
	}
	t->base.max_streams = t->o.streams;
	t->base.receives = t->o.receive;
	*out = &t->base;
	return 0;
}
