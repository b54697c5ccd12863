#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "session/session_impl.h"

#define WHY_LOSS "random loss limits each stream, and no competing flows are seen"
#define WHY_OTHERS "competing flows are seen"
#define SAMPLE_NS ((uint64_t)(STREAM_CONTROL_SAMPLE_S * 1e9))
#define BUSY_RATIO 0.8 /* streams that have less to send tell nothing about the path */
#define WHY_NO_BBR WHY_LOSS "; bbr would be faster, but the kernel does not permit it"
#define WHY_FAIR "it shares links with competing flows, as the impact budget requires"
#define WHY_DENIED "the kernel permits the sender neither cubic nor reno (net.ipv4.tcp_allowed_congestion_control)"
#define WHY_REQUESTED "requested"
#define WHY_SYSTEM "the system's setting"

/* Whether this end sends the data. */
static bool congestion_is_ours(const struct session *sess)
{
	uint8_t role = engine_open(sess->engine)->role;
	bool starter_sends = role == WIRE_ACCEPTOR_RECEIVES || role == WIRE_ACCEPTOR_DISCARDS;

	return !sess->o.one_channel && (sess->o.open != NULL) == starter_sends;
}

const char *session_congestion(const struct session *sess) { return sess->congestion.name; }

static bool is_fair(const char *name) { return strcmp(name, "cubic") == 0 || strcmp(name, "reno") == 0; }

/* Why a sending peer uses the name: `from` it, the peer knows more. */
static const char *peer_reason(const struct session *sess, const char *from, const char *name)
{
	switch (engine_open(sess->engine)->congestion) {
	case WIRE_CC_AUTO:
	case WIRE_CC_YIELD:
		if (from[0] != '\0')
			return is_fair(name) ? WHY_OTHERS : WHY_LOSS;
		return is_fair(name) ? WHY_FAIR : WHY_DENIED;
	case WIRE_CC_SYSTEM:
		return WHY_SYSTEM;
	default:
		return WHY_REQUESTED;
	}
}

void congestion_use(struct session *sess, const char *name, const char *why)
{
	struct session_congestion *c = &sess->congestion;
	char from[TCPINFO_CC_BYTES];

	if (strcmp(c->name, name) == 0 && (why == NULL || why == c->why))
		return;
	strcpy(from, c->name);
	if (name != c->name)
		strcpy(c->name, name);
	c->why = why != NULL ? why : peer_reason(sess, from, name);
	if (c->sets)
		streams_set_congestion(sess, c->name);
	if (c->sets && sess->striping.movers != NULL)
		movers_set_congestion(sess->striping.movers, name);
	log_at(&sess->o.host->log, LOG_INFO, "congestion", "from=%s to=%s why=\"%s\"", from, name, c->why);
	if (c->announced)
		congestion_announce(sess);
	adapt_on_congestion(sess, name);
}

void congestion_announce(struct session *sess)
{
	struct session_congestion *c = &sess->congestion;

	c->announced = true;
	if (c->name[0] != '\0' && sess->o.ops->congestion != NULL)
		sess->o.ops->congestion(sess->o.arg, c->name, c->why);
}

/* ---- The start ---- */

static void use_system(struct session *sess, const char *why)
{
	struct tcpinfo control;

	if (tcpinfo_read(&control, session_control_fd(sess)) == 0 && control.congestion[0] != '\0')
		congestion_use(sess, control.congestion, why);
}

static void choose(struct session *sess)
{
	static const char *const fair[] = { "cubic", "reno" };
	size_t i;

	for (i = 0; i < sizeof fair / sizeof *fair; i++)
		if (sock_permits_congestion(fair[i])) {
			sess->congestion.sets = true;
			congestion_use(sess, fair[i], WHY_FAIR);
			return;
		}
	use_system(sess, WHY_DENIED);
}

int congestion_start(struct session *sess, struct ptcp_err *e)
{
	static const char *const names[] = { [WIRE_CC_CUBIC] = "cubic", [WIRE_CC_BBR] = "bbr", [WIRE_CC_RENO] = "reno" };
	const struct wire_open *o = engine_open(sess->engine);
	struct session_congestion *c = &sess->congestion;

	if (!congestion_is_ours(sess))
		return 0;
	switch (o->congestion) {
	case WIRE_CC_AUTO:
	case WIRE_CC_YIELD:
		choose(sess);
		c->judges = o->congestion == WIRE_CC_AUTO && (o->role == WIRE_ACCEPTOR_RECEIVES || o->role == WIRE_ACCEPTOR_SENDS);
		break;
	case WIRE_CC_SYSTEM:
		use_system(sess, WHY_SYSTEM);
		break;
	default:
		if (!sock_permits_congestion(names[o->congestion]))
			return err_set(e, PTCP_EUSAGE, "--congestion %s: not permitted by the sender's kernel (add it to "
			    "net.ipv4.tcp_allowed_congestion_control there)", names[o->congestion]);
		c->sets = true;
		congestion_use(sess, names[o->congestion], WHY_REQUESTED);
	}
	if (c->judges)
		congestion_judge_init(&c->judge, is_fair(c->name) ? EVIDENCE_CUBIC : EVIDENCE_MODEL);
	c->judges = c->judges && c->sets;
	if (c->judges)
		streams_tap(sess);
	return o->congestion == WIRE_CC_YIELD ? yielding_start(sess, e) : 0;
}

/* ---- Later ---- */

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
	usable = streams_connected(sess) == sess->streams.n_active && c->recent.busy_s >= BUSY_RATIO * c->recent.elapsed_s &&
	    (double)d.inactive_bytes <= STREAM_COUNT_DRAINED_RATIO * (double)d.active_bytes && session_busy(sess) == WIRE_IDLE &&
	    engine_peer_busy(sess->engine) == WIRE_IDLE && !pacer_limits(session_pacer(sess)) &&
	    !path_rates_limited(&sess->adapt.path_rates);
	return congestion_judge_add(&c->judge, sess->streams.n_active, &d.kernel, usable);
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
	congestion_use(sess, "bbr", WHY_LOSS);
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
		congestion_use(sess, c->fair, WHY_OTHERS);
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
