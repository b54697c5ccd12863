/* The frames of ptcp/1, byte for byte as PROTOCOL.md has them: their numbers,
 * limits, encoders and decoders. No I/O, no allocation; any thread.
 *
 * Every frame starts with a header of 8 bytes: type, flags, two bytes of zero, and
 * the length of what follows. Integers are unsigned (but for times) and big-endian.
 *
 * Encoders write at `out`, where the caller has room for X_MAX_BYTES (or what
 * x_bytes() says), and return the bytes written, header included. They assert what
 * the caller must guarantee.
 *
 * Decoders take the payload alone and return 0, or PTCP_EPROTO with a sentence.
 * Spans and strings in the result point into the payload. */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/digest.h"
#include <ptcp/err.h>

/* name, number, largest payload */
#define WIRE_FRAMES(X)                                                         \
	X(HELLO, 1, 1024)                                                      \
	X(OPEN, 2, WIRE_CONTROL_MAX)                                           \
	X(OPENED, 3, 8192)                                                     \
	X(ERROR, 4, 1024)                                                      \
	X(PING, 5, 64)                                                         \
	X(SET_STREAMS, 6, 64)                                                          \
	X(TCP_REPORT, 7, 128)                                                        \
	X(JOIN, 8, 256)                                                        \
	X(JOINED, 9, 64)                                                       \
	X(CONTROL_ACK, 10, 64)                                                       \
	X(RATE, 11, 512)                                                       \
	X(LOAD, 12, 64)                                                        \
	X(ENTRY, 16, WIRE_CONTROL_MAX)                                         \
	X(ANSWER, 17, 64)                                                      \
	X(NEED, 18, 64)                                                        \
	X(HAVE, 19, 64)                                                        \
	X(ACK, 20, 64)                                                         \
	X(FILE_END, 21, 64)                                                    \
	X(DONE, 22, 64)                                                        \
	X(FAIL, 23, 1024)                                                      \
	X(TOTALS, 24, 64)                                                      \
	X(END, 25, 64)                                                         \
	X(WARNING, 26, 8192)                                                      \
	X(HOLE, 27, 64)                                                        \
	X(BLOCK, 32, WIRE_BLOCK_MAX + 24 + 16)                                 \
	X(ROUTE, 48, 512)                                                      \
	X(ROUTED, 49, 64)                                                      \
	X(PROBE, 55, 64)                                                       \
	X(GRANT, 56, 8192)                                                     \
	X(JOB, 57, 1024)                                                    \
	X(STARTED, 58, 1024)                                                   \
	X(PROGRESS, 59, 128)                                                   \
	X(EVENT, 60, 8192)                                                     \
	X(STATUS, 61, 64)                                                      \
	X(STATE, 62, 16384)                                                    \
	X(SAMPLE, 63, 64)                                                      \
	X(LINKS, 64, 64)                                                       \
	X(LINK, 65, 1024)

#define WIRE_CONTROL_MAX 65536
#define WIRE_BLOCK_MAX (2u << 20)

enum wire_type {
#define X(name, number, max) WIRE_##name = number,
	WIRE_FRAMES(X)
#undef X
};

/* "ENTRY"; "?" for an unknown number. */
const char *wire_type_name(unsigned type);

#define WIRE_HEADER_BYTES 8
#define WIRE_CRITICAL 0x01 /* flag: who does not know the type must end the session */

struct wire_header {
	uint8_t type, flags;
	uint32_t length;
};

void wire_header_encode(uint8_t out[WIRE_HEADER_BYTES], const struct wire_header *h);
/* A known type whose length is over its limit, an unknown one over WIRE_CONTROL_MAX
 * or marked critical, an unknown flag or a reserved byte that is not zero: PTCP_EPROTO. */
int wire_header_decode(struct wire_header *h, const uint8_t in[WIRE_HEADER_BYTES],
    struct ptcp_err *e);
bool wire_type_known(unsigned type);

struct span {
	const uint8_t *p;
	size_t n;
};

/* The frame that these bytes of a control channel begin with, where there are no BLOCKs: 1 and its payload; 0: not all
 * of it is here. */
int wire_frame_next(struct wire_header *h, struct span *payload, struct span in, struct ptcp_err *e);

/* ---- Start of a session -------------------------------------------------- */

#define WIRE_MAGIC 0x50544350u /* "PTCP" */
#define WIRE_VERSION 1
#define WIRE_ABILITIES_MAX 32
#define WIRE_SOFTWARE_MAX 64

/* Choices of each side; in use when both list it. */
enum wire_ability {
	WIRE_ABLE_ONE_CHANNEL = 1,   /* BLOCKs also on the control connection */
	WIRE_ABLE_CONTROL_REPLAY = 2 /* the control connection may be replaced */
};

/* First frame of both sides of a control connection. */
struct wire_hello {
	uint16_t version_min, version_max;
	uint32_t timeout_ms;      /* silence for so long is a failure to the sender of this */
	uint32_t max_entries;     /* entries it holds unfinished as a receiver; over WIRE_SLOTS counts as that */
	uint16_t max_streams;
	uint8_t n_abilities;
	uint16_t abilities[WIRE_ABILITIES_MAX];
	struct span software;     /* for people and logs */
};
#define WIRE_HELLO_MAX_BYTES (8 + 19 + 2 * WIRE_ABILITIES_MAX + 1 + WIRE_SOFTWARE_MAX)
size_t wire_hello_encode(uint8_t *out, const struct wire_hello *h);
int wire_hello_decode(struct wire_hello *h, struct span in, struct ptcp_err *e);

enum wire_role {
	WIRE_ACCEPTOR_RECEIVES = 1,
	WIRE_ACCEPTOR_SENDS = 2,
	WIRE_ACCEPTOR_DISCARDS = 3,  /* blocks of no entry, by which the starter measures */
	WIRE_ACCEPTOR_GENERATES = 4  /* the same the other way: the acceptor sends them */
};

enum wire_open_flags {
	WIRE_OPEN_VERIFY = 1 << 0,      /* blocks and files carry hashes */
	WIRE_OPEN_INTO_DIR = 1 << 1,    /* destination must be, or become, a directory */
	WIRE_OPEN_CONTENTS = 1 << 2,    /* the sender's only source is the content of a directory */
	WIRE_OPEN_TIMES = 1 << 3,       /* what to preserve */
	WIRE_OPEN_MODE = 1 << 4,
	WIRE_OPEN_LINKS = 1 << 5,
	WIRE_OPEN_NO_RESUME = 1 << 6,   /* what is there of an earlier session is not used */
	WIRE_OPEN_DRY_RUN = 1 << 7,     /* verdicts only, nothing is made */
	WIRE_OPEN_OWNER = 1 << 8,       /* preserve more */
	WIRE_OPEN_XATTR = 1 << 9,
	WIRE_OPEN_SETID = 1 << 10,      /* setuid, setgid and sticky bits of files, too */
	WIRE_OPEN_SPOOLED = 1 << 11,    /* relays spool: data connections may stand still for long */
	WIRE_OPEN_FLAGS = (1 << 12) - 1
};

/* When what has been received is made durable. */
enum wire_fsync { WIRE_FSYNC_GROUP, WIRE_FSYNC_NONE, WIRE_FSYNC_FILE };

#define WIRE_PATHS_MAX 1024
#define WIRE_PATH_MAX 4096

/* Of a path where the acceptor sends; at most one of them. */
enum wire_path_flags {
	WIRE_PATH_CONTENTS = 1 << 0, /* its contents, not itself */
	WIRE_PATH_EXCLUDE = 1 << 1,  /* a glob pattern, no source; the first that matches decides */
	WIRE_PATH_INCLUDE = 1 << 2
};

/* What the starter wants. `paths` holds n_paths encoded paths (wire_path_next()):
 * one destination (without path flags), or sources, at least one, and patterns; nothing where streams are only
 * measured. */
struct wire_open {
	uint8_t role, cipher, fsync;
	uint32_t flags;
	uint16_t streams;
	uint16_t n_paths;
	struct span paths;
};
/* Fixed part; a path adds 3 bytes and itself. */
#define WIRE_OPEN_MAX_BYTES (8 + 12)
size_t wire_open_encode(uint8_t *out, const struct wire_open *o);
int wire_open_decode(struct wire_open *o, struct span in, struct ptcp_err *e);
size_t wire_path_encode(uint8_t *out, uint8_t flags, struct span path);
/* Takes the first path off `paths`; false when there is none. After a successful
 * wire_open_decode() all are well-formed: no NUL, at most WIRE_PATH_MAX bytes. */
bool wire_path_next(struct span *paths, uint8_t *flags, struct span *path);

#define WIRE_SESSION_BYTES 16
#define WIRE_ENDPOINTS_MAX 16

/* The acceptor agrees. An endpoint is where data connections may go; none: to the
 * address and port of the control connection. */
struct wire_opened {
	uint8_t session[WIRE_SESSION_BYTES];
	uint8_t cipher;
	uint16_t streams;
	uint8_t n_endpoints;
	struct span endpoints; /* port u16, not 0; length u8; host, 1 to 255 printable ASCII bytes */
};
#define WIRE_OPENED_MAX_BYTES (8 + 20 + WIRE_ENDPOINTS_MAX * 258)
size_t wire_opened_encode(uint8_t *out, const struct wire_opened *o);
int wire_opened_decode(struct wire_opened *o, struct span in, struct ptcp_err *e);

#define WIRE_TEXT_MAX 500

/* Ends the session with a reason. `code` is a PTCP_E* without its sign; one that is
 * unknown counts as PTCP_EPEER. */
struct wire_error {
	uint16_t code;
	struct span text;
};
#define WIRE_ERROR_MAX_BYTES (8 + 4 + WIRE_TEXT_MAX)
size_t wire_error_encode(uint8_t *out, const struct wire_error *f);
int wire_error_decode(struct wire_error *f, struct span in, struct ptcp_err *e);

enum wire_busy { WIRE_IDLE, WIRE_READING, WIRE_WRITING, WIRE_SYNCING, WIRE_VERIFYING };

/* Sent every third of the peer's timeout: I am alive, and this
 * is what my disk keeps me with. */
struct wire_ping {
	uint8_t busy;
	uint64_t tick;
};
#define WIRE_PING_MAX_BYTES (8 + 9)
size_t wire_ping_encode(uint8_t *out, const struct wire_ping *f);
int wire_ping_decode(struct wire_ping *f, struct span in, struct ptcp_err *e);

/* From the starter of a STEERED session: streams with numbers below `streams` are in use from now on, no
 * others. */
struct wire_set_streams {
	uint16_t streams;
	uint64_t bytes;       /* where the acceptor floods: what each of them is to carry, from when all are
				 joined; UINT64_MAX: until it is ended; else 0 */
};
#define WIRE_SET_STREAMS_MAX_BYTES (8 + 10)
size_t wire_set_streams_encode(uint8_t *out, const struct wire_set_streams *f);
int wire_set_streams_decode(struct wire_set_streams *f, struct span in, struct ptcp_err *e);

#define WIRE_CONGESTION_MAX 15

/* From an acceptor that sends in a STEERED session: what its kernel has seen of its streams in use, summed up,
 * since the last of these frames. */
struct wire_tcp_report {
	uint64_t elapsed_us;            /* that they existed */
	uint64_t busy_us;               /* with data to send or unacknowledged; of it: */
	uint64_t window_us, buffer_us;  /* held up by the receiver's window, by the sender's buffer */
	uint64_t retransmits;           /* segments */
	struct span congestion;         /* "cubic" .., printable, at most so long; empty: not known */
};
#define WIRE_TCP_REPORT_MAX_BYTES (8 + 41 + WIRE_CONGESTION_MAX)
size_t wire_tcp_report_encode(uint8_t *out, const struct wire_tcp_report *f);
int wire_tcp_report_decode(struct wire_tcp_report *f, struct span in, struct ptcp_err *e);

#define WIRE_RATES_MAX 16
#define WIRE_RATE_STREAMS_MAX 128
#define WIRE_RATE_IDLE UINT64_MAX

/* From a starter that receives: what the streams carry at most from now on, bit/s. It replaces all that the last one
 * said. Sent without the critical flag. */
struct wire_rate {
	uint64_t all_bps;                  /* together; 0: no limit */
	uint8_t n, m;
	uint64_t bps[WIRE_RATES_MAX];      /* n rates, not 0; WIRE_RATE_IDLE: no block is begun */
	uint8_t of[WIRE_RATE_STREAMS_MAX]; /* of streams 0 to m - 1: which they share, from 1; 0: none. The last is not 0 */
};
#define WIRE_RATE_MAX_BYTES (8 + 10 + 8 * WIRE_RATES_MAX + WIRE_RATE_STREAMS_MAX)
size_t wire_rate_encode(uint8_t *out, const struct wire_rate *f);
int wire_rate_decode(struct wire_rate *f, struct span in, struct ptcp_err *e);

/* From an acceptor that is itself what holds the session up: how much of the last second all of its threads that move
 * data were busy, and how much of it a disk was waited for; of 1000. Sent without the critical flag. */
struct wire_load {
	uint16_t busy_permille, disk_permille;
};
#define WIRE_LOAD_MAX_BYTES (8 + 4)
size_t wire_load_encode(uint8_t *out, const struct wire_load *f);
int wire_load_decode(struct wire_load *f, struct span in, struct ptcp_err *e);

#define WIRE_MAC_BYTES 32

/* First frame of a data connection, from its TLS client. */
struct wire_join {
	uint8_t session[WIRE_SESSION_BYTES];
	uint16_t stream;      /* or WIRE_JOIN_CONTROL: this is the control connection from now on */
	uint8_t mac[WIRE_MAC_BYTES];
};
#define WIRE_JOIN_CONTROL UINT16_MAX
#define WIRE_JOIN_MAX_BYTES (8 + 50)
size_t wire_join_encode(uint8_t *out, const struct wire_join *f);
int wire_join_decode(struct wire_join *f, struct span in, struct ptcp_err *e);

/* The answer: welcome. No payload. */
#define WIRE_JOINED_MAX_BYTES 8
size_t wire_joined_encode(uint8_t *out);
int wire_joined_decode(struct span in, struct ptcp_err *e);

/* So many bytes of control frames have come in since the session began. */
struct wire_control_ack {
	uint64_t bytes;
};
#define WIRE_CONTROL_ACK_MAX_BYTES (8 + 8)
size_t wire_control_ack_encode(uint8_t *out, const struct wire_control_ack *f);
int wire_control_ack_decode(struct wire_control_ack *f, struct span in, struct ptcp_err *e);

/* ---- Routes: on connections to a relay ---------------------------------------- */

/* First frame of the TLS client: connect me to there. */
struct wire_route {
	uint16_t port;        /* not 0 */
	struct span host;     /* a name or address, IPv6 without brackets: 1 to 255 printable ASCII bytes */
	uint64_t hold_bytes;  /* what may be held while the next hop takes nothing; 0, which is not on the wire: none */
};
#define WIRE_ROUTE_MAX_BYTES (8 + 3 + 255 + 8)
size_t wire_route_encode(uint8_t *out, const struct wire_route *f);
int wire_route_decode(struct wire_route *f, struct span in, struct ptcp_err *e);

/* The answer: connected; the hand-over out of TLS follows. No payload. */
#define WIRE_ROUTED_MAX_BYTES 8
size_t wire_routed_encode(uint8_t *out);
int wire_routed_decode(struct span in, struct ptcp_err *e);

/* ---- Entries: sender to receiver -------------------------------------------- */

/* An entry's number: a slot below WIRE_SLOTS and the peer's max_entries in the low 16 bits, free at the time;
 * above it a count from 1 that rises from entry to entry. Decoders refuse an id that breaks wire_id_ok(). */
#define WIRE_SLOTS 16384
static inline unsigned wire_slot(uint64_t id) { return (unsigned)(id & 0xffff); }
static inline bool wire_id_ok(uint64_t id) { return wire_slot(id) < WIRE_SLOTS && id >> 16 != 0; }

enum wire_entry_type { WIRE_DIR = 1, WIRE_FILE = 2, WIRE_SYMLINK = 3, WIRE_DIR_END = 4, WIRE_HARDLINK = 5 };

/* DIR_END has the id of its directory, no name and parent 0; all within it has its verdict,
 * and mode and mtime are final. */
struct wire_entry {
	uint8_t type;
	uint64_t id, parent;  /* parent 0: the destination itself */
	uint64_t size_bytes;  /* of a file */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t mode;        /* 07777 */
	struct span name;     /* one component, text_name_ok() */
	struct span target;   /* of a link: 1 to WIRE_PATH_MAX bytes without NUL */
	struct span attrs;    /* wire/attrs.h; well-formed once decoded */
};
#define WIRE_ENTRY_MAX_BYTES(attrs) (8 + 49 + 255 + WIRE_PATH_MAX + (attrs))
#define WIRE_DIR_END_MAX_BYTES (8 + 49)
size_t wire_entry_encode(uint8_t *out, const struct wire_entry *f);
int wire_entry_decode(struct wire_entry *f, struct span in, struct ptcp_err *e);

/* All blocks of a file have been sent and acknowledged and the source is unchanged. A file of
 * exactly one block does without: that block is the file. Also what COMPARE asks for. */
struct wire_file_end {
	uint64_t id;
	struct digest digest;
};
#define WIRE_FILE_END_MAX_BYTES (8 + 24)
size_t wire_file_end_encode(uint8_t *out, const struct wire_file_end *f);
int wire_file_end_decode(struct wire_file_end *f, struct span in, struct ptcp_err *e);

/* What has been listed so far, for progress; final when the listing is complete. */
struct wire_totals {
	uint64_t files, bytes;
	uint8_t final;
};
#define WIRE_TOTALS_MAX_BYTES (8 + 17)
size_t wire_totals_encode(uint8_t *out, const struct wire_totals *f);
int wire_totals_decode(struct wire_totals *f, struct span in, struct ptcp_err *e);

enum wire_warning_kind { WIRE_WARNING_FAILED = 1, WIRE_WARNING_ONLY = 2 };

/* About something that was not offered: a source that is missing or cannot be read
 * (FAILED, counted in END), a device or FIFO (WARNING). */
struct wire_warning {
	uint8_t kind;
	uint16_t code;        /* as in ERROR */
	struct span path;     /* of any bytes, at most WIRE_PATH_MAX, without NUL */
	struct span text;
};
#define WIRE_WARNING_MAX_BYTES (8 + 7 + WIRE_PATH_MAX + WIRE_TEXT_MAX)
size_t wire_warning_encode(uint8_t *out, const struct wire_warning *f);
int wire_warning_decode(struct wire_warning *f, struct span in, struct ptcp_err *e);

/* ---- Verdicts: receiver to sender ---------------------------------------------- */

enum wire_verdict {
	WIRE_SEND_ALL = 1,  /* send every block */
	WIRE_SEND_NONE = 2, /* it is here, complete and verified; nothing more comes of this entry */
	WIRE_SEND_PARTS = 3, /* NEED and HAVE name the blocks */
	WIRE_COMPARE = 4    /* a complete file like it is here: tell its digest, then another verdict follows */
};

struct wire_answer {
	uint64_t id;
	uint8_t verdict;
};
#define WIRE_ANSWER_MAX_BYTES (8 + 9)
size_t wire_answer_encode(uint8_t *out, const struct wire_answer *f);
int wire_answer_decode(struct wire_answer *f, struct span in, struct ptcp_err *e);

/* NEED: send these blocks (again). HAVE: these are here and verified; `digest` is the
 * sum of their terms. ACK: this one block has been verified and written.
 * HOLE, from the sender: these are zeros; it counts as their acknowledgement, they have no term. */
struct wire_blocks {
	uint64_t id;
	uint32_t first, count;
	struct digest digest;
};
#define WIRE_NEED_MAX_BYTES (8 + 16)
#define WIRE_HAVE_MAX_BYTES (8 + 32)
#define WIRE_HOLE_MAX_BYTES (8 + 16)
size_t wire_need_encode(uint8_t *out, const struct wire_blocks *f);
int wire_need_decode(struct wire_blocks *f, struct span in, struct ptcp_err *e);
size_t wire_have_encode(uint8_t *out, const struct wire_blocks *f);
int wire_have_decode(struct wire_blocks *f, struct span in, struct ptcp_err *e);
size_t wire_hole_encode(uint8_t *out, const struct wire_blocks *f);
int wire_hole_decode(struct wire_blocks *f, struct span in, struct ptcp_err *e);

struct wire_ack {
	uint64_t id;
	uint32_t block;
};
#define WIRE_ACK_MAX_BYTES (8 + 12)
size_t wire_ack_encode(uint8_t *out, const struct wire_ack *f);
int wire_ack_decode(struct wire_ack *f, struct span in, struct ptcp_err *e);

/* The entry is complete under its name. */
struct wire_done {
	uint64_t id;
};
#define WIRE_DONE_MAX_BYTES (8 + 8)
size_t wire_done_encode(uint8_t *out, const struct wire_done *f);
int wire_done_decode(struct wire_done *f, struct span in, struct ptcp_err *e);

/* ---- Both ways --------------------------------------------------------------- */

/* This entry fails, the session goes on. From the sender: the receiver drops it and
 * sends it back; from the receiver: nothing more comes of it. */
struct wire_fail {
	uint64_t id;
	uint16_t code; /* as in ERROR */
	struct span text;
};
#define WIRE_FAIL_MAX_BYTES (8 + 12 + WIRE_TEXT_MAX)
size_t wire_fail_encode(uint8_t *out, const struct wire_fail *f);
int wire_fail_decode(struct wire_fail *f, struct span in, struct ptcp_err *e);

/* The sender has a verdict on everything; the receiver repeats it when it agrees. */
struct wire_end {
	uint64_t files, failed;
};
#define WIRE_END_MAX_BYTES (8 + 16)
size_t wire_end_encode(uint8_t *out, const struct wire_end *f);
int wire_end_decode(struct wire_end *f, struct span in, struct ptcp_err *e);

/* ---- Blocks: on data connections ------------------------------------------------ */

/* On the wire: header, the 24 bytes of wire_block, length_bytes of data, the 16 bytes of
 * wire_block_end. */
struct wire_block {
	uint64_t id, offset;
	uint32_t length_bytes; /* 1 to WIRE_BLOCK_MAX; offset + length at most WIRE_FILE_MAX */
};
#define WIRE_BLOCK_FIELDS 24
#define WIRE_BLOCK_HEAD_BYTES (WIRE_HEADER_BYTES + WIRE_BLOCK_FIELDS)
size_t wire_block_encode(uint8_t *out, const struct wire_block *f);
/* Header and fields at once, from WIRE_BLOCK_HEAD_BYTES. */
int wire_block_decode(struct wire_block *f, const uint8_t *in, struct ptcp_err *e);

enum wire_block_status { WIRE_BLOCK_GOOD = 0, WIRE_BLOCK_VOID = 1 /* ignore it */ };

struct wire_block_end {
	uint32_t status;
	uint64_t check; /* see store/hash.h; 0 where hashing is off */
};
#define WIRE_BLOCK_END_BYTES 16
size_t wire_block_end_encode(uint8_t *out, const struct wire_block_end *f);
int wire_block_end_decode(struct wire_block_end *f, const uint8_t *in, struct ptcp_err *e);

/* The grid of blocks depends on the file's size alone: 256 KiB, doubled until the file
 * has at most 2^20 blocks, up to WIRE_BLOCK_MAX. A file of no bytes has no blocks. */
uint32_t wire_grid_bytes(uint64_t size_bytes);
#define WIRE_FILE_MAX (UINT64_C(1) << 48)
/* Number of blocks, at most 2^27; 0 for a size over WIRE_FILE_MAX. */
uint32_t wire_grid_blocks(uint64_t size_bytes);
/* Length of a block of a file of that size; 0 if the file has no such block. */
uint32_t wire_grid_length(uint64_t size_bytes, uint32_t block);
/* Bytes of `count` blocks of the file from `first` on; what is beyond its end counts nothing. */
uint64_t wire_grid_range_bytes(uint64_t size_bytes, uint32_t first, uint32_t count);

#endif
