/* Rate limit of each path: the lower of the caller's limit and the limit set by path_select.h. The starter sets the
 * limits. The sender enforces the limits (by snd_set_rate() and the pacers of its streams); a receiving starter
 * reports them in a RATE frame, and its own pacers only stop a sender that does not comply. */
#ifndef ENGINE_PATH_RATES_H
#define ENGINE_PATH_RATES_H

#include "core/pacer.h"
#include "engine/streams_view.h"

#define PATH_RATES_REPORT_NS (UINT64_C(100) * 1000000)  /* min time between RATE frames: the peer limits them */
#define PATH_RATES_CHECK_NS (UINT64_C(1) * 1000000000)
#define PATH_RATES_RECHECK_NS (UINT64_C(250) * 1000000)

struct path_rates {
	/* bit/s by path; 0: no limit; ENGINE_PATH_IDLE */
	uint64_t requested[ENGINE_PATHS_MAX];   /* rates that the caller requests */
	uint64_t selected[ENGINE_PATHS_MAX];    /* rates that path_select.h chooses */
	uint64_t applied[ENGINE_PATHS_MAX];
	/* last RATE frame: sent (receiving starter) or received (sending acceptor) */
	struct wire_rate frame;
	bool pending;                           /* a RATE frame waits for PATH_RATES_REPORT_NS */
	struct mono reported, checked;
	/* shared by all streams; shared by some: by path, or by index in the frame */
	struct pacer all, of[ENGINE_PATHS_MAX];
};

void path_rates_init(struct path_rates *r);
/* Whether any path has a limit. */
bool path_rates_limited(const struct path_rates *r);

/* ---- The starter ---- */

/* Updates `applied` and the pacers. Returns the paths whose limit has changed, as a bit mask. `loose`: the
 * pacers allow an eighth more, as the peer enforces the limit. */
uint32_t path_rates_apply(struct path_rates *r, unsigned n_paths, bool loose, struct mono now);
/* Receiving starter: true if *f, the limits of paths and (all_bps) of all streams together, is to be sent now.
 * path_of: by stream. */
bool path_rates_report(struct path_rates *r, struct wire_rate *f, uint64_t all_bps, const uint8_t *path_of,
    unsigned n_streams, unsigned n_paths, struct mono now);

/* ---- The sending acceptor ---- */

void path_rates_received(struct path_rates *r, const struct wire_rate *f, struct mono now);
/* Number of the frame's rate that limits a stream, from 1; 0: none. */
unsigned path_rates_share(const struct path_rates *r, unsigned stream);
/* Either end. reports: the end is a receiving starter; recheck: a limit of all paths may change or block without an
 * event. */
struct mono path_rates_deadline(const struct path_rates *r, bool reports, bool recheck);
/* Either end: a limit has been exchanged, so blocks may be rare without fault. */
bool path_rates_exchanged(const struct path_rates *r);

#endif
