#include "engine/path_select.h"

void path_select_init(struct path_select *c, size_t candidates, const size_t *place, size_t places, uint64_t seed,
    struct mono now)
{
	unsigned i;

	*c = (struct path_select){ .since = now, .next = mono_add_ns(now, PATH_SELECT_MIN_NS) };
	multipath_init(&c->model, candidates, place, places, seed);
	for (i = 0; i < ENGINE_PATHS_MAX; i++)
		c->connected[i] = c->acked_at[i] = now;
}

void path_select_starved(struct path_select *c) { c->starved = true; }

/* ---- Observing ---- */

static double bps(uint64_t bytes, uint64_t ns) { return 8 * (double)bytes / ((double)ns / 1e9); }

/* Bytes through a stream's connection since the last step. */
static uint64_t moved(struct path_select *c, unsigned number, const struct stream_view *s)
{
	uint64_t before = c->stream[number].moved;
	bool same = c->stream[number].since.ns == s->since.ns && s->moved >= before;

	c->stream[number].since = s->since;
	c->stream[number].moved = s->moved;
	return same ? s->moved - before : s->moved;
}

static double received_bps(struct path_select *c, const struct streams_view *v, unsigned place, struct mono now)
{
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < v->n_streams; i++)
		if (v->stream[i].place == place && v->stream[i].since.ns > 0)
			bytes += moved(c, i, &v->stream[i]);
	return bps(bytes, mono_diff_ns(now, c->since));
}

static double acked_bps(struct path_select *c, const struct streams_view *v, unsigned place)
{
	struct mono at = { 0 }, from = c->acked_at[place];
	uint64_t bytes = 0, before = c->acked[place];
	unsigned i;

	for (i = 0; i < v->n_streams; i++) {
		if (v->stream[i].place != place)
			continue;
		bytes += v->stream[i].acked_bytes;
		if (v->stream[i].acked.ns > at.ns)
			at = v->stream[i].acked;
	}
	if (bytes == before || at.ns <= from.ns)
		return 0;
	c->acked[place] = bytes;
	c->acked_at[place] = at;
	return bps(bytes - before, mono_diff_ns(at, from));
}

static void observe(struct path_select *c, const struct path_select_input *in, struct mono now)
{
	const struct streams_view *v = in->streams;
	unsigned i;

	c->sample = (struct multipath_sample){ .demand_bps = (double)in->demand_bps,
		.starved = c->starved || in->peer_busy || in->left_bytes < in->window_bytes };
	for (i = 0; i < v->n_streams; i++)
		if (v->stream[i].since.ns > 0)
			c->connected[v->stream[i].place] = now;
	for (i = 0; i < c->model.places; i++) {
		c->sample.down[i] = mono_diff_ns(now, c->connected[i]) >= PATH_SELECT_DOWN_NS;
		c->sample.observed_bps[i] = v->sends ? acked_bps(c, v, i) : received_bps(c, v, i, now);
	}
	c->starved = false;
	c->since = now;
}

/* ---- Deciding ---- */

static uint64_t interval_ns(const struct multipath *m)
{
	double ns = m->demand_bps > 0 ?
	    8e9 * PATH_SELECT_BLOCKS * PATH_SELECT_BLOCK_BYTES * (double)m->places / m->demand_bps : PATH_SELECT_MIN_NS;

	return ns < PATH_SELECT_MIN_NS ? PATH_SELECT_MIN_NS : ns > PATH_SELECT_MAX_NS ? PATH_SELECT_MAX_NS : (uint64_t)ns;
}

unsigned path_select_step(struct path_select *c, const struct path_select_input *in, struct mono now)
{
	unsigned i, replaced;

	observe(c, in, now);
	replaced = multipath_step(&c->model, &c->sample);
	for (i = 0; i < c->model.places; i++)
		if ((replaced >> i & 1) != 0)
			c->connected[i] = now;
	c->next = mono_add_ns(now, interval_ns(&c->model));
	return replaced;
}
