/* An acceptor that sends: what only its kernel knows of the streams goes to the starter, which steers. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/gauge.h"

#define TELL_NS (500 * NS_PER_MS)

struct seeing {
	struct gauge gauge;
	struct mono told;
};

int party_tell_seen(struct party *p, struct ptcp_err *e)
{
	if ((p->see = calloc(1, sizeof *p->see)) == NULL)
		return err_nomem(e);
	p->tapped = true;
	return 0;
}

void seeing_free(struct party *p)
{
	free(p->see);
	p->see = NULL;
}

static uint64_t us(double s)
{
	return s > 0 ? (uint64_t)(s * 1e6) : 0;
}

/* The first one at once: the name of the congestion control, which the control connection has as well. */
void seeing_pump(struct party *p, struct mono now)
{
	struct seeing *see = p->see;
	struct tcpinfo control = { .acked_bytes = 0 };
	struct gauged g;
	struct wire_seen f;

	if (now.ns < seeing_deadline(p).ns)
		return;
	gauge_read(&see->gauge, p, (double)mono_diff_ns(now, see->told) / 1e9, &g);
	if (g.congestion[0] == '\0' && tcpinfo_read(&control, party_control_fd(p)) == 0)
		strcpy(g.congestion, control.congestion);
	f = (struct wire_seen){ us(g.times.elapsed_s), us(g.times.busy_s), us(g.times.window_s), us(g.times.buffer_s),
		g.retransmits, { (const uint8_t *)g.congestion, strlen(g.congestion) } };
	session_tell_seen(p->session, &f);
	see->told = now;
}

struct mono seeing_deadline(const struct party *p)
{
	return mono_add_ns(p->see->told, p->see->told.ns > 0 ? TELL_NS : 0);
}
