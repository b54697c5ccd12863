/* Measurements of a client in a session without files: advice, rounds, timed messages. Control thread. */
#ifndef MEASURE_PROBER_H
#define MEASURE_PROBER_H

#include <math.h>
#include <ptcp/ptcp.h>
#include <string.h>

#include "core/err.h"
#include "model/evidence.h"
#include "model/history.h"
#include "session/probe_session.h"

struct prober;

struct prober_ops {
	/* The session runs: start measuring. */
	void (*running)(struct prober *b, struct session *sess);
	/* Before: the entry of the path's history, of this age. NULL: of no use. */
	void (*recall)(struct prober *b, const struct history_entry *h, double age_s);
	void (*free)(struct prober *b);
};

/* First member of struct advise, struct measure and struct timing. */
struct prober {
	const struct prober_ops *ops;
	unsigned max_streams;    /* number of streams to request of the acceptor */
	bool judges_streams;     /* the result is about the number of streams */
	bool receives;           /* the acceptor sends */
	/* Called with the answer so far while probing goes on; may cancel the session. NULL: nobody asks */
	void (*told)(void *arg, const struct ptcp_advice *so_far);
	void *told_arg;
	struct loop *loop;       /* loop of the owner, like log */
	const struct log *log;
	struct session *session; /* the session exists from prober_begin() on, like timer */
	struct timer *timer;
};

/* For `running`: starts probing the session with at most `streams` streams at a time. Callbacks of `ops` and the
 * timer get the prober. False: the session has been canceled. */
bool prober_begin(struct prober *b, struct session *sess, const struct probe_session_ops *ops,
    void (*on_timer)(void *arg), unsigned streams);
/* Stops the timer and cancels the session. */
void prober_fail(struct prober *b, const struct ptcp_err *why);
/* `ended` of measurements whose streams do not end by themselves: fails. */
void prober_ended(void *prober, unsigned number, const struct probe_run *run, const struct ptcp_err *why);
/* The session ends: the timer, which reads it, does not fire again. */
void prober_gone(struct prober *b);
/* `free` of a prober that owns nothing else. */
void prober_free(struct prober *b);

/* Conversions: the unknown error is 0 in the model, NAN in public. */
static inline struct probe probe_of_public(const struct ptcp_probe *p)
{
	return (struct probe){ p->streams, p->throughput_bps, isnan(p->error_bps) ? 0 : p->error_bps };
}
static inline struct ptcp_probe probe_to_public(const struct probe *p)
{
	return (struct ptcp_probe){ p->streams, p->throughput_bps, p->error_bps > 0 ? p->error_bps : NAN };
}

/* ptcp_advice_from_probes(). `evidence`: of our own probes, which are short; the answer is by its mixture of
 * hypotheses unless the options name a model. NULL: given probes. */
int advice_of_probes(struct ptcp_advice *a, const struct ptcp_probe *p, size_t n, const struct evidence *evidence,
    const struct ptcp_advice_opts *o, struct ptcp_err *e);

/* Replaces the answer where hosts, not the network, limited the probes: the fewest streams with nearly the largest
 * measured throughput, without impact, because probes of hosts do not show competing flows. The curve joins the
 * measured levels and ends at the largest. */
void advice_of_hosts(struct ptcp_advice *a);

/* Probes a path until the fit is good enough, then advises. Copies the options. */
int advise_new(struct prober **out, const struct ptcp_advice_opts *o, struct ptcp_err *e);
/* Fills the entry of the path: probes that the network limited (no other tell the number of streams), or no probes if
 * the present entry was contradicted. False: the entry remains. */
bool advise_remember(const struct prober *b, struct history_entry *h);
/* NULL: no advice yet, or another kind of prober. */
const struct ptcp_advice *advise_advice(const struct prober *b);

/* Runs rounds. Copies the options. */
int measure_new(struct prober **out, const struct ptcp_measure_opts *o, struct ptcp_err *e);
/* As ptcp_measure_levels(). */
size_t measure_levels(const struct prober *b, struct ptcp_level *out, size_t max, unsigned *saturates_at);

/* Maximum time of a message, in timeouts, even while bytes are acknowledged. */
#define TIMING_TIMEOUTS 4u

/* The options, if they are in range. */
int timing_opts_take(struct ptcp_timing_opts *out, const struct ptcp_timing_opts *o, struct ptcp_err *e);
/* Times messages over streams that stay open. Copies the options. */
int timing_new(struct prober **out, const struct ptcp_timing_opts *o, struct ptcp_err *e);
/* As ptcp_timing_messages(). */
size_t timing_messages(const struct prober *b, struct ptcp_message *out, size_t max, double *round_trip_s);

#endif
