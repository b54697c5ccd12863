/* How much of an existing file to compare by hash, rather than to receive it. What is compared in vain has to be small
 * beside what is received: after each window that did not pay, twice as many blocks are received unseen. */
#ifndef ENGINE_MATCH_PACE_H
#define ENGINE_MATCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define MATCH_WINDOW_MIN 64u   /* blocks; 16 MiB take a disk less than 0.2 s */
#define MATCH_WINDOW_MAX 1024u /* blocks; with two windows under way, 256 MiB cover 0.1 s at 20 Gbit/s */

struct match_pace {
	bool always;     /* everything is compared */
	uint32_t window; /* number of blocks to compare next */
	uint32_t skip;   /* number of blocks in front of them to receive without a comparison */
};

/* A window took so long to compare, and had so many bytes that need not be received. It pays if the path, at the
 * best rate seen, 0: unknown, would have needed longer for these. */
void match_pace_judge(struct match_pace *p, uint64_t equal_bytes, uint64_t took_ns, double path_bps);

static inline struct match_pace match_pace_begin(bool always)
{
	return (struct match_pace){ .always = always, .window = MATCH_WINDOW_MIN };
}

#endif
