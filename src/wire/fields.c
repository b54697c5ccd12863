#include "wire/fields.h"

#include <string.h>

#include "core/text.h"
#include "wire/attrs.h"
#include "wire/codec.h"
#include "wire/grant.h"
#include "wire/jobs.h"
#include "wire/mover.h"

/* ---- The tables; `s` is the struct without wire_, `m` the member ---- */

#define wire_progress ptcp_progress /* PROGRESS carries the public struct as it is */
#define AT(s, m) offsetof(struct wire_##s, m)
#define SIZE(s, m) sizeof(((struct wire_##s *)NULL)->m)

#define UINT(name, s, m, min, max) { name, WIRE_FIELD_UINT, SIZE(s, m), 0, AT(s, m), 0, min, max }
#define ANY(name, s, m) UINT(name, s, m, 0, UINT64_MAX)
#define POSITIVE(name, s, m) UINT(name, s, m, 1, UINT64_MAX)
#define FIXED(name, size, value) { name, WIRE_FIELD_FIXED, size, 0, 0, 0, value, value }
#define ID(s, m) { #m, WIRE_FIELD_ID, SIZE(s, m), 0, AT(s, m), 0, 0, UINT64_MAX }
#define LENGTH(name, size, s, m, min, max) { name, WIRE_FIELD_LENGTH, size, 0, AT(s, m), 0, min, max }
#define DATA(s, m, text) { #m, WIRE_FIELD_DATA, 0, WIRE_FIELD_##text, AT(s, m), 0, 0, 0 }
#define REST(s, m) { #m, WIRE_FIELD_REST, 0, 0, AT(s, m), 0, 0, 0 }
#define BYTES(s, m) { #m, WIRE_FIELD_BYTES, SIZE(s, m), 0, AT(s, m), 0, 0, 0 }
#define ARRAY(name, s, m, count, min, max) \
	{ name, WIRE_FIELD_ARRAY, SIZE(s, m[0]), 0, AT(s, m), AT(s, count), min, max }
#define WHY(s) ANY("code", s, why.code), ANY("cause", s, why.cause)
#define REASON(s) POSITIVE("code", s, why.code), ANY("cause", s, why.cause) /* never without a code */
#define WHY_TEXT(name, s) LENGTH(name, 2, s, why.text, 0, WIRE_TEXT_MAX)
#define WHY_DATA(s) { "text", WIRE_FIELD_DATA, 0, WIRE_FIELD_ANY, AT(s, why.text), 0, 0, 0 }
#define DIGEST(s) ANY("digest", s, digest.hi), ANY(NULL, s, digest.lo)

static const struct wire_field hello[] = {
	FIXED("magic", 4, WIRE_MAGIC), ANY("version_min", hello, version_min), ANY("version_max", hello, version_max),
	POSITIVE("timeout_ms", hello, timeout_ms), POSITIVE("quiet_ms", hello, quiet_ms),
	ANY("linger_ms", hello, linger_ms), UINT("max_entries", hello, max_entries, WIRE_EARLY_ENTRIES, UINT64_MAX),
	POSITIVE("max_streams", hello, max_streams), UINT("n", hello, n_abilities, 0, WIRE_ABILITIES_MAX),
	ARRAY("abilities", hello, abilities, n_abilities, 0, UINT16_MAX),
	LENGTH("m", 1, hello, software, 0, WIRE_SOFTWARE_MAX), DATA(hello, software, ANY)
}, open[] = {
	UINT("role", open, role, WIRE_ACCEPTOR_RECEIVES, WIRE_ACCEPTOR_GENERATES), ANY("cipher", open, cipher),
	UINT("fsync", open, fsync, 0, WIRE_FSYNC_FILE),
	UINT("congestion", open, congestion, WIRE_CC_AUTO, WIRE_CC_FAIR),
	UINT("flags", open, flags, 0, WIRE_OPEN_FLAGS), POSITIVE("streams", open, streams),
	UINT("n_paths", open, n_paths, 0, WIRE_PATHS_MAX), ANY("wait_ms", open, wait_ms),
	ANY("max_delete", open, max_delete), UINT("stripe", open, stripe, 0, WIRE_STRIPES_MAX),
	ANY("min_bytes", open, min_bytes), ANY("max_bytes", open, max_bytes), ANY("newer_s", open, newer_s),
	ANY("older_s", open, older_s), ANY("max_depth", open, max_depth),
	ANY("compress", open, compress), UINT("preserve", open, preserve, 0, WIRE_PRESERVE_ALL),
	ANY("modify_window_s", open, modify_window_s), REST(open, paths)
}, opened[] = {
	BYTES(opened, session), ANY("cipher", opened, cipher), POSITIVE("streams", opened, streams),
	UINT("flags", opened, flags, 0, WIRE_OPENED_FLAGS), UINT("stripe", opened, stripe, 0, WIRE_STRIPES_MAX)
}, error[] = {
	WHY(error), WHY_TEXT("n", error), WHY_DATA(error)
}, ping[] = {
	UINT("busy", ping, busy, WIRE_IDLE, WIRE_VERIFYING), ANY("tick", ping, tick)
}, set_streams[] = {
	ANY("streams", set_streams, streams), ANY("bytes", set_streams, bytes)
}, tcp_report[] = {
	ANY("elapsed_us", tcp_report, elapsed_us), ANY("busy_us", tcp_report, busy_us),
	ANY("window_us", tcp_report, window_us), ANY("buffer_us", tcp_report, buffer_us),
	ANY("retransmits", tcp_report, retransmits), LENGTH("n", 1, tcp_report, congestion, 0, WIRE_CONGESTION_MAX),
	DATA(tcp_report, congestion, WORD), UINT("m", tcp_report, m, 0, WIRE_REPORT_STREAMS_MAX),
	ARRAY("rtt_us", tcp_report, rtt_us, m, 0, UINT32_MAX), ARRAY("min_rtt_us", tcp_report, min_rtt_us,
	m, 0, UINT32_MAX),
	ARRAY("segments", tcp_report, segments, m, 0, UINT32_MAX), ARRAY("lost", tcp_report, lost, m, 0, UINT32_MAX),
	ARRAY("events", tcp_report, events, m, 0, UINT32_MAX)
}, join[] = {
	BYTES(join, session), ANY("stream", join, stream), BYTES(join, mac)
}, control_ack[] = {
	ANY("bytes", control_ack, bytes)
}, rate[] = {
	ANY("all", rate, all_bps), UINT("n", rate, n, 0, WIRE_RATES_MAX), UINT("m", rate, m, 0, WIRE_RATE_STREAMS_MAX),
	ARRAY("rates", rate, bps, n, 1, UINT64_MAX), ARRAY("shares", rate, of, m, 0, WIRE_RATES_MAX)
}, load[] = {
	UINT("busy", load, busy_permille, 0, 1000), UINT("disk", load, disk_permille, 0, 1000)
}, waiting[] = {
	ANY("ahead", waiting, ahead)
}, select[] = {
	UINT("final", select, final, 0, 1), ANY("n_paths", select, n_paths), REST(select, paths)
}, entry[] = {
	UINT("type", entry, type, WIRE_DIR, WIRE_NAME), ID(entry, id), ANY("parent", entry, parent),
	UINT("size", entry, size_bytes, 0, WIRE_FILE_MAX), ANY("mtime_s", entry, mtime_s),
	UINT("mtime_ns", entry, mtime_ns, 0, 999999999), UINT("mode", entry, mode, 0, 07777),
	LENGTH("n", 2, entry, name, 0, 255), LENGTH("m", 2, entry, target, 0, WIRE_PATH_MAX),
	LENGTH("k", 4, entry, attrs, 0, WIRE_CONTROL_MAX - 49), DATA(entry, name, NO_NUL),
	DATA(entry, target, NO_NUL), { "attributes", WIRE_FIELD_DATA, 0, WIRE_FIELD_ANY, AT(entry, attrs), 0, 0, 0 }
}, answer[] = {
	ID(answer, id), UINT("verdict", answer, verdict, WIRE_SEND_ALL, WIRE_NO_LINK)
}, range[] = { /* NEED, HOLE, MATCH and SPLIT */
	ID(blocks, id), ANY("first", blocks, first), POSITIVE("count", blocks, count)
}, have[] = {
	ID(blocks, id), ANY("first", blocks, first), POSITIVE("count", blocks, count), DIGEST(blocks)
}, hashes[] = {
	ID(hashes, id), ANY("first", hashes, first), UINT("n", hashes, n, 1, WIRE_HASHES_MAX),
	REST(hashes, hashes)
}, pieces[] = {
	ID(hashes, id), ANY("block", hashes, first), UINT("n", hashes, n, 1, WIRE_PIECES_MAX),
	REST(hashes, hashes)
}, patch[] = {
	ID(patch, id), ANY("block", patch, block), POSITIVE("omit", patch, omit)
}, ack[] = {
	ID(ack, id), ANY("block", ack, block)
}, file_end[] = {
	ID(file_end, id), DIGEST(file_end)
}, size[] = {
	ID(size, id), UINT("size", size, size_bytes, 0, WIRE_UNSIZED_MAX)
}, done[] = {
	ID(done, id)
}, fail[] = {
	ID(fail, id), WHY(fail), WHY_TEXT("n", fail), WHY_DATA(fail)
}, totals[] = {
	ANY("files", totals, files), ANY("bytes", totals, bytes), UINT("final", totals, final, 0, 1)
}, end[] = {
	ANY("files", end, files), ANY("failed", end, failed)
}, warning[] = {
	UINT("kind", warning, kind, WIRE_WARNING_FAILED, WIRE_WARNING_INSIDE), WHY(warning),
	LENGTH("n", 2, warning, path, 0, WIRE_PATH_MAX), WHY_TEXT("m", warning),
	DATA(warning, path, NO_NUL), WHY_DATA(warning)
}, leftovers[] = {
	POSITIVE("files", leftovers, files), ANY("bytes", leftovers, bytes), ANY("age_ms", leftovers, age_ms)
}, deleted[] = {
	LENGTH("n", 2, deleted, path, 1, WIRE_PATH_MAX), DATA(deleted, path, NO_NUL)
}, route[] = {
	POSITIVE("port", route, port), LENGTH("n", 1, route, host, 1, WIRE_HOST_MAX), DATA(route, host, WORD),
	ANY("spool", route, spool_bytes), ANY("session", route, session), UINT("control", route, control, 0, 1)
}, grant[] = {
	BYTES(grant, issuer), BYTES(grant, grantee), BYTES(grant, audience),
	UINT("mode", grant, mode, WIRE_GRANT_READ, WIRE_GRANT_RELAY), ANY("expiry", grant, expiry_s),
	BYTES(grant, nonce), LENGTH("n", 2, grant, path, 0, WIRE_PATH_MAX), DATA(grant, path, NO_NUL),
	LENGTH("m", 2, grant, certificates, 0, WIRE_CERTIFICATES_MAX), DATA(grant, certificates, ANY),
	BYTES(grant, signature)
}, job[] = {
	UINT("flags", job, flags, 0, WIRE_JOB_FLAGS), UINT("family", job, family, 0, 6), POSITIVE("port", job, port),
	POSITIVE("timeout_ms", job, timeout_ms), ANY("linger_ms", job, linger_ms),
	LENGTH("n", 1, job, host, 1, WIRE_HOST_MAX), LENGTH("m", 1, job, congestion, 0, WIRE_CONGESTION_MAX),
	DATA(job, host, WORD), DATA(job, congestion, WORD),
	UINT("rate", job, rate_bps, 0, WIRE_RATE_IDLE - 1)
}, probe[] = {
	POSITIVE("streams", probe, streams), UINT("messages", probe, messages, 1, WIRE_SAMPLES_MAX),
	ANY("cipher", probe, cipher), ANY("wait_ms", probe, wait_ms)
}, sample[] = {
	POSITIVE("bytes", sample, bytes), POSITIVE("delay_ns", sample, delay_ns),
	ANY("round_trip_ns", sample, round_trip_ns)
}, started[] = {
	POSITIVE("id", started, id), LENGTH("n", 1, started, peer, 1, WIRE_HOST_MAX), DATA(started, peer, WORD)
},
/* PROGRESS, and a part of STATE; `p` is the prefix of the members. */
#define PROGRESS(s, p) \
	ANY("bytes", s, p bytes), ANY("total_bytes", s, p total_bytes), ANY("files", s, p files), \
	ANY("total_files", s, p total_files), ANY("failed", s, p failed), ANY("wire_bytes", s, p wire_bytes), \
	ANY("saved_bytes", s, p saved_bytes), \
	ANY("resumed_bytes", s, p resumed_bytes), ANY("file_bytes", s, p file_bytes), ANY("others", s, p others), \
	ANY("streams", s, p streams), ANY("max_streams", s, p max_streams), \
	UINT("activity", s, p activity, PTCP_TRANSFERRING, PTCP_SYNCING), UINT("total_known", s, p total_known, 0, 1)
progress[] = {
	PROGRESS(progress, )
}, event[] = {
	UINT("kind", event, kind, WIRE_EVENT_DONE, WIRE_EVENT_STREAMS), WHY(event),
	ANY("from", event, from),
	ANY("to", event, to), LENGTH("n", 2, event, path, 0, WIRE_PATH_MAX),
	WHY_TEXT("m", event), DATA(event, path, NO_NUL), WHY_DATA(event)
}, status[] = {
	ANY("id", status, id), UINT("cancel", status, cancel, 0, 1)
}, state[] = {
	POSITIVE("id", state, id), UINT("kind", state, kind, WIRE_STATE_RUNNING, WIRE_STATE_OVER),
	UINT("mode", state, mode, WIRE_GRANT_READ, WIRE_GRANT_PROBE), WHY(state),
	POSITIVE("port", state, port), ANY("age_ms", state, age_ms), ANY("took_ms", state, took_ms),
	PROGRESS(state, progress.), LENGTH("n", 1, state, host, 1, WIRE_HOST_MAX),
	LENGTH("m", 2, state, from, 0, WIRE_PATH_MAX), LENGTH("k", 2, state, to, 0, WIRE_PATH_MAX),
	WHY_TEXT("l", state),
	DATA(state, host, WORD), DATA(state, from, NO_NUL), DATA(state, to, NO_NUL), WHY_DATA(state)
}, link[] = {
	UINT("rate_bps", link, rate_bps, 0, WIRE_LINK_BPS_MAX), ANY("rate_error_bps", link, rate_error_bps),
	UINT("delay_ns", link, delay_ns, 0, WIRE_LINK_NS_MAX), ANY("delay_error_ns", link, delay_error_ns),
	ANY("age_ms", link, age_ms), ANY("messages", link, messages), ANY("streams", link, streams),
	POSITIVE("port", link, port), UINT("flags", link, flags, 0, WIRE_LINK_FLAGS),
	LENGTH("n", 1, link, host, 1, WIRE_HOST_MAX), LENGTH("m", 2, link, text, 0, WIRE_TEXT_MAX),
	DATA(link, host, WORD), DATA(link, text, ANY)
}, clean[] = {
	ANY("older_ms", clean, older_ms), UINT("dry_run", clean, dry_run, 0, 1),
	LENGTH("n", 2, clean, path, 0, WIRE_PATH_MAX), DATA(clean, path, NO_NUL)
}, leftover[] = {
	ANY("bytes", leftover, bytes), ANY("age_ms", leftover, age_ms), WHY(leftover),
	LENGTH("n", 2, leftover, path, 0, WIRE_PATH_MAX),
	WHY_TEXT("m", leftover), DATA(leftover, path, NO_NUL), WHY_DATA(leftover)
}, cleaned[] = {
	ANY("files", cleaned, files), ANY("bytes", cleaned, bytes), ANY("in_use", cleaned, in_use),
	ANY("recent", cleaned, recent), ANY("failed", cleaned, failed), UINT("final", cleaned, final, 0, 1)
}, manage[] = {
	UINT("op", manage, op, WIRE_MANAGE_LIST, WIRE_MANAGE_TOUCH),
	UINT("flags", manage, flags, 0, WIRE_MANAGE_FLAGS),
	UINT("n_paths", manage, n_paths, 1, WIRE_PATHS_MAX), REST(manage, paths)
}, listed[] = {
	UINT("type", listed, type, WIRE_LISTED_UNKNOWN, WIRE_LISTED_BLOCK_DEVICE), WHY(listed),
	UINT("mode", listed, mode, 0, 07777), ANY("bytes", listed, bytes), ANY("disk_bytes", listed, disk_bytes),
	ANY("entries", listed, entries), ANY("mtime_s", listed, mtime_s),
	UINT("mtime_ns", listed, mtime_ns, 0, 999999999),
	LENGTH("n", 2, listed, path, 0, WIRE_PATH_MAX), LENGTH("m", 2, listed, target, 0, WIRE_PATH_MAX),
	WHY_TEXT("k", listed), DATA(listed, path, NO_NUL), DATA(listed, target, NO_NUL),
	WHY_DATA(listed)
}, managed[] = {
	ANY("entries", managed, entries), ANY("bytes", managed, bytes), ANY("disk_bytes", managed, disk_bytes),
	ANY("failed", managed, failed), ANY("quota_used", managed, quota_used_bytes),
	ANY("quota", managed, quota_bytes), UINT("final", managed, final, 0, 1)
}, read[] = {
	UINT("n_ranges", read, n_ranges, 1, WIRE_RANGES_MAX), LENGTH("n", 2, read, path, 0, WIRE_PATH_MAX),
	DATA(read, path, NO_NUL), REST(read, ranges)
}, sum[] = {
	UINT("flags", sum, flags, 0, WIRE_SUM_FLAGS), UINT("digests", sum, digests, 1, WIRE_DIGESTS),
	ANY("start", sum, start), ANY("end", sum, end), UINT("n_paths", sum, n_paths, 1, WIRE_PATHS_MAX),
	REST(sum, paths)
}, write[] = {
	UINT("flags", write, flags, 0, WIRE_WRITE_FLAGS), UINT("fsync", write, fsync, 0, WIRE_FSYNC_FILE),
	UINT("mode", write, mode, 0, 0777), UINT("size", write, size_bytes, 0, WIRE_WRITE_MAX),
	ANY("mtime_s", write, mtime_s), ANY("mtime_ns", write, mtime_ns),
	LENGTH("n", 2, write, path, 0, WIRE_PATH_MAX), LENGTH("m", 1, write, if_match, 0, WIRE_IF_MATCH_MAX),
	DATA(write, path, NO_NUL), DATA(write, if_match, WORD)
}, mover[] = {
	LENGTH("n", 1, mover, host, 1, WIRE_HOST_MAX), DATA(mover, host, WORD)
}, endpoint[] = {
	ANY("id", endpoint, id), BYTES(endpoint, peer), ANY("port", endpoint, port),
	LENGTH("n", 1, endpoint, host, 0, WIRE_HOST_MAX), DATA(endpoint, host, WORD)
}, invite[] = {
	BYTES(invite, run), BYTES(invite, key), BYTES(invite, session), BYTES(invite, join), BYTES(invite, peer),
	ANY("cipher", invite, cipher), UINT("flags", invite, flags, 0, WIRE_STREAM_FLAGS),
	POSITIVE("streams", invite, streams), POSITIVE("timeout_ms", invite, timeout_ms),
	LENGTH("n", 1, invite, near, 1, WIRE_HOST_MAX), LENGTH("m", 1, invite, congestion, 0, WIRE_CONGESTION_MAX),
	DATA(invite, near, WORD), DATA(invite, congestion, WORD)
}, accepted[] = { ANY("handle", accepted, handle), ANY("number", accepted, number), BYTES(accepted, peer) },
stream[] = {
	ANY("handle", stream, handle), ANY("number", stream, number), BYTES(stream, session), BYTES(stream, key),
	BYTES(stream, peer), ANY("cipher", stream, cipher), UINT("family", stream, family, 0, 6),
	UINT("flags", stream, flags, 0, WIRE_STREAM_FLAGS), ANY("segment", stream, segment_bytes),
	POSITIVE("timeout_ms", stream, timeout_ms), POSITIVE("connect_ms", stream, connect_ms),
	ANY("spool", stream, spool_bytes), ANY("route_session", stream, route_session), POSITIVE("port", stream, port),
	LENGTH("n", 1, stream, host, 1, WIRE_HOST_MAX), LENGTH("m", 1, stream, label, 0, WIRE_LABEL_MAX),
	LENGTH("k", 1, stream, congestion, 0, WIRE_CONGESTION_MAX), LENGTH("r", 2, stream, relays, 0, WIRE_RELAYS_MAX),
	DATA(stream, host, WORD), DATA(stream, label, WORD), DATA(stream, congestion, WORD), DATA(stream, relays, WORD)
}, hop[] = {
	ANY("handle", hop, handle), ANY("hop", hop, hop), BYTES(hop, peer),
	LENGTH("n", 2, hop, certificates, 0, WIRE_CERTIFICATES_MAX), DATA(hop, certificates, ANY)
}, pass[] = {
	ANY("handle", pass, handle), LENGTH("n", 2, pass, grant, 1, WIRE_GRANT_MAX_BYTES), DATA(pass, grant, ANY)
}, source[] = {
	ID(source, id), ANY("root", source, root), UINT("size", source, size_bytes, 0, WIRE_FILE_MAX),
	ANY("ino", source, ino), ANY("mtime_s", source, mtime_s), ANY("ctime_s", source, ctime_s),
	UINT("mtime_ns", source, mtime_ns, 0, 999999999), UINT("ctime_ns", source, ctime_ns, 0, 999999999),
	LENGTH("n", 2, source, path, 0, WIRE_PATH_MAX), DATA(source, path, NO_NUL)
}, send[] = {
	ANY("handle", send, handle), UINT("n", send, n, 1, WIRE_EXTENTS_MAX), REST(send, extents)
}, forget[] = {
	ID(forget, id)
}, check[] = {
	ANY("handle", check, handle), ANY("silent_ns", check, silent_ns), UINT("unacked", check, unacked, 0, 1)
}, stop[] = {
	ANY("handle", stop, handle), UINT("reset", stop, reset, 0, 1)
}, pace[] = {
	ANY("bps", pace, bps), LENGTH("n", 1, pace, congestion, 0, WIRE_CONGESTION_MAX), DATA(pace, congestion, WORD)
}, handle[] = { /* CONNECTED and GONE */
	ANY("handle", connected, handle)
}, lost[] = {
	ANY("handle", lost, handle), ANY("cause", lost, cause), ANY("hop", lost, hop), REASON(lost),
	ANY("acked", lost, acked_bytes), ANY("silent_ms", lost, silent_ms),
	WHY_TEXT("n", lost), WHY_DATA(lost)
}, unread[] = {
	ANY("handle", unread, handle), UINT("extent", unread, extent, 0, WIRE_EXTENTS_MAX - 1),
	REASON(unread), WHY_TEXT("n", unread), WHY_DATA(unread)
}, sent[] = {
	ANY("handle", sent, handle), UINT("n", sent, n, 1, WIRE_EXTENTS_MAX), REST(sent, terms)
}, traffic[] = {
	ANY("handle", traffic, handle), ANY("moved", traffic, moved_bytes), UINT("on_disk", traffic, on_disk, 0, 1),
	ANY("acked", traffic, acked_bytes), ANY("received", traffic, received_bytes),
	ANY("sacked", traffic, sacked_bytes),
	ANY("delivered", traffic, delivered_bytes), ANY("segments", traffic, sent_segments),
	ANY("retransmits", traffic, retransmits), ANY("rtt_us", traffic, rtt_us),
	ANY("min_rtt_us", traffic, min_rtt_us),
	ANY("silent_us", traffic, silent_us), ANY("no_data_us", traffic, no_data_us), ANY("busy_us", traffic, busy_us),
	ANY("window_us", traffic, window_us), ANY("buffer_us", traffic, buffer_us), ANY("timeouts", traffic, timeouts),
	UINT("unacked", traffic, unacked, 0, 1), LENGTH("n", 1, traffic, congestion, 0, WIRE_CONGESTION_MAX),
	DATA(traffic, congestion, WORD)
}, target[] = {
	ID(target, id), ANY("root", target, root), UINT("size", target, size_bytes, 1, WIRE_FILE_MAX),
	POSITIVE("ino", target, ino), UINT("flags", target, flags, 0, WIRE_TARGET_FLAGS),
	LENGTH("n", 2, target, path, 1, WIRE_PATH_MAX), DATA(target, path, NO_NUL)
}, want[] = {
	ANY("handle", want, handle), ID(want, id)
}, wrote[] = {
	ANY("handle", wrote, handle), UINT("n", wrote, n, 1, WIRE_WRITTEN_MAX), REST(wrote, items)
}, unwritten[] = {
	ANY("handle", unwritten, handle), ID(unwritten, id), ANY("block", unwritten, block),
	REASON(unwritten), WHY_TEXT("n", unwritten), WHY_DATA(unwritten)
};

/* ---- Rules that span fields ---- */

static bool hello_valid(const void *f)
{
	const struct wire_hello *h = f;

	return h->version_min <= h->version_max;
}

static bool path_count_valid(const struct wire_open *o)
{
	switch (o->role) {
	case WIRE_ACCEPTOR_RECEIVES:
	case WIRE_ACCEPTOR_SENDS: return o->n_paths > 0;
	default: return o->n_paths == 0 && o->flags == 0 && o->compress == 0 &&
	    o->preserve == 0 && o->modify_window_s == 0;
	}
}

/* One path of OPEN; *place: a source or destination, not a rule. */
static bool path_valid(uint8_t role, bool rules, uint8_t flags, struct span path, bool *place)
{
	if (path.n > WIRE_PATH_MAX || (path.n > 0 && memchr(path.p, '\0', path.n) != NULL))
		return false;
	*place = flags == WIRE_PATH_PLACE || (flags == WIRE_PATH_CONTENTS && role == WIRE_ACCEPTOR_SENDS);
	if (*place || path.n == 0)
		return *place;
	switch (flags) {
	case WIRE_PATH_RULE: return rules;
	case WIRE_PATH_LINK_DEST:
	case WIRE_PATH_COMPARE_DEST:
	case WIRE_PATH_COPY_DEST:
	case WIRE_PATH_BACKUP_DIR: return role == WIRE_ACCEPTOR_RECEIVES;
	case WIRE_PATH_SUFFIX: return role == WIRE_ACCEPTOR_RECEIVES && memchr(path.p, '/', path.n) == NULL;
	case WIRE_PATH_IF_MATCH: return role == WIRE_ACCEPTOR_RECEIVES && path.n <= WIRE_IF_MATCH_MAX;
	default: return false;
	}
}

static bool compress_valid(uint8_t compress)
{
	return compress <= WIRE_COMPRESS_MAX || compress == WIRE_COMPRESS_AUTO;
}

static bool open_valid(const void *f)
{
	const struct wire_open *o = f;
	struct span rest = o->paths, path;
	bool deletes = (o->flags & WIRE_OPEN_DELETE) != 0, rules = o->role == WIRE_ACCEPTOR_SENDS || deletes, place;
	unsigned i, places = 0, dirs = 0, suffixes = 0, versions = 0;
	uint8_t flags, reference = 0;

	for (i = 0; i < o->n_paths; i++) {
		if (!wire_path_next(&rest, &flags, &path) || !path_valid(o->role, rules, flags, path, &place))
			return false;
		places += place;
		dirs += flags == WIRE_PATH_BACKUP_DIR;
		suffixes += flags == WIRE_PATH_SUFFIX;
		versions += flags == WIRE_PATH_IF_MATCH;
		if (wire_path_is_reference(flags) && reference != 0 && flags != reference)
			return false;
		if (wire_path_is_reference(flags))
			reference = flags;
	}
	return path_count_valid(o) && compress_valid(o->compress) && (places > 0 || o->n_paths == 0) && rest.n == 0 &&
	    (deletes || o->max_delete == 0) && dirs <= 1 && suffixes <= 1 && versions <= 1 &&
	    (o->role != WIRE_ACCEPTOR_RECEIVES || places == 1);
}

/* Paths of work on files: without flags. */
static bool work_paths_valid(struct span rest, unsigned n)
{
	struct span path;
	uint8_t flags;
	bool place;

	for (; n > 0; n--)
		if (!wire_path_next(&rest, &flags, &path) || flags != 0 ||
		    !path_valid(WIRE_ACCEPTOR_SENDS, true, 0, path, &place))
			return false;
	return rest.n == 0;
}

static bool sum_valid(const void *f)
{
	const struct wire_sum *d = f;

	return work_paths_valid(d->paths, d->n_paths);
}

/* Only the flags of the operation; a RENAME names two paths. */
static bool manage_valid(const void *f)
{
	static const uint8_t flags[] = {
		[WIRE_MANAGE_LIST] = WIRE_MANAGE_RECURSIVE | WIRE_MANAGE_HIDDEN | WIRE_MANAGE_ITSELF |
		    WIRE_MANAGE_LITERAL,
		[WIRE_MANAGE_COUNT] = WIRE_MANAGE_LITERAL, [WIRE_MANAGE_MKDIR] = WIRE_MANAGE_PARENTS,
		[WIRE_MANAGE_REMOVE] = WIRE_MANAGE_RECURSIVE | WIRE_MANAGE_LITERAL,
		[WIRE_MANAGE_RENAME] = WIRE_MANAGE_REPLACE, [WIRE_MANAGE_RMDIR] = 0, [WIRE_MANAGE_TOUCH] = 0
	};
	const struct wire_manage *d = f;

	return work_paths_valid(d->paths, d->n_paths) && (d->flags & ~flags[d->op]) == 0 &&
	    (d->op != WIRE_MANAGE_RENAME || d->n_paths == 2);
}

static bool write_valid(const void *f)
{
	const struct wire_write *d = f;
	bool now = d->mtime_ns == WIRE_WRITE_NOW;

	return (now ? d->mtime_s == 0 : d->mtime_ns < 1000000000) &&
	    (d->mode == 0 || (d->flags & WIRE_WRITE_MODE) != 0) &&
	    (d->if_match.n == 0 || (d->flags & WIRE_WRITE_EXCLUSIVE) == 0);
}

/* A failure has a code, an entry has a type. */
static bool listed_valid(const void *f)
{
	const struct wire_listed *d = f;

	return d->why.code != 0 || (d->type != WIRE_LISTED_UNKNOWN && d->why.text.n == 0);
}

static bool leftover_valid(const void *f)
{
	const struct wire_leftover *d = f;

	return d->why.code != 0 || d->why.text.n == 0;
}

static bool read_valid(const void *f)
{
	const struct wire_read *d = f;

	return d->ranges.n == (size_t)d->n_ranges * WIRE_RANGE_BYTES;
}

/* No share above the number of rates, none stated in vain. */
static bool rate_valid(const void *f)
{
	const struct wire_rate *d = f;
	unsigned i;

	for (i = 0; i < d->m; i++)
		if (d->of[i] > d->n)
			return false;
	return d->m == 0 || d->of[d->m - 1] != 0;
}

static bool select_valid(const void *f)
{
	const struct wire_select *d = f;
	struct span s = d->paths;
	unsigned n = 0;
	size_t i;

	for (i = 0; i < s.n; i++) {
		if (s.p[i] == '\0' && (i == 0 || s.p[i - 1] == '\0'))
			return false;
		n += s.p[i] == '\0';
	}
	return n == d->n_paths && (n == 0 ? s.n == 0 : s.p[s.n - 1] == '\0');
}

static bool entry_valid(const void *f)
{
	const struct wire_entry *d = f;
	struct wire_attrs attrs;
	bool named = d->name.n > 0 && text_name_ok((const char *)d->name.p, d->name.n);

	if (wire_attrs_decode(&attrs, d, NULL) < 0)
		return false;
	if (d->parent != 0 && (!wire_id_ok(d->parent) || d->parent == d->id))
		return false;
	switch (d->type) {
	case WIRE_DIR:
		return (named || (d->parent == 0 && wire_entry_is_base(d))) && d->target.n == 0 && d->size_bytes == 0;
	case WIRE_FILE: return named && d->target.n == 0;
	case WIRE_HARDLINK:
	case WIRE_NAME: return named && d->target.n == 0 && d->size_bytes == 0;
	case WIRE_DIR_END:
		return d->name.n == 0 && d->target.n == 0 && d->size_bytes <= WIRE_DIR_CLOSED && d->parent == 0;
	default: return named && d->target.n > 0 && d->size_bytes == 0; /* symbolic links */
	}
}

/* The end of the range does not wrap. */
static bool range_valid(const void *f)
{
	const struct wire_blocks *d = f;

	return d->count <= UINT32_MAX - d->first;
}

static bool hashes_valid(const void *f)
{
	const struct wire_hashes *d = f;

	return d->hashes.n == (size_t)d->n * WIRE_HASH_BYTES && d->n <= UINT32_MAX - d->first;
}

static bool route_valid(const void *f)
{
	const struct wire_route *d = f;

	return d->control == 0 || d->session != 0;
}

static bool grant_valid(const void *f)
{
	const struct wire_grant *d = f;

	return d->path.n == 0 || d->mode != WIRE_GRANT_PROBE;
}

static bool family_valid(uint8_t family) { return family == 0 || family == 4 || family == 6; }

/* An address has a port, and the other way round. */
static bool endpoint_valid(const void *f)
{
	const struct wire_endpoint *d = f;

	return (d->port != 0) == (d->host.n > 0);
}

static bool stream_valid(const void *f) { return family_valid(((const struct wire_stream *)f)->family); }

static bool job_valid(const void *f)
{
	const struct wire_job *d = f;

	return family_valid(d->family) &&
	    (d->rate_bps == 0 || d->rate_bps >= WIRE_JOB_MIN_BPS);
}

static bool status_valid(const void *f)
{
	const struct wire_status *d = f;

	return d->cancel == 0 || d->id != 0;
}

/* Ids and numbers of blocks are checked against the files that the mover knows. */
static bool send_valid(const void *f)
{
	const struct wire_send *d = f;

	return d->extents.n == (size_t)d->n * WIRE_EXTENT_BYTES;
}

static bool sent_valid(const void *f)
{
	const struct wire_sent *d = f;

	return d->terms.n == (size_t)d->n * WIRE_TERM_BYTES;
}

static bool wrote_valid(const void *f)
{
	const struct wire_wrote *d = f;

	return d->items.n == (size_t)d->n * WIRE_WRITTEN_BYTES;
}

static bool error_valid(uint64_t v, uint64_t max)
{
	return v <= max || v == WIRE_LINK_NOT_KNOWN;
}

/* A link has all numbers, or none: rate 0. */
static bool link_valid(const void *f)
{
	const struct wire_link *d = f;

	if (d->rate_bps == 0)
		return (d->rate_error_bps | d->delay_ns | d->delay_error_ns | d->age_ms | d->messages | d->streams |
		    d->flags) == 0;
	return error_valid(d->rate_error_bps, WIRE_LINK_BPS_MAX) && error_valid(d->delay_error_ns, WIRE_LINK_NS_MAX) &&
	    d->messages != 0 && d->streams != 0;
}

#define LAYOUT(X, fields, s, valid) \
	[WIRE_##X] = { fields, sizeof fields / sizeof *fields, sizeof(struct wire_##s), valid, false }
#define OPTIONAL(X, fields, s, valid) \
	[WIRE_##X] = { fields, sizeof fields / sizeof *fields, sizeof(struct wire_##s), valid, true }

const struct wire_layout wire_layouts[256] = {
	LAYOUT(HELLO, hello, hello, hello_valid), LAYOUT(OPEN, open, open, open_valid),
	LAYOUT(OPENED, opened, opened, NULL), LAYOUT(ERROR, error, error, NULL), LAYOUT(PING, ping, ping, NULL),
	LAYOUT(SET_STREAMS, set_streams, set_streams, NULL), LAYOUT(TCP_REPORT, tcp_report, tcp_report, NULL),
	LAYOUT(JOIN, join, join, NULL), LAYOUT(CONTROL_ACK, control_ack, control_ack, NULL),
	OPTIONAL(RATE, rate, rate, rate_valid), OPTIONAL(LOAD, load, load, NULL),
	LAYOUT(WAITING, waiting, waiting, NULL), LAYOUT(SELECT, select, select, select_valid),
	LAYOUT(ENTRY, entry, entry, entry_valid),
	LAYOUT(ANSWER, answer, answer, NULL), LAYOUT(NEED, range, blocks, range_valid),
	LAYOUT(HAVE, have, blocks, range_valid), LAYOUT(HOLE, range, blocks, range_valid), LAYOUT(ACK, ack, ack, NULL),
	LAYOUT(MATCH, range, blocks, range_valid), LAYOUT(HASHES, hashes, hashes, hashes_valid),
	LAYOUT(SPLIT, range, blocks, range_valid), LAYOUT(PIECES, pieces, hashes, hashes_valid),
	LAYOUT(PATCH, patch, patch, NULL),
	LAYOUT(FILE_END, file_end, file_end, NULL), LAYOUT(DONE, done, done, NULL), LAYOUT(FAIL, fail, fail, NULL),
	LAYOUT(TOTALS, totals, totals, NULL), LAYOUT(END, end, end, NULL), LAYOUT(WARNING, warning, warning, NULL),
	LAYOUT(ROUTE, route, route, route_valid), LAYOUT(GRANT, grant, grant, grant_valid),
	LAYOUT(JOB, job, job, job_valid),
	LAYOUT(PROBE, probe, probe, NULL), LAYOUT(SAMPLE, sample, sample, NULL),
	LAYOUT(STARTED, started, started, NULL),
	LAYOUT(PROGRESS, progress, progress, NULL), LAYOUT(EVENT, event, event, NULL),
	LAYOUT(STATUS, status, status, status_valid), LAYOUT(STATE, state, state, NULL),
	LAYOUT(LINK, link, link, link_valid), LAYOUT(CLEAN, clean, clean, NULL),
	LAYOUT(LEFTOVER, leftover, leftover, leftover_valid),
	LAYOUT(CLEANED, cleaned, cleaned, NULL), LAYOUT(MANAGE, manage, manage, manage_valid),
	LAYOUT(LISTED, listed, listed, listed_valid), LAYOUT(MANAGED, managed, managed, NULL),
	LAYOUT(READ, read, read, read_valid), LAYOUT(WRITE, write, write, write_valid),
	LAYOUT(SUM, sum, sum, sum_valid),
	LAYOUT(LEFTOVERS, leftovers, leftovers, NULL), LAYOUT(DELETED, deleted, deleted, NULL),
	LAYOUT(SIZE, size, size, NULL), LAYOUT(MOVER, mover, mover, NULL), LAYOUT(STREAM, stream, stream, stream_valid),
	LAYOUT(SOURCE, source, source, NULL), LAYOUT(SEND, send, send, send_valid),
	LAYOUT(FORGET, forget, forget, NULL),
	LAYOUT(CHECK, check, check, NULL), LAYOUT(STOP, stop, stop, NULL), LAYOUT(PACE, pace, pace, NULL),
	LAYOUT(CONNECTED, handle, connected, NULL), LAYOUT(LOST, lost, lost, NULL), LAYOUT(GONE, handle, gone, NULL),
	LAYOUT(UNREAD, unread, unread, NULL), LAYOUT(SENT, sent, sent, sent_valid),
	LAYOUT(TRAFFIC, traffic, traffic, NULL),
	LAYOUT(TARGET, target, target, NULL), LAYOUT(CLOSE, forget, close, NULL), LAYOUT(WANT, want, want, NULL),
	LAYOUT(WROTE, wrote, wrote, wrote_valid), LAYOUT(UNWRITTEN, unwritten, unwritten, NULL),
	LAYOUT(CLOSED, forget, closed, NULL), LAYOUT(ENDPOINT, endpoint, endpoint, endpoint_valid),
	LAYOUT(INVITE, invite, invite, NULL), LAYOUT(ACCEPTED, accepted, accepted, NULL),
	LAYOUT(HOP, hop, hop, NULL), LAYOUT(PASS, pass, pass, NULL)
};
