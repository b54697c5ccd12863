/* Sparse files: their holes are mapped before the first block, and sent as HOLE frames. */
#include <assert.h>
#include <stdlib.h>

#include "engine/sender_impl.h"
#include "wire/block.h"

#define MAPS_MAX_BYTES (64u << 20) /* limit for all files; one file may have any */
#define MAPPING_MAX 64             /* maps in progress: they share a disk */

void snd_await_map(struct snd *s, struct snd_entry *f)
{
	f->unmapped = true;
	list_append(&s->unmapped, &f->in_ready);
}

void snd_drop_map(struct snd *s, struct snd_entry *f)
{
	if (f->has_map) {
		s->map_bytes -= bitmap_bytes(f->n_blocks);
		memory_release(s->o.memory, bitmap_bytes(f->n_blocks));
	}
	f->has_map = false;
	free(f->holes);
	f->holes = NULL;
}

static void request_maps(struct snd *s)
{
	struct snd_entry *f;
	struct ptcp_err why;
	uint64_t bytes;

	while (!list_empty(&s->unmapped) && s->n_mapping < MAPPING_MAX) {
		f = CONTAINER_OF(s->unmapped.next, struct snd_entry, in_ready);
		bytes = bitmap_bytes(f->n_blocks);
		if (s->map_bytes > 0 && s->map_bytes + bytes > MAPS_MAX_BYTES)
			return;
		list_remove(&f->in_ready);
		if (memory_charge(s->o.memory, bytes, &why) < 0) {
			snd_fail(s, f, &why);
			continue;
		}
		s->map_bytes += bytes;
		f->has_map = true;
		s->n_mapping++;
		s->o.ops->map(s->o.arg, f->cookie, f->id);
	}
}

void snd_mapped(struct snd *s, uint64_t id, uint64_t *holes, const struct ptcp_err *why)
{
	struct snd_entry *f = snd_find(s, id);
	uint32_t block, end;

	tape_write_bitmap(s->o.tape, TAPE_mapped, &(struct tape_args){ .u = { id }, .why = why }, holes,
	    f != NULL ? f->n_blocks : 0);
	assert(s->n_mapping > 0);
	s->n_mapping--;
	if (f == NULL || f->state != SENDING || !f->unmapped || !f->has_map) {
		free(holes);
		return;
	}
	f->unmapped = false;
	f->holes = holes;
	if (holes == NULL)
		snd_drop_map(s, f);
	if (why != NULL)
		snd_fail(s, f, why);
	else if (snd_next_block(f, &block, &end))
		list_append(&s->ready, &f->in_ready);
}

bool snd_is_hole(const struct snd_entry *f, uint32_t block)
{
	return f->holes != NULL && bitmap_has(f->holes, block) && !bitmap_has(f->acked, block);
}

bool snd_put_holes(struct snd *s, struct snd_entry *f, struct snd_lane *lane, uint32_t block, uint32_t end)
{
	struct wire_blocks hole = { .id = f->id, .first = block };

	if (buf_len(&s->out->b) > BACKLOG_BYTES) {
		s->holes_wait = true;
		return false;
	}
	end = bitmap_next(f->holes, false, block, end);
	end = bitmap_next(f->acked, true, block, end);
	hole.count = end - block;
	OUTBOX_PUT(s->out, hole, HOLE, &hole);
	bitmap_set(f->acked, true, block, end);
	bitmap_set(f->read, true, block, end); /* the term is 0 */
	f->n_acked += hole.count;
	f->n_read += hole.count;
	s->stats.done.bytes += wire_grid_range_bytes(f->grid, block, hole.count);
	if (lane != NULL)
		snd_region_taken(s, lane, hole.count);
	else
		snd_taken(s, f, hole.count);
	snd_try_complete(s, f);
	return true;
}

static void send_first_holes(struct snd *s)
{
	struct snd_entry *f;
	uint32_t block, end;

	while (!list_empty(&s->ready)) {
		f = CONTAINER_OF(s->ready.next, struct snd_entry, in_ready);
		if (!snd_track(s, f))
			continue;
		while (snd_next_block(f, &block, &end)) {
			if (!snd_is_hole(f, block) || !snd_put_holes(s, f, NULL, block, end))
				return;
		}
		list_remove(&f->in_ready);
	}
}

void snd_tick_holes(struct snd *s)
{
	s->holes_wait = false;
	request_maps(s);
	send_first_holes(s);
}
