/* Activity and progress of a session. */
#include "core/err.h"
#include "fs/direct_io.h"
#include "session/receive_impl.h"
#include "session/send_impl.h"

/* ---- Activity ---- */

bool session_waits_for_disk(const struct session *sess)
{
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL && stream_on_disk(sess->slot[i].stream))
			return true;
	return false;
}

/* Without rate limits and spooling. */
static enum wire_busy work(const struct session *sess)
{
	if (session_waits_for_disk(sess))
		return sess->send != NULL ? WIRE_READING : WIRE_WRITING;
	return sess->send != NULL ? send_busy(sess) : sess->receive != NULL ? receive_busy(sess) : WIRE_IDLE;
}

enum wire_busy session_busy(const struct session *sess)
{
	enum wire_busy b = work(sess);
	bool spools = engine_spooled(sess->engine) && sess->o.open != NULL, limited;

	if (b != WIRE_IDLE)
		return b;
	/* Spooling relays delay data: the starter reports a busy disk to the peer. An end busy with enforcing a rate
	 * limit does the same; a receiver only requests the limit, see session_is_paced(). */
	limited = !(sess->send == NULL && session_reports_rates(sess)) &&
	    (path_rates_limited(&sess->adapt.path_rates) || striping_is_paced(sess) ||
	    pacer_throttles(session_pacer(sess), mono_now()));
	if (!spools && !limited)
		return WIRE_IDLE;
	return sess->send != NULL ? WIRE_READING : WIRE_WRITING;
}

bool session_is_paced(const struct session *sess)
{
	return work(sess) == WIRE_IDLE && (path_rates_exchanged(&sess->adapt.path_rates) ||
	    session_busy(sess) != WIRE_IDLE);
}

/* ---- Progress ---- */

/* Activity of either end while no bytes move. */
static enum ptcp_activity activity(const struct session *sess)
{
	enum wire_busy ours = sess->running && !sess->end.over ? session_busy(sess) : WIRE_IDLE;
	enum wire_busy theirs = engine_peer_busy(sess->engine);

	if (ours == WIRE_SYNCING || theirs == WIRE_SYNCING)
		return PTCP_SYNCING;
	if (ours == WIRE_VERIFYING || theirs == WIRE_VERIFYING)
		return PTCP_VERIFYING;
	return PTCP_TRANSFERRING;
}

/* A receiver restores blocks before their bytes count; bytes of copies never count. */
static uint64_t received_saved(const struct session *sess)
{
	struct packing_counts c = packing_counts(sess->streams.packing);

	return c.to_bytes < c.from_bytes ? c.from_bytes - c.to_bytes : 0;
}

/* At first, wire_bytes has the bytes of the data. */
static void count_saved(struct ptcp_progress *g, uint64_t saved_bytes)
{
	g->saved_bytes = saved_bytes < g->wire_bytes ? saved_bytes : g->wire_bytes;
	g->wire_bytes -= g->saved_bytes;
}

struct ptcp_progress session_progress(const struct session *sess)
{
	struct ptcp_progress g = { 0 };

	if (sess->send != NULL && engine_snd(sess->engine) != NULL) {
		g = snd_stats(engine_snd(sess->engine)).done;
		g.wire_bytes = sess->send->sent_bytes;
		g.resumed_bytes += sess->send->omitted_bytes;
		count_saved(&g, sess->send->saved_bytes);
		g.total_bytes = sess->send->bytes;
		g.total_files = sess->send->files;
		g.total_known = sess->send->end;
	} else if (sess->receive != NULL && engine_rcv(sess->engine) != NULL) {
		g = rcv_stats(engine_rcv(sess->engine)).done;
		g.resumed_bytes += sess->receive->omitted_bytes;
		g.wire_bytes -= sess->receive->omitted_bytes;
		count_saved(&g, received_saved(sess));
		g.total_bytes = sess->receive->total_bytes;
		g.total_files = sess->receive->total_files;
		g.total_known = sess->receive->total_known;
	}
	g.failed = engine_failed(sess->engine);
	g.activity = (uint8_t)activity(sess);
	g.streams = (uint16_t)streams_connected(sess);
	g.max_streams = (uint16_t)sess->streams.n_peak;
	return g;
}

struct session_spared session_spared(const struct session *sess)
{
	struct session_spared s = { .compress_level = -1 };

	if (sess->send != NULL && engine_snd(sess->engine) != NULL) {
		s.compared_bytes = snd_stats(engine_snd(sess->engine)).compared_bytes;
		s.compress_level = packing_level(sess->streams.packing);
	} else if (sess->receive != NULL && engine_rcv(sess->engine) != NULL) {
		s.compared_bytes = rcv_stats(engine_rcv(sess->engine)).compared_bytes;
	}
	return s;
}

void progress_pump(struct session *sess, struct mono now)
{
	struct ptcp_err why;

	(void)now;
	if (!direct_io_report(&sess->direct_io))
		return;
	err_set(&why, PTCP_EIO, DIRECT_IO_REFUSED_WHY);
	engine_warn(sess->engine, WIRE_WARNING_ONLY, sess->direct_io.path, &why);
	sess->o.ops->warning(sess->o.arg, sess->direct_io.path, why.msg);
}
