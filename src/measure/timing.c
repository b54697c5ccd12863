/* Times messages, one at a time, over streams that stay open: from the first byte written until the last byte is
 * acknowledged. Fresh connections would measure slow start. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "measure/prober.h"

#define SAMPLE_NS NS_PER_MS          /* resolution of the delays */
#define FIRST_BYTES (64u << 10)
#define KNOWN_NS (400 * NS_PER_MS)   /* a message that takes longer determines the rate */
#define LARGEST_NS (800 * NS_PER_MS)
#define MAX_BYTES (UINT64_C(8) << 30)
#define SIZES 4                      /* each half of the next larger */

struct timing {
	struct prober base;
	struct ptcp_timing_opts o;
	bool known;                      /* `largest` is determined */
	uint64_t largest;
	/* the message in transit */
	uint64_t bytes;
	struct mono sent;
	uint64_t acked[PTCP_STREAMS_MAX]; /* before the message */
	/* results */
	struct ptcp_message *message;
	size_t n;
	double round_trip_s;
};

static struct timing *of(struct prober *b)
{
	return CONTAINER_OF(b, struct timing, base);
}

static void send_message(struct timing *t, uint64_t bytes)
{
	struct tcpinfo now;
	unsigned i;

	for (i = 0; i < t->o.streams; i++)
		t->acked[i] = probe_session_tcpinfo(t->base.session, i, &now) ? now.acked_bytes : 0;
	t->bytes = bytes;
	t->sent = mono_now();
	probe_session_message(t->base.session, bytes);
	timer_set(t->base.timer, mono_add_ns(t->sent, SAMPLE_NS));
}

/* Each stream has acknowledged its part of the message, and has no byte in transit. */
static bool arrived(struct timing *t)
{
	struct tcpinfo now;
	bool all = true;
	unsigned i;

	for (i = 0; i < t->o.streams; i++) {
		if (!probe_session_tcpinfo(t->base.session, i, &now))
			return false;
		if (now.min_rtt_s > 0 && (t->round_trip_s == 0 || now.min_rtt_s < t->round_trip_s))
			t->round_trip_s = now.min_rtt_s;
		all &= now.quiet && now.acked_bytes - t->acked[i] >= t->bytes / t->o.streams;
	}
	return all;
}

/* Finds the size of the largest message. Sizes grow by a factor of at most 4, so that a slow path does not get a huge
 * message. */
static void grow(struct timing *t, uint64_t took_ns)
{
	uint64_t max = t->o.most_bytes > 0 ? t->o.most_bytes : MAX_BYTES, next;
	double rate = (double)t->bytes / (double)took_ns;

	if (took_ns < KNOWN_NS && t->bytes < max) {
		next = took_ns < KNOWN_NS / 4 ? 4 * t->bytes : 2 * t->bytes;
		send_message(t, next < max ? next : max);
		return;
	}
	t->known = true;
	t->largest = rate * (double)LARGEST_NS < (double)max ? (uint64_t)(rate * (double)LARGEST_NS) : max;
	if (t->largest < SIZES * FIRST_BYTES)
		t->largest = SIZES * FIRST_BYTES;
	send_message(t, t->largest);
}

static void give_up(struct timing *t)
{
	struct ptcp_err why;

	err_set(&why, PTCP_ETIMEOUT, "timing of messages: %llu bytes did not arrive within %.3g s (the path is too slow to be "
	    "measured, or needs a longer --timeout)", (unsigned long long)t->bytes, (double)TIMING_TIMEOUTS *
	    (double)probe_session_timeout_ns(t->base.session) / 1e9);
	prober_fail(&t->base, &why);
}

static void on_timer(void *arg)
{
	struct timing *t = arg;
	struct mono now = mono_now();
	uint64_t took = mono_diff_ns(now, t->sent);

	if (!arrived(t)) {
		if (took > TIMING_TIMEOUTS * probe_session_timeout_ns(t->base.session))
			give_up(t);
		else
			timer_set(t->base.timer, mono_add_ns(now, SAMPLE_NS));
		return;
	}
	log_at(t->base.log, LOG_DEBUG, "timing", "bytes=%llu delay_s=%.6f known=%d", (unsigned long long)t->bytes,
	    (double)took / 1e9, t->known);
	if (!t->known) {
		grow(t, took);
		return;
	}
	t->message[t->n++] = (struct ptcp_message){ t->bytes, (double)took / 1e9 };
	if (t->n == t->o.messages)
		probe_session_clear(t->base.session);
	else
		send_message(t, t->largest >> (t->n % SIZES));
}

static void on_begun(void *arg)
{
	send_message(arg, FIRST_BYTES);
}

static void on_ended(void *arg, unsigned number, struct mono from, struct mono until,
    const struct ptcp_err *why)
{
	(void)number, (void)from, (void)until;
	prober_lost(arg, why);
}

static void on_clear(void *arg)
{
	struct timing *t = arg;

	if (t->n == t->o.messages)
		probe_session_finish(t->base.session);
}

static const struct probe_session_ops probe_session_ops = { on_begun, on_ended, on_clear };

static void running(struct prober *b, struct session *sess)
{
	struct timing *t = of(b);

	t->n = 0;
	if (prober_begin(b, sess, &probe_session_ops, on_timer, t->o.streams))
		probe_session_level(sess, t->o.streams, 0, true);
}

static void timing_free(struct prober *b)
{
	timer_free(b->timer);
	free(of(b)->message);
	free(of(b));
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
	if (prober_take_opts(out, sizeof *out, o, "ptcp_timing_opts_init", e) < 0)
		return PTCP_EUSAGE;
	if (out->streams < 1 || out->streams > PTCP_STREAMS_MAX || out->messages < 1 ||
	    out->messages > PTCP_MESSAGES_MAX || (out->most_bytes > 0 && out->most_bytes < SIZES * FIRST_BYTES))
		return err_set(e, PTCP_EUSAGE, "streams (1 to %d), messages (1 to %d) or message size (at least 256 KiB): out of "
		    "range", PTCP_STREAMS_MAX, PTCP_MESSAGES_MAX);
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
	*out = &t->base;
	return 0;
}
