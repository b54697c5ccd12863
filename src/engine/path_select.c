#include "engine/path_select.h"

void path_select_init(struct path_select *c, size_t candidates, const size_t *place, size_t places,
    const double *prior_bps, uint64_t seed, struct mono now)
{
	unsigned i;

	*c = (struct path_select){ .since = now, .next = mono_add_ns(now, PATH_SELECT_TRIAL_MIN_NS) };
	multipath_init(&c->model, candidates, place, places, prior_bps, seed);
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
	bool same = c->stream[number].generation == s->generation && s->moved >= before;

	c->stream[number].generation = s->generation;
	c->stream[number].moved = s->moved;
	return same ? s->moved - before : s->moved;
}

/* To the candidate of the place. */
static bool connected(const struct stream_view *s) { return s->since.ns > 0 && !s->moving; }

static double received_bps(struct path_select *c, const struct streams_view *v, unsigned place, struct mono now)
{
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < v->n_streams; i++)
		if (v->stream[i].place == place && connected(&v->stream[i]))
			bytes += moved(c, i, &v->stream[i]);
	return bps(bytes, mono_diff_ns(now, c->since));
}

/* A new path's first sample takes a block of each stream; or the time in which a rival would deliver two. */
static bool waits(const struct path_select *c, unsigned place, uint64_t bytes, unsigned streams, uint64_t ns)
{
	uint64_t least = (uint64_t)streams * PATH_SELECT_BLOCK_BYTES;

	return c->model.measured[place] == 0 && bytes < least && ns < PATH_SELECT_SAMPLE_NS &&
	    multipath_rival_bps(&c->model) * ((double)ns / 1e9) < 2 * 8 * (double)least;
}

/* Data acknowledged since the place's last sample, which remains valid until the next acknowledgment. */
static double acked_bps(struct path_select *c, const struct streams_view *v, unsigned place, struct mono now)
{
	struct mono at = { 0 }, from = c->acked_at[place];
	uint64_t bytes = 0, before = c->acked[place], ns = mono_diff_ns(now, from);
	unsigned i, n = 0;

	for (i = 0; i < v->n_streams; i++) {
		if (v->stream[i].place != place)
			continue;
		n++;
		bytes += v->stream[i].acked_bytes;
		if (v->stream[i].acked.ns > at.ns)
			at = v->stream[i].acked;
	}
	if (c->sample.settling[place]) {
		c->acked[place] = bytes;
		c->acked_at[place] = now;
		c->acked_bps[place] = 0;
	} else if (waits(c, place, bytes - before, n, ns)) {
		c->sample.settling[place] = true;
	} else if (bytes > before && at.ns > from.ns) {
		c->acked_bps[place] = bps(bytes - before, mono_diff_ns(at, from));
		c->acked[place] = bytes;
		c->acked_at[place] = at;
	} else if (ns >= PATH_SELECT_SAMPLE_NS) {
		c->acked_bps[place] = 0;
	}
	return c->acked_bps[place];
}

/* No stream of the place was connected during the whole interval, since its candidate is new. */
static bool settling(const struct path_select *c, const struct streams_view *v, unsigned place)
{
	unsigned i;

	if (c->model.measured[place] > 0)
		return false;
	for (i = 0; i < v->n_streams; i++)
		if (v->stream[i].place == place && connected(&v->stream[i]) && v->stream[i].since.ns <= c->since.ns)
			return false;
	return true;
}

static void observe(struct path_select *c, const struct path_select_input *in, struct mono now)
{
	const struct streams_view *v = in->streams;
	double sum = 0;
	unsigned i;

	c->sample = (struct multipath_sample){ .demand_bps = (double)in->demand_bps,
		.starved = c->starved || in->peer_busy || in->left_bytes < in->window_bytes };
	for (i = 0; i < v->n_streams; i++)
		if (connected(&v->stream[i]))
			c->connected[v->stream[i].place] = now;
	for (i = 0; i < c->model.places; i++) {
		c->sample.settling[i] = settling(c, v, i);
		c->sample.down[i] = mono_diff_ns(now, c->connected[i]) >= PATH_SELECT_DOWN_NS;
		c->sample.observed_bps[i] = v->sends ? acked_bps(c, v, i, now) : received_bps(c, v, i, now);
		sum += c->sample.observed_bps[i];
	}
	c->sample.ending = 8 * (double)in->left_bytes < sum * (PATH_SELECT_ENDING_NS / 1e9);
	c->starved = false;
	c->since = now;
}

/* ---- Deciding ---- */

bool path_select_in_trial(const struct path_select *c)
{
	const struct multipath *m = &c->model;
	unsigned i;

	for (i = 0; i < m->places; i++)
		if (m->measured[i] == 0)
			return true;
	return m->trying;
}

/* Trials are short: the transfer waits for their result. */
static uint64_t interval_ns(const struct path_select *c)
{
	const struct multipath *m = &c->model;
	double ns;

	if (path_select_in_trial(c))
		return PATH_SELECT_TRIAL_MIN_NS;
	ns = m->demand_bps > 0 ?
	    8e9 * PATH_SELECT_BLOCKS * PATH_SELECT_BLOCK_BYTES * (double)m->places / m->demand_bps : PATH_SELECT_MIN_NS;
	return ns < PATH_SELECT_MIN_NS ? PATH_SELECT_MIN_NS : ns > PATH_SELECT_MAX_NS ? PATH_SELECT_MAX_NS :
	    (uint64_t)ns;
}

unsigned path_select_step(struct path_select *c, const struct path_select_input *in, struct mono now)
{
	unsigned i, replaced;

	observe(c, in, now);
	replaced = multipath_step(&c->model, &c->sample);
	for (i = 0; i < c->model.places; i++)
		if ((replaced >> i & 1) != 0)
			c->connected[i] = c->acked_at[i] = now;
	c->next = mono_add_ns(now, interval_ns(c));
	return replaced;
}
