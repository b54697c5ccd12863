/* Blocks on their way: which stream has which block since when. The oldest first in each of
 * three lists: of all, of a stream, of a file. Used by the sender alone. */
#ifndef ENGINE_INFLIGHT_H
#define ENGINE_INFLIGHT_H

#include "core/clock.h"
#include "core/list.h"

#define INFLIGHT_STREAMS 128

struct inflight {
	struct list in_all, in_stream, in_file;
	void *file;
	struct mono handed, since; /* to the stream; the same, then: sent */
	uint32_t block;
	unsigned stream;
	bool sent;         /* as far as is known */
	bool copied;       /* a later flight carries the same block */
	unsigned copies;   /* flights of it were there before this one */
};

struct inflights {
	struct list all, stream[INFLIGHT_STREAMS], spare;
	/* Blocks handed to the stream of which no news has come, though their flights may have
	 * been removed since: it still has them to send. And when the newest was handed. */
	uint32_t unread[INFLIGHT_STREAMS];
	uint64_t unread_bytes[INFLIGHT_STREAMS]; /* where they differ in length, on the average */
	struct mono handed[INFLIGHT_STREAMS];
	struct mono last_ack[INFLIGHT_STREAMS];
	uint64_t acked_bytes[INFLIGHT_STREAMS];
	bool any_acked;
	unsigned n_copies; /* of all */
	uint64_t latency_ns[INFLIGHT_STREAMS]; /* smoothed, begun to acknowledged; 0: none yet */
};

void inflights_init(struct inflights *t);
void inflights_fini(struct inflights *t); /* all flights must have been removed */

/* Of a block of so many bytes. NULL without memory. */
struct inflight *inflight_add(struct inflights *t, struct list *file_list, void *file, uint32_t block,
    uint32_t bytes, unsigned stream, struct mono now);
/* News of a block that was handed to the stream: `f` has been sent; NULL: it is no more. */
void inflight_sent(struct inflights *t, unsigned stream, struct inflight *f, struct mono now);
void inflight_remove(struct inflights *t, struct inflight *f);
/* The flight of a block that the stream carries, or NULL. */
struct inflight *inflight_on(const struct list *file_list, unsigned stream, uint32_t block);
/* The stream's newest flight is a copy of `t`. */
void inflight_copy(struct inflights *t, struct inflight *of, unsigned stream);
/* Another flight of the same block of the same file, one that has been sent if there is; or NULL. */
struct inflight *inflight_other(const struct inflight *f, const struct list *file_list);
/* A block of so many bytes was acknowledged: takes its latency as a sample of the stream that brought it, if of
 * several which carry it only one can be that. */
void inflight_acked(struct inflights *t, const struct list *file_list, uint32_t block, uint32_t bytes, struct mono now);
/* How old a flight elsewhere must be before this stream carries a copy: by what its own take to be acknowledged, or
 * those of the others while that is not known. */
uint64_t inflight_patience_ns(const struct inflights *t, unsigned stream);

#endif
