#include "core/pacer.h"
#include "engine/dead_path.h"

void dead_path_init(struct dead_path *d, bool connects, unsigned n_paths)
{
	*d = (struct dead_path){ .enabled = connects && n_paths > 1 };
}

void dead_path_excuse(struct dead_path *d, unsigned path, struct mono now)
{
	d->excused[path] = now;
}

static struct mono later(struct mono a, struct mono b) { return a.ns > b.ns ? a : b; }

/* Time of the stream's last known progress. */
static struct mono progress(struct dead_path *d, unsigned number, const struct stream_view *s, bool sends,
    struct mono now)
{
	if (d->stream[number].generation != s->generation) {
		d->stream[number].generation = s->generation;
		d->stream[number].progress = s->since;
		d->stream[number].moved = 0;
	}
	if (s->moved != d->stream[number].moved)
		d->stream[number].progress = now;
	d->stream[number].moved = s->moved;
	if (sends)
		d->stream[number].progress = later(d->stream[number].progress, s->acked);
	return d->stream[number].progress;
}

static uint64_t limit_ns(const struct path_view *p)
{
	if (p->spools || p->rate_bps == ENGINE_PATH_IDLE)
		return UINT64_MAX;
	return DEAD_PATH_NS + (p->rate_bps > 0 ? 2 * pacer_quantum_ns(p->rate_bps) : 0);
}

bool dead_path_due(const struct dead_path *d, struct mono now)
{
	return d->enabled && mono_diff_ns(now, d->checked) >= DEAD_PATH_CHECK_NS;
}

uint32_t dead_path_check(struct dead_path *d, const struct streams_view *v, struct mono now)
{
	struct mono path_at[ENGINE_PATHS_MAX] = { { 0 } }, latest = { 0 }, at;
	uint32_t connected = 0, dead = 0;
	unsigned i;

	d->checked = now;
	for (i = 0; i < v->n_streams; i++) {
		const struct stream_view *s = &v->stream[i];

		if (s->since.ns == 0)
			continue;
		connected |= UINT32_C(1) << s->path;
		at = progress(d, i, s, v->sends, now);
		latest = later(latest, at);
		/* An idle stream counts as alive; a receiver cannot detect idle streams. */
		path_at[s->path] = later(path_at[s->path], v->sends && !s->carries ? now : at);
	}
	for (i = 0; i < v->n_paths; i++) {
		at = later(path_at[i], d->excused[i]);
		if ((connected >> i & 1) != 0 && latest.ns >= mono_add_ns(at, limit_ns(&v->path[i])).ns)
			dead |= UINT32_C(1) << i;
	}
	return dead;
}

struct mono dead_path_deadline(const struct dead_path *d, unsigned n_connected)
{
	return d->enabled && n_connected > 0 ? mono_add_ns(d->checked, DEAD_PATH_CHECK_NS) : MONO_NEVER;
}
