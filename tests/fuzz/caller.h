/* The caller of a session under fuzzing: answers what the engine asks of it now, later or in vain, as the
 * script says, and holds the engine to the promises of sender.h and receiver.h: each entry is told of once,
 * nothing is committed that is not wholly here, nothing is asked about what was not accepted. */
#ifndef TESTS_FUZZ_CALLER_H
#define TESTS_FUZZ_CALLER_H

#include "fuzz.h"
#include "xfer/session.h"

#define CALLER_ITEMS 48
#define CALLER_BLOCKS 512 /* of a file whose blocks are followed one by one */
#define CALLER_STREAMS 4
#define CALLER_READS 128

/* What an entry's caller owes the engine. */
enum owed {
	OWE_CHECK = 1, OWE_COMPARE = 2, OWE_MAP = 4, /* a sender's */
	OWE_PREPARE = 8, OWE_AGAIN = 16, OWE_SAME = 32, OWE_HASH = 64, OWE_VERIFY = 128, OWE_COMMIT = 256
};

struct item {
	bool used, told, accepted, committing, sparse, mapped;
	uint8_t type;
	uint64_t id, size_bytes;
	uint32_t n_blocks;
	unsigned owed;               /* bits of enum owed */
	struct item *parent;
	unsigned children;           /* not told of */
	uint64_t written[CALLER_BLOCKS / 64], claimed[CALLER_BLOCKS / 64];
	uint32_t n_written;
	struct digest sum;
};

struct caller {
	struct session *s;
	struct mono now;
	struct input in;
	struct item item[CALLER_ITEMS];
	bool verify, dry_run, judging, listed, ended;
	uint16_t entries;            /* the peer's */
	enum wire_busy busy;
	bool paced;
	uint16_t asked_streams;
	struct wire_opened opened;   /* what an acceptor agrees to */
	uint8_t next_prep;           /* how the next new entry is received */
	bool up[CALLER_STREAMS];
	struct { unsigned stream; struct snd_extent extent; } read[CALLER_READS];
	unsigned n_reads;
};

extern const struct session_ops caller_ops;

/* By a byte of the script; NULL where there is none. */
struct item *caller_item(struct caller *c, uint8_t which);

/* Moves of a caller, each with what it needs from the script. */
void caller_offer(struct caller *c);
void caller_leave(struct caller *c);
void caller_listed(struct caller *c);
void caller_stream(struct caller *c);
void caller_take(struct caller *c);
void caller_read(struct caller *c);
void caller_answer_sending(struct caller *c);
void caller_answer_receiving(struct caller *c);
void caller_block(struct caller *c);

/* At the end, when the session has been dropped. */
void caller_check_end(const struct caller *c);

#endif
