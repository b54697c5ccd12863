/* What a client does in a session that only measures: level after level, and what comes of it.
 * Control thread. */
#ifndef MEASURE_PROBER_H
#define MEASURE_PROBER_H

#include <math.h>

#include <ptcp/ptcp.h>

#include "model/history.h"
#include "session/probe_session.h"

struct prober;

struct prober_ops {
	/* The session runs: begin. */
	void (*running)(struct prober *b, struct session *sess);
	/* Instead: what is known of the path, so old. False: that does not do. NULL: nothing could. */
	bool (*recall)(struct prober *b, const struct history_entry *h, double age_s);
	void (*free)(struct prober *b);
};

/* First member of its kinds. */
struct prober {
	const struct prober_ops *ops;
	unsigned most_streams;   /* to ask the acceptor for */
	bool receives;           /* the acceptor is to send */
	struct loop *loop;       /* of the client that has it, as the next */
	const struct log *log;
};

/* Between the model's probes and public ones, whose unknown error is NAN. */
static inline struct probe probe_of_public(const struct ptcp_probe *p)
{
	return (struct probe){ p->streams, p->throughput_bps, isnan(p->error_bps) ? 0 : p->error_bps };
}
static inline struct ptcp_probe probe_to_public(const struct probe *p)
{
	return (struct ptcp_probe){ p->streams, p->throughput_bps, p->error_bps > 0 ? p->error_bps : NAN };
}

/* ptcp_advice_from_probes(), beside what is usual (model/fit.h) where the probes are `own`, short ones. */
int advice_of_probes(struct ptcp_advice *a, const struct ptcp_probe *p, size_t n, bool own,
    const struct ptcp_advice_opts *o, struct ptcp_err *e);

/* Probes a path until it is known well enough, and advises. Copies the options. */
int advise_new(struct prober **out, const struct ptcp_advice_opts *o, struct ptcp_err *e);
/* NULL before it has come to something. */
const struct ptcp_advice *advise_advice(const struct prober *b);

/* Runs round after round. Copies the options. */
int measure_new(struct prober **out, const struct ptcp_measure_opts *o, struct ptcp_err *e);
size_t measure_levels(const struct prober *b, struct ptcp_level *out, size_t most,
    unsigned *saturates_at);

/* A message that takes so many time-outs will not come; a first one must not be awaited for ever, though it moves. */
#define TIMING_TIMEOUTS 4u

/* Options as the caller gave them, if they are in range. */
int timing_opts_take(struct ptcp_timing_opts *out, const struct ptcp_timing_opts *o, struct ptcp_err *e);
/* Times message after message over streams that stay open. Copies the options. */
int timing_new(struct prober **out, const struct ptcp_timing_opts *o, struct ptcp_err *e);
/* At most `most` of them; how many there are. */
size_t timing_messages(const struct prober *b, struct ptcp_message *out, size_t most, double *round_trip_s);

#endif
