#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "session/session_impl.h"

#define SAMPLE_NS ((uint64_t)(STREAM_CONTROL_SAMPLE_S * 1e9))
#define BUSY_RATIO 0.8 /* streams that have less to send tell nothing about the path */

/* Whether this end sends the data. */
static bool congestion_is_ours(const struct session *sess)
{
	uint8_t role = engine_open(sess->engine)->role;
	bool starter_sends = role == WIRE_ACCEPTOR_RECEIVES || role == WIRE_ACCEPTOR_DISCARDS;

	return !sess->o.one_channel && (sess->o.open != NULL) == starter_sends;
}

const char *session_congestion(const struct session *sess) { return sess->congestion.name; }

void congestion_use(struct session *sess, const char *name, const char *why)
{
	const struct wire_open *o = engine_open(sess->engine);
	struct session_congestion *c = &sess->congestion;
	char from[TCPINFO_CC_BYTES];

	if (strcmp(c->name, name) == 0 && (why == NULL || why == c->why))
		return;
	strcpy(from, c->name);
	if (name != c->name)
		strcpy(c->name, name);
	c->why = why != NULL ? why : congestion_peer_why(o, from, name);
	c->yields = congestion_yields(o, c->why, session_is_striped(sess));
	if (c->sets)
		streams_set_congestion(sess, c->name);
	if (c->sets && sess->striping.movers != NULL)
		movers_set_congestion(sess->striping.movers, name);
	log_at(&sess->o.context->log, LOG_INFO, "congestion", "from=%s to=%s why=\"%s\"", from, name, c->why);
	if (c->announced)
		congestion_announce(sess);
	adapt_on_congestion(sess, name);
}

bool session_lacks_congestion(const struct session *sess)
{
	return congestion_is_denied(engine_open(sess->engine), sess->congestion.why);
}

void congestion_announce(struct session *sess)
{
	struct session_congestion *c = &sess->congestion;

	c->announced = true;
	if (sess->o.open != NULL && session_lacks_congestion(sess))
		sess->o.ops->warning(sess->o.arg, NULL, congestion_denied_warning);
	if (c->name[0] != '\0' && sess->o.ops->congestion != NULL)
		sess->o.ops->congestion(sess->o.arg, c->name, c->why);
}

/* ---- The start ---- */

int congestion_start(struct session *sess, struct ptcp_err *e)
{
	const struct wire_open *o = engine_open(sess->engine);
	struct session_congestion *c = &sess->congestion;
	struct congestion_choice chosen;
	struct tcpinfo control;

	if (!congestion_is_ours(sess))
		return 0;
	congestion_choose(&chosen, o, sock_permits_congestion);
	if (chosen.name != NULL && !sock_permits_congestion(chosen.name))
		return err_set(e, PTCP_EUSAGE, "--congestion %s: not permitted by the sender's kernel (add it to "
		    "net.ipv4.tcp_allowed_congestion_control there)", chosen.name);
	c->sets = chosen.name != NULL;
	if (c->sets)
		congestion_use(sess, chosen.name, chosen.why);
	else if (tcpinfo_read(&control, session_control_fd(sess)) == 0 && control.congestion[0] != '\0')
		congestion_use(sess, control.congestion, chosen.why);
	c->judges = chosen.judges;
	if (c->judges) {
		congestion_judge_init(&c->judge, EVIDENCE_CUBIC, sess->streams.n_granted);
		streams_tap(sess);
	}
	return o->congestion == WIRE_CC_YIELD || c->yields ? yielding_start(sess, e) : 0;
}

/* ---- Later ---- */

static void add_times(struct limit_times *t, const struct limit_times *more)
{
	t->elapsed_s = STREAM_COUNT_DECAY * t->elapsed_s + more->elapsed_s;
	t->busy_s = STREAM_COUNT_DECAY * t->busy_s + more->busy_s;
}

/* Other transfers of the same user hide competing flows, and BBR would starve the transfers. */
static bool is_accompanied(const struct session *sess)
{
	return sess->adapt.adapts_streams && sess->adapt.stream_count.share.transfers > 1;
}

static enum congestion_verdict sample(struct session *sess, struct mono now)
{
	struct session_congestion *c = &sess->congestion;
	double elapsed_s = (double)mono_diff_ns(now, c->sampled) / 1e9;
	struct tcp_delta d;
	bool usable;

	tcp_stats_read(sess, &c->stats, elapsed_s, &d);
	add_times(&c->recent, &d.times);
	usable = c->recent.busy_s >= BUSY_RATIO * c->recent.elapsed_s &&
	    (double)d.inactive_bytes <= STREAM_COUNT_DRAINED_RATIO * (double)d.active_bytes &&
	    session_busy(sess) == WIRE_IDLE &&
	    engine_peer_busy(sess->engine) == WIRE_IDLE && !pacer_limits(session_pacer(sess)) &&
	    !path_rates_limited(&sess->adapt.path_rates) && !is_accompanied(sess);
	if (c->fair[0] != '\0' && is_accompanied(sess))
		return CONGESTION_FROM_BBR;
	return congestion_judge_add(&c->judge, streams_connected(sess) == sess->streams.n_active ?
	    sess->streams.n_active : 0, &d.kernel, usable);
}

static void to_bbr(struct session *sess)
{
	struct session_congestion *c = &sess->congestion;

	if (!sock_permits_congestion("bbr")) {
		c->excluded = true;
		congestion_use(sess, c->name, CONGESTION_NO_BBR);
		return;
	}
	strcpy(c->fair, c->name);
	congestion_use(sess, "bbr", CONGESTION_LOSS);
	congestion_judge_init(&c->judge, EVIDENCE_MODEL, sess->streams.n_granted);
}

void congestion_pump(struct session *sess, struct mono now)
{
	struct session_congestion *c = &sess->congestion;

	if (now.ns < congestion_deadline(sess).ns)
		return;
	switch (sample(sess, now)) {
	case CONGESTION_KEEP:
		break;
	case CONGESTION_TO_BBR:
		if (!c->excluded)
			to_bbr(sess);
		break;
	case CONGESTION_FROM_BBR:
		c->excluded = true;
		congestion_use(sess, c->fair, CONGESTION_OTHERS);
		congestion_judge_init(&c->judge, EVIDENCE_CUBIC, sess->streams.n_granted);
		break;
	}
	c->sampled = now;
}

struct mono congestion_deadline(const struct session *sess)
{
	const struct session_congestion *c = &sess->congestion;

	return c->judges && !c->excluded ? mono_add_ns(c->sampled.ns > 0 ? c->sampled : sess->began,
	    SAMPLE_NS) : MONO_NEVER;
}
