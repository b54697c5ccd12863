/* Where the time of the starter's transfer goes. */
#include <stdlib.h>

#include "session/session_impl.h"

void spending_start(struct session *sess)
{
	if (sess->o.open != NULL && sess->probe == NULL)
		sess->adapt.spending = calloc(1, sizeof *sess->adapt.spending);
}

void spending_report(struct session *sess, const struct wire_tcp_report *f)
{
	struct limit_times *t;

	if (sess->adapt.spending == NULL)
		return;
	t = &sess->adapt.spending->reported;
	t->elapsed_s += (double)f->elapsed_us / 1e6;
	t->busy_s += (double)f->busy_us / 1e6;
	t->window_s += (double)f->window_us / 1e6;
	t->buffer_s += (double)f->buffer_us / 1e6;
}

static double increase(double *last, double now)
{
	double more = now - *last;

	*last = now;
	return more > 0 ? more : 0; /* less: a connection has ended */
}

/* Times of all connections of the sender since the last sample. */
static struct limit_times take_times(struct session *sess, double seconds)
{
	struct spending *p = sess->adapt.spending;
	struct limit_times sum = { .elapsed_s = 0 }, times = p->reported;
	struct tcpinfo now;
	unsigned i;

	p->reported = (struct limit_times){ .elapsed_s = 0 };
	if (sess->send == NULL)
		return times;
	for (i = 0; i < sess->streams.n_granted && i < PTCP_STREAMS_MAX; i++) {
		if (sess->slot[i].stream == NULL || !streams_tcpinfo(sess, i, &now))
			continue;
		sum.elapsed_s += seconds;
		sum.busy_s += now.busy_s;
		sum.window_s += now.window_s;
		sum.buffer_s += now.buffer_s;
	}
	return (struct limit_times){ sum.elapsed_s, increase(&p->times.busy_s, sum.busy_s),
		increase(&p->times.window_s, sum.window_s), increase(&p->times.buffer_s, sum.buffer_s) };
}

/* A sender waits for the limit itself. With the limit of a receiver, data arrives at about that rate, in bursts. */
static bool is_limited(struct session *sess, double seconds, struct mono now)
{
	const struct pacer *p = session_pacer(sess);
	struct ptcp_progress g = session_progress(sess);
	uint64_t bytes = g.wire_bytes - sess->adapt.spending->bytes;

	sess->adapt.spending->bytes = g.wire_bytes;
	if (path_rates_limited(&sess->adapt.path_rates) || striping_is_paced(sess) || pacer_throttles(p, now))
		return true;
	return sess->send == NULL && pacer_limits(p) && 8 * (double)bytes / seconds > 0.6 * (double)pacer_bps(p);
}

/* Counts the open interval, with the latest report of the peer. */
static void spending_close(const struct session *sess, struct spent *total, struct mono now)
{
	struct spent_sample x = sess->adapt.spending->open;
	const struct wire_load peer = host_load_of_peer(&sess->adapt.host_load, now);
	struct spent_end *them = sess->send != NULL ? &x.receiver : &x.sender;

	if (!sess->adapt.spending->is_open)
		return;
	them->processor = peer.busy_permille / 1e3;
	if (them->disk < peer.disk_permille / 1e3)
		them->disk = peer.disk_permille / 1e3;
	spent_add(total, &x, sess->send != NULL);
}

void spending_sample(struct session *sess, double seconds, struct mono now)
{
	const struct wire_load *h = &sess->adapt.host_load.ours;
	enum wire_busy ours = session_busy(sess), theirs = engine_peer_busy(sess->engine);
	struct spent_end us = { ours == WIRE_SYNCING ? 1 : h->disk_permille / 1e3, h->busy_permille / 1e3 };
	struct spent_end them = { theirs == WIRE_SYNCING, 0 };
	struct spent_sample x = { .seconds = seconds,
		.sender = sess->send != NULL ? us : them, .receiver = sess->send != NULL ? them : us,
		.verifying = ours == WIRE_VERIFYING || theirs == WIRE_VERIFYING };
	struct limit_times times;

	if (sess->adapt.spending == NULL)
		return;
	spending_close(sess, &sess->adapt.spending->total, now);
	x.limited = is_limited(sess, seconds, now);
	times = take_times(sess, seconds);
	if ((x.tcp_known = times.elapsed_s > 0)) {
		x.busy = times.busy_s / times.elapsed_s;
		x.window = times.window_s / times.elapsed_s;
		x.buffer = times.buffer_s / times.elapsed_s;
	}
	sess->adapt.spending->open = x;
	sess->adapt.spending->is_open = true;
}

void spending_free(struct session *sess) { free(sess->adapt.spending); }

void session_spent(const struct session *sess, struct spent *out)
{
	unsigned i;

	if (sess->adapt.spending == NULL)
		return;
	for (i = 0; i < PTCP_SPENT_CAUSES; i++)
		out->s[i] += sess->adapt.spending->total.s[i];
	spending_close(sess, out, mono_now());
}
