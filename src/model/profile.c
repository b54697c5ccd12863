#include "model/profile.h"

#include <math.h>

#define EACH_RATIO 0.85 /* each stream brings as much as before, or nearly */

size_t profile_find(const struct profile *l, unsigned streams)
{
	size_t i;

	for (i = 0; i < l->n && l->probe[i].streams != streams; i++)
		;
	return i;
}

const struct probe *profile_fewest(const struct profile *l)
{
	const struct probe *p, *least = l->probe;

	for (p = l->probe; p < l->probe + l->n; p++)
		if (p->streams < least->streams)
			least = p;
	return least;
}

const struct probe *profile_worst(const struct profile *l, unsigned from, unsigned now, double below_worth)
{
	const struct probe *found = NULL;
	double known, least = INFINITY;
	size_t i;

	for (i = 0; i < l->n; i++) {
		known = l->runs[i] * (l->probe[i].streams < now ? below_worth : 1);
		if (l->probe[i].streams >= from && known < least) {
			least = known;
			found = &l->probe[i];
		}
	}
	return found;
}

void profile_add(struct profile *l, unsigned streams, double mean_bps, double runs, bool roomy)
{
	struct probe p = { streams, mean_bps, 0 };
	size_t i = profile_find(l, streams);
	double known = 0;

	if (i == PROFILE_MAX) {
		i = (size_t)(profile_worst(l, 1, 1, 1) - l->probe);
	} else if (i == l->n) {
		l->n++;
	} else {
		known = fmin(l->runs[i], PROFILE_RUNS_MAX - fmin(runs, PROFILE_RUNS_MAX));
		p.throughput_bps = (known * l->probe[i].throughput_bps + runs * mean_bps) / (known + runs);
	}
	l->runs[i] = fmin(known + runs, PROFILE_RUNS_MAX);
	p.error_bps = probe_error_ratio(&p) * p.throughput_bps / sqrt(l->runs[i]);
	l->probe[i] = p;
	l->roomy[i] = roomy;
}

void profile_recall(struct profile *l, const struct probe *p, size_t count)
{
	for (l->n = 0; l->n < count; l->n++) {
		l->probe[l->n] = p[l->n];
		l->runs[l->n] = 1;
		l->roomy[l->n] = false;
	}
}

/* Whether each stream of that level brought as much as with fewer. */
static bool each_as_much(const struct profile *l, const struct probe *of)
{
	const struct probe *p;

	for (p = l->probe; p < l->probe + l->n; p++)
		if (p->streams < of->streams &&
		    of->throughput_bps / of->streams < EACH_RATIO * p->throughput_bps / p->streams)
			return false;
	return true;
}

const struct probe *profile_room(const struct profile *l, const struct probe **above)
{
	const struct probe *p, *room = NULL;

	*above = NULL;
	for (p = l->probe; p < l->probe + l->n; p++)
		if (l->roomy[p - l->probe] && each_as_much(l, p) && (room == NULL || p->streams > room->streams))
			room = p;
	for (p = l->probe; room != NULL && p < l->probe + l->n; p++)
		if (p->streams > room->streams && (*above == NULL || p->streams < (*above)->streams))
			*above = p;
	return room;
}
