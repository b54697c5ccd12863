#include "net.h"

#include <stdlib.h>
#include <string.h>

int net_init(struct net *n, int nodes, int exits, int links)
{
	memset(n, 0, sizeof *n);
	n->nodes = nodes;
	n->exits = exits;
	n->link = calloc((size_t)links + 1, sizeof *n->link);
	n->heap = calloc((size_t)links + 1, sizeof *n->heap);
	n->next = malloc((size_t)(nodes * nodes + 1) * sizeof *n->next);
	if (n->link && n->heap && n->next)
		return 0;
	net_fini(n);
	return -1;
}

void net_fini(struct net *n)
{
	free(n->link);
	free(n->heap);
	free(n->next);
	memset(n, 0, sizeof *n);
}

void net_add_link(struct net *n, int from, int to, const struct link_conf *c, uint64_t seed)
{
	struct net_link *l = &n->link[n->links];

	link_init(&l->link, c, seed);
	l->from = from;
	l->to = to;
	l->heap_at = n->links;
	n->heap[n->links] = n->links;
	n->links++;
}

/* Breadth first, backwards from each destination. The queue holds each node once. */
static void route_to(struct net *n, int to, int *queue)
{
	int head = 0, tail = 0;

	queue[tail++] = to;
	while (head < tail) {
		int at = queue[head++];

		if (at != to && at < n->exits)
			continue; /* hosts do not forward */
		for (int i = 0; i < n->links; i++) {
			int from = n->link[i].from;

			if (n->link[i].to != at || from == to ||
			    n->next[from * n->nodes + to] >= 0)
				continue;
			n->next[from * n->nodes + to] = i;
			queue[tail++] = from;
		}
	}
}

/* Relax until nothing changes; delays are not negative, so that ends. */
static void look_ahead(struct net *n)
{
	int changed = 1;

	for (int i = 0; i < n->links; i++)
		n->link[i].beyond_ns = n->link[i].to < n->exits ? 0 : NEVER_NS / 4;
	while (changed) {
		changed = 0;
		for (int i = 0; i < n->links; i++)
			for (int k = 0; k < n->links; k++) {
				uint64_t ns = n->link[k].link.conf.delay_ns + n->link[k].beyond_ns;

				if (n->link[k].from != n->link[i].to || ns >= n->link[i].beyond_ns)
					continue;
				n->link[i].beyond_ns = ns;
				changed = 1;
			}
	}
}

int net_route(struct net *n)
{
	int *queue = calloc((size_t)n->nodes + 1, sizeof *queue);

	for (int i = 0; i < n->nodes * n->nodes; i++)
		n->next[i] = -1;
	if (queue == NULL)
		return -1;
	for (int to = 0; to < n->nodes; to++)
		route_to(n, to, queue);
	free(queue);
	look_ahead(n);
	return 0;
}

int net_hop(const struct net *n, int from, int to)
{
	return n->next[from * n->nodes + to];
}

/* ----------------------------------------------------- heap of next events */

static uint64_t key(const struct net *n, int at)
{
	return link_next_ns(&n->link[n->heap[at]].link);
}

static void swap(struct net *n, int a, int b)
{
	int x = n->heap[a];

	n->heap[a] = n->heap[b];
	n->heap[b] = x;
	n->link[n->heap[a]].heap_at = a;
	n->link[n->heap[b]].heap_at = b;
}

/* The next event of `link` changed. */
static void resort(struct net *n, int link)
{
	int at = n->link[link].heap_at;

	while (at > 0 && key(n, at) < key(n, (at - 1) / 2)) {
		swap(n, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
	for (;;) {
		int child = 2 * at + 1;

		if (child + 1 < n->links && key(n, child + 1) < key(n, child))
			child++;
		if (child >= n->links || key(n, child) >= key(n, at))
			return;
		swap(n, at, child);
		at = child;
	}
}

/* ------------------------------------------------------------------ packets */

void net_inject(struct net *n, struct packet *p, int from, uint64_t now_ns)
{
	int link = from == p->to ? -1 : net_hop(n, from, p->to);

	if (link < 0) {
		n->unroutable++;
		n->release(n->arg, p);
		return;
	}
	if (!link_offer(&n->link[link].link, p, now_ns))
		n->release(n->arg, p);
	else
		resort(n, link);
}

uint64_t net_next_ns(const struct net *n)
{
	uint64_t next_ns = NEVER_NS;

	for (int i = 0; i < n->links; i++) {
		uint64_t ns = link_arrival_ns(&n->link[i].link);

		if (ns != NEVER_NS && ns + n->link[i].beyond_ns < next_ns)
			next_ns = ns + n->link[i].beyond_ns;
	}
	return next_ns;
}

void net_run(struct net *n, uint64_t now_ns)
{
	while (n->links > 0 && key(n, 0) <= now_ns) {
		int link = n->heap[0];
		struct net_link *l = &n->link[link];
		struct packet *p = NULL;
		enum link_event ev = link_step(&l->link, now_ns, &p);

		resort(n, link);
		if (ev == LINK_LOST)
			n->release(n->arg, p);
		else if (ev == LINK_ARRIVED && l->to == p->to)
			n->deliver(n->arg, p);
		else if (ev == LINK_ARRIVED)
			net_inject(n, p, l->to, p->due_ns);
	}
}

void net_change(struct net *n, int link, const struct link_conf *c, uint64_t now_ns)
{
	link_change(&n->link[link].link, c, now_ns);
	resort(n, link);
	look_ahead(n);
}

void net_cut(struct net *n, int link)
{
	struct packet *p = link_cut(&n->link[link].link), *next;

	for (; p; p = next) {
		next = p->next;
		n->release(n->arg, p);
	}
	resort(n, link);
}
