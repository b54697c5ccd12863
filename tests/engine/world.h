/* Two sessions joined in memory, with all that can happen between and around them: a control
 * channel that delays and splits, streams that deliver, reorder, stall, die and come back, and
 * a store that answers now, later, or fails. No bytes of files, no time of day: a queue of
 * events, a clock of its own, and a generator of random numbers that a seed repeats.
 *
 * What must hold in every world is asserted here: each entry is told of exactly once, blocks
 * come only for files that were accepted, a file is committed when every block of it has been
 * written, a directory when all within it is over, and in the end both sides say the same. */
#ifndef TESTS_XFER_WORLD_H
#define TESTS_XFER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "core/units.h"
#include "engine/engine.h"

#define check_that(cond, ...) \
	do { \
		if (!(cond)) \
			fail_msg(__VA_ARGS__); \
	} while (0)

#define WORLD_LINES 16
#define WORLD_REGIONS 64 /* of a file, that are watched */
#define NO_BLOCK UINT32_MAX
#define WORLD_WINDOW 16 /* blocks of an input in memory */

struct rng {
	uint64_t state;
};
uint64_t world_random(struct rng *r);
/* 0 to n - 1; true in one of n cases. */
uint32_t rng_below(struct rng *r, uint32_t n);
bool rng_one_in(struct rng *r, uint32_t n);

/* ---- What is sent ---- */

struct node {
	uint32_t index;
	uint8_t type;
	uint64_t size_bytes;
	struct node *parent;
	/* what goes wrong with it */
	bool refused, have_it, commit_fails, changed, spoilt;
	bool unsized;               /* its size is known at its end; `changed`: or the input fails there */
	uint32_t read_fails_at, write_fails_at;
	uint32_t version;           /* of the source's content, from 1 */
	uint64_t *holes;            /* of the source; NULL: none */
	struct node *link_to;       /* of a HARDLINK */
	/* what is at the destination, from session to session */
	uint64_t *old;              /* blocks of an earlier, complete version that are the source's; NULL: none */
	uint32_t here;              /* the version of a complete file; 0: none */
	uint32_t part;              /* that of an unfinished one; 0: none */
	uint32_t *content;          /* of that: the version of each block, 0: zeros */
	uint64_t *journal;          /* its blocks that are claimed */
	/* the sender's view, of this session */
	bool offered;
	uint64_t snd_id;
	uint32_t n_read, low;       /* of an input: blocks read; those before `low` are released, */
	uint64_t *released;         /* and these */
	bool sized;
	unsigned told;              /* how often, at the sender */
	enum snd_fate fate;
	/* the receiver's */
	uint64_t id;
	bool as_link, not_linked;   /* offered as a hard link; ends, and is offered again */
	bool prepared, accepted, committing, over, skipped, failed;
	unsigned open_children;
	uint32_t n_blocks, n_written;
	uint64_t *written;
	uint32_t match_next, window_end[2]; /* hashes before were requested, or given up; ends of the requests */
	unsigned n_windows;
	uint64_t *splits;           /* bitmap: the pieces of these blocks are requested */
	uint64_t *intact;           /* claimed and as it should be: not to be sent again */
	uint16_t movers[WORLD_REGIONS]; /* which have sent blocks of each region, bit by bit */
};

/* ---- A stream ---- */

struct line {
	/* how it is */
	uint64_t bytes_per_s, latency_ns;
	/* what it does */
	bool up, stalled, gone_for_good;
	unsigned epoch, jobs, reading;
	uint64_t free_at;
};

/* ---- What the world is like; plan_init() gives a good one ---- */

struct plan {
	uint64_t seed;
	bool receiver_starts, verify;
	unsigned lines, jobs;           /* streams, and jobs each holds */
	unsigned movers;                /* stream i is that of mover i modulo this number; 0: no movers */
	uint64_t region_bytes;
	bool striped;                   /* the engines derive it from the stripes .. */
	uint32_t stripe[2];             /* .. of the sender and of the receiver, in units of WIRE_STRIPE_BYTES */
	uint64_t timeout_ns;
	uint32_t max_entries;           /* of the receiver */
	uint64_t control_latency_ns;
	unsigned control_split;         /* largest piece; 0: as it comes */
	uint64_t store_ns, slow_store_ns; /* longest that an operation takes; one in 200 */
	unsigned list_batch;
	bool early;                     /* a sender that starts lists before OPENED */
	/* one in so many; 0: never */
	unsigned later, refuse, have_it, commit_fails, changes, spoils, read_fails, write_fails;
	unsigned bad_blocks, late_news;
	unsigned sparse, links, exists, olds, rots, unreadable, unsized;
	bool dry_run;
	bool hashed;                    /* blocks have content (world_tape.c), and its hashes */
	/* faults of streams and control */
	unsigned deaths, stalls;        /* how many, at random times in the first fault_ns */
	uint64_t fault_ns;
	bool cut, silent, no_streams;   /* the control channel at a random time; no line ever */
};
void plan_init(struct plan *p, uint64_t seed);

struct world;
struct side {
	struct world *w;
	bool sends;
	struct engine *engine;
	bool running, over;
	unsigned ended;
	struct ptcp_err why;
	bool failed;
	uint64_t pipe_free_at;          /* what goes out arrives in order */
	bool deaf;                      /* its outbox is not taken */
	unsigned busy;                  /* operations of its store */
	uint64_t notes;
};

struct event;
struct world {
	struct plan plan;
	struct rng rng;
	uint64_t now_ns;
	struct side side[2];            /* 0 sends, 1 receives */
	struct line line[WORLD_LINES];
	struct event **heap;
	size_t n_heap, cap_heap;
	uint64_t n_events;
	struct node **node;             /* in the order of the walk's entering */
	uint32_t n_nodes, cap_nodes;
	unsigned n_unsized;
	struct step *step;              /* the walk */
	uint32_t n_steps, cap_steps, at_step;
	bool listing, listed;
	uint64_t files, bytes;
	uint64_t handed;                /* blocks to streams */
	uint64_t copies;                /* blocks that arrived more than once */
	uint64_t job_news_ns;           /* the news of a job comes so late, and dies with its stream */
	uint32_t most_live;
	uint64_t matched, given_up;     /* blocks of earlier versions: found, or not looked for */
	uint64_t resumed, holes, asked_again; /* blocks: verified, told as holes, claimed but bad */
	bool cut;
	FILE *tape;                     /* gets what arrives; NULL: none */
	FILE *record;                   /* gets the records of both engines (engine/tape.h); NULL: none */
};

void world_init(struct world *w, const struct plan *p);
/* The same, with a record; NULL: none. */
void world_init_recorded(struct world *w, const struct plan *p, FILE *record);
/* A tree: enter, files and links, leave. */
struct node *world_add(struct world *w, uint8_t type, uint64_t size_bytes);
void world_leave(struct world *w);
/* At random: so many entries at most. */
void world_grow(struct world *w, uint32_t entries);
/* Until both sides are over; asserts that they are within that time. */
void world_run(struct world *w, uint64_t limit_ns);
/* For so long, or until both are over, which it returns. */
bool world_run_for(struct world *w, uint64_t ns);
/* Both sides are killed and start again; of the receiver remains what its journals claim, some of it
 * damaged (plan.rots); one in so many sources changes meanwhile. */
void world_again(struct world *w, unsigned changes);
/* Every file is here as it is at the source. */
void world_whole(struct world *w);
/* Both ended well and agree about every entry. */
void world_agreed(struct world *w);
/* Lets go of everything; every entry must have been told of. */
void world_fini(struct world *w);

struct mono world_now(const struct world *w);

/* ---- Recordings: all that arrived in a session, one line each, in hexadecimal digits ----
 *
 *   sender BYTES     control frames of the sender, and
 *   receiver BYTES   of the receiver, as they arrived
 *   block BYTES      header and end of a block; its content is that of plan.hashed, by index of the file and offset */

/* One side runs with a recording in place of its peer, which must be that of a session with the same nodes. */
void world_replay(struct world *w, unsigned side, FILE *recording);

#endif
