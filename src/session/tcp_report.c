/* TCP_INFO of the streams: sampled for engine/stream_count.h, or reported to the starter by a sending acceptor, whose
 * kernel alone knows the sender's limits. */
#include <string.h>

#include "core/units.h"
#include "session/session_impl.h"

#define REPORT_NS (500 * NS_PER_MS)

/* rtt_s is a sum until all streams have been added. */
static void add_sample(struct evidence_sample *s, struct loss_events *events, const struct tcpinfo *now,
    const struct tcpinfo *then, double interval_s)
{
	double lost = (double)(now->retransmits - then->retransmits);

	s->delivered_bytes += (double)(now->delivered_bytes - then->delivered_bytes);
	s->sent_segments += (double)(now->sent_segments - then->sent_segments);
	s->lost_segments += lost;
	s->loss_events += loss_events_of(events, lost, now->rtt_s, interval_s);
	s->rtt_s += now->rtt_s;
	if (now->min_rtt_s > 0 && (s->min_rtt_s == 0 || now->min_rtt_s < s->min_rtt_s))
		s->min_rtt_s = now->min_rtt_s;
	s->busy_s += now->busy_s - then->busy_s;
	s->window_s += now->window_s - then->window_s + now->buffer_s - then->buffer_s;
}

void tcp_stats_read(struct session *sess, struct tcp_stats *t, double elapsed_s, struct tcp_delta *out)
{
	const struct tcpinfo *then;
	struct tcpinfo now;
	uint64_t moved;
	unsigned i, n = 0;

	*out = (struct tcp_delta){ .active_bytes = 0 };
	for (i = 0; i < sess->n_granted && i < PTCP_STREAMS_MAX; i++) {
		if (sess->stream[i] == NULL || !streams_tcpinfo(sess, i, &now)) {
			t->since[i].ns = 0;
			continue;
		}
		then = &t->last[i];
		if (t->since[i].ns == sess->since[i].ns) {
			moved = now.acked_bytes - then->acked_bytes + now.received_bytes - then->received_bytes;
			if (i < sess->n_active || sess->probe != NULL) {
				out->active_bytes += moved;
				out->times.elapsed_s += elapsed_s;
				out->times.busy_s += now.busy_s - then->busy_s;
				out->times.window_s += now.window_s - then->window_s;
				out->times.buffer_s += now.buffer_s - then->buffer_s;
				add_sample(&out->kernel, &t->events[i], &now, then, elapsed_s);
				n++;
				out->retransmits += now.retransmits - then->retransmits;
				strcpy(out->congestion, now.congestion);
			} else {
				out->inactive_bytes += moved;
			}
		}
		if (t->since[i].ns != sess->since[i].ns)
			t->events[i] = (struct loss_events){ 0 };
		t->since[i] = sess->since[i];
		t->last[i] = now;
	}
	out->kernel.interval_s = elapsed_s;
	if (n > 0)
		out->kernel.rtt_s /= n;
}

/* ---- The sending acceptor ---- */

static uint64_t us(double s)
{
	return s > 0 ? (uint64_t)(s * 1e6) : 0;
}

/* Sends the first report at once, to name the congestion control. */
void tcp_report_pump(struct session *sess, struct mono now)
{
	struct tcp_delta d;
	struct wire_tcp_report f;

	if (now.ns < tcp_report_deadline(sess).ns)
		return;
	tcp_stats_read(sess, &sess->tcp_stats, (double)mono_diff_ns(now, sess->tcp_reported) / 1e9, &d);
	if (d.congestion[0] == '\0')
		strcpy(d.congestion, session_congestion(sess));
	f = (struct wire_tcp_report){ us(d.times.elapsed_s), us(d.times.busy_s), us(d.times.window_s), us(d.times.buffer_s),
		d.retransmits, { (const uint8_t *)d.congestion, strlen(d.congestion) } };
	engine_report_tcp(sess->engine, &f);
	sess->tcp_reported = now;
}

struct mono tcp_report_deadline(const struct session *sess)
{
	if (!sess->reports_tcp)
		return MONO_NEVER;
	return mono_add_ns(sess->tcp_reported, sess->tcp_reported.ns > 0 ? REPORT_NS : 0);
}
