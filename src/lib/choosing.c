/* The starter's part where paths are chosen from candidates: looks at what comes through each, has those left that
 * bring too little, and where there is a rate divides it over the paths, as model/relays decides. What a sender sees
 * is what the receiver has acknowledged, between one acknowledgement and another, so that blocks may be large. */
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"
#include "model/relays.h"

#define LEAST_NS NS_PER_S         /* of an interval, and the most */
#define MOST_NS (10 * NS_PER_S)
#define BLOCKS 8                  /* each path should carry so many in one */
#define BLOCK_BYTES (256u << 10)
#define DOWN_NS (3 * NS_PER_S)    /* no stream for so long */

struct choosing {
	struct relays model;
	struct mono since, next;
	bool starved;                     /* streams had room, and there was nothing to send */
	struct mono up[PTCP_PATHS_MAX];   /* last seen with a stream */
	uint64_t acked[PTCP_PATHS_MAX];   /* bytes, and when the last of them was */
	struct mono acked_at[PTCP_PATHS_MAX];
	const struct stream *of[PTCP_STREAMS_MAX];
	uint64_t moved[PTCP_STREAMS_MAX];
};

int choosing_new(struct party *p, struct ptcp_err *e)
{
	const struct paths *paths = p->o.paths;
	struct mono now = mono_now();
	uint8_t seed[8];
	unsigned i;
	int r;

	if (!p->o.connects || paths == NULL || !paths->chosen)
		return 0;
	if ((r = tls_random(seed, sizeof seed, e)) < 0)
		return r;
	if ((p->chs = calloc(1, sizeof *p->chs)) == NULL)
		return err_nomem(e);
	relays_init(&p->chs->model, paths->n, paths->place, paths->n_places, get_u64(seed));
	for (i = 0; i < PTCP_PATHS_MAX; i++)
		p->chs->up[i] = p->chs->acked_at[i] = now;
	p->chs->since = now;
	p->chs->next = mono_add_ns(now, LEAST_NS);
	return 0;
}

void choosing_free(struct party *p)
{
	free(p->chs);
	p->chs = NULL;
}

void choosing_starved(struct party *p)
{
	if (p->chs != NULL)
		p->chs->starved = true;
}

/* ---- Looking ---- */

/* What its streams have read since the last look. */
static double received_bps(struct party *p, unsigned place, double interval_s)
{
	struct choosing *c = p->chs;
	uint64_t bytes = 0, moved;
	unsigned i;

	for (i = 0; i < p->n_wanted; i++) {
		if (p->o.paths->dealt[i] != place || p->stream[i] == NULL)
			continue;
		moved = stream_moved(p->stream[i]);
		bytes += c->of[i] == p->stream[i] && moved >= c->moved[i] ? moved - c->moved[i] : moved;
		c->of[i] = p->stream[i];
		c->moved[i] = moved;
	}
	return 8 * (double)bytes / interval_s;
}

static double acked_bps(struct party *p, unsigned place)
{
	const struct snd *snd = session_snd(p->session);
	struct choosing *c = p->chs;
	struct mono at = { 0 }, from = c->acked_at[place], t;
	uint64_t bytes = 0, before = c->acked[place];
	unsigned i;

	for (i = 0; i < p->n_wanted; i++) {
		if (p->o.paths->dealt[i] != place)
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
static bool nearly_over(const struct party *p)
{
	struct party_progress g = party_progress(p);

	return g.total_known && g.bytes + (uint64_t)p->n_wanted * STREAM_JOBS * BLOCK_BYTES > g.total_bytes;
}

static void look(struct party *p, struct mono now, struct relays_sample *x)
{
	struct choosing *c = p->chs;
	struct pacer *demand = p->snd != NULL ? &p->o.host->pacing.out : &p->o.host->pacing.in;
	double interval_s = (double)mono_diff_ns(now, c->since) / 1e9;
	unsigned i;

	*x = (struct relays_sample){ .demand_bps = (double)atomic_load(&demand->bps),
		.starved = c->starved || session_peer_busy(p->session) != WIRE_IDLE || nearly_over(p) };
	for (i = 0; i < p->n_wanted; i++)
		if (p->stream[i] != NULL)
			c->up[p->o.paths->dealt[i]] = now;
	for (i = 0; i < p->o.paths->n_places; i++) {
		x->down[i] = mono_diff_ns(now, c->up[i]) >= DOWN_NS;
		x->seen_bps[i] = p->snd != NULL ? acked_bps(p, i) : received_bps(p, i, interval_s);
	}
	c->starved = false;
	c->since = now;
}

/* ---- Deciding ---- */

static struct mono next_look(const struct party *p, struct mono now)
{
	const struct relays *m = &p->chs->model;
	double ns = m->demand_bps > 0 ? 8e9 * BLOCKS * BLOCK_BYTES * (double)m->places / m->demand_bps : LEAST_NS;

	return mono_add_ns(now, ns < LEAST_NS ? LEAST_NS : ns > MOST_NS ? MOST_NS : (uint64_t)ns);
}

static void replace(struct party *p, unsigned place, struct mono now)
{
	struct paths *paths = p->o.paths;
	const char *old = paths_name(paths, (unsigned)paths->place[place]), *new;
	struct ptcp_err why;

	paths->place[place] = p->chs->model.place[place];
	new = paths_name(paths, (unsigned)paths->place[place]);
	p->chs->up[place] = now;
	err_set(&why, PTCP_ETIMEOUT, "%s in place of %s: %s", new, old, p->chs->model.reason);
	log_at(&p->o.host->log, LOG_INFO, "paths", "event=replaced from=%s to=%s why=\"%s\"", old, new, p->chs->model.reason);
	joining_move(p, place, &why);
	p->o.ops->paths(p->o.arg, why.msg);
}

void choosing_pump(struct party *p, struct mono now)
{
	struct relays_sample x;
	struct relays *m;
	unsigned i, bits;

	if (p->chs == NULL || now.ns < p->chs->next.ns)
		return;
	m = &p->chs->model;
	look(p, now, &x);
	bits = relays_step(m, &x);
	for (i = 0; i < m->places; i++) {
		log_at(&p->o.host->log, LOG_INFO, "paths", "path=%s seen_bps=%.0f rate_bps=%.0f down=%d starved=%d",
		    paths_name(p->o.paths, (unsigned)p->o.paths->place[i]), x.seen_bps[i], m->rate_bps[i], x.down[i], x.starved);
		if ((bits >> i & 1) != 0)
			replace(p, i, now);
	}
	memset(p->rates.chosen, 0, sizeof p->rates.chosen);
	for (i = 0; i < m->places; i++)
		p->rates.chosen[m->place[i]] = (uint64_t)m->rate_bps[i];
	rates_pump(p, now);
	p->chs->next = next_look(p, now);
}

struct mono choosing_deadline(const struct party *p)
{
	return p->chs != NULL ? p->chs->next : MONO_NEVER;
}
