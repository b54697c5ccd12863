/* A record of all that an engine is told, and of all that it decides, in the log at level TRACE: with it a session of a
 * user is run again without the user's files (tests/engine/replay). The record has no contents, names or texts, see
 * engine/tape_mask.h. Control thread.
 *
 * Each line of component "tape" begins with the number of the engine in its process:
 *
 *   N new SOFTWARE at=NS u=STARTER,ONE_CHANNEL,TIMEOUT_NS,QUIET_NS,LINGER_NS,MAX_ENTRIES,MAX_STREAMS,REGION,OPTIONAL
 *   N call DEPTH NAME at=NS u=NUMBERS why=CODE,LENGTH digest=HI,LO
 *   N op NAME u=NUMBERS why=CODE,LENGTH
 *   N ret NAME u=NUMBER why=CODE,LENGTH
 *   N set NAME u=INDEX,VALUE
 *   N data HEX
 *
 * new: the options of the engine; OPTIONAL is the sum (enum tape_optional) of the operations that a session may lack,
 *   and has. Spaces of the software's name are underscores. Of a starter with OPEN as data.
 * call: a function of the engine (TAPE_CALLS). DEPTH is 0, or how many operations the engine was carrying out then.
 * op: a decision: an operation of engine_ops, snd_ops or rcv_ops, or the job of snd_take(), called "job".
 * ret: what an operation has answered.
 * set: "busy" or "paced" has another answer from the inquiry with that index on, counted from 0.
 * data: bytes of the next line that is no data, in pieces: frames, bitmaps.
 *
 * Numbers are decimal, those of a digest hexadecimal; `at` counts from the first line. Zeros at the end of `u` are
 * missing, a missing `at` is that of the line before. A record fits the version that has written it: other versions may
 * decide otherwise. */
#ifndef ENGINE_TAPE_H
#define ENGINE_TAPE_H

#include "core/log.h"
#include "engine/engine.h"
#include "engine/tape_mask.h"

enum {
	TAPE_NUMBERS = 9,
	TAPE_NAME_BYTES = 64,
	TAPE_LINE_BYTES = 200 /* bytes of data in one line */
};

enum tape_optional { TAPE_HAS_FINISH = 1, TAPE_HAS_PACED = 2, TAPE_HAS_HOLE = 4, TAPE_HAS_BEGINNING = 8 };

/* Functions of the engine, by their names in calls; the numbers, and what else they have. */
#define TAPE_CALLS(X) \
	X(input)        /* n; data: frames that this input completed */ \
	X(closed)       /* why */ \
	X(accept)       /* data: OPENED */ \
	X(fail)         /* why */ \
	X(finish) X(finished) X(drop) X(progress) X(deadline) X(tick) \
	X(warn)         /* kind, length of the path; why */ \
	X(sent)         /* bytes taken from the outbox, bytes left in it */ \
	X(offer)        /* data: ENTRY */ \
	X(offer_again)  /* id; data: ENTRY */ \
	X(may_link)     /* id of the link in whose place, length of the name */ \
	X(give_up)      /* id */ \
	X(leave) X(lack) X(close) X(hold) X(release) \
	X(listed)       /* files, bytes, final */ \
	X(set_mover)    /* stream, mover */ \
	X(stream_up)    /* stream */ \
	X(stream_lost)  /* stream */ \
	X(take)         /* stream */ \
	X(set_paced)    /* paced */ \
	X(share)        /* stream, rate */ \
	X(set_rate)     /* rate, bit/s */ \
	X(read)         /* stream, id, block; digest, why */ \
	X(checked)      /* id; why */ \
	X(compared)     /* id; digest, why */ \
	X(hashed)       /* id, number of hashes; why */ \
	X(pieces)       /* id, number of hashes; why */ \
	X(mapped)       /* id; data: bitmap of the holes; why */ \
	X(grown)        /* id, blocks */ \
	X(sized)        /* id, bytes */ \
	X(input_failed) /* id; why */ \
	X(prepared)     /* id, verdict; data: bitmap of the claims; why */ \
	X(rcv_compared) /* id; digest, why */ \
	X(verified)     /* id, first, count, good; digest */ \
	X(match)        /* id, first, count */ \
	X(split)        /* id, first, count */ \
	X(patch)        /* id, block, pieces */ \
	X(limit)        /* id, end */ \
	X(broken)       /* id; why */ \
	X(block)        /* id, block, result; digest, why */ \
	X(committed)    /* id; why */ \
	X(not_linked)   /* id */

enum tape_call {
#define X(name) TAPE_##name,
	TAPE_CALLS(X)
#undef X
	TAPE_N_CALLS
};
extern const char *const tape_call_names[TAPE_N_CALLS];

struct tape_args {
	struct mono at;
	uint64_t u[TAPE_NUMBERS];
	const struct digest *digest;
	const struct ptcp_err *why;
	struct span data;
};

struct tape {
	const struct log *log;
	unsigned number, depth;
	struct mono since, at;        /* times of the first line, and of the latest one */
	struct tape_mask mask;
	struct buf in;                /* the beginning of the peer's next frame */
	const struct engine_ops *real;
	void *arg;
	struct engine_ops ops;
	struct snd_ops snd;
	struct rcv_ops rcv;
	uint64_t n_busy, n_paced;     /* numbers of inquiries, and the latest answers */
	enum wire_busy busy;
	bool paced;
};

/* NULL if the log does not want a record, or memory is short. Puts itself between the engine and its operations: it
 * replaces o->ops and o->arg. `open`: the request of a starter; else NULL. */
struct tape *tape_new(struct engine_opts *o, const struct wire_open *open, struct mono now);
void tape_free(struct tape *t); /* NULL is fine */

/* A call: TAPE(tape, read, .at = now, .u = { stream, id, block }, .why = why). */
#define TAPE(t, name, ...) \
	do { \
		if ((t) != NULL) \
			tape_write_call((t), TAPE_##name, &(struct tape_args){ __VA_ARGS__ }); \
	} while (0)
void tape_write_call(struct tape *t, enum tape_call call, const struct tape_args *a);
/* Calls that have more than numbers; `t` may be NULL. */
void tape_write_input(struct tape *t, const uint8_t *p, size_t n, struct mono now);
void tape_write_opened(struct tape *t, const struct wire_opened *o, struct mono now);
void tape_write_entry(struct tape *t, enum tape_call call, uint64_t id, const struct wire_entry *f);
void tape_write_bitmap(struct tape *t, enum tape_call call, const struct tape_args *a, const uint64_t *bitmap,
    uint32_t n);
/* The job that snd_take() has chosen; NULL: none. */
void tape_write_job(struct tape *t, const struct snd_job *job);

/* Between tape.c and tape_ops.c */
void tape_wrap_ops(struct tape *t);
void tape_write(struct tape *t, const char *kind, const char *name, const struct tape_args *a);
void tape_write_data(struct tape *t, struct span data);
void tape_write_words(struct tape *t, const uint64_t *bitmap, uint32_t n);

#endif
