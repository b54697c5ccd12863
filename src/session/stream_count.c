#include "session/stream_count.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "session/tcp_stats.h"

#define SAMPLE_NS ((uint64_t)(STREAM_CONTROL_SAMPLE_S * 1e9))
#define KEEP 0.8           /* of what held the streams up before, at each sample */
#define DRAINED_RATIO 0.02 /* others carry less than that */

struct stream_count {
	struct stream_count_opts o;
	struct stream_control model;
	struct tcp_stats gauge;
	struct mono sampled;
	struct limit_times lately;
	char congestion[TCPINFO_CC_BYTES];
};

const struct stream_control *session_steered(const struct session *sess)
{
	return sess->stream_count != NULL ? &sess->stream_count->model : NULL;
}

static void apply(struct session *sess)
{
	const struct stream_control *m = &sess->stream_count->model;
	struct wire_set_streams use = { .streams = (uint16_t)m->streams };

	log_at(&sess->o.host->log, LOG_INFO, "streams", "from=%u to=%u why=\"%s\"", sess->n_wanted, m->streams,
	    m->reason[0] != '\0' ? m->reason : "begins");
	engine_set_streams(sess->engine, &use);
	session_want(sess, m->streams, m->reason[0] != '\0' ? m->reason : "connected");
}

static void learn_congestion(struct session *sess, const char *name, size_t n)
{
	struct stream_count *t = sess->stream_count;

	if (n == 0 || t->congestion[0] != '\0')
		return;
	memcpy(t->congestion, name, n);
	t->congestion[n] = '\0';
	t->model.o.congestion = advice_congestion_by_name(t->congestion);
	if (t->o.known != NULL)
		t->o.known(t->o.arg, sess, t->congestion);
}

void session_recall(struct session *sess, const struct probe *probe, size_t count)
{
	struct stream_control *m = &sess->stream_count->model;
	unsigned before = m->streams;

	stream_control_recall(m, probe, count);
	if (m->streams != before)
		apply(sess);
}

int session_steer(struct session *sess, const struct stream_count_opts *o, struct ptcp_err *e)
{
	struct tcpinfo control;
	struct stream_control_opts so;

	stream_control_opts_init(&so);
	so.budget_ratio = o->budget_ratio;
	so.max_streams = o->max_streams < sess->n_granted ? o->max_streams : sess->n_granted;
	if ((sess->stream_count = calloc(1, sizeof *sess->stream_count)) == NULL)
		return err_nomem(e);
	sess->tapped = true;
	sess->stream_count->o = *o;
	sess->stream_count->sampled = mono_now();
	stream_control_init(&sess->stream_count->model, &so);
	/* Its streams are tuned as the control connection is. */
	if (engine_open(sess->engine)->role == WIRE_ACCEPTOR_RECEIVES && tcpinfo_read(&control, session_control_fd(sess)) == 0)
		learn_congestion(sess, control.congestion, strlen(control.congestion));
	if (sess->n_wanted == 0)
		apply(sess);
	return 0;
}

void stream_count_free(struct session *sess)
{
	free(sess->stream_count);
	sess->stream_count = NULL;
}

static void add_times(struct limit_times *t, const struct limit_times *more)
{
	t->elapsed_s += more->elapsed_s;
	t->busy_s += more->busy_s;
	t->window_s += more->window_s;
	t->buffer_s += more->buffer_s;
}

/* Where the peer sends it is its kernel that knows. */
void stream_count_seen(struct session *sess, const struct wire_tcp_report *f)
{
	struct limit_times times = { (double)f->elapsed_us / 1e6, (double)f->busy_us / 1e6,
		(double)f->window_us / 1e6, (double)f->buffer_us / 1e6 };

	if (sess->stream_count == NULL)
		return;
	sess->stream_count->lately = times;
	learn_congestion(sess, (const char *)f->congestion.p, f->congestion.n);
}

/* Each stream is held up by itself: more of them bring more. */
static bool host_limited(const struct session *sess)
{
	enum limit l = limit_of(&sess->stream_count->lately);

	return l == LIMIT_SEND_BUFFER || l == LIMIT_RECEIVE_WINDOW;
}

/* A window that is closed while a disk is being written to is that disk's doing. */
static bool starved(const struct session *sess)
{
	switch (limit_of(&sess->stream_count->lately)) {
	case LIMIT_UNKNOWN:
	case LIMIT_APPLICATION:
		return true;
	case LIMIT_RECEIVE_WINDOW:
		return session_busy(sess) != WIRE_IDLE || engine_peer_busy(sess->engine) != WIRE_IDLE;
	case LIMIT_SEND_BUFFER:
	case LIMIT_NETWORK:
		break;
	}
	return false;
}

static void look(struct session *sess, double elapsed_s, struct stream_control_sample *x)
{
	struct stream_count *t = sess->stream_count;
	struct gauged g;

	tcp_stats_read(&t->gauge, sess, elapsed_s, &g);
	if (sess->send != NULL) {
		t->lately.elapsed_s *= KEEP;
		t->lately.busy_s *= KEEP;
		t->lately.window_s *= KEEP;
		t->lately.buffer_s *= KEEP;
		add_times(&t->lately, &g.times);
	}
	*x = (struct stream_control_sample){ .interval_s = elapsed_s, .rate_bps = 8 * (double)g.used_bytes / elapsed_s,
		.steady = session_in_use(sess) == sess->n_wanted &&
		    (double)g.other_bytes <= DRAINED_RATIO * (double)g.used_bytes,
		.starved = starved(sess) || path_rates_limit(sess), .host_limited = host_limited(sess) };
}

void stream_count_pump(struct session *sess, struct mono now)
{
	struct stream_count *t = sess->stream_count;
	struct stream_control_sample x;

	if (t == NULL || now.ns < stream_count_deadline(sess).ns)
		return;
	look(sess, (double)mono_diff_ns(now, t->sampled) / 1e9, &x);
	t->sampled = now;
	log_at(&sess->o.host->log, LOG_DEBUG, "streams", "wanted=%u rate_bps=%.0f steady=%d starved=%d", sess->n_wanted,
	    x.rate_bps, x.steady, x.starved);
	if (stream_control_add(&t->model, &x))
		apply(sess);
}

struct mono stream_count_deadline(const struct session *sess)
{
	return sess->stream_count != NULL ? mono_add_ns(sess->stream_count->sampled, SAMPLE_NS) : MONO_NEVER;
}
