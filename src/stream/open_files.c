#include "stream/open_files.h"
#include "wire/block.h"

void open_files_init(struct open_files *t)
{
	pthread_mutex_init(&t->lock, NULL);
	atomic_init(&t->slow, false);
}

void open_files_fini(struct open_files *t) { pthread_mutex_destroy(&t->lock); }

void open_files_set(struct open_files *t, uint64_t id, struct sink *sink, struct wire_grid grid)
{
	unsigned i = wire_slot(id);
	struct sink *old;

	pthread_mutex_lock(&t->lock);
	old = t->slot[i].id == id ? t->slot[i].sink : NULL; /* sink of the same file, whose grid has changed */
	t->slot[i].id = id;
	t->slot[i].sink = sink_ref(sink);
	t->slot[i].grid = grid;
	t->slot[i].unsynced_bytes = 0;
	pthread_mutex_unlock(&t->lock);
	sink_unref(old);
}

struct sink *open_files_wrote(struct open_files *t, uint64_t id, uint32_t block, bool sync, uint64_t bytes,
    uint64_t ns, struct mono now)
{
	unsigned i = wire_slot(id);

	if (t->slot[i].id != id)
		return NULL;
	if (t->slot[i].unsynced_bytes == 0)
		t->slot[i].since = now;
	t->slot[i].unsynced_bytes += wire_grid_length(t->slot[i].grid, block);
	if (!sync || !sink_has_journal(t->slot[i].sink) ||
	    (t->slot[i].unsynced_bytes < bytes && mono_diff_ns(now, t->slot[i].since) < ns))
		return NULL;
	t->slot[i].unsynced_bytes = 0;
	return sink_ref(t->slot[i].sink);
}

void open_files_clear(struct open_files *t, uint64_t id)
{
	struct sink *s = NULL;
	unsigned i = wire_slot(id);

	pthread_mutex_lock(&t->lock);
	if (t->slot[i].id == id) {
		s = t->slot[i].sink;
		t->slot[i].id = 0;
		t->slot[i].sink = NULL;
	}
	pthread_mutex_unlock(&t->lock);
	sink_unref(s);
}

struct sink *open_files_find(struct open_files *t, const struct wire_block *b, struct wire_chunk *c, bool *ok)
{
	unsigned i = wire_slot(b->id);
	struct sink *s = NULL;
	struct wire_grid grid = { 0, 1 };

	*ok = true;
	if (i >= WIRE_SLOTS || b->id == 0)
		return NULL;
	pthread_mutex_lock(&t->lock);
	if (t->slot[i].id == b->id) {
		s = sink_ref(t->slot[i].sink);
		grid = t->slot[i].grid;
	}
	pthread_mutex_unlock(&t->lock);
	if (s == NULL)
		return NULL;
	if ((*ok = wire_chunk_find(c, b, grid) && sink_admits(s, c->block)))
		return s;
	sink_unref(s);
	return NULL;
}

struct sink *open_files_get(struct open_files *t, uint64_t id, struct wire_grid *grid)
{
	unsigned i = wire_slot(id);

	if (i >= WIRE_SLOTS || id == 0 || t->slot[i].id != id)
		return NULL;
	if (grid != NULL)
		*grid = t->slot[i].grid;
	return sink_ref(t->slot[i].sink);
}

bool open_files_contains(const struct open_files *t, uint64_t dev, uint64_t ino)
{
	uint64_t d, n;
	unsigned i;

	for (i = 0; i < WIRE_SLOTS; i++)
		if (t->slot[i].id != 0 && sink_part_id(t->slot[i].sink, &d, &n) && d == dev && n == ino)
			return true;
	return false;
}
