/* Blocks on their way: which stream has which block since when. The oldest first in each of
 * three lists: of all, of a stream, of a file. Used by the sender alone. */
#ifndef XFER_FLIGHT_H
#define XFER_FLIGHT_H

#include "core/clock.h"
#include "core/list.h"

#define FLIGHT_STREAMS 128

struct flight {
	struct list in_all, in_stream, in_file;
	void *file;
	struct mono since; /* handed to the stream, then: sent */
	uint32_t block;
	unsigned stream;
	bool copied;       /* a later flight carries the same block */
};

struct flights {
	struct list all, stream[FLIGHT_STREAMS], spare;
	/* Blocks handed to the stream of which no news has come, though their flights may have
	 * been removed since: it still has them to send. And when the newest was handed. */
	uint32_t unread[FLIGHT_STREAMS];
	struct mono handed[FLIGHT_STREAMS];
	struct mono last_ack[FLIGHT_STREAMS];
	uint64_t acked_bytes[FLIGHT_STREAMS];
	uint64_t latency_ns[FLIGHT_STREAMS]; /* smoothed, sent to acknowledged; 0: none yet */
};

void flights_init(struct flights *t);
void flights_fini(struct flights *t); /* all flights must have been removed */

/* NULL without memory. */
struct flight *flight_add(struct flights *t, struct list *file_list, void *file, uint32_t block,
    unsigned stream, struct mono now);
void flight_remove(struct flights *t, struct flight *f);
/* Another flight of the same block of the same file, or NULL. */
struct flight *flight_other(const struct flight *f, const struct list *file_list);
/* One of so many bytes was acknowledged: takes its latency as a sample of its stream. */
void flight_acked(struct flights *t, const struct flight *f, uint32_t bytes, struct mono now);
/* How old a flight elsewhere must be before this stream carries a copy. */
uint64_t flight_patience_ns(const struct flights *t, unsigned stream);

#endif
