/* A world whose two ends are killed and start again. */
#include "world_impl.h"

#include <inttypes.h>

#include "core/bitmap.h"

/* The kill came while it was being named: before or after that. */
static void steady_part(struct world *w, struct node *n)
{
	if (n->part != 0 && n->committing && rng_one_in(&w->rng, 2))
		store_name(n);
}

static void rot(struct world *w, struct node *n)
{
	uint32_t i;

	if (n->part == 0 || !world_unlucky(w, w->plan.rots))
		return;
	for (i = 0; i < n->n_blocks; i++)
		if (rng_one_in(&w->rng, 3))
			n->content[i] = UINT32_MAX;
}

/* As it is before a session. */
static void forget(struct node *n)
{
	free(n->written);
	free(n->intact);
	free(n->splits);
	free(n->released);
	n->written = n->splits = n->intact = n->released = NULL;
	n->n_read = n->low = 0;
	n->sized = false;
	n->as_link = n->not_linked = n->offered = n->prepared = n->accepted = n->committing = n->over = n->skipped =
	    n->failed = false;
	n->told = n->open_children = n->n_windows = 0;
	n->n_written = 0;
	n->snd_id = n->id = 0;
}

void world_again(struct world *w, unsigned changes)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		engine_drop(w->side[i].engine);
	for (i = 0; i < 2; i++)
		engine_free(w->side[i].engine);
	while (w->n_heap > 0)
		event_free(w->heap[--w->n_heap]);
	for (i = 0; i < w->n_nodes; i++) {
		steady_part(w, w->node[i]);
		rot(w, w->node[i]);
		forget(w->node[i]);
		w->node[i]->version += w->node[i]->type == WIRE_FILE && world_unlucky(w, changes);
	}
	for (i = 0; i < WORLD_LINES; i++)
		w->line[i] = (struct line){ .bytes_per_s = w->line[i].bytes_per_s,
			.latency_ns = w->line[i].latency_ns };
	memset(w->side, 0, sizeof w->side);
	w->at_step = 0;
	w->listing = w->listed = w->cut = false;
	w->files = w->bytes = 0;
	world_start(w);
}

void world_whole(struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->n_nodes; i++)
		check_that(w->node[i]->n_blocks == 0 ||
		    (w->node[i]->here == w->node[i]->version && w->node[i]->part == 0),
		    "seed %" PRIu64 ": file %u is of version %u, not %u", w->plan.seed, i, w->node[i]->here,
		    w->node[i]->version);
}
