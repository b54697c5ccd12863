/* The frames of ptcp/1, byte for byte as in PROTOCOL.md: numbers, limits, structs, encoders and decoders. The fields
 * of each frame are listed once, in wire/fields.c. No I/O, no allocation; any thread.
 *
 * Every frame starts with a header of 8 bytes: type, flags, two zero bytes, and the length of the payload. Integers
 * are big-endian and, except for times, unsigned.
 *
 * Encoders return the bytes written, header included, and assert that spans are within their limits. Decoders take
 * the payload alone and return 0, or PTCP_EPROTO with a sentence. Spans in the result point into the payload. */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <ptcp/err.h>
#include <ptcp/options.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/digest.h"
#include "wire/mover_frames.h"
#include "wire/open_flags.h"

#define WIRE_CONTROL_MAX 65536
#define WIRE_BLOCK_MAX (2u << 20)
#define WIRE_FILE_MAX (UINT64_C(1) << 48)
#define WIRE_UNSIZED_MAX (UINT64_C(1) << 45)
#define WIRE_CHUNK_BYTES (256u << 10)
#define WIRE_TEXT_MAX 500
#define WIRE_HOST_MAX 255
#define WIRE_PATH_MAX 4096
#define WIRE_CERTIFICATES_MAX 2704 /* bytes */
#define WIRE_CONGESTION_MAX 15
#define WIRE_LABEL_MAX 32
#define WIRE_RELAYS_MAX 2112 /* eight times HOST:PORT */
#define WIRE_RATES_MAX 16
#define WIRE_RATE_STREAMS_MAX 128
#define WIRE_REPORT_STREAMS_MAX 128
#define WIRE_HASHES_MAX 1024
#define WIRE_RANGES_MAX 2048

enum { WIRE_IF_MATCH_MAX = 64, WIRE_PIECES_MAX = 64 };

/* Frames between peers, as in PROTOCOL.md: name, number, largest payload in bytes */
#define WIRE_PEER_FRAMES(X) \
	X(HELLO, 1, 1024) \
	X(OPEN, 2, WIRE_CONTROL_MAX) \
	X(OPENED, 3, 24) \
	X(ERROR, 4, 5 + WIRE_TEXT_MAX) \
	X(PING, 5, 9) \
	X(SET_STREAMS, 6, 10) \
	X(TCP_REPORT, 7, 42 + WIRE_CONGESTION_MAX + 20 * WIRE_REPORT_STREAMS_MAX) \
	X(JOIN, 8, 50) \
	X(JOINED, 9, 0) \
	X(CONTROL_ACK, 10, 8) \
	X(RATE, 11, 10 + 8 * WIRE_RATES_MAX + WIRE_RATE_STREAMS_MAX) \
	X(LOAD, 12, 4) \
	X(WAITING, 13, 4) \
	X(SELECT, 14, WIRE_CONTROL_MAX) \
	X(ENTRY, 16, WIRE_CONTROL_MAX) \
	X(ANSWER, 17, 9) \
	X(NEED, 18, 16) \
	X(HAVE, 19, 32) \
	X(ACK, 20, 12) \
	X(FILE_END, 21, 24) \
	X(DONE, 22, 8) \
	X(FAIL, 23, 13 + WIRE_TEXT_MAX) \
	X(TOTALS, 24, 17) \
	X(END, 25, 16) \
	X(WARNING, 26, 8 + WIRE_PATH_MAX + WIRE_TEXT_MAX) \
	X(HOLE, 27, 16) \
	X(LEFTOVERS, 28, 24) \
	X(DELETED, 29, 2 + WIRE_PATH_MAX) \
	X(SIZE, 30, 16) \
	X(ENDPOINT, 31, 39 + WIRE_HOST_MAX) \
	X(BLOCK, 32, WIRE_CHUNK_BYTES + 24 + 16) \
	X(MATCH, 33, 16) \
	X(HASHES, 34, 14 + 12 * WIRE_HASHES_MAX) \
	X(SPLIT, 35, 16) \
	X(PIECES, 36, 14 + 12 * WIRE_PIECES_MAX) \
	X(PATCH, 37, 20) \
	X(ROUTE, 48, 20 + WIRE_HOST_MAX) \
	X(ROUTED, 49, 0) \
	X(PROBE, 55, 9) \
	X(GRANT, 56, 189 + WIRE_PATH_MAX + WIRE_CERTIFICATES_MAX) \
	X(JOB, 57, 22 + WIRE_HOST_MAX + WIRE_CONGESTION_MAX) \
	X(STARTED, 58, 9 + WIRE_HOST_MAX) \
	X(PROGRESS, 59, 86) \
	X(EVENT, 60, 12 + WIRE_PATH_MAX + WIRE_TEXT_MAX) \
	X(STATUS, 61, 9) \
	X(STATE, 62, 124 + WIRE_HOST_MAX + 2 * WIRE_PATH_MAX + WIRE_TEXT_MAX) \
	X(SAMPLE, 63, 24) \
	X(LINKS, 64, 0) \
	X(LINK, 65, 52 + WIRE_HOST_MAX + WIRE_TEXT_MAX) \
	X(CLEAN, 66, 11 + WIRE_PATH_MAX) \
	X(LEFTOVER, 67, 23 + WIRE_PATH_MAX + WIRE_TEXT_MAX) \
	X(CLEANED, 68, 41) \
	X(MANAGE, 69, WIRE_CONTROL_MAX) \
	X(LISTED, 70, 48 + 2 * WIRE_PATH_MAX + WIRE_TEXT_MAX) \
	X(MANAGED, 71, 49) \
	X(READ, 72, 4 + WIRE_PATH_MAX + 16 * WIRE_RANGES_MAX) \
	X(WRITE, 73, 23 + WIRE_PATH_MAX + WIRE_IF_MATCH_MAX) \
	X(SUM, 74, WIRE_CONTROL_MAX)

#define WIRE_FRAMES(X) WIRE_PEER_FRAMES(X) WIRE_MOVER_FRAMES(X)

enum wire_type {
#define X(name, number, max) WIRE_##name = number,
	WIRE_FRAMES(X)
#undef X
};

/* WIRE_PING_MAX_BYTES and the like: a whole frame, header included. */
enum wire_max_bytes {
#define X(name, number, max) WIRE_##name##_MAX_BYTES = 8 + (max),
	WIRE_FRAMES(X)
#undef X
};

/* "ENTRY"; "?" for an unknown number. */
const char *wire_type_name(unsigned type);

#define WIRE_HEADER_BYTES 8
#define WIRE_CRITICAL 0x01 /* flag: a peer that does not know the type must end the session */

struct wire_header {
	uint8_t type, flags;
	uint32_t length;
};

void wire_header_encode(uint8_t out[WIRE_HEADER_BYTES], const struct wire_header *h);
/* PTCP_EPROTO for a length above the type's limit, an unknown type that is critical or longer than WIRE_CONTROL_MAX,
 * an unknown flag, and a reserved byte that is not zero. */
int wire_header_decode(struct wire_header *h, const uint8_t in[WIRE_HEADER_BYTES],
    struct ptcp_err *e);
bool wire_type_known(unsigned type);

struct span {
	const uint8_t *p;
	size_t n;
};

/* The bytes and a NUL, for which `out` has room; returns `out`. */
static inline char *span_copy(char *out, struct span s)
{
	if (s.n > 0)
		memcpy(out, s.p, s.n);
	out[s.n] = '\0';
	return out;
}

/* The first frame in `in`, bytes of a control channel without BLOCKs: 1 and the payload, 0 if the frame is
 * incomplete. */
int wire_frame_next(struct wire_header *h, struct span *payload, struct span in, struct ptcp_err *e);

/* Any frame but BLOCK; `f` is the struct of the type (NULL for a type without payload). wire_encode() writes the
 * whole frame at `out`, which has room for WIRE_X_MAX_BYTES. wire_decode() leaves *f alone on failure. */
size_t wire_encode(uint8_t *out, unsigned type, const void *f);
int wire_decode(void *f, unsigned type, struct span in, struct ptcp_err *e);

/* The same for one type, with types that the compiler checks: wire_ping_encode(), wire_ping_decode(). */
#define WIRE_CODEC(X, x, type) \
	static inline size_t wire_##x##_encode(uint8_t *out, const struct type *f) \
	{ \
		return wire_encode(out, WIRE_##X, f); \
	} \
	static inline int wire_##x##_decode(struct type *f, struct span in, struct ptcp_err *e) \
	{ \
		return wire_decode(f, WIRE_##X, in, e); \
	}
#define WIRE_CODEC_EMPTY(X, x) \
	static inline size_t wire_##x##_encode(uint8_t *out) { return wire_encode(out, WIRE_##X, NULL); } \
	static inline int wire_##x##_decode(struct span in, struct ptcp_err *e) { \
	    return wire_decode(NULL, WIRE_##X, in, e); }

/* Why something failed; outbox_why() and outbox_reason() convert. */
struct wire_why {
	uint16_t code;    /* a PTCP_E* without the sign; an unknown code counts as PTCP_EPEER */
	uint8_t cause;    /* a number of PTCP_CAUSES; 0, or unknown: none */
	struct span text; /* a sentence */
};

/* ---- Start of a session -------------------------------------------------- */

#define WIRE_MAGIC 0x50544350u /* "PTCP" */
#define WIRE_VERSION 1
#define WIRE_ABILITIES_MAX 32
#define WIRE_SOFTWARE_MAX 64

/* Choices of the two ends; in use when both list the ability. */
enum wire_ability {
	WIRE_ABLE_ONE_CHANNEL = 1 /* BLOCKs also on the control connection */
};

/* First frame of both sides of a control connection. */
struct wire_hello {
	uint16_t version_min, version_max;
	uint32_t timeout_ms;      /* the sender of HELLO gives up after so long without progress */
	uint32_t quiet_ms;        /* silence after which it considers the connection dead */
	uint32_t linger_ms;       /* life of a session that has lost its connections; 0: none */
	uint32_t max_entries;     /* unfinished entries as a receiver: from WIRE_EARLY_ENTRIES; at
	                             most WIRE_SLOTS count */
	uint16_t max_streams;
	uint8_t n_abilities;
	uint16_t abilities[WIRE_ABILITIES_MAX];
	struct span software;     /* text for people and logs */
};
WIRE_CODEC(HELLO, hello, wire_hello)

enum wire_role {
	WIRE_ACCEPTOR_RECEIVES = 1,
	WIRE_ACCEPTOR_SENDS = 2,
	WIRE_ACCEPTOR_DISCARDS = 3,  /* measurement: the starter sends blocks without an entry */
	WIRE_ACCEPTOR_GENERATES = 4  /* measurement: the acceptor sends the blocks */
};

/* Congestion control of the sender's streams (PROTOCOL.md, section 7). */
enum wire_congestion { WIRE_CC_AUTO, WIRE_CC_SYSTEM, WIRE_CC_CUBIC, WIRE_CC_BBR, WIRE_CC_RENO,
    WIRE_CC_YIELD, WIRE_CC_FAIR };

/* When the receiver makes data durable. */
enum wire_fsync { WIRE_FSYNC_GROUP, WIRE_FSYNC_NONE, WIRE_FSYNC_FILE };

#define WIRE_PATHS_MAX 1024

/* What a path in OPEN is. A sending acceptor takes sources and rules; a receiving one a destination, with
 * WIRE_OPEN_DELETE rules, and, each at most once, BACKUP_DIR, SUFFIX and IF_MATCH. */
enum wire_path_kind {
	WIRE_PATH_PLACE = 0,      /* a source, or the destination */
	WIRE_PATH_CONTENTS = 1,   /* a source: the content of the directory instead of the directory */
	WIRE_PATH_RULE = 2,       /* a line of core/filter.h; the first match among all rules decides */
	WIRE_PATH_BACKUP_DIR = 8, /* directory for what is replaced or removed, relative to the destination */
	WIRE_PATH_SUFFIX = 16,    /* what is replaced or removed gets this suffix */
	WIRE_PATH_LINK_DEST = 24, /* directories with older copies, relative to the destination; several of one kind */
	WIRE_PATH_COMPARE_DEST = 32,
	WIRE_PATH_COPY_DEST = 40,
	WIRE_PATH_IF_MATCH = 48   /* the only version of the destination, a file, to replace: store_match_parse() */
};
static inline bool wire_path_is_place(uint8_t kind) { return kind <= WIRE_PATH_CONTENTS; }
static inline bool wire_path_is_reference(uint8_t kind)
{
	return kind == WIRE_PATH_LINK_DEST || kind == WIRE_PATH_COMPARE_DEST || kind == WIRE_PATH_COPY_DEST;
}
static inline bool wire_path_is_rule(uint8_t kind) { return kind == WIRE_PATH_RULE; }

/* The starter's request. `paths` holds n_paths encoded paths, see wire_path_next(): one destination without path
 * flags, and what else a receiver needs; or sources, at least one, and rules; or, for a measurement, no path. */
struct wire_open {
	uint8_t role, cipher, fsync, congestion;
	uint32_t flags;
	uint16_t streams;
	uint16_t n_paths;
	struct span paths;
	uint32_t wait_ms; /* how long to wait for room at a busy acceptor; 0: an ERROR at once */
	uint32_t max_delete; /* with WIRE_OPEN_DELETE: see wire_max_delete(); else 0 */
	uint32_t stripe;     /* stripe of the starter's shared files, in WIRE_STRIPE_BYTES; 0: a divisor of 64 MiB */
	/* The sender leaves out other files, by size and mtime, and what lies deeper below a source; 0: no limit. */
	uint64_t min_bytes, max_bytes;
	int64_t newer_s, older_s; /* from newer_s, before older_s */
	uint32_t max_depth;
	uint8_t compress;    /* level of zstd, at most WIRE_COMPRESS_MAX, or WIRE_COMPRESS_AUTO; 0: none */
	uint16_t preserve;   /* enum wire_preserve */
	uint32_t modify_window_s; /* times of files whose seconds differ by no more are equal */
};
#define WIRE_COMPRESS_MAX PTCP_COMPRESS_MAX
enum { WIRE_COMPRESS_AUTO = 255 };
/* Limit of the entries to remove. */
static inline uint32_t wire_max_delete(const struct wire_open *o)
{
	return o->max_delete == PTCP_MAX_DELETE_CAREFUL ? PTCP_MAX_DELETE : o->max_delete;
}
#define WIRE_STRIPE_BYTES 4096u
#define WIRE_STRIPES_MAX (1u << 18)
/* A path takes 3 bytes beside itself. */
#define WIRE_OPEN_BYTES(paths) (8 + 67 + (paths))
WIRE_CODEC(OPEN, open, wire_open)
size_t wire_path_encode(uint8_t *out, uint8_t flags, struct span path);
/* Takes the first path off `paths`; false at the end. wire_open_decode() has checked every path: no NUL, at most
 * WIRE_PATH_MAX bytes. */
bool wire_path_next(struct span *paths, uint8_t *flags, struct span *path);

#define WIRE_SESSION_BYTES 16

enum wire_opened_flags {
	WIRE_OPENED_EXPANDED = 1 << 0, /* a source was a pattern: there may be several */
	WIRE_OPENED_MOVERS = 1 << 1,   /* data connections go to the movers of ENDPOINT frames only */
	WIRE_OPENED_FLAGS = (1 << 2) - 1
};

/* The acceptor grants the request. Data connections go to the address and port of the control connection, or with
 * WIRE_OPENED_MOVERS to the movers of ENDPOINT frames. */
struct wire_opened {
	uint8_t session[WIRE_SESSION_BYTES];
	uint8_t cipher;
	uint16_t streams;
	uint8_t flags;
	uint32_t stripe; /* stripe of the acceptor's shared file system, as in wire_open */
};
WIRE_CODEC(OPENED, opened, wire_opened)

/* Ends the session with a reason. */
struct wire_error {
	struct wire_why why;
};
WIRE_CODEC(ERROR, error, wire_error)

enum wire_busy { WIRE_IDLE, WIRE_READING, WIRE_WRITING, WIRE_SYNCING, WIRE_VERIFYING };

/* Keepalive, at least every third of the peer's timeout, with the disk operation that the sender of PING waits
 * for. */
struct wire_ping {
	uint8_t busy;
	uint64_t tick;
};
WIRE_CODEC(PING, ping, wire_ping)

/* From the starter: from now on the streams with numbers below `streams` are active, all others inactive. */
struct wire_set_streams {
	uint16_t streams;
	uint64_t bytes; /* WIRE_ACCEPTOR_GENERATES: bytes to generate per stream once all have joined; UINT64_MAX: until
			   the next SET_STREAMS. Else 0 */
};
WIRE_CODEC(SET_STREAMS, set_streams, wire_set_streams)

/* From an acceptor that sends: TCP statistics of the active streams since the last TCP_REPORT, summed; then those of
 * each stream from 0 to m - 1. */
struct wire_tcp_report {
	uint64_t elapsed_us;           /* lifetime of the streams */
	uint64_t busy_us;              /* part of elapsed_us with data to send or unacknowledged data */
	uint64_t window_us, buffer_us; /* parts of busy_us limited by the receive window, by the send buffer */
	uint64_t retransmits;          /* segments */
	struct span congestion;        /* "cubic" ..; empty: unknown */
	uint8_t m;
	uint32_t rtt_us[WIRE_REPORT_STREAMS_MAX];     /* smoothed, now; 0: unknown, as is all else of the stream */
	uint32_t min_rtt_us[WIRE_REPORT_STREAMS_MAX]; /* smallest RTT of the connection; 0: none yet */
	uint32_t segments[WIRE_REPORT_STREAMS_MAX];   /* sent, with retransmits */
	uint32_t lost[WIRE_REPORT_STREAMS_MAX];       /* retransmits */
	uint32_t events[WIRE_REPORT_STREAMS_MAX];     /* losses without those less than an RTT after another */
};
WIRE_CODEC(TCP_REPORT, tcp_report, wire_tcp_report)

#define WIRE_RATE_IDLE UINT64_MAX

/* From a starter that receives: maximum rates of the streams, in place of those of the last RATE. */
struct wire_rate {
	uint64_t all_bps;                  /* rate of all streams together; 0: no limit */
	uint8_t n, m;
	uint64_t bps[WIRE_RATES_MAX];      /* n rates, not 0; WIRE_RATE_IDLE: the sender begins no block */
	uint8_t of[WIRE_RATE_STREAMS_MAX]; /* shared rate of streams 0 to m - 1, from 1; 0: none; last not 0 */
};
WIRE_CODEC(RATE, rate, wire_rate)

#define WIRE_SELECT_MAX_PATHS_BYTES (4u << 20) /* size of the paths of all SELECT frames of a session */

/* From a starter that receives: entries below the source that are sent, no others. */
struct wire_select {
	uint8_t final;     /* the last SELECT */
	uint16_t n_paths;
	struct span paths; /* each with a NUL behind it; none is empty */
};
WIRE_CODEC(SELECT, select, wire_select)

/* From an acceptor whose processor or disk limits the transfer: thousandths of the last second in which all data
 * threads were busy, and in which the transfer waited for the disk. */
struct wire_load {
	uint16_t busy_permille, disk_permille;
};
WIRE_CODEC(LOAD, load, wire_load)

/* From a busy acceptor, before OPENED: the session waits, behind `ahead` others. */
struct wire_waiting {
	uint32_t ahead;
};
WIRE_CODEC(WAITING, waiting, wire_waiting)

#define WIRE_MAC_BYTES 32

/* First frame of a data connection, from its TLS client. */
struct wire_join {
	uint8_t session[WIRE_SESSION_BYTES];
	uint16_t stream; /* WIRE_JOIN_CONTROL: the connection replaces the control connection */
	uint8_t mac[WIRE_MAC_BYTES];
};
#define WIRE_JOIN_CONTROL UINT16_MAX
WIRE_CODEC(JOIN, join, wire_join)

/* Accepts a JOIN. */
WIRE_CODEC_EMPTY(JOINED, joined)

/* Bytes of control frames received in the session. */
struct wire_control_ack {
	uint64_t bytes;
};
WIRE_CODEC(CONTROL_ACK, control_ack, wire_control_ack)

/* ---- Routes: on connections to a relay ---------------------------------------- */

/* First frame of the TLS client: connect to this host. */
struct wire_route {
	uint16_t port;       /* not 0 */
	struct span host;    /* name or address, IPv6 without brackets */
	uint64_t spool_bytes; /* bytes that the relay may spool while the next hop accepts no data */
	uint64_t session;    /* random number of all connections of a session; 0: no session */
	uint8_t control;     /* 1: the session's control connection */
};
WIRE_CODEC(ROUTE, route, wire_route)

/* Connected; both sides leave TLS next. */
WIRE_CODEC_EMPTY(ROUTED, routed)

/* ---- Entries: sender to receiver -------------------------------------------- */

/* The id of an entry: in the low 16 bits a slot, free at the time, below WIRE_SLOTS and the peer's max_entries; above
 * them a count from 1 that rises from entry to entry. Decoders refuse other ids. */
#define WIRE_SLOTS 16384
static inline unsigned wire_slot(uint64_t id) { return (unsigned)(id & 0xffff); }
static inline bool wire_id_ok(uint64_t id) { return wire_slot(id) < WIRE_SLOTS && id >> 16 != 0; }

/* Entries that a starter may send before OPENED: their number, and the bytes of their frames. */
#define WIRE_EARLY_ENTRIES 16
#define WIRE_EARLY_BYTES 16384

enum wire_entry_type {
	WIRE_DIR = 1, WIRE_FILE = 2, WIRE_SYMLINK = 3, WIRE_DIR_END = 4, WIRE_HARDLINK = 5,
	WIRE_NAME = 6 /* the source has the entry, and does not send it: WIRE_OPEN_DELETE retains what has the name */
};

/* DIR_END has the id of the directory, no name and parent 0; every entry below the directory has a verdict, and the
 * mode and mtime of DIR_END are final. */
enum wire_dir_end {
	WIRE_DIR_WHOLE = 0,
	WIRE_DIR_LACKS = 1, /* entries of the directory failed before they were offered */
	WIRE_DIR_CLOSED = 2 /* its content was left out */
};
struct wire_entry {
	uint8_t type;
	uint64_t id, parent; /* parent 0: the destination */
	uint64_t size_bytes; /* size of a file; UNSIZED: 0; DIR_END: see enum wire_dir_end */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t mode;       /* 07777 */
	struct span name;    /* one component, text_name_ok(); "." of a DIR at the top: the destination itself */
	struct span target;  /* target of a symbolic link: 1 to WIRE_PATH_MAX bytes without NUL */
	struct span attrs;   /* wire/attrs.h; well-formed once decoded */
};
/* Whether the name stands for the destination itself, which only a DIR at the top may have. */
static inline bool wire_entry_is_base(const struct wire_entry *f)
{
	return f->name.n == 1 && f->name.p[0] == '.';
}
#define WIRE_DIR_END_MAX_BYTES (8 + 49)
/* An encoded ENTRY with attributes of that length, at most. */
#define WIRE_ENTRY_BYTES(attrs) (8 + 49 + 255 + WIRE_PATH_MAX + (attrs))
WIRE_CODEC(ENTRY, entry, wire_entry)

/* All blocks of the file are acknowledged and the source is unchanged; not sent for a file of exactly one block. Also
 * the reply to WIRE_COMPARE. */
struct wire_file_end {
	uint64_t id;
	struct digest digest;
};
WIRE_CODEC(FILE_END, file_end, wire_file_end)

/* The size of an UNSIZED file, at the end of the sender's input. */
struct wire_size {
	uint64_t id, size_bytes;
};
WIRE_CODEC(SIZE, size, wire_size)

/* Listed so far, for progress displays; final once the listing is complete. */
struct wire_totals {
	uint64_t files, bytes;
	uint8_t final;
};
WIRE_CODEC(TOTALS, totals, wire_totals)

/* About a source that was not offered: missing or unreadable (FAILED, counted in END), a device or FIFO (ONLY). INSIDE:
 * as FAILED, in an offered directory whose DIR_END says that it is incomplete, or about an offered entry. */
enum wire_warning_kind { WIRE_WARNING_FAILED = 1, WIRE_WARNING_ONLY = 2, WIRE_WARNING_INSIDE = 3 };

struct wire_warning {
	uint8_t kind;
	struct span path; /* without NUL */
	struct wire_why why;
};
WIRE_CODEC(WARNING, warning, wire_warning)

/* From an acceptor that receives, at most once: files of interrupted transfers in the directories of this transfer,
 * for sources that are gone. */
struct wire_leftovers {
	uint64_t files; /* not 0 */
	uint64_t bytes;
	uint64_t age_ms; /* time since the last change of the youngest file */
};
WIRE_CODEC(LEFTOVERS, leftovers, wire_leftovers)

/* From an acceptor that receives, with WIRE_OPEN_DELETE: an entry that was removed, or in a dry run would be; at most
 * wire_open.max_delete times. */
struct wire_deleted {
	struct span path; /* not empty, without NUL */
};
WIRE_CODEC(DELETED, deleted, wire_deleted)

/* ---- Verdicts: receiver to sender ---------------------------------------------- */

enum wire_verdict {
	WIRE_SEND_ALL = 1,   /* send every block */
	WIRE_SEND_NONE = 2,  /* already transferred and verified; the entry is done */
	WIRE_SEND_PARTS = 3, /* NEED and HAVE name the blocks */
	WIRE_COMPARE = 4,    /* a complete file of this size and time exists: send the digest;
	                        another verdict follows */
	WIRE_NO_LINK = 5     /* this HARDLINK cannot be a link to the file: offer the name again, in another entry */
};

struct wire_answer {
	uint64_t id;
	uint8_t verdict;
};
WIRE_CODEC(ANSWER, answer, wire_answer)

/* NEED requests blocks (again), MATCH the hashes of blocks that may exist, SPLIT those of their pieces. HAVE: these
 * blocks are stored and verified,
 * `digest` is the sum of their terms. HOLE, from the sender: these blocks are zeros and count as acknowledged, with
 * term 0. */
struct wire_blocks {
	uint64_t id;
	uint32_t first, count;
	struct digest digest;
};
WIRE_CODEC(NEED, need, wire_blocks)
WIRE_CODEC(HAVE, have, wire_blocks)
WIRE_CODEC(HOLE, hole, wire_blocks)
WIRE_CODEC(MATCH, match, wire_blocks)
WIRE_CODEC(SPLIT, split, wire_blocks)

/* From the sender. HASHES, at the request of MATCH: of the blocks from `first` on. PIECES, at the request of SPLIT: of
 * all pieces of the block `first`. */
struct wire_hashes {
	uint64_t id;
	uint32_t first;
	uint16_t n;
	struct span hashes; /* n times WIRE_HASH_BYTES: content `u64`, head `u32` */
};
#define WIRE_HASH_BYTES 12u
WIRE_CODEC(HASHES, hashes, wire_hashes)
WIRE_CODEC(PIECES, pieces, wire_hashes)
void wire_hash_encode(uint8_t out[WIRE_HASH_BYTES], struct block_sum sum);
struct block_sum wire_hash_decode(const uint8_t in[WIRE_HASH_BYTES]);

/* The receiver requests a block without the pieces that it has: bit i of `omit` is piece i. */
struct wire_patch {
	uint64_t id;
	uint32_t block;
	uint64_t omit; /* not 0 */
};
WIRE_CODEC(PATCH, patch, wire_patch)

/* The block is verified and written. */
struct wire_ack {
	uint64_t id;
	uint32_t block;
};
WIRE_CODEC(ACK, ack, wire_ack)

/* The entry is complete under its final name. */
struct wire_done {
	uint64_t id;
};
WIRE_CODEC(DONE, done, wire_done)

/* ---- Both directions --------------------------------------------------------- */

/* The entry fails, the session continues. From the sender: the receiver drops the file and returns the FAIL. From the
 * receiver: the last frame about the entry. */
struct wire_fail {
	uint64_t id;
	struct wire_why why;
};
WIRE_CODEC(FAIL, fail, wire_fail)

/* Every entry has a verdict; the receiver returns END when the counters agree. */
struct wire_end {
	uint64_t files, failed;
};
WIRE_CODEC(END, end, wire_end)

#endif
