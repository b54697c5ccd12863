/* Adaptation: gathers input for the adaptive parts of the engine (dead_path.h, host_load.h, path_rates.h,
 * path_select.h, stream_count.h) and carries out their decisions. */
#ifndef SESSION_ADAPT_H
#define SESSION_ADAPT_H

#include "engine/dead_path.h"
#include "engine/host_load.h"
#include "engine/path_rates.h"
#include "engine/path_select.h"
#include "engine/spent.h"
#include "engine/stream_count.h"
#include "session/session.h"

/* Where the time of the starter's transfer goes. */
struct spending {
	struct spent total;
	struct limit_times times;    /* sender: sums of its connections until the last sample */
	struct limit_times reported; /* receiver: the sender's reports since the last sample */
	uint64_t bytes;              /* transferred until the last sample */
	/* The latest interval, without the peer's load: the peer reports the load of an interval after its end. */
	struct spent_sample open;
	bool is_open;
};

struct adaptation {
	struct path_rates path_rates;
	struct dead_path dead_path;
	bool selects_paths;         /* the starter, with paths to choose from: */
	struct path_select path_select;
	bool checks_load;
	struct host_load host_load;
	uint64_t waited_ns;         /* sum of the streams until the last interval */
	struct spending *spending;  /* NULL: not of a starter, or no memory */
	/* Rate of all streams together down to which they yield, if OPEN requests that; INFINITY: they do not yield */
	double floor_bps;
	struct { unsigned streams; const char *why; } requested; /* adapt_request(), until the first
	                                                            sources are listed */
	bool adapts_streams;        /* the starter, after session_adapt_streams(): */
	struct stream_count stream_count;
	struct stream_count_opts count_opts;
	unsigned n_movers;          /* movers of the larger side, for which streams have been requested */
};

void adapt_init(struct session *sess);
/* As the starter: requests up to `streams` streams, but none that has nothing to send; a path has at least one. `why`
 * is for the user; NULL: a report follows with a later number. */
void adapt_request(struct session *sess, unsigned streams, const char *why);
void adapt_requested(struct session *sess, struct mono now);
/* As the acceptor: the floor that the starter requests, from SET_STREAMS. */
void adapt_floor(struct session *sess, uint64_t bps);
/* Once running. */
int adapt_start(struct session *sess, struct ptcp_err *e);
void adapt_rates(struct session *sess, struct mono now);
struct mono adapt_rates_deadline(const struct session *sess);
void adapt_dead_paths(struct session *sess, struct mono now);
struct mono adapt_dead_paths_deadline(const struct session *sess);
void adapt_paths(struct session *sess, struct mono now);
struct mono adapt_paths_deadline(const struct session *sess);
void adapt_load(struct session *sess, struct mono now);
struct mono adapt_load_deadline(const struct session *sess);
/* The sender uses another congestion control from now on. */
void adapt_on_congestion(struct session *sess, const char *name);
/* The number of movers that carry the streams may have changed. */
void adapt_to_movers(struct session *sess, struct mono now);
void adapt_streams(struct session *sess, struct mono now);
struct mono adapt_streams_deadline(const struct session *sess);

/* ---- spending.c ---- */

/* Once running; without memory, nothing is known at the end. */
void spending_start(struct session *sess);
/* At the end of an interval of the host's load, which took so many seconds; counts the interval before. */
void spending_sample(struct session *sess, double seconds, struct mono now);
/* The sender has reported. */
void spending_report(struct session *sess, const struct wire_tcp_report *f);
void spending_free(struct session *sess);

/* ---- adapt.c ---- */

/* As engine_ops.rate, load and (unless a probe session) tcp_report. */
void adapt_on_rate(void *arg, const struct wire_rate *f);
void adapt_on_load(void *arg, const struct wire_load *f);
void adapt_on_tcp_report(struct session *sess, const struct wire_tcp_report *f);

#endif
