#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "session/session_impl.h"

#define FLOOR_STEP_RATIO 0.02 /* smaller changes of the floor are not requested */

_Static_assert(ENGINE_PATHS_MAX >= PTCP_PATHS_MAX && ENGINE_STREAMS_MAX >= PTCP_STREAMS_MAX &&
    ENGINE_PATH_IDLE == PTCP_PATH_IDLE && HOST_LOAD_WORKERS_MAX >= CONTEXT_WORKERS_MAX, "limits");

static unsigned n_paths(const struct session *sess)
{
	return sess->o.paths != NULL ? sess->o.paths->n : 1;
}

static int start_path_select(struct session *sess, struct ptcp_err *e)
{
	const struct paths *p = sess->o.paths;
	uint8_t seed[8];
	int r;

	if (!sess->o.connects || p == NULL || !p->chosen)
		return 0;
	if ((r = tls_random(seed, sizeof seed, e)) < 0)
		return r;
	path_select_init(&sess->adapt.path_select, p->n, p->place, p->n_places, p->prior_bps,
	    get_u64(seed), mono_now());
	sess->adapt.selects_paths = true;
	return 0;
}

void adapt_init(struct session *sess) { path_rates_init(&sess->adapt.path_rates); }

int adapt_start(struct session *sess, struct ptcp_err *e)
{
	bool starter = sess->o.open != NULL;

	dead_path_init(&sess->adapt.dead_path, sess->o.connects, n_paths(sess));
	sess->adapt.checks_load = sess->probe == NULL;
	host_load_init(&sess->adapt.host_load, starter, n_paths(sess) > 1, mono_now());
	spending_start(sess);
	return start_path_select(sess, e);
}

/* Of sessions with paths. */
static void view(const struct session *sess, struct streams_view *v)
{
	const struct paths *p = sess->o.paths;
	const struct snd *snd = engine_snd(sess->engine);
	unsigned i;

	v->sends = snd != NULL;
	v->n_streams = sess->streams.n_active;
	for (i = 0; i < sess->streams.n_active; i++) {
		struct stream_view *s = &v->stream[i];

		*s = (struct stream_view){ .path = paths_of_stream(p, i), .place = p->dealt[i] };
		if (sess->slot[i].stream != NULL) {
			s->path = stream_path(sess->slot[i].stream);
			s->moving = streams_moves(sess, i);
			s->since = sess->slot[i].since;
			s->generation = sess->slot[i].generation;
			s->moved = stream_moved(sess->slot[i].stream);
		}
		if (snd != NULL) {
			s->carries = snd_stream_carries(snd, i);
			s->acked = snd_stream_acked(snd, i);
			s->acked_bytes = snd_stream_acked_bytes(snd, i);
		}
	}
	v->n_paths = p->n;
	for (i = 0; i < p->n; i++)
		v->path[i] = (struct path_view){ sess->adapt.path_rates.applied[i], p->at[i].spool_bytes > 0 };
}

/* ---- Rate limits ---- */

static void report_rates(struct session *sess, struct mono now)
{
	bool first = sess->adapt.path_rates.reported.ns == 0;
	uint8_t path[PTCP_STREAMS_MAX];
	struct wire_rate f;
	unsigned i;

	for (i = 0; i < sess->streams.n_granted; i++)
		path[i] = (uint8_t)session_path_of(sess, i);
	if (!path_rates_report(&sess->adapt.path_rates, &f, sess->o.context->pacing.bps, path, sess->streams.n_granted,
	    n_paths(sess), now))
		return;
	if (first)
		pacing_loosen(&sess->o.context->pacing);
	engine_set_rates(sess->engine, &f);
}

void adapt_rates(struct session *sess, struct mono now)
{
	unsigned n = sess->o.open != NULL && sess->probe == NULL ? n_paths(sess) : 0, i;
	bool reports = session_reports_rates(sess);
	uint32_t changed = path_rates_apply(&sess->adapt.path_rates, n, reports, now);

	for (i = 0; i < n; i++) {
		if ((changed >> i & 1) == 0)
			continue;
		dead_path_excuse(&sess->adapt.dead_path, i, now);
		if (engine_snd(sess->engine) != NULL)
			snd_set_rate(engine_snd(sess->engine), i + 1, sess->adapt.path_rates.applied[i]);
	}
	if (reports)
		report_rates(sess, now);
}

struct mono adapt_rates_deadline(const struct session *sess)
{
	bool reports = session_reports_rates(sess);

	return path_rates_deadline(&sess->adapt.path_rates, reports,
	    reports ? sess->o.context->pacing.timer != NULL : pacer_limits(session_pacer(sess)));
}

void adapt_on_rate(void *arg, const struct wire_rate *f)
{
	struct session *sess = arg;
	unsigned i;

	path_rates_received(&sess->adapt.path_rates, f, mono_now());
	for (i = 0; i < WIRE_RATES_MAX; i++)
		snd_set_rate(engine_snd(sess->engine), i + 1, f->bps[i]);
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL)
			streams_share_rate(sess, i);
	log_at(&sess->o.context->log, LOG_DEBUG, "rates", "all_bps=%llu rates=%u streams=%u",
	    (unsigned long long)f->all_bps, f->n, f->m);
}

void session_set_path_rate(struct session *sess, unsigned path, uint64_t bps)
{
	sess->adapt.path_rates.requested[path] = bps;
	session_pump(sess);
}

void session_rate_changed(struct session *sess)
{
	struct mono now = mono_now();
	unsigned i;

	for (i = 0; i < n_paths(sess); i++)
		dead_path_excuse(&sess->adapt.dead_path, i, now);
	session_pump(sess);
}

/* ---- Dead paths ---- */

static void abandon(struct session *sess, unsigned path)
{
	struct ptcp_err why;
	unsigned i;

	err_set(&why, PTCP_ETIMEOUT, "path %s: no progress", paths_name(sess->o.paths, path));
	for (i = 0; i < sess->streams.n_active; i++)
		if (sess->slot[i].stream != NULL && stream_path(sess->slot[i].stream) == path)
			streams_lost(sess, sess->slot[i].stream, &why);
}

void adapt_dead_paths(struct session *sess, struct mono now)
{
	struct streams_view v;
	uint32_t dead;
	unsigned i;

	if (!dead_path_due(&sess->adapt.dead_path, now))
		return;
	view(sess, &v);
	dead = dead_path_check(&sess->adapt.dead_path, &v, now);
	for (i = 0; i < v.n_paths; i++)
		if ((dead >> i & 1) != 0)
			abandon(sess, i);
}

struct mono adapt_dead_paths_deadline(const struct session *sess)
{
	return dead_path_deadline(&sess->adapt.dead_path, sess->streams.n_connected);
}

/* ---- Paths among candidates ---- */

static void replace(struct session *sess, unsigned place)
{
	struct paths *paths = sess->o.paths;
	const struct multipath *m = &sess->adapt.path_select.model;
	const char *old = paths_name(paths, (unsigned)paths->place[place]), *new;
	char why[200];

	paths->place[place] = m->place[place];
	new = paths_name(paths, (unsigned)paths->place[place]);
	snprintf(why, sizeof why, "%s in place of %s: %s", new, old, m->reason);
	log_at(&sess->o.context->log, LOG_INFO, "paths", "event=replaced from=%s to=%s why=\"%s\"",
	    old, new, m->reason);
	stream_connect_move(sess, place);
	sess->o.ops->paths(sess->o.arg, why);
}

void adapt_paths(struct session *sess, struct mono now)
{
	const struct path_select *c = &sess->adapt.path_select;
	struct ptcp_progress g;
	struct streams_view v;
	struct path_select_input in = { .streams = &v, .demand_bps = sess->o.context->pacing.bps,
		.left_bytes = UINT64_MAX };
	unsigned i, replaced;

	if (!sess->adapt.selects_paths || now.ns < c->next.ns)
		return;
	view(sess, &v);
	g = session_progress(sess);
	in.peer_busy = engine_peer_busy(sess->engine) != WIRE_IDLE;
	if (g.total_known)
		in.left_bytes = g.total_bytes > g.bytes ? g.total_bytes - g.bytes : 0;
	in.window_bytes = (uint64_t)sess->streams.n_active * STREAM_JOBS * PATH_SELECT_BLOCK_BYTES;
	replaced = path_select_step(&sess->adapt.path_select, &in, now);
	memset(sess->adapt.path_rates.selected, 0, sizeof sess->adapt.path_rates.selected);
	for (i = 0; i < c->model.places; i++) {
		log_at(&sess->o.context->log, LOG_INFO, "paths",
		    "path=%s observed_bps=%.0f rate_bps=%.0f down=%d starved=%d",
		    paths_name(sess->o.paths, (unsigned)sess->o.paths->place[i]), c->sample.observed_bps[i],
		    c->model.rate_bps[i], c->sample.down[i], c->sample.starved);
		if ((replaced >> i & 1) != 0)
			replace(sess, i);
		sess->adapt.path_rates.selected[c->model.place[i]] = (uint64_t)c->model.rate_bps[i];
	}
	adapt_rates(sess, now);
}

struct mono adapt_paths_deadline(const struct session *sess)
{
	return sess->adapt.selects_paths ? sess->adapt.path_select.next : MONO_NEVER;
}

/* ---- Load of the hosts ---- */

static bool is_throttled(const struct session *sess)
{
	return engine_spooled(sess->engine) || path_rates_limited(&sess->adapt.path_rates) ||
	    pacer_limits(session_pacer(sess)) || session_progress(sess).activity != PTCP_TRANSFERRING;
}

/* Average of the streams, since the last call. */
static uint64_t waited_ns(struct session *sess)
{
	uint64_t sum = 0, before = sess->adapt.waited_ns;
	unsigned i, n = 0;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL) {
			sum += stream_waited_ns(sess->slot[i].stream);
			n++;
		}
	sess->adapt.waited_ns = sum;
	return n > 0 && sum > before ? (sum - before) / n : 0; /* less: a stream has ended */
}

void adapt_load(struct session *sess, struct mono now)
{
	struct host_load *h = &sess->adapt.host_load;
	uint64_t idle_ns[CONTEXT_WORKERS_MAX];
	char text[200];
	double seconds;
	unsigned i;

	if (!sess->adapt.checks_load)
		return;
	host_load_disk(h, session_waits_for_disk(sess), now);
	if (!host_load_due(h, now))
		return;
	seconds = (double)mono_diff_ns(now, h->checked) / 1e9;
	host_load_waited(h, waited_ns(sess));
	for (i = 0; i < sess->o.context->n_workers; i++)
		idle_ns[i] = loop_idle_ns(sess->o.context->worker[i]);
	switch (host_load_check(h, idle_ns, sess->o.context->n_workers, is_throttled(sess), now)) {
	case HOST_LOAD_NOTHING:
		break;
	case HOST_LOAD_WARN:
		host_load_warning(h, text, sizeof text);
		sess->o.ops->warning(sess->o.arg, NULL, text);
		break;
	case HOST_LOAD_REPORT:
		engine_report_load(sess->engine, &h->ours);
		break;
	}
	spending_sample(sess, seconds, now);
	log_at(&sess->o.context->log, LOG_DEBUG, "load", "busy_permille=%u disk_permille=%u peer_busy=%u peer_disk=%u",
	    h->ours.busy_permille, h->ours.disk_permille, h->peer.busy_permille, h->peer.disk_permille);
}

struct mono adapt_load_deadline(const struct session *sess)
{
	return sess->adapt.checks_load ? host_load_deadline(&sess->adapt.host_load) : MONO_NEVER;
}

void adapt_on_load(void *arg, const struct wire_load *f)
{
	host_load_peer(&((struct session *)arg)->adapt.host_load, f, mono_now());
}

/* ---- Number of streams ---- */

static bool may_yield(const struct session *sess) { return engine_open(sess->engine)->congestion == WIRE_CC_YIELD; }

/* For a sending peer. */
static uint64_t requested_floor(const struct session *sess)
{
	return sess->send != NULL || !may_yield(sess) ? 0 :
	    isinf(sess->adapt.floor_bps) ? UINT64_MAX : (uint64_t)sess->adapt.floor_bps;
}

void adapt_floor(struct session *sess, uint64_t bps)
{
	if (may_yield(sess) && sess->send != NULL)
		sess->adapt.floor_bps = bps == UINT64_MAX ? INFINITY : (double)bps;
}

void session_set_floor(struct session *sess, double bps)
{
	double before_bps = sess->adapt.floor_bps;

	if (sess->o.open == NULL || fabs(bps - before_bps) <= FLOOR_STEP_RATIO * before_bps ||
	    (isinf(bps) && isinf(before_bps)))
		return;
	sess->adapt.floor_bps = bps;
	if (sess->send == NULL && sess->streams.n_active > 0)
		engine_set_streams(sess->engine, &(struct wire_set_streams){ (uint16_t)sess->streams.n_active,
		    requested_floor(sess) });
}

void adapt_request(struct session *sess, unsigned streams, const char *why)
{
	unsigned most = sess->send != NULL ? send_streams(sess) : PTCP_STREAMS_MAX;
	struct wire_set_streams use;

	sess->adapt.requested.streams = most > 0 ? 0 : streams;
	sess->adapt.requested.why = why;
	if (most == 0)
		return;
	if (sess->o.paths != NULL && most < sess->o.paths->n_places)
		most = sess->o.paths->n_places;
	use = (struct wire_set_streams){ .streams = (uint16_t)(streams < most ? streams : most),
		.bytes = requested_floor(sess) };
	engine_set_streams(sess->engine, &use);
	streams_activate(sess, use.streams, why);
}

void adapt_requested(struct session *sess, struct mono now)
{
	(void)now;
	if (sess->adapt.requested.streams > 0)
		adapt_request(sess, sess->adapt.requested.streams, sess->adapt.requested.why);
}

/* Streams that leave one after the other are one decision, and one report: of the last. */
static void activate(struct session *sess)
{
	const struct stream_share *s = &sess->adapt.stream_count.share;

	log_at(&sess->o.context->log, LOG_INFO, "streams", "from=%u to=%u why=\"%s\"",
	    sess->streams.n_active, s->streams, s->reason[0] != '\0' ? s->reason : "begins");
	adapt_request(sess, s->streams, !s->settled ? NULL : s->reason[0] != '\0' ? s->reason : "connected");
}

static void on_congestion(struct session *sess)
{
	struct stream_count *c = &sess->adapt.stream_count;
	const struct stream_count_opts *o = &sess->adapt.count_opts;

	log_at(&sess->o.context->log, LOG_INFO, "streams", "congestion=%s", c->congestion);
	stream_count_decide(c, o->known != NULL ? o->known(o->arg, sess, c->congestion) : 0);
}

/* Each host of a mover needs streams of its own. */
static unsigned most_streams(const struct session *sess, const struct stream_count_opts *o, unsigned movers)
{
	unsigned most = o->max_streams > ADVICE_START * movers ? o->max_streams : ADVICE_START * movers;

	return most < sess->streams.n_granted ? most : sess->streams.n_granted;
}

void session_adapt_streams(struct session *sess, const struct stream_count_opts *o)
{
	struct stream_control_opts so;

	stream_control_opts_init(&so);
	so.budget_ratio = o->budget_ratio;
	so.max_streams = most_streams(sess, o, 0);
	stream_count_init(&sess->adapt.stream_count, &so, mono_now());
	sess->adapt.stream_count.group = o->group;
	sess->adapt.count_opts = *o;
	sess->adapt.adapts_streams = true;
	streams_tap(sess);
	adapt_on_congestion(sess, sess->congestion.name);
	if (sess->adapt.adapts_streams && sess->streams.n_active == 0)
		activate(sess);
}

void session_set_budget(struct session *sess, double ratio)
{
	if (sess->adapt.adapts_streams && stream_count_budget(&sess->adapt.stream_count, ratio))
		activate(sess);
}

void session_set_most_streams(struct session *sess, unsigned most)
{
	if (most > sess->streams.n_granted)
		most = sess->streams.n_granted;
	if (sess->adapt.adapts_streams && stream_count_most(&sess->adapt.stream_count, most))
		activate(sess);
}

void session_recall_probes(struct session *sess, const struct probe *probe, size_t count, const struct evidence *e)
{
	stream_control_recall(&sess->adapt.stream_count.model, probe, count, e);
}

static void use_movers(struct session *sess, unsigned movers)
{
	struct stream_control *m = &sess->adapt.stream_count.model;

	m->o.max_streams = most_streams(sess, &sess->adapt.count_opts, movers);
	if (!stream_control_movers(m, movers))
		return;
	stream_count_decide(&sess->adapt.stream_count, 0);
	activate(sess);
}

/* The number of streams follows from the throughput, or it is the number that a transfer begins with; over several
 * paths, that for each mover. */
void adapt_to_movers(struct session *sess, struct mono now)
{
	unsigned here = sess->striping.movers != NULL ? movers_count(sess->striping.movers) : 0,
	    there = sess->striping.endpoints != NULL ? sess->striping.endpoints->n : 0,
	    movers = here > there ? here : there;

	(void)now;
	if (!striping_sets_streams(sess) || sess->o.open == NULL || movers == 0 || movers == sess->adapt.n_movers)
		return;
	sess->adapt.n_movers = movers;
	if (sess->adapt.adapts_streams)
		use_movers(sess, movers);
	else
		adapt_request(sess, stream_levels_round(ADVICE_START * (n_paths(sess) > 1 ? movers : 1), movers,
		    sess->streams.n_granted), "movers");
}

const struct stream_control *session_stream_control(const struct session *sess)
{
	return sess->adapt.adapts_streams ? &sess->adapt.stream_count.model : NULL;
}

void adapt_on_tcp_report(struct session *sess, const struct wire_tcp_report *f)
{
	spending_report(sess, f);
	if (sess->adapt.adapts_streams)
		stream_count_report(&sess->adapt.stream_count, f);
}

void adapt_on_congestion(struct session *sess, const char *name)
{
	struct stream_count *c = &sess->adapt.stream_count;
	unsigned before = c->share.streams;
	bool first;

	if (!sess->adapt.adapts_streams)
		return;
	if (sess->congestion.yields) {
		sess->adapt.adapts_streams = false;
		adapt_request(sess, 1, sess->congestion.why);
		return;
	}
	first = c->congestion[0] == '\0';
	if (!stream_count_congestion(c, name, strlen(name)))
		return;
	on_congestion(sess);
	if (!first || c->share.streams != before)
		activate(sess);
}

void adapt_streams(struct session *sess, struct mono now)
{
	struct stream_count *c = &sess->adapt.stream_count;
	struct tcp_delta d;
	struct stream_count_input in;
	unsigned recorded = c->model.recorded;
	char text[EVIDENCE_TEXT_BYTES];
	bool changed;

	if (now.ns < adapt_streams_deadline(sess).ns)
		return;
	tcp_stats_read(sess, &sess->tcp.stats, (double)mono_diff_ns(now, c->sampled) / 1e9, &d);
	in = (struct stream_count_input){ .sends = sess->send != NULL, .active_bytes = d.active_bytes,
		.inactive_bytes = d.inactive_bytes, .times = d.times, .kernel = d.kernel,
		.unconnected = sess->streams.n_active - streams_connected(sess),
		.disk_busy = session_busy(sess) != WIRE_IDLE || engine_peer_busy(sess->engine) != WIRE_IDLE,
		.rate_limited = path_rates_limited(&sess->adapt.path_rates) ||
		    (may_yield(sess) && !isinf(sess->adapt.floor_bps)) ||
		    (sess->adapt.selects_paths && path_select_in_trial(&sess->adapt.path_select)) };
	changed = stream_count_add(c, &in, now);
	log_at(&sess->o.context->log, LOG_DEBUG, "streams",
	    "active=%u unconnected=%u rate_bps=%.0f steady=%d starved=%d",
	    sess->streams.n_active, c->sample.unconnected, c->sample.rate_bps, c->sample.steady, c->sample.starved);
	if (c->model.recorded != recorded)
		log_at(&sess->o.context->log, LOG_INFO, "evidence", "%s",
		    evidence_text(text, &c->model.evidence, c->model.recorded_streams));
	if (changed)
		activate(sess);
}

struct mono adapt_streams_deadline(const struct session *sess)
{
	return sess->adapt.adapts_streams ? stream_count_deadline(&sess->adapt.stream_count) : MONO_NEVER;
}
