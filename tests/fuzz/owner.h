/* The owner of a session under fuzzing: answers what the engine asks of it now, later or in vain, as the
 * script says, and holds the engine to the promises of sender.h and receiver.h: each entry is told of once,
 * nothing is committed that is not wholly here, nothing is asked about what was not accepted. */
#ifndef FUZZ_OWNER_H
#define FUZZ_OWNER_H

#include "engine/engine.h"
#include "fuzz.h"

#define OWNER_ITEMS 48
#define OWNER_BLOCKS 512 /* of a file whose blocks are followed one by one */
#define OWNER_STREAMS 4
#define OWNER_READS 128

/* What an entry's owner owes the engine. */
enum owed {
	OWE_CHECK = 1, OWE_COMPARE = 2, OWE_MAP = 4, /* a sender's */
	OWE_PREPARE = 8, OWE_AGAIN = 16, OWE_SAME = 32, OWE_HASH = 64, OWE_VERIFY = 128, OWE_COMMIT = 256,
	OWE_LINK = 512, OWE_HASHES = 1024, OWE_PIECES = 2048 /* a sender's */
};

struct item {
	bool used, told, accepted, committing, sparse, mapped;
	uint8_t type;
	uint64_t id, size_bytes;
	bool unsized;
	uint32_t n_blocks;
	uint32_t hash_first, hash_count; /* OWE_HASHES: of these blocks */
	uint32_t piece_end, piece_block; /* OWE_PIECES: of this block; none before piece_end again */
	uint32_t split_next, split_open; /* a receiver's: the same; number of blocks whose pieces are to come */
	uint32_t match_next, match_open[2]; /* a receiver's: blocks before were requested; lengths of the requests */
	unsigned owed;               /* bits of enum owed */
	struct item *parent;
	unsigned children;           /* not told of */
	uint64_t written[OWNER_BLOCKS / 64], claimed[OWNER_BLOCKS / 64];
	uint32_t n_written;
	struct digest sum;
};

struct owner {
	struct engine *s;
	struct mono now;
	struct input in;
	struct item item[OWNER_ITEMS];
	bool verify, dry_run, judging, listed, ended;
	uint16_t entries;            /* the peer's */
	enum wire_busy busy;
	bool paced;
	uint16_t asked_streams;
	struct wire_opened opened;   /* what an acceptor agrees to */
	uint8_t next_prep;           /* how the next new entry is received */
	bool up[OWNER_STREAMS];
	struct { unsigned stream; struct snd_extent extent; } read[OWNER_READS];
	unsigned n_reads;
};

extern const struct engine_ops owner_ops;

/* By a byte of the script; NULL where there is none. */
struct item *owner_item(struct owner *c, uint8_t which);

/* Moves of a owner, each with what it needs from the script. */
void owner_offer(struct owner *c);
void owner_leave(struct owner *c);
void owner_listed(struct owner *c);
void owner_stream(struct owner *c);
void owner_take(struct owner *c);
void owner_read(struct owner *c);
void owner_answer_sending(struct owner *c);
void owner_answer_receiving(struct owner *c);
void owner_block(struct owner *c);

/* At the end, when the session has been dropped. */
void owner_check_end(const struct owner *c);

#endif
