#include <stdio.h>

#include "core/err.h"
#include "session/session_impl.h"

#define CHECK_NS (2 * NS_PER_S)
#define STALLED_NS (5 * NS_PER_S)    /* time without an acknowledgment, beside 3 RTTs */
#define STUCK_TIMEOUTS 4u            /* time-outs of the control connection: retransmissions in a row */

static void check_control(struct session *sess)
{
	struct tcpinfo i;

	if (sess->control.chan == NULL || !control_is_up(sess) || tcpinfo_read(&i, chan_fd(sess->control.chan)) < 0 ||
	    i.timeouts < STUCK_TIMEOUTS)
		return;
	control_stuck(sess);
}

/* Streams may die together with the control connection, and their TCP not notice: behind a proxy or a middlebox that
 * acknowledges segments itself. Once after each replacement, streams without an acknowledgment since then are replaced
 * as well, if they take no bytes from one check to the next. */
static void check_after_resume(struct session *sess, const struct snd *snd, struct mono now)
{
	unsigned i;

	struct mono resumed = sess->control.resumed;

	if (sess->stalls.judged.ns == resumed.ns || mono_diff_ns(now, resumed) < STALLED_NS - CHECK_NS ||
	    !peer_responds(sess, now) || engine_peer_busy(sess->engine) != WIRE_IDLE)
		return;
	for (i = 0; i < sess->streams.n_granted; i++)
		if (sess->slot[i].stream != NULL && snd_stream_carries(snd, i) &&
		    snd_stream_acked(snd, i).ns < resumed.ns)
			send_stream_stalled(sess, i);
	if (mono_diff_ns(now, resumed) >= STALLED_NS)
		sess->stalls.judged = resumed;
}

/* A control connection was lost, and a successor has taken over. Streams that have delivered since the loss before
 * prove that large packets arrive. */
static void suspect_control(struct session *sess, struct mtu_lost *lost)
{
	uint64_t bytes = 0;
	unsigned i, n = sess->o.paths != NULL ? sess->o.paths->n : 1;

	for (i = 0; i < n; i++)
		bytes += streams_delivered(sess, i);
	lost->delivered_bytes += bytes - sess->stalls.delivered_bytes;
	sess->stalls.delivered_bytes = bytes;
	peer_suspect(sess, lost);
}

void stalls_pump(struct session *sess, struct mono now)
{
	const struct snd *snd = engine_snd(sess->engine);
	struct mtu_lost lost;
	unsigned i;

	if (now.ns < stalls_deadline(sess).ns)
		return;
	sess->stalls.checked = now;
	if (peer_responds(sess, now) && control_take_lost(sess, &lost))
		suspect_control(sess, &lost);
	if (control_may_resume(sess))
		check_control(sess);
	if (snd != NULL)
		check_after_resume(sess, snd, now);
	for (i = 0; i < sess->streams.n_granted && snd != NULL && peer_responds(sess, now); i++)
		if (sess->slot[i].stream != NULL && snd_stream_carries(snd, i) &&
		    mono_diff_ns(now, snd_stream_acked(snd, i)) >= STALLED_NS)
			stream_check(sess->slot[i].stream, STALLED_NS, true);
}

struct mono stalls_deadline(const struct session *sess)
{
	return sess->running && !sess->o.one_channel && !engine_spooled(sess->engine) ?
	    mono_add_ns(sess->stalls.checked, CHECK_NS) : MONO_NEVER;
}
