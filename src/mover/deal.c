#include "mover/deal.h"

#include <limits.h>
#include <stddef.h>

/* Streams dealt so far. */
struct dealing {
	uint32_t *place;
	const uint8_t *path;
	unsigned n;
	const uint32_t *mover;
	unsigned n_movers;
	unsigned streams[DEAL_USERS_MAX]; /* streams of each mover */
};

/* Streams of the mover on the path of stream `as`. */
static unsigned count_as(const struct dealing *d, uint32_t id, unsigned as)
{
	unsigned i, k = 0;

	for (i = 0; d->path != NULL && i < d->n; i++)
		k += d->place[i] == id && d->path[i] == d->path[as];
	return k;
}

/* -1: no such mover. */
static int index_of(const struct dealing *d, uint32_t id)
{
	unsigned i;

	for (i = 0; i < d->n_movers; i++)
		if (d->mover[i] == id)
			return (int)i;
	return -1;
}

static unsigned with_most(const struct dealing *d)
{
	unsigned i, best = 0;

	for (i = 1; i < d->n_movers; i++)
		if (d->streams[i] > d->streams[best])
			best = i;
	return best;
}

/* The first of those with the fewest streams. */
static unsigned with_fewest(const struct dealing *d)
{
	unsigned i, best = 0;

	for (i = 1; i < d->n_movers; i++)
		if (d->streams[i] < d->streams[best])
			best = i;
	return best;
}

/* Of those the one with the fewest on the path of stream `as`. */
static unsigned with_fewest_as(const struct dealing *d, unsigned as)
{
	unsigned i, best = with_fewest(d), k, best_k = count_as(d, d->mover[best], as);

	for (i = best + 1; i < d->n_movers; i++) {
		if (d->streams[i] > d->streams[best])
			continue;
		if ((k = count_as(d, d->mover[i], as)) < best_k) {
			best = i;
			best_k = k;
		}
	}
	return best;
}

/* The stream of `from`, on whose path `from` has most more than `to`; the last one of several. */
static unsigned to_move(const struct dealing *d, uint32_t from, uint32_t to)
{
	int excess, most = INT_MIN;
	unsigned i, best = 0;

	for (i = 0; i < d->n; i++) {
		excess = (int)count_as(d, from, i) - (int)count_as(d, to, i);
		if (d->place[i] == from && excess >= most) {
			most = excess;
			best = i;
		}
	}
	return best;
}

static void deal(struct dealing *d, unsigned stream, unsigned to)
{
	d->place[stream] = d->mover[to];
	d->streams[to]++;
}

/* Called after each event: streams that are dealt evenly already cost one pass. */
bool deal_streams(uint32_t *place, unsigned n, const uint8_t *path, const uint32_t *mover, unsigned n_movers)
{
	struct dealing d = { .place = place, .path = path, .n = n, .mover = mover, .n_movers = n_movers };
	bool changed = false;
	unsigned i, from, to;
	int k;

	for (i = 0; i < n; i++)
		if ((k = index_of(&d, place[i])) >= 0) {
			d.streams[k]++;
		} else {
			changed |= place[i] != 0;
			place[i] = 0;
		}
	if (n_movers == 0)
		return changed;
	for (i = 0; i < n; i++)
		if (place[i] == 0) {
			deal(&d, i, with_fewest_as(&d, i));
			changed = true;
		}
	while (d.streams[from = with_most(&d)] > d.streams[with_fewest(&d)] + 1) {
		to = with_fewest_as(&d, 0);
		deal(&d, to_move(&d, mover[from], mover[to]), to);
		d.streams[from]--;
		changed = true;
	}
	return changed;
}

/* A total that has changed, or another number of users: even shares. */
static bool restart(uint64_t *share, unsigned n, uint64_t total_bps)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (share[i] == 0)
			sum = UINT64_MAX / 2;
		sum += share[i];
	}
	if (total_bps > 0 && sum <= total_bps && total_bps - sum < n)
		return false;
	for (i = 0; i < n; i++)
		share[i] = total_bps / n;
	return true;
}

void deal_rate(uint64_t *share, const uint64_t *used_bps, unsigned n, uint64_t total_bps)
{
	uint64_t left = total_bps, want;
	bool light[DEAL_USERS_MAX];
	unsigned i, full = 0;

	if (n == 0 || restart(share, n, total_bps))
		return;
	for (i = 0; i < n; i++) {
		if (!(light[i] = used_bps[i] < share[i] / 5 * 4)) {
			full++;
			continue;
		}
		want = used_bps[i] + used_bps[i] / 4;
		if (want < total_bps / 10 / n)
			want = total_bps / 10 / n;
		if (want < share[i])
			share[i] = want;
		left -= share[i];
	}
	for (i = 0; i < n; i++)
		if (full == 0)
			share[i] += left / n; /* nobody uses all */
		else if (!light[i])
			share[i] = left / full;
}
