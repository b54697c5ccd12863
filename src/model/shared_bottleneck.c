#include "model/shared_bottleneck.h"

#include <math.h>
#include <string.h>

#include "model/parameters.h"

/* A link that lost when all were active, and belongs to no group. */
static bool is_suspect(const struct shared *s, size_t i, double limit)
{
	return s->group[i] < 0 && s->all_bps[i] < limit * s->apart_bps[i];
}

static bool next_second(struct shared *s)
{
	while (++s->second < s->n)
		if (s->second != s->first && is_suspect(s, s->second, SHARED_SUSPECT))
			return true;
	return false;
}

/* The first is the link that has lost most: if it shares a bottleneck with no single other link, losses are due to
 * many links together, and further pairs would tell no more. */
static bool next_first(struct shared *s)
{
	double most = SHARED_LESS;
	size_t i;

	if (s->n_paired > 0 && s->group[s->first] < 0)
		return false;
	s->first = s->n;
	for (i = 0; i < s->n; i++)
		if (is_suspect(s, i, SHARED_LESS) && s->all_bps[i] / s->apart_bps[i] < most) {
			most = s->all_bps[i] / s->apart_bps[i];
			s->first = i;
		}
	if (s->first == s->n)
		return false;
	s->n_paired++;
	s->second = (size_t)-1;
	return next_second(s);
}

static void join(struct shared *s, size_t link, int group)
{
	s->group[link] = group;
	s->groups[group].n++;
}

static size_t count_rest(const struct shared *s)
{
	size_t i, n = 0;

	for (i = 0; i < s->n; i++)
		n += is_suspect(s, i, SHARED_LESS);
	return n;
}

static void after_pairs(struct shared *s)
{
	s->phase = count_rest(s) > 2 ? SHARED_REST : SHARED_DONE;
}

void shared_init(struct shared *s, const double *apart_bps, size_t n)
{
	size_t i;

	memset(s, 0, sizeof *s);
	s->n = n;
	s->phase = n > 1 ? SHARED_ALL : SHARED_DONE;
	for (i = 0; i < n; i++) {
		s->apart_bps[i] = apart_bps[i];
		s->group[i] = -1;
	}
}

bool shared_next(const struct shared *s, bool *run)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		run[i] = s->phase == SHARED_ALL || (s->phase == SHARED_PAIRS && (i == s->first || i == s->second)) ||
		    (s->phase == SHARED_REST && is_suspect(s, i, SHARED_LESS));
	return s->phase != SHARED_DONE;
}

/* The groups are complete: a bottleneck carries at least as much as was seen when all links were active. */
static void raise_rates(struct shared *s)
{
	double sum[SHARED_LINKS_MAX] = { 0 };
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->group[i] >= 0)
			sum[s->group[i]] += s->all_bps[i];
	for (i = 0; i < s->n_groups; i++)
		s->groups[i].rate_bps = fmax(s->groups[i].rate_bps, sum[i]);
}

static void take_pair(struct shared *s, const double *rate_bps)
{
	double together = rate_bps[s->first] + rate_bps[s->second];
	int group = s->group[s->first];

	if (together < SHARED_LESS * (s->apart_bps[s->first] + s->apart_bps[s->second])) {
		if (group < 0) {
			group = (int)s->n_groups++;
			join(s, s->first, group);
		}
		join(s, s->second, group);
		s->groups[group].rate_bps = fmax(s->groups[group].rate_bps, together);
	}
	if (!next_second(s) && !next_first(s))
		after_pairs(s);
}

static void take_rest(struct shared *s, const double *rate_bps)
{
	double together = 0, apart = 0;
	int group = (int)s->n_groups;
	size_t i;

	for (i = 0; i < s->n; i++)
		if (is_suspect(s, i, SHARED_LESS)) {
			together += rate_bps[i];
			apart += s->apart_bps[i];
		}
	s->phase = SHARED_DONE;
	if (!(together < SHARED_LESS * apart))
		return;
	s->groups[s->n_groups++] = (struct shared_group){ 0, together };
	for (i = 0; i < s->n; i++)
		if (is_suspect(s, i, SHARED_LESS))
			join(s, i, group);
}

void shared_take(struct shared *s, const double *rate_bps)
{
	size_t i;

	if (s->phase == SHARED_ALL) {
		for (i = 0; i < s->n; i++)
			s->all_bps[i] = isfinite(rate_bps[i]) ? rate_bps[i] : s->apart_bps[i];
		s->phase = SHARED_PAIRS;
		if (!next_first(s))
			after_pairs(s);
	} else if (s->phase == SHARED_PAIRS) {
		take_pair(s, rate_bps);
	} else if (s->phase == SHARED_REST) {
		take_rest(s, rate_bps);
	}
	if (s->phase == SHARED_DONE)
		raise_rates(s);
}
