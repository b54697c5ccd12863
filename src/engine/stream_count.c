#include "engine/stream_count.h"

#include <stdio.h>
#include <string.h>

void stream_count_init(struct stream_count *c, const struct stream_control_opts *o, struct mono now)
{
	memset(c, 0, sizeof *c);
	c->sampled = now;
	stream_control_init(&c->model, o);
	stream_share_all(&c->share, &c->model);
}

void stream_count_decide(struct stream_count *c, unsigned streams)
{
	stream_share_all(&c->share, &c->model);
	if (streams > 0)
		c->share = (struct stream_share){ .streams = streams, .settled = true, .transfers = 1 };
}

bool stream_count_budget(struct stream_count *c, double ratio)
{
	const struct stream_share before = c->share;

	if (c->group.add != NULL) {
		c->group.budget(c->group.arg, ratio);
		return false;
	}
	stream_control_members(&c->model, c->model.o.members, ratio);
	stream_count_decide(c, 0);
	return c->share.streams != before.streams;
}

bool stream_count_most(struct stream_count *c, unsigned max_streams)
{
	const struct stream_share before = c->share;

	stream_control_most(&c->model, max_streams);
	stream_count_decide(c, 0);
	return c->share.streams != before.streams;
}

/* What the former congestion control had is no knowledge of the path, but has used the budget. */
static void restart(struct stream_control *m)
{
	const struct stream_control_opts o = m->o;
	const struct impact_budget spent = m->spent;

	stream_control_init(m, &o);
	m->spent = spent;
	snprintf(m->reason, sizeof m->reason, "another congestion control: probing");
}

bool stream_count_congestion(struct stream_count *c, const char *name, size_t n)
{
	bool used;

	if (n == 0 || n >= sizeof c->congestion || (strlen(c->congestion) == n && memcmp(c->congestion, name, n) == 0))
		return false;
	used = c->congestion[0] != '\0';
	memcpy(c->congestion, name, n);
	c->congestion[n] = '\0';
	c->model.o.congestion = advice_congestion_by_name(c->congestion);
	if (used)
		restart(&c->model);
	return true;
}

static void add_streams(struct evidence_sample *s, const struct wire_tcp_report *f)
{
	double sum = 0;
	unsigned i, n = 0;

	for (i = 0; i < f->m; i++) {
		if (f->rtt_us[i] == 0)
			continue;
		sum += f->rtt_us[i] / 1e6;
		n++;
		if (f->min_rtt_us[i] > 0 && (s->min_rtt_s == 0 || f->min_rtt_us[i] / 1e6 < s->min_rtt_s))
			s->min_rtt_s = f->min_rtt_us[i] / 1e6;
		s->sent_segments += f->segments[i];
		s->lost_segments += f->lost[i];
		s->loss_events += f->events[i];
	}
	if (n > 0)
		s->rtt_s = sum / n;
}

void stream_count_report(struct stream_count *c, const struct wire_tcp_report *f)
{
	c->recent = (struct limit_times){ (double)f->elapsed_us / 1e6, (double)f->busy_us / 1e6,
	    (double)f->window_us / 1e6,
		(double)f->buffer_us / 1e6 };
	add_streams(&c->reported, f);
	c->reported.busy_s += c->recent.busy_s;
	c->reported.window_s += c->recent.window_s + c->recent.buffer_s;
}

/* Between two reports the RTTs stay. */
static struct evidence_sample take_reported(struct stream_count *c, double elapsed_s, double bytes)
{
	struct evidence_sample s = c->reported;

	s.interval_s = elapsed_s;
	s.delivered_bytes = bytes;
	c->reported = (struct evidence_sample){ .rtt_s = s.rtt_s, .min_rtt_s = s.min_rtt_s };
	return s;
}

static void add_times(struct limit_times *t, const struct limit_times *more)
{
	t->elapsed_s = STREAM_COUNT_DECAY * t->elapsed_s + more->elapsed_s;
	t->busy_s = STREAM_COUNT_DECAY * t->busy_s + more->busy_s;
	t->window_s = STREAM_COUNT_DECAY * t->window_s + more->window_s;
	t->buffer_s = STREAM_COUNT_DECAY * t->buffer_s + more->buffer_s;
}

/* A receive window closed by a busy disk does not reflect the path. */
static bool is_starved(enum limit limit, bool disk_busy)
{
	return limit == LIMIT_UNKNOWN || limit == LIMIT_APPLICATION || (limit == LIMIT_RECEIVE_WINDOW && disk_busy);
}

struct mono stream_count_deadline(const struct stream_count *c)
{
	return mono_add_ns(c->sampled, STREAM_COUNT_SAMPLE_NS);
}

bool stream_count_add(struct stream_count *c, const struct stream_count_input *in, struct mono now)
{
	double elapsed_s = (double)mono_diff_ns(now, c->sampled) / 1e9;
	enum limit limit;

	if (in->sends)
		add_times(&c->recent, &in->times);
	limit = limit_of(&c->recent);
	c->sample = (struct stream_control_sample){ .interval_s = elapsed_s,
		.rate_bps = 8 * (double)in->active_bytes / elapsed_s, .unconnected = in->unconnected,
		.steady = (double)in->inactive_bytes <= STREAM_COUNT_DRAINED_RATIO * (double)in->active_bytes,
		.starved = is_starved(limit, in->disk_busy) || in->rate_limited,
		/* Buffers and windows limit each stream separately, so more streams increase throughput. */
		.host_limited = limit == LIMIT_SEND_BUFFER || limit == LIMIT_RECEIVE_WINDOW };
	c->sample.kernel = in->sends ? in->kernel : take_reported(c, elapsed_s, (double)in->active_bytes);
	c->sampled = now;
	if (c->group.add != NULL)
		return c->group.add(c->group.arg, &c->model, &c->sample, &c->share);
	if (!stream_control_add(&c->model, &c->sample))
		return false;
	stream_share_all(&c->share, &c->model);
	return true;
}
