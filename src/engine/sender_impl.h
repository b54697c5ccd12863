/* Internals of the sending half, for sender.c (entries, streams), sender_blocks.c (blocks), sender_regions.c (movers),
 * sender_holes.c and sender_frames.c (the receiver's frames). */
#ifndef ENGINE_SENDER_IMPL_H
#define ENGINE_SENDER_IMPL_H

#include "core/bitmap.h"
#include "core/spares.h"
#include "engine/inflight.h"
#include "engine/sender.h"
#include "engine/tape.h"
#include "wire/block.h"

/* Outbox bytes above which neither entries nor holes are sent. */
#define BACKLOG_BYTES (1u << 20)

enum snd_state { OFFERED, COMPARING, COMPARED, SENDING, CHECKING, FINISHING, MADE, FAILING, AGAIN, LOST };

struct range {
	uint32_t first, count;
	uint64_t omit;                  /* pieces of its only block that the receiver has */
};

/* Ranges in the order of arrival; at[head..end) are live. */
struct ranges {
	struct range *at;
	uint32_t head, end, cap;
	uint64_t blocks;                /* blocks in live ranges, each occurrence counted */
};

/* All connected streams of one mover, or pair of movers. It has at most one region: these blocks are to be sent by its
 * streams, and no longer in `again`, or at `next`, of the file. */
struct snd_lane {
	uint64_t mover;
	unsigned n_streams;             /* 0: unused */
	struct snd_entry *file;         /* NULL: no region */
	uint64_t region;                /* number of the region in the file */
	struct ranges blocks;           /* blocks of the region that are to be sent; not empty */
};

struct snd_entry {
	uint64_t id, size_bytes;        /* id 0: has no slot; size 0 while unknown */
	struct snd_entry *parent;
	void *cookie;
	enum snd_state state;
	uint8_t type;
	struct list in_all;
	/* directories */
	bool left;
	uint64_t path_bytes;            /* length of its path below the destination */
	uint32_t children;
	struct wire_entry end;          /* the DIR_END frame of the directory */
	/* regular files */
	bool parts;                     /* the receiver requests the blocks */
	bool sparse, unmapped;          /* has holes; the holes are unknown: no block is sent yet */
	bool has_map;                   /* counted in map_bytes */
	uint64_t *holes;                /* NULL: none */
	bool unsized, unended;          /* offered as UNSIZED; its size is unknown */
	struct wire_grid grid;
	uint32_t n_blocks, next, n_acked, n_read, mismatches; /* n_blocks of an unended file: read so far */
	uint32_t n_offered;             /* blocks sent without a NEED */
	uint64_t *acked, *read, few[2]; /* bitmaps; both are in `few` up to 64 blocks of a file of known size */
	struct range match[2];          /* hashes requested: what is being hashed, and what follows; count 0: nothing */
	uint32_t match_end;             /* earlier blocks are hashed no more */
	struct ranges split;            /* blocks whose pieces are to be hashed, */
	uint32_t split_end;             /* end of the last request */
	struct ranges again;            /* lost or requested, to be sent next */
	unsigned n_regions;             /* number of lanes with a region of the file */
	uint64_t region_blocks;         /* number of blocks in these regions */
	struct digest digest;           /* sum of the terms of the blocks in `read` */
	struct list in_ready, flights;  /* in_ready: in ready, or in unmapped */
	struct ptcp_err *why;           /* FAILING; NULL without memory */
};

struct snd {
	struct snd_opts o;
	struct snd_terms terms;
	size_t early_bytes;             /* size of the frames of early entries */
	struct outbox *out;
	struct spares entries;          /* memory of ended entries */
	struct snd_entry *slot[WIRE_SLOTS];
	uint16_t spare[WIRE_SLOTS];
	unsigned n_spare;
	uint64_t n_ids;
	uint64_t linked_bytes;          /* costs of all entries offered as LINKED */
	struct list all;                /* unfinished entries, and lost directories */
	struct snd_entry **stack;           /* directories entered and not left */
	unsigned depth, cap_stack;
	unsigned untracked;             /* number of further directories entered, for lack of memory */
	struct list ready;              /* files with blocks to send */
	uint32_t n_ranges;              /* number of ranges in all `again` and all regions */
	struct snd_lane lane[INFLIGHT_STREAMS];
	uint64_t mover[INFLIGHT_STREAMS];   /* mover of the stream's next connection */
	uint8_t lane_of[INFLIGHT_STREAMS];  /* lane of a connected stream */
	unsigned n_lanes, n_regions;        /* lanes with streams, and with a region */
	struct list unmapped;           /* files whose map has not been requested */
	uint64_t map_bytes;             /* size of all maps requested or known */
	unsigned n_mapping;             /* maps requested and not known */
	bool holes_wait;                /* a HOLE waits for the outbox */
	struct inflights flights;
	bool up[INFLIGHT_STREAMS], listed;
	bool paced;
	struct { uint64_t bps; bool idle; } rate[SND_RATES + 1];
	struct mono tail_at;            /* time when an idle stream may copy a block */
	/* No stream counts as stalled before; all streams are examined then. {0}: now. */
	struct mono stalls_at;
	unsigned held;                  /* snd_hold() */
	unsigned n_unended;
	struct snd_stats stats;
};

/* ---- sender.c ---- */

struct snd_entry *snd_find(const struct snd *s, uint64_t id);
void snd_end(struct snd *s, struct snd_entry *f, enum snd_fate fate, const struct ptcp_err *why);
/* Fails on our side: sends FAIL; the receiver drops the entry, and its answer ends the entry here. */
void snd_fail(struct snd *s, struct snd_entry *f, const struct ptcp_err *why);
/* The receiver could not make the directory: frees the slot, keeps the entry for its children. */
void snd_lose_dir(struct snd *s, struct snd_entry *d, const struct ptcp_err *why);
/* Sends DIR_END of a directory that was left and whose children have ended. */
void snd_dir_try_end(struct snd *s, struct snd_entry *d);

/* The receiver has this block and its term is known: the caller may release the data. */
void snd_release_block(struct snd *s, struct snd_entry *f, uint32_t block);
/* Sends what was read meanwhile. */
void snd_start_unsized(struct snd *s, struct snd_entry *f);

/* The stream got a block or an acknowledgment: it may now count as stalled earlier than the others. */
void snd_stall_soon(struct snd *s, unsigned stream);

/* ---- sender_blocks.c ---- */

/* Blocks may be sent; `parts`: only blocks that NEED requests. */
void snd_start(struct snd *s, struct snd_entry *f, bool parts);
/* Allocates a file's bitmaps with its first block, as thousands of large files may wait. False without memory: the
 * file has failed. */
bool snd_track(struct snd *s, struct snd_entry *f);
void snd_untrack(struct snd *s, struct snd_entry *f);
/* Retransmits blocks, ahead of new ones; false when too many ranges wait. `omit`: of one block, without these
 * pieces. */
bool snd_requeue(struct snd *s, struct snd_entry *f, uint32_t first, uint32_t count, uint64_t omit);
/* Removes the flights and waiting blocks of the file. */
void snd_drop_blocks(struct snd *s, struct snd_entry *f);
/* The file's next block to send, and the end of its run; false when none is left. */
bool snd_next_block(const struct snd_entry *f, uint32_t *block, uint32_t *end);
/* Pieces that the receiver has of that block. */
uint64_t snd_next_omit(const struct snd_entry *f);
/* `count` blocks from snd_next_block() on are done. */
void snd_taken(struct snd *s, struct snd_entry *f, uint32_t count);
/* Appends blocks; false: see memory_charge(). */
bool snd_ranges_add(struct snd *s, struct ranges *r, uint32_t first, uint32_t count, uint64_t omit,
    struct ptcp_err *e);
/* The first `count` blocks of the first range are done. */
void snd_ranges_taken(struct snd *s, struct ranges *r, uint32_t count);
void snd_ranges_clear(struct snd *s, struct ranges *r);
void snd_ranges_fini(struct snd *s, struct ranges *r); /* frees the array only */
/* The receiver has the block, and its term is in the digest. */
static inline bool snd_settled(const struct snd_entry *f, uint32_t block)
{
	return bitmap_has(f->acked, block) && bitmap_has(f->read, block);
}
/* Continues once all blocks are acknowledged, and read for the digest. */
void snd_try_complete(struct snd *s, struct snd_entry *f);

/* Adds a block to the job and to the blocks in flight; false if the job is full or memory is short. */
bool snd_job_add(struct snd *s, struct snd_job *job, uint32_t *bytes, struct snd_entry *f, uint32_t block,
    uint64_t omit, unsigned stream, struct mono now);

/* ---- sender_regions.c ---- */

void snd_lane_join(struct snd *s, unsigned stream);
/* The region of a lane without streams is dealt again. */
void snd_lane_leave(struct snd *s, unsigned stream);
/* Whether the blocks of this stream come from a region. */
bool snd_has_regions(const struct snd *s, unsigned stream);
/* Fills the job with blocks of the lane's region, and of further ones. */
void snd_take_regions(struct snd *s, unsigned stream, struct mono now, struct snd_job *job, uint32_t *bytes);
/* The lane whose region has the block, or NULL. *count becomes the number of blocks, at most *count, for which the
 * answer is the same. */
struct snd_lane *snd_lane_with(struct snd *s, const struct snd_entry *f, uint32_t first, uint32_t *count);
/* The first `count` blocks of the region are done; the last ones end the region. */
void snd_region_taken(struct snd *s, struct snd_lane *lane, uint32_t count);
void snd_drop_regions(struct snd *s, struct snd_entry *f);
void snd_lanes_free(struct snd *s);

/* ---- sender_holes.c ---- */

/* Blocks are sent once the holes are known. */
void snd_await_map(struct snd *s, struct snd_entry *f);
void snd_drop_map(struct snd *s, struct snd_entry *f);
bool snd_is_hole(const struct snd_entry *f, uint32_t block);
/* Sends HOLE for the holes at `block`, up to `end`, and takes them off the lane's region (NULL: off the file), which
 * may complete the file. False while the outbox is full. */
bool snd_put_holes(struct snd *s, struct snd_entry *f, struct snd_lane *lane, uint32_t block, uint32_t end);
/* Requests maps, and sends the holes at the beginning of files. */
void snd_tick_holes(struct snd *s);

#endif
