/* Random overlays for tests, as numbers for the plain programmes of plain.h and as
 * text for the planner. Rates in Mbit/s, data in MB, times in s. */
#ifndef TESTS_PLAN_INSTANCE_H
#define TESTS_PLAN_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define HOSTS_MAX 1000
#define GROUPS_MAX 400
#define GROUP_LINKS_MAX 12
#define WINDOWS_MAX 256
#define NONE (-1)

struct inst_link {
	int from, to, rate;
};
struct inst_group {
	int rate, nlinks, link[GROUP_LINKS_MAX];
};
struct inst_window {
	int link, from, until, rate;
};

struct inst {
	int nhosts, nlinks, ngroups, nwindows; /* host 0 is the destination */
	int data[HOSTS_MAX], storage[HOSTS_MAX], ingress[HOSTS_MAX], egress[HOSTS_MAX];
	bool relay[HOSTS_MAX];
	struct inst_link link[HOSTS_MAX * (HOSTS_MAX - 1)];
	struct inst_group group[GROUPS_MAX];
	struct inst_window window[WINDOWS_MAX];
};

struct inst_kind {
	int hosts;       /* with the destination */
	double density;  /* part of the links that exist; 1: full mesh */
	int groups, windows;
	bool storage, limits;
	int span;        /* windows lie within so many seconds */
	int of_link;     /* windows of each link that has any, one after the other; 0: one */
	int load;        /* so many times the data; 0: once */
	bool relays;     /* all hosts but the destination forward */
};

/* The same for the same seed, everywhere. */
uint64_t inst_random(uint64_t *state);
int inst_between(uint64_t *state, int lo, int hi);

void inst_make(struct inst *in, const struct inst_kind *kind, uint64_t seed);

/* A kind of overlay with `lo` to `hi` hosts drawn by the seed: some with shared
 * bottlenecks, storage limits, windows. */
struct inst_kind inst_draw(uint64_t seed, int lo, int hi);

/* The overlay file; free() it. */
char *inst_text(const struct inst *in);

#endif
