/* One direction of a connection through the chaos proxy: bytes come in, are held, and go out,
 * and faults strike at their offsets. Descriptors are non-blocking and belong to the connection. */
#ifndef CAMPAIGN_WAY_H
#define CAMPAIGN_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "campaign/plan.h"
#include "core/clock.h"

#define WAY_CHUNK_BYTES 65536

struct way {
	int in, out;
	uint8_t buf[WAY_CHUNK_BYTES];
	size_t from, to;             /* what is held */
	uint64_t passed_bytes;       /* taken from `in`, lost ones included */
	struct fault fault[MOST_FAULTS];
	unsigned faults, next;
	struct mono hold;            /* nothing moves before */
	unsigned crawl, lose;        /* so many bytes go one by one; are dropped */
	uint8_t flip;                /* of the next byte */
	bool ended;                  /* `in` has ended */
	bool shut;                   /* `out` has been told so, rightly or not */
};

enum way_verdict {
	WAY_ON,
	WAY_CLOSE, /* both ends are to see an orderly close */
	WAY_RESET, /* both ends are to see a reset, as one of them gave one or as planned */
};

/* Moves what can be moved without waiting, at most *budget_bytes of input, which it takes down. A fault
 * that strikes is told on stderr as "NUMBER up|down OFFSET: mode". */
enum way_verdict way_step(struct way *w, const struct plan *p, struct mono now, uint64_t *budget_bytes,
    const char *name);

/* The poll(2) events to wait for: into *in and *out, 0 where nothing is waited for. */
void way_wants(const struct way *w, struct mono now, bool budget, short *in, short *out);

#endif
