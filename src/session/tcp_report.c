/* An acceptor that sends: what only its kernel knows of the streams goes to the starter, which sets their number. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "session/tcp_stats.h"

#define TELL_NS (500 * NS_PER_MS)

struct tcp_report {
	struct tcp_stats gauge;
	struct mono told;
};

int tcp_report_new(struct session *sess, struct ptcp_err *e)
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

/* The first one at once: the name of the congestion control, which the control connection has as well. */
void tcp_report_pump(struct session *sess, struct mono now)
{
	struct tcp_report *see = sess->tcp_report;
	struct tcpinfo control = { .acked_bytes = 0 };
	struct gauged g;
	struct wire_tcp_report f;

	if (see == NULL || now.ns < tcp_report_deadline(sess).ns)
		return;
	tcp_stats_read(&see->gauge, sess, (double)mono_diff_ns(now, see->told) / 1e9, &g);
	if (g.congestion[0] == '\0' && tcpinfo_read(&control, session_control_fd(sess)) == 0)
		strcpy(g.congestion, control.congestion);
	f = (struct wire_tcp_report){ us(g.times.elapsed_s), us(g.times.busy_s), us(g.times.window_s), us(g.times.buffer_s),
		g.retransmits, { (const uint8_t *)g.congestion, strlen(g.congestion) } };
	engine_report_tcp(sess->engine, &f);
	see->told = now;
}

struct mono tcp_report_deadline(const struct session *sess)
{
	const struct tcp_report *see = sess->tcp_report;

	return see == NULL ? MONO_NEVER : mono_add_ns(see->told, see->told.ns > 0 ? TELL_NS : 0);
}
