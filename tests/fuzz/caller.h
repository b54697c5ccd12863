/* The caller of a session under fuzzing: answers what the engine asks of it now, later or in vain, as the
 * script says, and holds the engine to the promises of sender.h and receiver.h: each entry is told of once,
 * nothing is committed that is not wholly here, nothing is asked about what was not accepted. */
#ifndef TESTS_FUZZ_CALLER_H
#define TESTS_FUZZ_CALLER_H

#include "fuzz.h"
#include "engine/engine.h"

#define JOB_CONN_ITEMS 48
#define JOB_CONN_BLOCKS 512 /* of a file whose blocks are followed one by one */
#define JOB_CONN_STREAMS 4
#define JOB_CONN_READS 128

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
	uint64_t written[JOB_CONN_BLOCKS / 64], claimed[JOB_CONN_BLOCKS / 64];
	uint32_t n_written;
	struct digest sum;
};

struct job_conn {
	struct engine *s;
	struct mono now;
	struct input in;
	struct item item[JOB_CONN_ITEMS];
	bool verify, dry_run, judging, listed, ended;
	uint16_t entries;            /* the peer's */
	enum wire_busy busy;
	bool paced;
	uint16_t asked_streams;
	struct wire_opened opened;   /* what an acceptor agrees to */
	uint8_t next_prep;           /* how the next new entry is received */
	bool up[JOB_CONN_STREAMS];
	struct { unsigned stream; struct snd_extent extent; } read[JOB_CONN_READS];
	unsigned n_reads;
};

extern const struct engine_ops job_conn_ops;

/* By a byte of the script; NULL where there is none. */
struct item *job_conn_item(struct job_conn *c, uint8_t which);

/* Moves of a caller, each with what it needs from the script. */
void job_conn_offer(struct job_conn *c);
void job_conn_leave(struct job_conn *c);
void job_conn_listed(struct job_conn *c);
void job_conn_stream(struct job_conn *c);
void job_conn_take(struct job_conn *c);
void job_conn_read(struct job_conn *c);
void job_conn_answer_sending(struct job_conn *c);
void job_conn_answer_receiving(struct job_conn *c);
void job_conn_block(struct job_conn *c);

/* At the end, when the session has been dropped. */
void job_conn_check_end(const struct job_conn *c);

#endif
