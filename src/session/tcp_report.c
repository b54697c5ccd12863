#include <math.h>
#include <string.h>

#include "core/units.h"
#include "session/session_impl.h"

#define REPORT_NS (200 * NS_PER_MS)
#define REPORT_STREAMS 16 /* reports are rarer with more streams */

static struct evidence_sample sample_of(struct loss_events *events, const struct tcpinfo *now,
    const struct tcpinfo *then, double interval_s)
{
	double lost = (double)(now->retransmits - then->retransmits);

	return (struct evidence_sample){ .interval_s = interval_s,
		.delivered_bytes = (double)(now->delivered_bytes - then->delivered_bytes),
		.sent_segments = (double)(now->sent_segments - then->sent_segments), .lost_segments = lost,
		.loss_events = loss_events_of(events, lost, now->rtt_s, interval_s), .rtt_s = now->rtt_s,
		.min_rtt_s = now->min_rtt_s, .busy_s = now->busy_s - then->busy_s,
		.window_s = now->window_s - then->window_s + now->buffer_s - then->buffer_s };
}

/* rtt_s is a sum until all streams have been added. */
static void add_sample(struct evidence_sample *s, const struct evidence_sample *more)
{
	s->delivered_bytes += more->delivered_bytes;
	s->sent_segments += more->sent_segments;
	s->lost_segments += more->lost_segments;
	s->loss_events += more->loss_events;
	s->rtt_s += more->rtt_s;
	if (more->min_rtt_s > 0 && (s->min_rtt_s == 0 || more->min_rtt_s < s->min_rtt_s))
		s->min_rtt_s = more->min_rtt_s;
	s->busy_s += more->busy_s;
	s->window_s += more->window_s;
}

void tcp_stats_read(struct session *sess, struct tcp_stats *t, double elapsed_s, struct tcp_delta *out)
{
	struct tcp_counters *c;
	const struct tcpinfo *then;
	struct tcpinfo now;
	uint64_t moved;
	unsigned i, n = 0;

	*out = (struct tcp_delta){ .active_bytes = 0 };
	for (i = 0; i < sess->streams.n_granted && i < PTCP_STREAMS_MAX; i++) {
		c = &t->of[i];
		c->sample.rtt_s = 0;
		if (sess->slot[i].stream == NULL || !streams_tcpinfo(sess, i, &now)) {
			c->generation = 0;
			continue;
		}
		then = &c->last;
		if (c->generation == sess->slot[i].generation) {
			moved = now.acked_bytes - then->acked_bytes + now.received_bytes - then->received_bytes;
			if (i < sess->streams.n_active || sess->probe != NULL) {
				out->active_bytes += moved;
				out->times.elapsed_s += elapsed_s;
				out->times.busy_s += now.busy_s - then->busy_s;
				out->times.window_s += now.window_s - then->window_s;
				out->times.buffer_s += now.buffer_s - then->buffer_s;
				c->sample = sample_of(&c->events, &now, then, elapsed_s);
				add_sample(&out->kernel, &c->sample);
				n++;
				out->retransmits += now.retransmits - then->retransmits;
				strcpy(out->congestion, now.congestion);
			} else {
				out->inactive_bytes += moved;
			}
		}
		if (c->generation != sess->slot[i].generation)
			c->events = (struct loss_events){ 0 };
		c->generation = sess->slot[i].generation;
		c->last = now;
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

static uint32_t count(double x)
{
	return x > 0 ? (uint32_t)fmin(x, UINT32_MAX) : 0;
}

static void add_streams(struct wire_tcp_report *f, const struct session *sess)
{
	const struct evidence_sample *s;
	unsigned i;

	for (i = 0; i < sess->streams.n_active && i < WIRE_REPORT_STREAMS_MAX; i++) {
		s = &sess->tcp.stats.of[i].sample;
		f->rtt_us[i] = count(s->rtt_s * 1e6);
		if (f->rtt_us[i] == 0)
			continue;
		f->min_rtt_us[i] = count(s->min_rtt_s * 1e6);
		f->segments[i] = count(s->sent_segments);
		f->lost[i] = count(s->lost_segments);
		f->events[i] = count(s->loss_events);
	}
	f->m = (uint8_t)i;
}

void tcp_report_start(struct session *sess)
{
	sess->tcp.reports = streams_report_tcp(sess);
	if (sess->tcp.reports)
		streams_tap(sess);
}

/* Sends the first report at once, to name the congestion control. */
void tcp_report_pump(struct session *sess, struct mono now)
{
	struct tcp_delta d;
	struct wire_tcp_report f;

	if (now.ns < tcp_report_deadline(sess).ns)
		return;
	tcp_stats_read(sess, &sess->tcp.stats, (double)mono_diff_ns(now, sess->tcp.reported) / 1e9, &d);
	if (d.congestion[0] == '\0')
		strcpy(d.congestion, sess->congestion.name);
	f = (struct wire_tcp_report){ us(d.times.elapsed_s), us(d.times.busy_s), us(d.times.window_s),
	    us(d.times.buffer_s),
		d.retransmits, .congestion = { (const uint8_t *)d.congestion, strlen(d.congestion) } };
	add_streams(&f, sess);
	engine_report_tcp(sess->engine, &f);
	sess->tcp.reported = now;
}

struct mono tcp_report_deadline(const struct session *sess)
{
	if (!sess->tcp.reports)
		return MONO_NEVER;
	return mono_add_ns(sess->tcp.reported,
	    sess->tcp.reported.ns > 0 ? REPORT_NS * (1 + sess->streams.n_active / REPORT_STREAMS) : 0);
}

/* ---- The receiving starter ---- */

void tcp_report_take(struct session *sess, const struct wire_tcp_report *f)
{
	struct slot_totals *t;
	unsigned i;

	for (i = 0; i < f->m && i < PTCP_STREAMS_MAX; i++) {
		if (f->rtt_us[i] == 0)
			continue;
		t = &sess->slot[i].totals;
		t->rtt_s = f->segments[i] > 0 ? f->rtt_us[i] / 1e6 : 0;
		t->min_rtt_s = f->min_rtt_us[i] / 1e6;
		t->segments += f->segments[i];
		t->lost += f->lost[i];
	}
}

static void add_total(struct session_path *g, const struct slot_totals *t)
{
	g->segments += t->segments;
	g->lost += t->lost;
	if (!(t->rtt_s > 0))
		return;
	g->rtt_s = g->rtt_s > 0 ? fmin(g->rtt_s, t->rtt_s) : t->rtt_s;
	g->min_rtt_s = g->min_rtt_s > 0 && t->min_rtt_s > 0 ? fmin(g->min_rtt_s, t->min_rtt_s) :
	    fmax(g->min_rtt_s, t->min_rtt_s);
}

struct session_path session_path(const struct session *sess, unsigned path)
{
	struct session_path g = { .bytes = sess->carried[path], .streams = streams_on_path(sess, path) };
	unsigned i;

	for (i = 0; i < sess->streams.n_granted; i++)
		if (session_path_of(sess, i) == path)
			add_total(&g, &sess->slot[i].totals);
	return g;
}
