/* Frames about movers: processes on other hosts, which read and send, or receive and write, the blocks of an engine as
 * its worker threads do. ENDPOINT is part of the protocol between the ends of a session (PROTOCOL.md, section 14); all
 * other frames travel between an engine and its movers, processes of one site and of the same version.
 *
 * Joining. The mover reads the invitation (mover/invitation.h), makes an identity of its own, and restricts itself to
 * TCP connections and to the roots of the invitation. The mover connects with ALPN ptcp-mover/1, compares the
 * fingerprint of the TLS server with the invitation, and sends JOIN { run, 0, mac }; the mac is computed as for a data
 * connection, under the key of the invitation. The engine answers JOINED, or ERROR with code 5. The mover then sends
 * MOVER.
 *
 * Silence. Both ends send PING once a second: the mover with its clock in `tick`, the engine with the tick received
 * last. Each end closes the connection after 8 s without a byte. A mover writes into files for 6 s after the time of
 * the last tick that the engine has returned, and then ends. The engine gives the mover up later than that, and can
 * therefore complete files without the mover.
 *
 * End. The end of the connection ends the mover and all its streams; the engine sends unacknowledged blocks on streams
 * of other movers. The frame END of the engine ends a mover in order. A malformed frame, and a frame that names an
 * unknown stream, job or file, ends the connection.
 *
 * Streams. A handle names the connection of a stream at one mover. The engine chooses the handles of STREAM, the mover
 * those of ACCEPTED; handles in use differ modulo WIRE_MOVER_HANDLES, and no handle is used again before GONE.
 *
 *   STREAM -> HOP, PASS for each relay -> CONNECTED -> SOURCE, SEND, UNREAD, SENT      the mover sends
 *                                                   -> WANT, TARGET or CLOSE, WROTE    the mover receives
 *          -> LOST -> STOP -> GONE */
#ifndef WIRE_MOVER_H
#define WIRE_MOVER_H

#include "wire/frame.h"

#define WIRE_MOVER_HANDLES 1024 /* handles of a mover at once */

/* ---- Between the ends of a session ---- */

/* The acceptor names one of its movers, to which the starter connects streams, or reports that the mover has left. A
 * mover of a server sends the same frame to its engine, with id 0, to report where it listens. */
struct wire_endpoint {
	uint32_t id;
	uint8_t peer[32];   /* SHA-256 of the mover's SubjectPublicKeyInfo */
	uint16_t port;      /* 0: the mover has left */
	struct span host;   /* 1 to WIRE_HOST_MAX printable ASCII bytes; empty with port 0 */
};
WIRE_CODEC(ENDPOINT, endpoint, wire_endpoint)

/* ---- From the mover ---- */

/* MOVER is the first frame after JOINED. */
struct wire_mover {
	struct span host; /* name of the mover's host, for messages: 1 to WIRE_HOST_MAX printable ASCII bytes */
};
WIRE_CODEC(MOVER, mover, wire_mover)

/* The data connection of the stream has joined its session. */
struct wire_connected {
	uint32_t handle;
};
WIRE_CODEC(CONNECTED, connected, wire_connected)

/* The connection of the stream has failed, or a connected stream has ended. The engine answers STOP. */
struct wire_lost {
	uint32_t handle;
	uint8_t cause;     /* an enum connect_cause; 0 of a stream that was connected */
	uint8_t hop;       /* number of the relay, from 0, without a connection; the number of
	                      relays stands for the peer */
	uint64_t acked_bytes, silent_ms; /* bytes that TCP delivered, time since its last segment;
	                                    see struct mtu_lost */
	struct wire_why why; /* code not 0, as in the frames below */
};
WIRE_CODEC(LOST, lost, wire_lost)

/* The mover has reached a relay of the stream, and sends the relay nothing before PASS. The engine judges the identity
 * as for its own connections, and answers PASS or STOP. */
struct wire_hop {
	uint32_t handle;
	uint8_t hop;              /* number of the relay, from 0; the engine answers each number once */
	uint8_t peer[32];         /* SHA-256 of the SubjectPublicKeyInfo of the relay */
	struct span certificates; /* certificates of the relay, as presented */
};
WIRE_CODEC(HOP, hop, wire_hop)

/* GONE follows STOP, and is the last frame about the stream. */
struct wire_gone {
	uint32_t handle;
};
WIRE_CODEC(GONE, gone, wire_gone)

/* The mover could not read a block of the oldest job of the stream, and did not send the block; SENT follows. */
struct wire_unread {
	uint32_t handle;
	uint8_t extent;   /* index of the block in SEND */
	struct wire_why why;
};
WIRE_CODEC(UNREAD, unread, wire_unread)

/* TCP has accepted the last byte of the oldest job of the stream. */
struct wire_sent {
	uint32_t handle;
	uint8_t n;         /* as in SEND */
	struct span terms; /* n times WIRE_TERM_BYTES: the term of the block in the digest of its file, or zeros */
};
#define WIRE_TERM_BYTES 16
WIRE_CODEC(SENT, sent, wire_sent)

/* The mover reports each connected stream ten times a second. From TRAFFIC the engine learns what its own kernel says
 * of connections without movers: an acceptor that sends reports the sums by TCP_REPORT, a starter adjusts the number of
 * streams of all movers together. */
struct wire_traffic {
	uint32_t handle;
	uint64_t moved_bytes; /* bytes that the stream has written */
	uint8_t on_disk;      /* 1: a job waits for a disk */
	/* The rest is a struct tcpinfo. */
	uint64_t acked_bytes, received_bytes, sacked_bytes, delivered_bytes, sent_segments, retransmits;
	uint64_t rtt_us, min_rtt_us, silent_us, no_data_us, busy_us, window_us, buffer_us;
	uint32_t timeouts;
	uint8_t unacked;
	struct span congestion;
};
WIRE_CODEC(TRAFFIC, traffic, wire_traffic)

/* A block of an unknown file has arrived. The mover stops reading the connection until the engine answers TARGET, or
 * CLOSE if the file is not received any more; after CLOSE the mover discards the block. */
struct wire_want {
	uint32_t handle;
	uint64_t id; /* id of the entry */
};
WIRE_CODEC(WANT, want, wire_want)

/* The mover has verified blocks of one stream as a receiver does, written the good ones, and flushed their files, so
 * that all hosts see the blocks, or (WIRE_TARGET_DURABLE) to the disk. The engine records good blocks in its journal
 * and acknowledges them to the sender, and requests corrupt blocks again. The results are in no order. */
struct wire_wrote {
	uint32_t handle;
	uint8_t n;
	struct span items; /* n times WIRE_WRITTEN_BYTES: id u64, block u32, hash u64 of the
	                      content, u8 enum wire_written */
};
#define WIRE_WRITTEN_BYTES 21
#define WIRE_WRITTEN_MAX 64
enum wire_written { WIRE_WRITTEN_GOOD, WIRE_WRITTEN_CORRUPT };
WIRE_CODEC(WROTE, wrote, wire_wrote)

/* The mover could not write a received block: the entry fails. */
struct wire_unwritten {
	uint32_t handle;
	uint64_t id; /* id of the entry */
	uint32_t block;
	struct wire_why why;
};
WIRE_CODEC(UNWRITTEN, unwritten, wire_unwritten)

/* CLOSED answers CLOSE: the mover writes no more into the file, and reports no block of it behind CLOSED. The end of
 * the connection stands for CLOSED. */
struct wire_closed {
	uint64_t id; /* id of the entry */
};
WIRE_CODEC(CLOSED, closed, wire_closed)

/* A data connection of the session of INVITE has joined. From here on the stream is like a stream that is CONNECTED. */
struct wire_accepted {
	uint32_t handle;  /* chosen by the mover */
	uint16_t number;  /* number of the stream in the session */
	uint8_t peer[32]; /* SHA-256 of the other end's SubjectPublicKeyInfo: of the starter, or of
	                     a mover of the starter */
};
WIRE_CODEC(ACCEPTED, accepted, wire_accepted)

/* ---- From the engine ---- */

enum wire_stream_flags {
	WIRE_STREAM_VERIFY = 1 << 0,   /* blocks are hashed */
	WIRE_STREAM_AHEAD = 1 << 1,    /* blocks follow JOIN without waiting for JOINED */
	WIRE_STREAM_PATIENT = 1 << 2,  /* unacknowledged data has no limit in time */
	WIRE_STREAM_RECEIVE = 1 << 3,  /* the mover receives blocks of the files of TARGET; else it
	                                  sends the jobs of SEND */
	WIRE_STREAM_FLAGS = (1 << 4) - 1
};

/* An engine of a server invites its movers to each session. The mover connects to the engine again, joins with this run
 * and key from the same identity, sends MOVER and ENDPOINT, and accepts data connections of the session. All frames but
 * INVITE travel on that connection, and its end ends the session at this mover. */
struct wire_invite {
	uint8_t run[WIRE_SESSION_BYTES], key[32]; /* session and key for JOIN, as in an invitation */
	uint8_t session[WIRE_SESSION_BYTES];      /* id of the session */
	uint8_t join[32];            /* the key Ks of PROTOCOL.md, section 14: data connections join with it */
	uint8_t peer[32];            /* SHA-256 of the starter's SubjectPublicKeyInfo */
	uint8_t cipher, flags;       /* as in OPENED; an enum wire_stream_flags, in which AHEAD is ignored */
	uint16_t streams;            /* granted, not 0 */
	uint32_t timeout_ms;         /* timeout of the data connections, not 0 */
	struct span near;            /* numeric address of the server towards the starter: the mover
	                                names the nearest own one */
	struct span congestion;      /* congestion control; empty: the system's */
};
WIRE_CODEC(INVITE, invite, wire_invite)

/* The mover makes a data connection of a session, and answers CONNECTED or LOST. */
struct wire_stream {
	uint32_t handle;
	uint16_t number;             /* number of the stream in the session */
	uint8_t session[WIRE_SESSION_BYTES];
	uint8_t key[32];             /* the key Km of PROTOCOL.md, section 14, for JOIN */
	uint8_t peer[32];            /* SHA-256 of the peer's SubjectPublicKeyInfo; see identity_digest() */
	uint8_t cipher;              /* as in OPENED */
	uint8_t family;              /* 4, 6, or 0 for either */
	uint8_t flags;               /* enum wire_stream_flags */
	uint16_t segment_bytes;      /* maximum TCP segment; 0: that of the path */
	uint32_t timeout_ms;         /* timeout of the connection */
	uint32_t connect_ms;         /* limit for TCP, TLS and JOINED */
	uint64_t spool_bytes, route_session; /* values for ROUTE, if there are relays */
	uint16_t port;               /* not 0 */
	struct span host;            /* address or name of the peer */
	struct span label;           /* label of a shared port; may be empty */
	struct span congestion;      /* congestion control; empty: the system's */
	struct span relays;          /* HOST:PORT of at most eight relays, in order, separated by
	                                commas; empty: direct */
};
WIRE_CODEC(STREAM, stream, wire_stream)

/* The engine trusts the relay of HOP. A relay knows neither the mover nor the session, but admits the user: the mover
 * sends this GRANT ahead of ROUTE. */
struct wire_pass {
	uint32_t handle;
	struct span grant; /* a GRANT frame of mode 4: from the user, for the mover, to the relay,
	                      with the next hop as the path */
};
WIRE_CODEC(PASS, pass, wire_pass)

/* SOURCE describes a file before the first job that reads the file. The mover opens the file below the root, component
 * by component, without following links, and refuses another file. FORGET ends the description, and so does a SOURCE
 * whose id has the same slot. */
struct wire_source {
	uint64_t id;                 /* id of the entry */
	uint16_t root;               /* index of a root of the invitation */
	uint64_t size_bytes, ino;    /* the file has this size, inode number and times */
	int64_t mtime_s, ctime_s;
	uint32_t mtime_ns, ctime_ns;
	struct span path;            /* below the root; empty: the root is the file */
};
WIRE_CODEC(SOURCE, source, wire_source)

/* A job: the mover reads these blocks and sends them on the stream, in order. A stream has at most STREAM_JOBS jobs
 * that the mover has not answered by SENT. */
struct wire_send {
	uint32_t handle;
	uint8_t n;
	struct span extents;         /* n times WIRE_EXTENT_BYTES: id u64, offset u64, block u32,
	                                length u32; whole blocks */
};
#define WIRE_EXTENT_BYTES 24
#define WIRE_EXTENTS_MAX 64
WIRE_CODEC(SEND, send, wire_send)

enum wire_target_flags {
	WIRE_TARGET_SPARSE = 1 << 0,   /* pages of zeros are not written */
	WIRE_TARGET_JOURNAL = 1 << 1,  /* the engine records the hashes of blocks */
	WIRE_TARGET_DURABLE = 1 << 2,  /* blocks are on disk before WROTE */
	WIRE_TARGET_FLAGS = (1 << 3) - 1
};

/* TARGET describes a received file. The engine makes, locks and journals the part file before it accepts the entry, and
 * completes the file. All movers learn of a file of one block as soon as it is accepted, of others when they WANT them.
 * With the first block, the mover opens the part below the root, component by component, without following links, and
 * creates, truncates, renames or removes no file. A shared file system may show the part late: the mover tries for 5 s,
 * and then ends. The engine makes a part anew, with another inode, unless it resumes the part, so that a mover that has
 * outlived its engine writes into no later file. */
struct wire_target {
	uint64_t id;                 /* id of the entry */
	uint16_t root;               /* index of a root of the invitation */
	uint64_t size_bytes, ino;    /* size of the file; inode number of the part */
	uint8_t flags;               /* enum wire_target_flags */
	struct span path;            /* path of the part, below the root; its name is .ptcp-*.part */
};
WIRE_CODEC(TARGET, target, wire_target)

/* The engine sends CLOSE to all movers that know a file before it completes or gives up the file. The mover refuses
 * further writes, waits for running ones, closes the file, and answers CLOSED. */
struct wire_close {
	uint64_t id; /* id of the entry */
};
WIRE_CODEC(CLOSE, close, wire_close)

/* The mover reads the source no more. */
struct wire_forget {
	uint64_t id; /* id of the entry */
};
WIRE_CODEC(FORGET, forget, wire_forget)

/* The mover resets the stream if the peer's TCP has been silent for this time and three RTTs, and then answers LOST;
 * see stream_check(). */
struct wire_check {
	uint32_t handle;
	uint64_t silent_ns;
	uint8_t unacked; /* 1: only if segments wait for an acknowledgment */
};
WIRE_CODEC(CHECK, check, wire_check)

/* The mover ends the stream, and answers GONE. */
struct wire_stop {
	uint32_t handle;
	uint8_t reset; /* 1: without the data not sent yet */
};
WIRE_CODEC(STOP, stop, wire_stop)

/* PACE limits all streams of the mover together. Once a second the engine divides the limit of the transfer among the
 * movers, by what they used. */
struct wire_pace {
	uint64_t bps;           /* bit/s; 0: no limit */
	struct span congestion; /* congestion control of all streams from now on; empty: unchanged */
};
WIRE_CODEC(PACE, pace, wire_pace)

#endif
