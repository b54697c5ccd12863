/* How far a party is. */
#include "lib/party_impl.h"

/* What keeps either end when no bytes move. */
static enum ptcp_activity activity(const struct party *p)
{
	enum wire_busy ours = p->running && !p->over ? party_busy(p) : WIRE_IDLE;
	enum wire_busy theirs = session_peer_busy(p->session);

	if (ours == WIRE_SYNCING || theirs == WIRE_SYNCING)
		return PTCP_SYNCING;
	if (ours == WIRE_VERIFYING || theirs == WIRE_VERIFYING)
		return PTCP_VERIFYING;
	return PTCP_TRANSFERRING;
}

struct party_progress party_progress(const struct party *p)
{
	struct party_progress g = { .streams = party_in_use(p), .streams_most = p->n_most };
	struct snd_stats s;
	struct rcv_stats r;

	g.failed = session_failed(p->session);
	g.activity = activity(p);
	if (p->snd != NULL && session_snd(p->session) != NULL) {
		s = snd_stats(session_snd(p->session));
		g.bytes = s.acked_bytes;
		g.files = s.files;
		g.others = s.others;
		g.file_bytes = s.bytes;
		g.wire_bytes = p->snd->wire_bytes;
		g.resumed_bytes = s.resumed_bytes;
		g.total_bytes = p->snd->bytes;
		g.total_files = p->snd->files;
		g.total_known = p->snd->end;
	} else if (p->rcv != NULL && session_rcv(p->session) != NULL) {
		r = rcv_stats(session_rcv(p->session));
		g.bytes = r.bytes;
		g.files = r.files;
		g.others = r.others;
		g.file_bytes = r.file_bytes;
		g.wire_bytes = r.bytes - r.resumed_bytes - r.hole_bytes;
		g.resumed_bytes = r.resumed_bytes;
		g.total_bytes = p->rcv->total_bytes;
		g.total_files = p->rcv->total_files;
		g.total_known = p->rcv->total_known;
	}
	return g;
}

struct party_path party_path(const struct party *p, unsigned path)
{
	struct party_path g = { p->carried[path], 0 };
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		g.streams += p->stream[i] != NULL && stream_path(p->stream[i]) == path;
	return g;
}
