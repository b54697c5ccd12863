#include "lib/steering.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/gauge.h"

#define SAMPLE_NS ((uint64_t)(STEER_SAMPLE_S * 1e9))
#define KEEP 0.8           /* of what held the streams up before, at each sample */
#define DRAINED_RATIO 0.02 /* others carry less than that */

struct steering {
	struct steering_opts o;
	struct steer model;
	struct gauge gauge;
	struct mono sampled;
	struct limit_times lately;
	char congestion[TCPINFO_CC_BYTES];
};

const struct steer *party_steered(const struct party *p)
{
	return p->str != NULL ? &p->str->model : NULL;
}

static void apply(struct party *p)
{
	const struct steer *m = &p->str->model;
	struct wire_use use = { .streams = (uint16_t)m->streams };

	log_at(&p->o.host->log, LOG_INFO, "streams", "from=%u to=%u why=\"%s\"", p->n_wanted, m->streams,
	    m->reason[0] != '\0' ? m->reason : "begins");
	session_use(p->session, &use);
	party_want(p, m->streams, m->reason[0] != '\0' ? m->reason : "connected");
}

static void learn_congestion(struct party *p, const char *name, size_t n)
{
	struct steering *t = p->str;

	if (n == 0 || t->congestion[0] != '\0')
		return;
	memcpy(t->congestion, name, n);
	t->congestion[n] = '\0';
	t->model.o.congestion = advice_congestion_by_name(t->congestion);
	if (t->o.known != NULL)
		t->o.known(t->o.arg, p, t->congestion);
}

void party_recall(struct party *p, const struct probe *probe, size_t count)
{
	struct steer *m = &p->str->model;
	unsigned before = m->streams;

	steer_recall(m, probe, count);
	if (m->streams != before)
		apply(p);
}

int party_steer(struct party *p, const struct steering_opts *o, struct ptcp_err *e)
{
	struct tcpinfo control;
	struct steer_opts so;

	steer_opts_init(&so);
	so.budget_ratio = o->budget_ratio;
	so.max_streams = o->max_streams < p->n_granted ? o->max_streams : p->n_granted;
	if ((p->str = calloc(1, sizeof *p->str)) == NULL)
		return err_nomem(e);
	p->tapped = true;
	p->str->o = *o;
	p->str->sampled = mono_now();
	steer_init(&p->str->model, &so);
	/* Its streams are tuned as the control connection is. */
	if (session_open(p->session)->role == WIRE_YOU_RECEIVE && tcpinfo_read(&control, party_control_fd(p)) == 0)
		learn_congestion(p, control.congestion, strlen(control.congestion));
	if (p->n_wanted == 0)
		apply(p);
	return 0;
}

void steering_free(struct party *p)
{
	free(p->str);
	p->str = NULL;
}

static void add_times(struct limit_times *t, const struct limit_times *more)
{
	t->elapsed_s += more->elapsed_s;
	t->busy_s += more->busy_s;
	t->window_s += more->window_s;
	t->buffer_s += more->buffer_s;
}

/* Where the peer sends it is its kernel that knows. */
void steering_seen(struct party *p, const struct wire_seen *f)
{
	struct limit_times times = { (double)f->elapsed_us / 1e6, (double)f->busy_us / 1e6,
		(double)f->window_us / 1e6, (double)f->buffer_us / 1e6 };

	if (p->str == NULL)
		return;
	p->str->lately = times;
	learn_congestion(p, (const char *)f->congestion.p, f->congestion.n);
}

/* Each stream is held up by itself: more of them bring more. */
static bool roomy(const struct party *p)
{
	enum limit l = limit_of(&p->str->lately);

	return l == LIMIT_SEND_BUFFER || l == LIMIT_RECEIVE_WINDOW;
}

/* A window that is closed while a disk is being written to is that disk's doing. */
static bool starved(const struct party *p)
{
	switch (limit_of(&p->str->lately)) {
	case LIMIT_UNKNOWN:
	case LIMIT_APPLICATION:
		return true;
	case LIMIT_RECEIVE_WINDOW:
		return party_busy(p) != WIRE_IDLE || session_peer_busy(p->session) != WIRE_IDLE;
	case LIMIT_SEND_BUFFER:
	case LIMIT_NETWORK:
		break;
	}
	return false;
}

static void look(struct party *p, double elapsed_s, struct steer_sample *x)
{
	struct steering *t = p->str;
	struct gauged g;

	gauge_read(&t->gauge, p, elapsed_s, &g);
	if (p->snd != NULL) {
		t->lately.elapsed_s *= KEEP;
		t->lately.busy_s *= KEEP;
		t->lately.window_s *= KEEP;
		t->lately.buffer_s *= KEEP;
		add_times(&t->lately, &g.times);
	}
	*x = (struct steer_sample){ .interval_s = elapsed_s, .rate_bps = 8 * (double)g.used_bytes / elapsed_s,
		.steady = party_in_use(p) == p->n_wanted &&
		    (double)g.other_bytes <= DRAINED_RATIO * (double)g.used_bytes,
		.starved = starved(p) || rates_limit(p), .roomy = roomy(p) };
}

void steering_pump(struct party *p, struct mono now)
{
	struct steering *t = p->str;
	struct steer_sample x;

	if (now.ns < steering_deadline(p).ns)
		return;
	look(p, (double)mono_diff_ns(now, t->sampled) / 1e9, &x);
	t->sampled = now;
	log_at(&p->o.host->log, LOG_DEBUG, "streams", "wanted=%u rate_bps=%.0f steady=%d starved=%d", p->n_wanted,
	    x.rate_bps, x.steady, x.starved);
	if (steer_add(&t->model, &x))
		apply(p);
}

struct mono steering_deadline(const struct party *p)
{
	return mono_add_ns(p->str->sampled, SAMPLE_NS);
}
