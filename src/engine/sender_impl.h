/* The inside of the sending half, for sender.c (entries), sender_blocks.c (blocks and streams), sender_rates.c
 * (streams that share a rate), sender_tail.c (copies, time), sender_holes.c and sender_frames.c (what the receiver
 * says). */
#ifndef ENGINE_SENDER_IMPL_H
#define ENGINE_SENDER_IMPL_H

#include "core/bitmap.h"
#include "engine/inflight.h"
#include "engine/sender.h"

/* More waits for the peer to read: nothing more is offered or said of holes meanwhile. */
#define BACKLOG_BYTES (1u << 20)

enum snd_state { OFFERED, COMPARING, COMPARED, SENDING, CHECKING, FINISHING, MADE, FAILING, LOST };

struct range {
	uint32_t first, count;
};

/* Ranges in the order they came; the live ones are at[head..end). */
struct ranges {
	struct range *at;
	uint32_t head, end, cap;
	uint64_t blocks;                /* in the live ones, each as often as it is there */
};

struct entry {
	uint64_t id, size_bytes;        /* id 0: has no slot (any more) */
	struct entry *parent;
	void *cookie;
	enum snd_state state;
	uint8_t type;
	struct list in_all;
	/* directories */
	bool left;
	uint32_t children;
	struct wire_entry end;          /* its DIR_END */
	/* regular files */
	bool parts;                     /* the receiver names the blocks */
	bool sparse, unmapped;          /* it has holes; where is not known yet: no block of it is sent */
	bool has_map;                   /* it counts in map_bytes */
	uint64_t *holes;                /* NULL: none */
	uint32_t n_blocks, next, n_acked, n_read, mismatches;
	uint64_t *acked, *read, few[2]; /* bitmaps; `few` holds both of up to 64 blocks */
	struct ranges again;            /* lost or asked for, to be sent next */
	struct digest digest;           /* of the blocks in `read` */
	struct list in_ready, flights;  /* in_ready: in ready, or in unmapped */
	struct ptcp_err *why;           /* FAILING; NULL without memory */
};

struct snd {
	struct snd_opts o;
	struct outbox *out;
	struct entry *slot[WIRE_SLOTS];
	uint16_t spare[WIRE_SLOTS];
	unsigned n_spare;
	uint64_t n_ids;
	struct list all;                /* entries that are not over, and lost directories */
	struct entry **stack;           /* directories entered and not left */
	unsigned depth, cap_stack;
	unsigned untracked;             /* directories entered above those, without memory */
	struct list ready;              /* files with blocks to send */
	uint32_t n_ranges;              /* in all `again` */
	struct list unmapped;           /* files whose map has not been asked for */
	uint64_t map_bytes;             /* of all maps asked for or here */
	unsigned n_mapping;             /* maps asked for and not here */
	bool holes_wait;                /* for the outbox */
	struct inflights flights;
	bool up[INFLIGHT_STREAMS], listed;
	bool paced;
	uint8_t rate_of[INFLIGHT_STREAMS]; /* 0: none */
	struct { uint64_t bps; bool idle; } rate[SND_RATES + 1];
	struct mono tail_at;            /* an idle stream could copy a block then */
	struct snd_stats stats;
};

/* ---- sender.c ---- */

struct entry *snd_find(const struct snd *s, uint64_t id);
/* The entry is over. */
void snd_end(struct snd *s, struct entry *f, enum snd_fate fate, const struct ptcp_err *why);
/* Fails on our side: the receiver is told and drops it; its answer ends the entry. */
void snd_fail(struct snd *s, struct entry *f, const struct ptcp_err *why);
/* The receiver could not make the directory: its slot is free, it stays for its children. */
void snd_lose_dir(struct snd *s, struct entry *d, const struct ptcp_err *why);
/* A directory that was left and has no children any more gets its last word. */
void snd_dir_try_end(struct snd *s, struct entry *d);

/* ---- sender_blocks.c ---- */

/* Blocks may flow. `parts`: only those that NEED names. */
void snd_start(struct snd *s, struct entry *f, bool parts);
/* Makes sure of a file's bitmaps, which it has from the first of its blocks on: thousands of large
 * files may wait. False without memory: the file has been failed. */
bool snd_track(struct snd *s, struct entry *f);
/* Sends blocks again, ahead of what is new; false when too much is waiting for that. */
bool snd_requeue(struct snd *s, struct entry *f, uint32_t first, uint32_t count);
/* Nothing of these blocks counts as on its way any more. */
void snd_forget_flights(struct snd *s, struct entry *f, uint32_t first, uint32_t count);
/* All its flights and waiting blocks. */
void snd_drop_blocks(struct snd *s, struct entry *f);
/* The next block the file has to send, and the end of the run it is in; false when there is none. */
bool snd_next_block(const struct entry *f, uint32_t *block, uint32_t *end);
/* So many from snd_next_block() on need no sending any more. */
void snd_taken(struct snd *s, struct entry *f, uint32_t count);
/* The receiver has it, and its term is in the digest. */
static inline bool snd_settled(const struct entry *f, uint32_t block)
{
	return bitmap_has(f->acked, block) && bitmap_has(f->read, block);
}
/* All is here that the next step needs: acknowledged, and read for the digest. */
void snd_try_complete(struct snd *s, struct entry *f);

/* Puts a block into the job and in flight; false if it is full or without memory. */
bool snd_job_add(struct snd *s, struct snd_job *job, uint32_t *bytes, struct entry *f, uint32_t block,
    unsigned stream, struct mono now);

/* ---- sender_rates.c ---- */

/* Of the rate that the stream keeps to, idle or not; 0: none. */
uint64_t snd_rate_bps(const struct snd *s, unsigned stream);
/* What all streams of that rate have that has not gone out. */
uint64_t snd_held_bytes(const struct snd *s, unsigned stream);

/* ---- sender_tail.c ---- */

/* Blocks that other streams carry, when there is nothing else left to send. */
void snd_take_copies(struct snd *s, unsigned stream, struct mono now, struct snd_job *job, uint32_t *bytes);

/* ---- sender_holes.c ---- */

/* Blocks may flow once it is known which are holes. */
void snd_await_map(struct snd *s, struct entry *f);
void snd_drop_map(struct snd *s, struct entry *f);
bool snd_is_hole(const struct entry *f, uint32_t block);
/* Tells the receiver of the holes that its next blocks to `end` begin with; false while the outbox is full. */
bool snd_put_holes(struct snd *s, struct entry *f, uint32_t block, uint32_t end);
/* Asks for maps, and sends the holes that files begin with. */
void snd_tick_holes(struct snd *s);

#endif
