/* Connections whose segments are no longer acknowledged, although the peer answers: TCP waits with growing pauses,
 * for minutes. Both ends reset such a connection, and the TLS client makes a new one; with smaller segments if the
 * path seems to drop full ones. */
#include <stdio.h>

#include "core/err.h"
#include "session/session_impl.h"

#define CHECK_NS (2 * NS_PER_S)
#define STALLED_NS (5 * NS_PER_S)    /* without an acknowledgment, beside 3 RTTs */
#define STUCK_TIMEOUTS 4u            /* of the control connection: retransmissions in a row */
#define RESPONDS_NS (4 * NS_PER_S)   /* since the peer's last frame, at most */

static bool peer_responds(const struct session *sess, struct mono now)
{
	return control_is_up(sess) && mono_diff_ns(now, engine_last_input(sess->engine)) < RESPONDS_NS;
}

void stalls_suspect(struct session *sess, const struct mtu_lost *lost)
{
	char text[2 * SOCK_HOST_BYTES + 300];

	if (engine_spooled(sess->engine) || !peer_responds(sess, mono_now()) || !mtu_suspect(&sess->mtu, lost))
		return;
	if (!sess->o.connects)
		return; /* its connections follow the peer's segment size */
	sess->o.sock.segment_bytes = MTU_SEGMENT_BYTES;
	snprintf(text, sizeof text, "the path to %s seems to drop large packets (MTU): new connections use segments of %d "
	    "bytes (if ping -M do -s 1400 %s fails, have the MTU or the filter of ICMP on the path corrected)", sess->address,
	    MTU_SEGMENT_BYTES, sess->address);
	sess->o.ops->warning(sess->o.arg, NULL, text);
}

static void check_control(struct session *sess)
{
	struct tcpinfo i;

	if (sess->control == NULL || !control_is_up(sess) || tcpinfo_read(&i, chan_fd(sess->control)) < 0 ||
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

	if (sess->resumed.ns == 0 || mono_diff_ns(now, sess->resumed) < STALLED_NS - CHECK_NS ||
	    !peer_responds(sess, now) || engine_peer_busy(sess->engine) != WIRE_IDLE)
		return;
	for (i = 0; i < sess->n_granted; i++)
		if (sess->slot[i].stream != NULL && snd_stream_carries(snd, i) && snd_stream_acked(snd, i).ns < sess->resumed.ns)
			send_stream_stalled(sess, i);
	if (mono_diff_ns(now, sess->resumed) >= STALLED_NS)
		sess->resumed = (struct mono){ 0 };
}

void stalls_pump(struct session *sess, struct mono now)
{
	const struct snd *snd = engine_snd(sess->engine);
	unsigned i;

	if (now.ns < stalls_deadline(sess).ns)
		return;
	sess->stalls_checked = now;
	if (sess->control_lost && peer_responds(sess, now)) { /* by a successor */
		sess->control_lost = false;
		stalls_suspect(sess, &sess->lost_control);
	}
	if (control_may_resume(sess))
		check_control(sess);
	if (snd != NULL)
		check_after_resume(sess, snd, now);
	for (i = 0; i < sess->n_granted && snd != NULL && peer_responds(sess, now); i++)
		if (sess->slot[i].stream != NULL && snd_stream_carries(snd, i) &&
		    mono_diff_ns(now, snd_stream_acked(snd, i)) >= STALLED_NS)
			stream_check(sess->slot[i].stream, STALLED_NS, true);
}

struct mono stalls_deadline(const struct session *sess)
{
	return sess->running && !sess->o.one_channel && !engine_spooled(sess->engine) ?
	    mono_add_ns(sess->stalls_checked, CHECK_NS) : MONO_NEVER;
}
