#include "mover/deal.h"

#include <stddef.h>

static unsigned count(const uint32_t *place, unsigned n, uint32_t id)
{
	unsigned i, k = 0;

	for (i = 0; i < n; i++)
		k += place[i] == id;
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

static uint32_t extreme(const uint32_t *place, unsigned n, const uint32_t *mover, unsigned n_movers, bool most)
{
	unsigned i, best = 0, k, best_k = count(place, n, mover[0]);

	for (i = 1; i < n_movers; i++) {
		k = count(place, n, mover[i]);
		if (most ? k > best_k : k < best_k) {
			best = i;
			best_k = k;
		}
	}
	return mover[best];
}

bool deal_streams(uint32_t *place, unsigned n, const uint32_t *mover, unsigned n_movers)
{
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
			place[i] = extreme(place, n, mover, n_movers, false);
			changed = true;
		}
	for (;;) {
		from = extreme(place, n, mover, n_movers, true);
		to = extreme(place, n, mover, n_movers, false);
		if (count(place, n, from) <= count(place, n, to) + 1)
			return changed;
		for (i = n; i-- > 0;)
			if (place[i] == from)
				break;
		place[i] = to;
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
