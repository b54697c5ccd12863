/* Frames about movers, processes on other hosts, which carry out streams as worker threads do: between an engine and its
 * movers, and ENDPOINT (PROTOCOL.md, section 14). A stream has a handle, which its connection never shares with another one. */
#ifndef WIRE_MOVER_H
#define WIRE_MOVER_H

#include "wire/frame.h"

#define WIRE_MOVER_HANDLES 1024 /* of a mover at once; they differ modulo this number */

/* ---- Between the ends of a session ---- */

/* A mover of the acceptor, to which the starter connects streams; or the end of that mover. From a mover to its engine: where
 * it listens. */
struct wire_endpoint {
	uint32_t id;
	uint8_t peer[32];   /* SHA-256 of the mover's SubjectPublicKeyInfo */
	uint16_t port;      /* 0: the mover has left */
	struct span host;   /* 1 to WIRE_HOST_MAX printable ASCII bytes; empty with port 0 */
};
WIRE_CODEC(ENDPOINT, endpoint, wire_endpoint)

/* ---- From the mover ---- */

/* The first frame after JOINED: the name of the mover's host, for messages. */
struct wire_mover {
	struct span host; /* 1 to WIRE_HOST_MAX printable ASCII bytes */
};
WIRE_CODEC(MOVER, mover, wire_mover)

/* The data connection of the stream has joined its session. */
struct wire_connected {
	uint32_t handle;
};
WIRE_CODEC(CONNECTED, connected, wire_connected)

/* The connection of the stream failed or ended. STOP must follow unless the stream never was CONNECTED. */
struct wire_lost {
	uint32_t handle;
	uint8_t cause;     /* of a connection that failed: an enum connect_cause, */
	uint8_t hop;       /* and the number of the relay without a connection; of relays: the peer */
	uint16_t code;
	uint64_t acked_bytes, silent_ms; /* of the TCP connection; see struct mtu_lost */
	struct span text;
};
WIRE_CODEC(LOST, lost, wire_lost)

/* The mover has reached relay number `hop` of STREAM, which presents this identity: PASS or STOP must follow. */
struct wire_hop {
	uint32_t handle;
	uint8_t hop;
	uint8_t peer[32];         /* SHA-256 of the key of the relay */
	struct span certificates; /* as presented */
};
WIRE_CODEC(HOP, hop, wire_hop)

/* After STOP: the last frame about the stream. */
struct wire_gone {
	uint32_t handle;
};
WIRE_CODEC(GONE, gone, wire_gone)

/* Before SENT: a block of the oldest job of the stream could not be read. */
struct wire_unread {
	uint32_t handle;
	uint8_t extent;   /* below the number of extents of the job */
	uint16_t code;
	struct span text;
};
WIRE_CODEC(UNREAD, unread, wire_unread)

/* The channel of the stream has accepted the oldest job: one term per extent. */
struct wire_sent {
	uint32_t handle;
	uint8_t n;
	struct span terms; /* n times WIRE_TERM_BYTES */
};
#define WIRE_TERM_BYTES 16
WIRE_CODEC(SENT, sent, wire_sent)

/* Of a connected stream, ten times a second. */
struct wire_traffic {
	uint32_t handle;
	uint64_t moved_bytes;
	uint8_t on_disk;   /* 1: a job waits for a disk */
	/* as struct tcpinfo has them: */
	uint64_t acked_bytes, received_bytes, sacked_bytes, delivered_bytes, sent_segments, retransmits;
	uint64_t rtt_us, min_rtt_us, silent_us, no_data_us, busy_us, window_us, buffer_us;
	uint32_t timeouts;
	uint8_t unacked;
	struct span congestion;
};
WIRE_CODEC(TRAFFIC, traffic, wire_traffic)

/* A block of an unknown file has arrived on the stream, which waits for TARGET or CLOSE. */
struct wire_want {
	uint32_t handle;
	uint64_t id;
};
WIRE_CODEC(WANT, want, wire_want)

/* Results of received blocks: written and flushed, or corrupt. */
struct wire_wrote {
	uint32_t handle;
	uint8_t n;
	struct span items; /* n times WIRE_WRITTEN_BYTES: id, block, hash of the content, result */
};
#define WIRE_WRITTEN_BYTES 21
#define WIRE_WRITTEN_MAX 64
enum wire_written { WIRE_WRITTEN_GOOD, WIRE_WRITTEN_CORRUPT };
WIRE_CODEC(WROTE, wrote, wire_wrote)

/* A received block could not be written. */
struct wire_unwritten {
	uint32_t handle;
	uint64_t id;
	uint32_t block;
	uint16_t code;
	struct span text;
};
WIRE_CODEC(UNWRITTEN, unwritten, wire_unwritten)

/* After CLOSE: the mover writes no more into the file. */
struct wire_closed {
	uint64_t id;
};
WIRE_CODEC(CLOSED, closed, wire_closed)

/* A data connection of the session of INVITE has joined as the stream with this number. The mover chooses the handle. */
struct wire_accepted {
	uint32_t handle;
	uint16_t number;
	uint8_t peer[32]; /* SHA-256 of the SubjectPublicKeyInfo */
};
WIRE_CODEC(ACCEPTED, accepted, wire_accepted)

/* ---- From the engine ---- */

enum wire_stream_flags {
	WIRE_STREAM_VERIFY = 1 << 0,   /* hash the blocks */
	WIRE_STREAM_AHEAD = 1 << 1,    /* blocks follow JOIN without waiting for JOINED */
	WIRE_STREAM_PATIENT = 1 << 2,  /* no limit on unacknowledged data */
	WIRE_STREAM_RECEIVE = 1 << 3,  /* blocks arrive, for files of TARGET; else jobs of SEND are sent */
	WIRE_STREAM_FLAGS = (1 << 4) - 1
};

/* To a mover of a server: join another set of movers, for one session, and accept the data connections of the session. */
struct wire_invite {
	uint8_t run[WIRE_SESSION_BYTES], key[32]; /* of the set, as in an invitation */
	uint8_t session[WIRE_SESSION_BYTES];
	uint8_t join[32];            /* key of the mover for JOINs of the session: PROTOCOL.md, section 14 */
	uint8_t peer[32];            /* SHA-256 of the key of the starter */
	uint8_t cipher, flags;       /* of enum wire_stream_flags; not AHEAD */
	uint16_t streams;            /* numbers of streams are below */
	uint32_t timeout_ms;         /* of the connections */
	struct span near, congestion; /* address of the server towards the starter; congestion control, may be empty */
};
WIRE_CODEC(INVITE, invite, wire_invite)

/* Make a data connection of a session. */
struct wire_stream {
	uint32_t handle;
	uint16_t number;             /* of the stream, for JOIN */
	uint8_t session[WIRE_SESSION_BYTES];
	uint8_t key[32];             /* of the mover for this session: PROTOCOL.md, section 14 */
	uint8_t peer[32];            /* SHA-256 of the key of the peer; see identity_digest() */
	uint8_t cipher, family, flags;
	uint16_t segment_bytes;      /* 0: the path's */
	uint32_t timeout_ms, connect_ms;
	uint64_t spool_bytes, route_session; /* through relays: as in ROUTE */
	uint16_t port;
	struct span host, label, congestion; /* label and congestion may be empty */
	struct span relays;          /* HOST:PORT of each, in order, separated by commas; empty: direct */
};
WIRE_CODEC(STREAM, stream, wire_stream)

/* The relay that HOP has reported is trusted: a GRANT frame for it. */
struct wire_pass {
	uint32_t handle;
	struct span grant;
};
WIRE_CODEC(PASS, pass, wire_pass)

/* A file that later jobs read. It takes the place of an earlier file with the same slot of the id. */
struct wire_source {
	uint64_t id;
	uint16_t root;               /* index of a root of the invitation, */
	uint64_t size_bytes, ino;
	int64_t mtime_s, ctime_s;
	uint32_t mtime_ns, ctime_ns;
	struct span path;            /* and the path below; empty: the root is the file */
};
WIRE_CODEC(SOURCE, source, wire_source)

/* A job: read these blocks and send them on the stream. */
struct wire_send {
	uint32_t handle;
	uint8_t n;
	struct span extents;         /* n times WIRE_EXTENT_BYTES: id, offset, block, length */
};
#define WIRE_EXTENT_BYTES 24
#define WIRE_EXTENTS_MAX 64
WIRE_CODEC(SEND, send, wire_send)

enum wire_target_flags {
	WIRE_TARGET_SPARSE = 1 << 0,   /* pages of zeros are not written */
	WIRE_TARGET_JOURNAL = 1 << 1,  /* the engine wants the hashes of blocks */
	WIRE_TARGET_DURABLE = 1 << 2,  /* blocks are on disk before WROTE */
	WIRE_TARGET_FLAGS = (1 << 3) - 1
};

/* The part file of a file that is being received. */
struct wire_target {
	uint64_t id;
	uint16_t root;               /* index of a root of the invitation, */
	uint64_t size_bytes, ino;    /* of the file; of the part */
	uint8_t flags;
	struct span path;            /* of the part, below the root */
};
WIRE_CODEC(TARGET, target, wire_target)

/* The file is not, or no more, received: CLOSED must follow. */
struct wire_close {
	uint64_t id;
};
WIRE_CODEC(CLOSE, close, wire_close)

/* The file is complete, or given up. */
struct wire_forget {
	uint64_t id;
};
WIRE_CODEC(FORGET, forget, wire_forget)

/* Reset the stream if its peer's TCP is silent; see stream_check(). */
struct wire_check {
	uint32_t handle;
	uint64_t silent_ns;
	uint8_t unacked;
};
WIRE_CODEC(CHECK, check, wire_check)

/* End the stream, without its unsent data if `reset`. */
struct wire_stop {
	uint32_t handle;
	uint8_t reset;
};
WIRE_CODEC(STOP, stop, wire_stop)

/* Limit of all streams of the mover together; 0: none. And the congestion control of its streams from now on; empty:
 * unchanged. */
struct wire_pace {
	uint64_t bps;
	struct span congestion;
};
WIRE_CODEC(PACE, pace, wire_pace)

#endif
