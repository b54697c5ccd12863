/* The starter's part where paths are chosen from candidates: looks at what comes through each, has those left that
 * bring too little, and where there is a rate divides it over the paths, as model/relays decides. What a sender sees
 * is what the receiver has acknowledged, between one acknowledgement and another, so that blocks may be large. */
#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "core/units.h"
#include "model/multipath.h"
#include "session/session_impl.h"

#define LEAST_NS NS_PER_S         /* of an interval, and the most */
#define MOST_NS (10 * NS_PER_S)
#define BLOCKS 8                  /* each path should carry so many in one */
#define BLOCK_BYTES (256u << 10)
#define DOWN_NS (3 * NS_PER_S)    /* no stream for so long */

struct path_select {
	struct multipath model;
	struct mono since, next;
	bool starved;                     /* streams had room, and there was nothing to send */
	struct mono up[PTCP_PATHS_MAX];   /* last seen with a stream */
	uint64_t acked[PTCP_PATHS_MAX];   /* bytes, and when the last of them was */
	struct mono acked_at[PTCP_PATHS_MAX];
	const struct stream *of[PTCP_STREAMS_MAX];
	uint64_t moved[PTCP_STREAMS_MAX];
};

int path_select_new(struct session *sess, struct ptcp_err *e)
{
	const struct paths *paths = sess->o.paths;
	struct mono now = mono_now();
	uint8_t seed[8];
	unsigned i;
	int r;

	if (!sess->o.connects || paths == NULL || !paths->chosen)
		return 0;
	if ((r = tls_random(seed, sizeof seed, e)) < 0)
		return r;
	if ((sess->path_select = calloc(1, sizeof *sess->path_select)) == NULL)
		return err_nomem(e);
	multipath_init(&sess->path_select->model, paths->n, paths->place, paths->n_places, get_u64(seed));
	for (i = 0; i < PTCP_PATHS_MAX; i++)
		sess->path_select->up[i] = sess->path_select->acked_at[i] = now;
	sess->path_select->since = now;
	sess->path_select->next = mono_add_ns(now, LEAST_NS);
	return 0;
}

void path_select_free(struct session *sess)
{
	free(sess->path_select);
	sess->path_select = NULL;
}

void path_select_starved(struct session *sess)
{
	if (sess->path_select != NULL)
		sess->path_select->starved = true;
}

/* ---- Looking ---- */

/* What its streams have read since the last look. */
static double received_bps(struct session *sess, unsigned place, double interval_s)
{
	struct path_select *c = sess->path_select;
	uint64_t bytes = 0, moved;
	unsigned i;

	for (i = 0; i < sess->n_wanted; i++) {
		if (sess->o.paths->dealt[i] != place || sess->stream[i] == NULL)
			continue;
		moved = stream_moved(sess->stream[i]);
		bytes += c->of[i] == sess->stream[i] && moved >= c->moved[i] ? moved - c->moved[i] : moved;
		c->of[i] = sess->stream[i];
		c->moved[i] = moved;
	}
	return 8 * (double)bytes / interval_s;
}

static double acked_bps(struct session *sess, unsigned place)
{
	const struct snd *snd = engine_snd(sess->engine);
	struct path_select *c = sess->path_select;
	struct mono at = { 0 }, from = c->acked_at[place], t;
	uint64_t bytes = 0, before = c->acked[place];
	unsigned i;

	for (i = 0; i < sess->n_wanted; i++) {
		if (sess->o.paths->dealt[i] != place)
			continue;
		bytes += snd_stream_acked_bytes(snd, i);
		if ((t = snd_stream_acked(snd, i)).ns > at.ns)
			at = t;
	}
	if (bytes == before || at.ns <= from.ns)
		return 0;
	c->acked[place] = bytes;
	c->acked_at[place] = at;
	return 8 * (double)(bytes - before) / ((double)mono_diff_ns(at, from) / 1e9);
}

/* Near the end some streams have nothing to do any more, and nobody says so to who receives. */
static bool nearly_over(const struct session *sess)
{
	struct session_progress g = session_progress(sess);

	return g.total_known && g.bytes + (uint64_t)sess->n_wanted * STREAM_JOBS * BLOCK_BYTES > g.total_bytes;
}

static void look(struct session *sess, struct mono now, struct multipath_sample *x)
{
	struct path_select *c = sess->path_select;
	double interval_s = (double)mono_diff_ns(now, c->since) / 1e9;
	unsigned i;

	*x = (struct multipath_sample){ .demand_bps = (double)sess->o.host->pacing.bps,
		.starved = c->starved || engine_peer_busy(sess->engine) != WIRE_IDLE || nearly_over(sess) };
	for (i = 0; i < sess->n_wanted; i++)
		if (sess->stream[i] != NULL)
			c->up[sess->o.paths->dealt[i]] = now;
	for (i = 0; i < sess->o.paths->n_places; i++) {
		x->down[i] = mono_diff_ns(now, c->up[i]) >= DOWN_NS;
		x->observed_bps[i] = sess->send != NULL ? acked_bps(sess, i) : received_bps(sess, i, interval_s);
	}
	c->starved = false;
	c->since = now;
}

/* ---- Deciding ---- */

static struct mono next_look(const struct session *sess, struct mono now)
{
	const struct multipath *m = &sess->path_select->model;
	double ns = m->demand_bps > 0 ? 8e9 * BLOCKS * BLOCK_BYTES * (double)m->places / m->demand_bps : LEAST_NS;

	return mono_add_ns(now, ns < LEAST_NS ? LEAST_NS : ns > MOST_NS ? MOST_NS : (uint64_t)ns);
}

static void replace(struct session *sess, unsigned place, struct mono now)
{
	struct paths *paths = sess->o.paths;
	const char *old = paths_name(paths, (unsigned)paths->place[place]), *new;
	struct ptcp_err why;

	paths->place[place] = sess->path_select->model.place[place];
	new = paths_name(paths, (unsigned)paths->place[place]);
	sess->path_select->up[place] = now;
	err_set(&why, PTCP_ETIMEOUT, "%s in place of %s: %s", new, old, sess->path_select->model.reason);
	log_at(&sess->o.host->log, LOG_INFO, "paths", "event=replaced from=%s to=%s why=\"%s\"", old, new, sess->path_select->model.reason);
	stream_connect_move(sess, place, &why);
	sess->o.ops->paths(sess->o.arg, why.msg);
}

void path_select_pump(struct session *sess, struct mono now)
{
	struct multipath_sample x;
	struct multipath *m;
	unsigned i, bits;

	if (sess->path_select == NULL || now.ns < sess->path_select->next.ns)
		return;
	m = &sess->path_select->model;
	look(sess, now, &x);
	bits = multipath_step(m, &x);
	for (i = 0; i < m->places; i++) {
		log_at(&sess->o.host->log, LOG_INFO, "paths", "path=%s observed_bps=%.0f rate_bps=%.0f down=%d starved=%d",
		    paths_name(sess->o.paths, (unsigned)sess->o.paths->place[i]), x.observed_bps[i], m->rate_bps[i], x.down[i], x.starved);
		if ((bits >> i & 1) != 0)
			replace(sess, i, now);
	}
	memset(sess->path_rates.chosen, 0, sizeof sess->path_rates.chosen);
	for (i = 0; i < m->places; i++)
		sess->path_rates.chosen[m->place[i]] = (uint64_t)m->rate_bps[i];
	path_rates_pump(sess, now);
	sess->path_select->next = next_look(sess, now);
}

struct mono path_select_deadline(const struct session *sess)
{
	return sess->path_select != NULL ? sess->path_select->next : MONO_NEVER;
}
