/* Changes the congestion control of the sender's streams as model/congestion.h decides. */
#include <string.h>

#include "session/session_impl.h"

#define SAMPLE_NS ((uint64_t)(STREAM_CONTROL_SAMPLE_S * 1e9))
#define BUSY_RATIO 0.8 /* streams that have less to send tell nothing about the path */
#define WHY_NO_BBR CONGESTION_WHY_LOSS "; bbr would be faster, but the kernel does not permit it"

static void add_times(struct limit_times *t, const struct limit_times *more)
{
	t->elapsed_s = STREAM_COUNT_DECAY * t->elapsed_s + more->elapsed_s;
	t->busy_s = STREAM_COUNT_DECAY * t->busy_s + more->busy_s;
}

static enum congestion_verdict sample(struct session *sess, struct mono now)
{
	struct session_congestion *c = &sess->congestion;
	double elapsed_s = (double)mono_diff_ns(now, c->sampled) / 1e9;
	struct tcp_delta d;
	bool usable;

	tcp_stats_read(sess, &c->stats, elapsed_s, &d);
	add_times(&c->recent, &d.times);
	usable = streams_connected(sess) == sess->n_active && c->recent.busy_s >= BUSY_RATIO * c->recent.elapsed_s &&
	    (double)d.inactive_bytes <= STREAM_COUNT_DRAINED_RATIO * (double)d.active_bytes && session_busy(sess) == WIRE_IDLE &&
	    engine_peer_busy(sess->engine) == WIRE_IDLE && !pacer_limits(session_pacer(sess)) &&
	    !path_rates_limited(&sess->path_rates);
	return congestion_judge_add(&c->judge, sess->n_active, &d.kernel, usable);
}

static void to_bbr(struct session *sess)
{
	struct session_congestion *c = &sess->congestion;

	if (!sock_permits_congestion("bbr")) {
		c->excluded = true;
		congestion_use(sess, c->name, WHY_NO_BBR);
		return;
	}
	strcpy(c->fair, c->name);
	congestion_use(sess, "bbr", CONGESTION_WHY_LOSS);
	congestion_judge_init(&c->judge, EVIDENCE_MODEL);
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
		congestion_use(sess, c->fair, CONGESTION_WHY_OTHERS);
		congestion_judge_init(&c->judge, EVIDENCE_CUBIC);
		break;
	}
	c->sampled = now;
}

struct mono congestion_deadline(const struct session *sess)
{
	const struct session_congestion *c = &sess->congestion;

	return c->judges && !c->excluded ? mono_add_ns(c->sampled.ns > 0 ? c->sampled : sess->began, SAMPLE_NS) : MONO_NEVER;
}
