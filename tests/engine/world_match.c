/* Files whose earlier version is at the destination: the receiver looks for its blocks by the sender's hashes. */
#include "core/bitmap.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "wire/block.h"
#include "world_impl.h"

static struct block_sum hash_of(const struct node *n, uint32_t version, uint32_t block)
{
	struct rng r = { (uint64_t)n->index << 40 ^ (uint64_t)version << 32 ^ block };
	uint64_t content = world_random(&r);

	return (struct block_sum){ content, (uint32_t)world_random(&r) };
}

static bool is_hash_of(const uint8_t *p, const struct node *n, uint32_t version, uint32_t block)
{
	struct block_sum is = wire_hash_decode(p), should = hash_of(n, version, block);

	return is.content == should.content && is.head == should.head;
}

/* ---- The sender ---- */

static void hash_next(struct world *w, struct node *n, uint64_t id, uint32_t first, uint32_t count)
{
	struct event *ev = world_soon(w, EV_MATCH_HASHED, world_store_ns(w));

	ev->node = n;
	ev->id = id;
	ev->block = first;
	ev->n = count;
	w->side[0].busy++;
}

void match_on_hash(void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count)
{
	hash_next(((struct side *)arg)->w, cookie, id, first, count);
}

/* Some of them at a time. */
static void on_hashed(struct world *w, struct event *ev)
{
	uint32_t n = 1 + rng_below(&w->rng, (uint32_t)ev->n), i;
	struct block_sum hash[WIRE_HASHES_MAX];
	struct ptcp_err why;

	w->side[0].busy--;
	if (w->side[0].over)
		return;
	err_set(&why, PTCP_EIO, "cannot be read");
	for (i = 0; i < n; i++)
		hash[i] = hash_of(ev->node, ev->node->version, ev->block + i);
	if (n < ev->n && ev->node->told == 0)
		hash_next(w, ev->node, ev->id, ev->block + n, (uint32_t)ev->n - n);
	snd_hashed(engine_snd(w->side[0].engine), ev->id, hash, n,
	    ev->node->changed && rng_one_in(&w->rng, 8) ? &why : NULL);
}

void match_on_pieces(void *arg, void *cookie, uint64_t id, uint32_t block)
{
	struct world *w = ((struct side *)arg)->w;
	struct event *ev = world_soon(w, EV_MATCH_PIECES, world_store_ns(w));

	ev->node = cookie;
	ev->id = id;
	ev->block = block;
	w->side[0].busy++;
}

static uint32_t n_pieces(const struct node *n, uint32_t block)
{
	return wire_pieces(wire_grid_length(wire_grid_of(n->size_bytes), block));
}

static void on_split(struct world *w, struct event *ev)
{
	struct block_sum sum[WIRE_PIECES_MAX];
	uint32_t i;

	w->side[0].busy--;
	if (w->side[0].over)
		return;
	for (i = 0; i < n_pieces(ev->node, ev->block); i++)
		sum[i] = hash_of(ev->node, ev->node->version, (ev->block << 6) + i);
	snd_pieces(engine_snd(w->side[0].engine), ev->id, sum, i, NULL);
}

/* ---- The receiver ---- */

static uint64_t pieces_here(const struct node *n, uint32_t block)
{
	struct rng r = { (uint64_t)n->index << 40 ^ block };
	uint64_t has = world_random(&r);

	return n_pieces(n, block) == 64 ? has : has & ((UINT64_C(1) << n_pieces(n, block)) - 1);
}

bool match_wants(const struct node *n, uint32_t block, uint64_t omit)
{
	return n->splits != NULL && bitmap_has(n->splits, block) && omit == pieces_here(n, block);
}

static struct rcv *rcv_of(struct world *w) { return engine_rcv(w->side[1].engine); }

static void soon(struct world *w, enum event_kind kind, struct node *n, uint64_t id)
{
	struct event *ev = world_soon(w, kind, world_store_ns(w));

	ev->node = n;
	ev->id = id;
	w->side[1].busy++;
}

void match_begin(struct world *w, struct node *n)
{
	n->intact = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
	memcpy(n->intact, n->old, bitmap_bytes(n->n_blocks));
	n->splits = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
	n->match_next = n->n_windows = 0;
	soon(w, EV_MATCH_ASK, n, n->id);
}

/* Not worth the comparison. */
static void give_up(struct world *w, struct node *n, uint32_t count)
{
	bitmap_set(n->intact, false, n->match_next, n->match_next + count);
	w->given_up += count;
	rcv_verified(rcv_of(w), n->id, n->match_next, count, false, (struct digest){ 0, 0 });
	n->match_next += count;
}

static void ask(struct world *w, struct node *n)
{
	uint32_t left, count;

	while (!n->over && !n->committing && n->n_windows < 2 && n->match_next < n->n_blocks) {
		left = n->n_blocks - n->match_next;
		count = 1 + rng_below(&w->rng, left < 40 ? left : 40);
		if (rng_one_in(&w->rng, 12)) {
			give_up(w, n, count);
			continue;
		}
		rcv_match(rcv_of(w), n->id, n->match_next, count);
		n->match_next += count;
		n->window_end[n->n_windows++] = n->match_next;
	}
}

void match_on_hashes(void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes)
{
	struct world *w = ((struct side *)arg)->w;
	struct node *n = cookie;
	uint32_t count = (uint32_t)(hashes.n / WIRE_HASH_BYTES), i;
	struct event *ev;

	check_that(n->id == id && n->n_windows > 0 && first + count <= n->window_end[0], 
	    "hashes from %u on of file %u", first, n->index);
	for (i = 0; i < count; i++)
		check_that(is_hash_of(hashes.p + i * WIRE_HASH_BYTES, n, n->version, first + i),
		    "the hash of block %u of %u", first + i, n->index);
	ev = world_soon(w, EV_MATCH_FOUND, world_store_ns(w));
	ev->node = n;
	ev->id = id;
	ev->block = first;
	ev->n = count;
	w->side[1].busy++;
	if (first + count == n->window_end[0]) {
		n->window_end[0] = n->window_end[1];
		n->n_windows--;
	}
}

void match_on_pieces_of(void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes)
{
	struct world *w = ((struct side *)arg)->w;
	struct node *n = cookie;
	struct event *ev;
	uint32_t i;

	check_that(n->id == id && bitmap_has(n->splits, block) && hashes.n == n_pieces(n, block) * WIRE_HASH_BYTES,
	    "pieces of block %u of file %u", block, n->index);
	for (i = 0; i < n_pieces(n, block); i++)
		check_that(is_hash_of(hashes.p + i * WIRE_HASH_BYTES, n, n->version, (block << 6) + i),
		    "the hash of piece %u of block %u of %u", i, block, n->index);
	ev = world_soon(w, EV_MATCH_SPLIT, world_store_ns(w));
	ev->node = n;
	ev->id = id;
	ev->block = block;
	w->side[1].busy++;
}

/* Some blocks that are not here have pieces that are; requested in ascending order. */
static bool is_split(struct world *w, struct node *n, uint32_t block)
{
	if (bitmap_next(n->splits, true, block, n->n_blocks) < n->n_blocks || bitmap_has(n->old, block) ||
	    world_is_hole(n, block) || !rng_one_in(&w->rng, 3) || w->plan.movers > 0)
		return false;
	if (!rcv_split(rcv_of(w), n->id, block, 1))
		return false;
	bitmap_add(n->splits, block);
	return true;
}

static void on_found(struct world *w, const struct event *ev)
{
	struct node *n = ev->node;
	uint32_t i;

	for (i = ev->block; i < ev->block + ev->n && !n->over; i++) {
		if (bitmap_has(n->old, i)) {
			n->content[i] = world_is_hole(n, i) ? 0 : n->version;
			bitmap_add(n->journal, i);
			bitmap_add(n->written, i);
			n->n_written++;
			w->matched++;
		}
		if (is_split(w, n, i))
			continue;
		rcv_verified(rcv_of(w), ev->id, i, 1, bitmap_has(n->old, i),
		    world_is_hole(n, i) ? (struct digest){ 0, 7 } : world_term(w, n, n->version, i));
	}
}

void match_event(struct world *w, struct event *ev)
{
	if (ev->kind == EV_MATCH_HASHED) {
		on_hashed(w, ev);
		return;
	}
	if (ev->kind == EV_MATCH_PIECES) {
		on_split(w, ev);
		return;
	}
	w->side[1].busy--;
	if (w->side[1].over || ev->node->over || ev->node->id != ev->id)
		return;
	if (ev->kind == EV_MATCH_SPLIT)
		rcv_patch(rcv_of(w), ev->id, ev->block, pieces_here(ev->node, ev->block));
	if (ev->kind == EV_MATCH_FOUND)
		on_found(w, ev);
	ask(w, ev->node);
}
