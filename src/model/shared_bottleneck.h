/* Which links share a bottleneck: measured together they carry less than apart.
 *
 * First all links are measured together; links with an unchanged rate share nothing. The link with the largest loss of
 * rate is then measured with each of the other slowed links, to find its group; then the next link, until a link has no
 * group: links slowed only by several links together are measured together at the end. The caller runs the
 * tests and reports the rates. */
#ifndef MODEL_SHARED_BOTTLENECK_H
#define MODEL_SHARED_BOTTLENECK_H

#include <stdbool.h>
#include <stddef.h>

#define SHARED_LINKS_MAX 64

struct shared_group {
	size_t n;
	double rate_bps;
};

/* Filled by shared_init(); `group` and `groups` are the result. */
struct shared {
	size_t n;
	double apart_bps[SHARED_LINKS_MAX], all_bps[SHARED_LINKS_MAX];
	int group[SHARED_LINKS_MAX];            /* group of each link, or -1 */
	struct shared_group groups[SHARED_LINKS_MAX];
	size_t n_groups;
	enum { SHARED_ALL, SHARED_PAIRS, SHARED_REST, SHARED_DONE } phase;
	size_t n_paired;                        /* links that were the first of pairs */
	size_t first, second;                   /* the present pair */
};

/* `apart_bps`: rates of the links when measured alone; at most SHARED_LINKS_MAX. */
void shared_init(struct shared *s, const double *apart_bps, size_t n);
/* Marks the links to be measured together next; false: nothing is left to test. */
bool shared_next(const struct shared *s, bool *run);
/* Takes the rates of the links of shared_next(), the rest is ignored; NAN: the measurement of this link failed. */
void shared_take(struct shared *s, const double *rate_bps);

#endif
