#include "plan/pieces.h"

#include <string.h>

struct pieces *pieces_new(struct sandbox *run)
{
	struct pieces *p = sandbox_alloc(run, 1, sizeof *p);

	p->run = run;
	return p;
}

/* Twice the room; the old array stays in the run's memory until its end. */
static void *grown(struct sandbox *run, const void *old, size_t n, size_t *room, size_t size)
{
	void *grown;

	*room = *room == 0 ? 64 : 2 * *room;
	grown = sandbox_alloc(run, *room, size);
	if (n > 0)
		memcpy(grown, old, n * size);
	return grown;
}

void pieces_add(struct pieces *p, int source, double bytes, const struct ptcp_plan_hop *hops, size_t nhops)
{
	if (p->n == p->room)
		p->piece = grown(p->run, p->piece, p->n, &p->room, sizeof *p->piece);
	while (p->nhops + nhops > p->hop_room)
		p->hop = grown(p->run, p->hop, p->nhops, &p->hop_room, sizeof *p->hop);
	p->piece[p->n++] = (struct piece){ source, p->nhops, nhops, bytes };
	memcpy(p->hop + p->nhops, hops, nhops * sizeof *hops);
	p->nhops += nhops;
}
