/* Blocks in flight, with stream and time. A block is found by file and number; the lists of a stream and of a file are
 * in the order of handing out; blocks that may be copied are in the order of `since`, so that the oldest is at hand
 * whatever the number in flight. Used by the sender only. */
#ifndef ENGINE_INFLIGHT_H
#define ENGINE_INFLIGHT_H

#include "core/clock.h"
#include "core/list.h"
#include "core/memory_budget.h"

#define INFLIGHT_STREAMS 128
#define INFLIGHT_RATES 17       /* shared rates, and 0: none */
#define INFLIGHT_DOUBLINGS 20   /* a block's age doubles between copies, at most so often */
#define INFLIGHT_FEW 64

struct inflight {
	struct list in_age, in_stream, in_file; /* in_age: in neither list of `age` if copied */
	struct inflight *next;          /* next flight at the same place in `index`; newest first */
	void *file;
	struct mono handed; /* time when the stream got the block */
	struct mono since;  /* time when the stream sent the block; until inflight_sent() the same as `handed` */
	uint32_t block;
	unsigned stream;
	bool sent;
	bool copied;       /* a later flight carries the same block */
	unsigned copies;   /* number of earlier flights of the block */
};

struct inflights {
	struct memory_account *memory;
	struct list age[INFLIGHT_DOUBLINGS + 1]; /* flights by number of copies, the oldest first;
	                                            without copied flights */
	struct list stream[INFLIGHT_STREAMS], spare;
	struct inflight **index;        /* hash table of n_index lists, a power of two */
	uint32_t n_index, n;            /* n: number of flights */
	struct inflight *few[INFLIGHT_FEW];
	/* Blocks handed to the stream and not sent yet, including blocks whose flights were removed, which the stream
	 * sends nevertheless. `handed`: time of the newest. */
	uint32_t unread[INFLIGHT_STREAMS];
	uint64_t unread_bytes[INFLIGHT_STREAMS]; /* estimated from the mean length */
	uint64_t queued_bytes[INFLIGHT_RATES];   /* queued bytes of all streams with this rate */
	uint8_t rate_of[INFLIGHT_STREAMS];       /* 0: none */
	struct mono handed[INFLIGHT_STREAMS];
	struct mono last_ack[INFLIGHT_STREAMS];
	bool lost[INFLIGHT_STREAMS];       /* the new connection has acknowledged none of the blocks in flight */
	uint8_t stalls[INFLIGHT_STREAMS]; /* reported since the last acknowledgment, on any connection of the stream */
	uint64_t acked_bytes[INFLIGHT_STREAMS];
	bool any_acked;
	unsigned n_copies; /* total */
	uint64_t latency_ns[INFLIGHT_STREAMS]; /* moving average of the time until acknowledgment; 0: unknown */
};

/* `memory`: account of the records; NULL: no limit. */
void inflights_init(struct inflights *t, struct memory_account *memory);
void inflights_fini(struct inflights *t); /* all flights must have been removed */

/* A new connection of the stream: nothing is queued, and its latency is unknown. */
void inflight_stream_up(struct inflights *t, unsigned stream, struct mono now);
void inflight_share(struct inflights *t, unsigned stream, unsigned rate);
/* NULL: out of memory, or beyond a limit of the account. */
struct inflight *inflight_add(struct inflights *t, struct list *file_list, void *file, uint32_t block,
    uint32_t bytes, unsigned stream, struct mono now);
/* A block that was handed to the stream has been sent; `f` NULL: its flight was removed. */
void inflight_sent(struct inflights *t, unsigned stream, struct inflight *f, struct mono now);
void inflight_remove(struct inflights *t, struct inflight *f);
/* Removes all flights of these blocks of the file. */
void inflight_remove_blocks(struct inflights *t, struct list *file_list, const void *file, uint32_t first,
    uint32_t count);
/* The flight of a block that the stream carries, or NULL. */
struct inflight *inflight_on(const struct inflights *t, const void *file, unsigned stream, uint32_t block);
/* The stream's newest flight is a copy of `of`. */
void inflight_copy(struct inflights *t, struct inflight *of, unsigned stream);
/* The copy of the flight is lost: the block may be copied again. */
void inflight_uncopy(struct inflights *t, struct inflight *f);
/* Another flight of the same block of the same file, preferably a sent one; or NULL. */
struct inflight *inflight_other(const struct inflights *t, const struct inflight *f);
/* A block was acknowledged: adds its latency to the average of the stream that delivered it, if only one stream
 * qualifies; returns that stream, or -1. */
int inflight_acked(struct inflights *t, const void *file, uint32_t block, uint32_t bytes, struct mono now);
/* Age at which this stream copies a block in flight on another stream: derived from the latency of this stream, or,
 * while unknown, from the mean latency of the other streams. */
uint64_t inflight_patience_ns(const struct inflights *t, unsigned stream);

#endif
