#include "session/tcp_stats.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

#define REPORT_NS (500 * NS_PER_MS)

void tcp_stats_read(struct tcp_stats *g, const struct session *sess, double elapsed_s, struct tcp_stats_delta *out)
{
	const struct tcpinfo *then;
	struct tcpinfo now;
	uint64_t moved;
	unsigned i;

	*out = (struct tcp_stats_delta){ .used_bytes = 0 };
	for (i = 0; i < sess->n_granted && i < PTCP_STREAMS_MAX; i++) {
		then = &g->last[i];
		if (sess->stream[i] == NULL || !session_look(sess, i, &now)) {
			g->of[i] = NULL;
			continue;
		}
		/* A new stream may have been allocated at the old address; counters that went backwards give it away. */
		if (g->of[i] == sess->stream[i] && now.acked_bytes >= then->acked_bytes &&
		    now.received_bytes >= then->received_bytes) {
			moved = now.acked_bytes - then->acked_bytes + now.received_bytes - then->received_bytes;
			if (i < sess->n_wanted || sess->probe != NULL) {
				out->used_bytes += moved;
				out->times.elapsed_s += elapsed_s;
				out->times.busy_s += now.busy_s - then->busy_s;
				out->times.window_s += now.window_s - then->window_s;
				out->times.buffer_s += now.buffer_s - then->buffer_s;
				out->retransmits += now.retransmits - then->retransmits;
				strcpy(out->congestion, now.congestion);
			} else {
				out->other_bytes += moved;
			}
		}
		g->of[i] = sess->stream[i];
		g->last[i] = now;
	}
}

/* ---- TCP_REPORT: an acceptor that sends reports to the starter, which sets the number of streams ---- */

struct tcp_report {
	struct tcp_stats stats;
	struct mono sent_at; /* 0: never */
};

int session_tell_seen(struct session *sess, struct ptcp_err *e)
{
	if ((sess->tcp_report = calloc(1, sizeof *sess->tcp_report)) == NULL)
		return err_nomem(e);
	sess->tapped = true;
	return 0;
}

void tcp_report_free(struct session *sess)
{
	free(sess->tcp_report);
	sess->tcp_report = NULL;
}

static uint64_t us(double s)
{
	return s > 0 ? (uint64_t)(s * 1e6) : 0;
}

/* The first report is sent at once, with the congestion control of the control connection: the streams use the same. */
void tcp_report_pump(struct session *sess, struct mono now)
{
	struct tcp_report *r = sess->tcp_report;
	struct tcpinfo control = { .acked_bytes = 0 };
	struct tcp_stats_delta g;
	struct wire_tcp_report f;

	if (r == NULL || now.ns < tcp_report_deadline(sess).ns)
		return;
	tcp_stats_read(&r->stats, sess, (double)mono_diff_ns(now, r->sent_at) / 1e9, &g);
	if (g.congestion[0] == '\0' && tcpinfo_read(&control, session_control_fd(sess)) == 0)
		strcpy(g.congestion, control.congestion);
	f = (struct wire_tcp_report){ us(g.times.elapsed_s), us(g.times.busy_s), us(g.times.window_s), us(g.times.buffer_s),
		g.retransmits, { (const uint8_t *)g.congestion, strlen(g.congestion) } };
	engine_tell_seen(sess->engine, &f);
	r->sent_at = now;
}

struct mono tcp_report_deadline(const struct session *sess)
{
	const struct tcp_report *r = sess->tcp_report;

	return r == NULL ? MONO_NEVER : mono_add_ns(r->sent_at, r->sent_at.ns > 0 ? REPORT_NS : 0);
}
