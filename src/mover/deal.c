#include "mover/deal.h"

#include <limits.h>
#include <stddef.h>

/* Streams dealt so far. */
struct dealing {
	uint32_t *place;
	const uint8_t *path;
	unsigned n;
};

static unsigned count(const struct dealing *d, uint32_t id)
{
	unsigned i, k = 0;

	for (i = 0; i < d->n; i++)
		k += d->place[i] == id;
	return k;
}

/* Those on the path of stream `as`. */
static unsigned count_as(const struct dealing *d, uint32_t id, unsigned as)
{
	unsigned i, k = 0;

	for (i = 0; d->path != NULL && i < d->n; i++)
		k += d->place[i] == id && d->path[i] == d->path[as];
	return k;
}

static bool listed(const uint32_t *mover, unsigned n_movers, uint32_t id)
{
	unsigned i;

	for (i = 0; i < n_movers; i++)
		if (mover[i] == id)
			return true;
	return false;
}

static uint32_t with_most(const struct dealing *d, const uint32_t *mover, unsigned n_movers)
{
	unsigned i, best = 0;

	for (i = 1; i < n_movers; i++)
		if (count(d, mover[i]) > count(d, mover[best]))
			best = i;
	return mover[best];
}

/* Of those the one with the fewest on the path of stream `as`. */
static uint32_t with_fewest(const struct dealing *d, const uint32_t *mover, unsigned n_movers, unsigned as)
{
	unsigned i, best = 0, k, k_as, best_k = count(d, mover[0]), best_as = count_as(d, mover[0], as);

	for (i = 1; i < n_movers; i++) {
		k = count(d, mover[i]);
		k_as = count_as(d, mover[i], as);
		if (k < best_k || (k == best_k && k_as < best_as)) {
			best = i;
			best_k = k;
			best_as = k_as;
		}
	}
	return mover[best];
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

bool deal_streams(uint32_t *place, unsigned n, const uint8_t *path, const uint32_t *mover, unsigned n_movers)
{
	const struct dealing d = { place, path, n };
	uint32_t from, to;
	bool changed = false;
	unsigned i;

	for (i = 0; i < n; i++)
		if (place[i] != 0 && !listed(mover, n_movers, place[i])) {
			place[i] = 0;
			changed = true;
		}
	if (n_movers == 0)
		return changed;
	for (i = 0; i < n; i++)
		if (place[i] == 0) {
			place[i] = with_fewest(&d, mover, n_movers, i);
			changed = true;
		}
	for (;;) {
		from = with_most(&d, mover, n_movers);
		to = with_fewest(&d, mover, n_movers, 0);
		if (count(&d, from) <= count(&d, to) + 1)
			return changed;
		place[to_move(&d, from, to)] = to;
		changed = true;
	}
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
