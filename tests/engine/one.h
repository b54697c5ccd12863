/* One session with the test as its peer and its caller: frames go in by hand, what it decides
 * and says is kept. */
#ifndef TESTS_XFER_ONE_H
#define TESTS_XFER_ONE_H

#include "world.h"

#define ONE_TIMEOUT_NS (12 * NS_PER_S)
#define ONE_QUIET_NS (5 * NS_PER_S)
#define ONE_WAIT_MS 60000u

struct one {
	struct engine *s;
	uint64_t now_ns;
	enum rcv_prep prep;          /* what prepare() answers */
	uint64_t *claimed;           /* and gives with RCV_PARTS */
	enum wire_busy busy;
	bool paced;                  /* for a rate */
	uint64_t cookies;            /* entries held by the receiver's caller */
	unsigned opened, running, ended, notes;
	struct ptcp_err why;         /* of ended; code 0: ended well */
	unsigned fates[4];           /* of snd_ops.ended, by fate */
	struct ptcp_err fate_why;
	unsigned incomplete, closed; /* directories */
	uint64_t again;              /* the last hard link to offer again */
	unsigned splits;             /* likewise of pieces */
	unsigned hashes;             /* requests for hashes, or HASHES, and the last of them */
	uint32_t hash_first, hash_count;
	unsigned checks, compares, maps, commits, accepted, accepted_parts, differs, same, rcv_ended, skipped;
	uint32_t holes;              /* blocks that the receiver's caller was told of */
	uint32_t released;           /* blocks of UNSIZED files */
	uint64_t sized_bytes, beginning_bytes; /* as the receiver's caller was told last */
	struct ptcp_err rcv_why;
	unsigned stalled;            /* bit mask */
	unsigned used;               /* streams, as USE last said */
	uint64_t seen_us;            /* elapsed, of all SEEN */
	unsigned waited, ahead;      /* WAITING frames, and the position of the last one */
	bool finish_later;           /* what finish() answers, */
	bool finish_fails;           /* having failed the session */
	unsigned deleted;            /* DELETED frames */
	unsigned selects;            /* SELECT frames */
	uint64_t endpoints;          /* ENDPOINT frames with a port */
	uint64_t leftovers;          /* files, as LEFTOVERS said */
	unsigned rates;              /* RATE frames, and the last one */
	struct wire_rate rate;
};

extern struct memory_account *one_memory; /* account of sessions made from now on; NULL: no limit */

void one_init(struct one *o, bool starter, bool sends);
void one_init_lingering(struct one *o, bool starter, uint64_t linger_ns);
void one_fini(struct one *o);
/* Through HELLO and OPEN to RUNNING; the outbox is emptied. */
void one_run(struct one *o, bool sends, bool verify);
void one_run_dry(struct one *o, bool sends);
void one_run_spooled(struct one *o); /* a sender, through relays that spool */
/* A sender, with the HELLO of its peer, that keeps the session for so long without a connection. */
void one_run_lingering(struct one *o, bool starter, uint64_t linger_ns, const struct wire_hello *peer);
void one_run_as(struct one *o, bool starter, bool sends);
/* The side of a session with that WIRE_ACCEPTOR_*, before HELLO; the acceptor gets OPEN by one_open_as(). */
void one_as(struct one *o, bool starter, uint8_t role);
void one_as_open(struct one *o, bool starter, const struct wire_open *f);
void one_open_as(struct one *o, uint8_t role);
void one_hello(struct one *o);
void one_open(struct one *o, bool sends, bool verify);
void one_opened(struct one *o);
void one_accept(struct one *o);
void one_input(struct one *o, const uint8_t *p, size_t n);
void one_tick(struct one *o, uint64_t after_ns);

/* A frame from the peer. */
#define ONE_PUT(o, x, ...) \
	do { \
		static uint8_t put_[70000]; \
		one_input((o), put_, wire_##x##_encode(put_, __VA_ARGS__)); \
	} while (0)

/* Takes a frame of the session off; its type, or 0 when there is none. */
unsigned one_said(struct one *o, struct span *payload);
/* Of all that it has said since: the last of that type, or false. */
bool one_found(struct one *o, unsigned type, struct span *payload);
void one_forget(struct one *o);

/* Another name of the entry `link_id`; the frame borrows from the last call. */
struct wire_entry one_link(uint64_t id, uint64_t parent, uint64_t link_id);
struct wire_entry one_entry(uint8_t type, uint64_t id, uint64_t parent, uint64_t size_bytes);
/* Offers an entry; its id. */
uint64_t one_offer(struct one *o, uint8_t type, uint64_t size_bytes);
uint64_t one_offer_as(struct one *o, struct wire_entry *f);
uint64_t one_offer_sparse(struct one *o, uint64_t size_bytes);
void one_answer(struct one *o, uint64_t id, uint8_t verdict);
void one_ack(struct one *o, uint64_t id, uint32_t block);
void one_fail(struct one *o, uint64_t id, int code);
static inline uint64_t one_id(uint64_t count, unsigned slot) { return count << 16 | slot; }

/* Its sending half: a file that is being sent, on so many streams from 0 on; and one job of one block taken by a
 * stream: which, UINT32_MAX when there is none. */
#define ONE_BLOCK (256u << 10)
static inline struct snd *one_snd(struct one *o) { return engine_snd(o->s); }
static inline struct mono one_now(const struct one *o) { return (struct mono){ o->now_ns }; }
uint64_t one_sending(struct one *o, unsigned streams, uint32_t n_blocks, uint8_t verdict);
uint32_t one_take(struct one *o, unsigned stream);

/* It has broken off for what the peer did. */
static inline bool one_broke(const struct one *o) { return o->ended == 1 && o->why.code == PTCP_EPROTO; }

#endif
