/* Regions of files, where several movers carry the streams. A shared file system passes locks and pages of a file
 * between hosts at each change of the host; therefore one mover sends, and one writes, the neighboring blocks of a
 * file. */
#include <assert.h>
#include <stdlib.h>

#include "core/err.h"
#include "engine/sender_impl.h"

static uint64_t region_of(const struct snd *s, const struct snd_entry *f, uint32_t block)
{
	return (uint64_t)block * f->grid.block_bytes / s->terms.region_bytes;
}

/* The first block that begins in the region. */
static uint32_t region_first(const struct snd *s, const struct snd_entry *f, uint64_t region)
{
	uint64_t first = (region * s->terms.region_bytes + f->grid.block_bytes - 1) / f->grid.block_bytes;

	return first < UINT32_MAX ? (uint32_t)first : UINT32_MAX;
}

/* ---- Lanes ---- */

void snd_set_mover(struct snd *s, unsigned stream, uint64_t mover)
{
	TAPE(s->o.tape, set_mover, .u = { stream, mover });
	s->mover[stream] = mover;
}

void snd_lane_join(struct snd *s, unsigned stream)
{
	unsigned i, lane = INFLIGHT_STREAMS;

	for (i = INFLIGHT_STREAMS; i-- > 0;)
		if (s->lane[i].n_streams > 0 && s->lane[i].mover == s->mover[stream])
			break;
		else if (s->lane[i].n_streams == 0)
			lane = i;
	if (i < INFLIGHT_STREAMS)
		lane = i;
	assert(lane < INFLIGHT_STREAMS); /* there is one for each stream */
	s->lane[lane].mover = s->mover[stream];
	s->n_lanes += s->lane[lane].n_streams++ == 0;
	s->lane_of[stream] = (uint8_t)lane;
	assert(s->n_lanes < 2 || s->terms.region_bytes > 0);
}

static void region_end(struct snd *s, struct snd_lane *lane)
{
	lane->file->n_regions--;
	lane->file->region_blocks -= lane->blocks.blocks;
	lane->file = NULL;
	s->n_regions--;
	snd_ranges_clear(s, &lane->blocks);
}

void snd_lane_leave(struct snd *s, unsigned stream)
{
	struct snd_lane *lane = &s->lane[s->lane_of[stream]];
	struct snd_entry *f = lane->file;
	struct ranges left = lane->blocks;

	if (--lane->n_streams > 0)
		return;
	s->n_lanes--;
	if (f == NULL)
		return;
	region_end(s, lane);
	lane->blocks = (struct ranges){ NULL, 0, 0, 0, 0 };
	for (; left.head < left.end && f->state == SENDING; left.head++)
		snd_requeue(s, f, left.at[left.head].first, left.at[left.head].count, 0);
	snd_ranges_fini(s, &left);
}

bool snd_has_regions(const struct snd *s, unsigned stream)
{
	return s->n_lanes > 1 || s->lane[s->lane_of[stream]].file != NULL;
}

struct snd_lane *snd_lane_with(struct snd *s, const struct snd_entry *f, uint32_t first, uint32_t *count)
{
	struct snd_lane *lane;
	uint32_t from, until;

	for (lane = s->lane; lane < s->lane + INFLIGHT_STREAMS; lane++) {
		if (lane->file != f)
			continue;
		from = region_first(s, f, lane->region);
		until = region_first(s, f, lane->region + 1);
		if (from <= first && first < until) {
			if (*count > until - first)
				*count = until - first;
			return lane;
		}
		if (first < from && *count > from - first)
			*count = from - first;
	}
	return NULL;
}

/* ---- Regions ---- */

void snd_region_taken(struct snd *s, struct snd_lane *lane, uint32_t count)
{
	lane->file->region_blocks -= count;
	snd_ranges_taken(s, &lane->blocks, count);
	if (lane->blocks.blocks == 0)
		region_end(s, lane);
}

void snd_drop_regions(struct snd *s, struct snd_entry *f)
{
	struct snd_lane *lane;

	for (lane = s->lane; f->n_regions > 0; lane++)
		if (lane->file == f)
			region_end(s, lane);
}

void snd_lanes_free(struct snd *s)
{
	unsigned i;

	for (i = 0; i < INFLIGHT_STREAMS; i++)
		snd_ranges_fini(s, &s->lane[i].blocks);
}

static void region_begin(struct snd *s, struct snd_lane *lane, struct snd_entry *f, uint64_t region)
{
	lane->file = f;
	lane->region = region;
	f->n_regions++;
	s->n_regions++;
}

static bool region_add(struct snd *s, struct snd_lane *lane, uint32_t first, uint32_t count, struct ptcp_err *e)
{
	if (!snd_ranges_add(s, &lane->blocks, first, count, 0, e))
		return false;
	lane->file->region_blocks += count;
	return true;
}

/* Moves the file's next blocks, as far as they are in one region, to the lane. */
static bool claim(struct snd *s, struct snd_lane *lane, struct snd_entry *f, uint32_t block, uint32_t end,
    struct ptcp_err *e)
{
	uint64_t region = region_of(s, f, block);
	uint32_t until = region_first(s, f, region + 1), from = region_first(s, f, region), n;

	region_begin(s, lane, f, region);
	do {
		n = (end < until ? end : until) - block;
		if (!region_add(s, lane, block, n, e))
			return false;
		snd_taken(s, f, n);
	} while (snd_next_block(f, &block, &end) && from <= block && block < until);
	if (block >= end)
		list_remove(&f->in_ready);
	return true;
}

/* The next region that no lane has. */
static bool begin_next(struct snd *s, struct snd_lane *lane)
{
	struct snd_entry *f;
	uint32_t block, end;
	struct ptcp_err why;

	while (!list_empty(&s->ready)) {
		f = CONTAINER_OF(s->ready.next, struct snd_entry, in_ready);
		if (!snd_track(s, f))
			continue;
		if (!snd_next_block(f, &block, &end)) {
			list_remove(&f->in_ready);
		} else if (claim(s, lane, f, block, end, &why)) {
			return true;
		} else {
			snd_fail(s, f, &why);
		}
	}
	return false;
}

static bool may_split(const struct snd *s, const struct snd_lane *lane)
{
	return lane->file != NULL && (s->listed || lane->file->grid.size_bytes > s->terms.region_bytes);
}

/* Moves the second half of the blocks, of a single block all. */
static bool move_half(struct snd *s, struct snd_lane *from, struct snd_lane *to)
{
	struct ranges *r = &from->blocks;
	uint32_t i = r->head, j, keep = (uint32_t)(r->blocks / 2);

	for (; keep >= r->at[i].count; i++)
		keep -= r->at[i].count;
	if (!region_add(s, to, r->at[i].first + keep, r->at[i].count - keep, NULL))
		return false;
	for (j = i + 1; j < r->end; j++)
		if (!region_add(s, to, r->at[j].first, r->at[j].count, NULL))
			return false;
	from->file->region_blocks -= to->blocks.blocks;
	r->blocks -= to->blocks.blocks;
	r->at[i].count = keep;
	i += keep > 0;
	s->n_ranges -= r->end - i;
	r->end = i;
	if (r->blocks == 0)
		region_end(s, from);
	return true;
}

/* Takes half of the largest rest of another lane's region. Block by block would make two hosts write alternate
 * blocks. */
static bool split_largest(struct snd *s, struct snd_lane *lane)
{
	struct snd_lane *l, *from = NULL;
	struct ptcp_err why;

	for (l = s->lane; l < s->lane + INFLIGHT_STREAMS; l++)
		if (may_split(s, l) && (from == NULL || l->blocks.blocks > from->blocks.blocks))
			from = l;
	if (from == NULL)
		return false;
	region_begin(s, lane, from->file, from->region);
	if (!move_half(s, from, lane)) {
		err_nomem(&why);
		snd_fail(s, lane->file, &why);
	}
	return true;
}

void snd_take_regions(struct snd *s, unsigned stream, struct mono now, struct snd_job *job, uint32_t *bytes)
{
	struct snd_lane *lane = &s->lane[s->lane_of[stream]];
	const struct range *r;

	do {
		while (lane->file != NULL) {
			r = &lane->blocks.at[lane->blocks.head];
			if (snd_is_hole(lane->file, r->first)) {
				if (!snd_put_holes(s, lane->file, lane, r->first, r->first + r->count))
					return;
				continue;
			}
			if (!snd_settled(lane->file, r->first) && !snd_job_add(s, job, bytes, lane->file,
			    r->first, r->omit, stream, now))
				return;
			snd_region_taken(s, lane, 1);
		}
	} while (begin_next(s, lane) || (job->n == 0 && split_largest(s, lane)));
}
