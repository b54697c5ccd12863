/* Nodes joined by directed links. Packets enter at a node, follow the path of
 * fewest links to their destination (of equal ones, that of the links added
 * first), never through another destination, and leave there. Pure, like link.h; owns no packet memory. */
#ifndef LAB_NET_H
#define LAB_NET_H

#include "link.h"

struct net_link {
	struct link link;
	int from, to;  /* nodes */
	int heap_at;   /* place in net.heap */
	uint64_t beyond_ns; /* least further delay until a packet can leave the net */
};

struct net {
	int nodes, links, exits; /* packets leave at the nodes below `exits` */
	struct net_link *link; /* links of them */
	int *next;             /* next[from * nodes + to]: link, -1: none */
	int *heap;             /* links by link_next_ns(), soonest first */
	uint64_t unroutable;
	void (*deliver)(void *arg, struct packet *p); /* takes p; arrived at p->due_ns */
	void (*release)(void *arg, struct packet *p); /* takes p; it was dropped */
	void *arg;
};

/* Room for `links` links among `nodes` nodes, of which the first `exits` are
 * destinations; the caller sets the callbacks. 0 or -1 (memory). */
int net_init(struct net *n, int nodes, int exits, int links);
void net_fini(struct net *n);

/* Before net_route(); ends are nodes below `nodes`. */
void net_add_link(struct net *n, int from, int to, const struct link_conf *c, uint64_t seed);

/* Compute all paths; once, after the last link. 0 or -1 (memory). */
int net_route(struct net *n);

/* The link a packet at `from` takes towards `to`; -1 if there is no path. */
int net_hop(const struct net *n, int from, int to);

/* Let p (bytes and to are set) enter at node `from`. Takes it. */
void net_inject(struct net *n, struct packet *p, int from, uint64_t now_ns);

/* No packet leaves the net before this, so net_run() need not be called earlier;
 * NEVER_NS if there is none. */
uint64_t net_next_ns(const struct net *n);

/* Carry out all events up to now_ns, in the order of time. */
void net_run(struct net *n, uint64_t now_ns);

/* As for one link; run up to now first. */
void net_change(struct net *n, int link, const struct link_conf *c, uint64_t now_ns);
void net_cut(struct net *n, int link);

#endif
