/* What the chaos proxy does to connections, drawn from a seed. Faults lie at offsets in the byte
 * streams and not at moments, so that a run with the same seed meets them at the same places. */
#ifndef CAMPAIGN_PLAN_H
#define CAMPAIGN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_MODES(X)                                                      \
	X(DELAY, "delay")     /* each piece is some ms on its way */       \
	X(RATE, "rate")       /* all connections share a narrow link */    \
	X(REORDER, "reorder") /* connections get through out of order */   \
	X(CRAWL, "crawl")     /* for a while, byte by byte */              \
	X(STALL, "stall")     /* silence, short or beyond any time-out */  \
	X(RESET, "reset")     /* RST to both ends */                       \
	X(CUT, "cut")         /* both ends see an orderly close */         \
	X(HALF, "half")       /* one end sees a close; what comes is lost */ \
	X(CORRUPT, "corrupt") /* one bit flips */                          \
	X(LOSE, "lose")       /* bytes are missing in the middle */

enum mode {
#define X(id, name) MODE_##id,
	PLAN_MODES(X)
#undef X
	MODES
};

extern const char *const mode_name[MODES];

struct plan {
	uint64_t seed;
	uint64_t span_bytes;  /* faults lie within so many bytes of a connection */
	uint64_t rate_Bps;    /* bytes a second of all connections; 0: no limit */
	unsigned delay_ms;
	unsigned modes;       /* bit set of enum mode */
};

struct fault {
	uint64_t at_bytes;
	enum mode kind;       /* CRAWL and what comes after it */
	unsigned amount;      /* bytes to crawl or lose, ms to stall, bit to flip */
};

#define MOST_FAULTS MODES

/* The modes of a seed: one to three of them. */
unsigned plan_draw_modes(uint64_t seed);

/* "a,b,c" as a bit set into *modes; "clean" is the empty one. False for a name that is none. */
bool plan_parse_modes(const char *text, unsigned *modes);

/* Rate and delay of the run, as far as its modes say so; an own rate stays. */
void plan_draw_link(struct plan *p);

/* How long connection `number` (from 0) has to wait at the door, in ms. */
unsigned plan_draw_wait_ms(const struct plan *p, unsigned number);

/* The faults of one direction (0 up, 1 down) of a connection, by offset; returns how many. */
unsigned plan_draw_faults(const struct plan *p, unsigned number, int direction,
    struct fault out[MOST_FAULTS]);

#endif
