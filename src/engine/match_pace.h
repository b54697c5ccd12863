/* How much of an existing file to compare by hash, rather than to receive it. The first window is a sample. What is
 * compared in vain has to be small beside what is received: after each window that did not pay, twice as many blocks
 * are received unseen, and at least as many as the path carries during a comparison. */
#ifndef ENGINE_MATCH_PACE_H
#define ENGINE_MATCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	MATCH_WINDOW_MIN = 8,    /* blocks; the path waits for the first window: 2 MiB take 1 ms to hash */
	MATCH_WINDOW_ALL = 64,   /* blocks of the first window if all are compared */
	MATCH_WINDOW_GROWTH = 4, /* a window that pays is followed by one so many times as long, */
	MATCH_WINDOW_MAX = 1024  /* up to this; with two windows under way, 256 MiB cover 0.1 s at 20 Gbit/s */
};

struct match_pace {
	bool always;     /* everything is compared */
	uint32_t block_bytes;
	uint32_t window; /* number of blocks to compare next */
	uint32_t skip;   /* number of blocks in front of them to receive without a comparison */
};

/* A window took so long to compare, and had so many bytes that need not be received. It pays if the path, at the
 * best rate seen, 0: unknown, would have needed longer for these. */
void match_pace_judge(struct match_pace *p, uint64_t equal_bytes, uint64_t took_ns, double path_bps);

/* Bytes of old files that may be searched, byte by byte, for moved blocks. A search in vain has to take little time
 * beside receiving; one that finds blocks may go on. */
struct search_pace {
	uint64_t left_bytes;
};
enum {
	SEARCH_BEGIN_BYTES = 8 << 20,
	SEARCH_SHARE = 32,        /* a search in vain takes at most this part of the time of the path */
	SEARCH_GBPS = 8,          /* rate of a search on one processor: about a byte a nanosecond */
	SEARCH_MAX_BYTES = 1 << 30
};
/* So many bytes have been received more; path_bps is the best rate seen, 0: unknown. */
void search_pace_received(struct search_pace *p, uint64_t bytes, double path_bps);
/* A search of so many bytes has found that many. */
void search_pace_done(struct search_pace *p, uint64_t searched_bytes, uint64_t found_bytes);

static inline struct match_pace match_pace_begin(uint32_t block_bytes, bool always)
{
	return (struct match_pace){ .always = always, .block_bytes = block_bytes,
		.window = always ? MATCH_WINDOW_ALL : MATCH_WINDOW_MIN };
}

#endif
