#include "model/divide.h"

#include <math.h>
#include <stdbool.h>

#include "core/err.h"

static int check(const struct divide_part *p, size_t count, struct ptcp_err *e)
{
	size_t i, usable = 0;

	for (i = 0; i < count; i++) {
		if (!(p[i].rate_bps >= 0 && isfinite(p[i].rate_bps) && p[i].delay_s >= 0 &&
		      isfinite(p[i].delay_s)))
			return err_set(e, PTCP_EUSAGE,
			    "path %zu: %g bit/s and %g s (both must be numbers from 0 on)",
			    i + 1, p[i].rate_bps, p[i].delay_s);
		usable += p[i].rate_bps > 0;
	}
	if (usable == 0)
		return err_set(e, PTCP_EINFEASIBLE, "no path has any bandwidth (give one a rate above 0)");
	return 0;
}

/* Indices of the paths with a rate, by delay; the paths are few. */
static size_t sort_by_delay(size_t *order, const struct divide_part *p, size_t count)
{
	size_t i, j, n = 0;

	for (i = 0; i < count; i++) {
		if (!(p[i].rate_bps > 0))
			continue;
		for (j = n++; j > 0 && p[order[j - 1]].delay_s > p[i].delay_s; j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
	return n;
}

/* Opens paths while they help; returns how many of `order` are open. */
static size_t open_paths(const struct divide_part *p, const size_t *order, size_t n,
    double bits, double *finish_s)
{
	double rate = 0, delayed = 0;
	size_t k;

	*finish_s = INFINITY;
	for (k = 0; k < n && p[order[k]].delay_s < *finish_s; k++) {
		rate += p[order[k]].rate_bps;
		delayed += p[order[k]].rate_bps * p[order[k]].delay_s;
		*finish_s = (bits + delayed) / rate;
	}
	return k;
}

int divide_bytes(struct divide_part *parts, size_t *order, size_t count, uint64_t size_bytes,
    double *finish_s, struct ptcp_err *e)
{
	double exact, most, finish, size = (double)size_bytes;
	uint64_t rest = size_bytes;
	size_t i, n, best;
	int r;

	if ((r = check(parts, count, e)) < 0)
		return r;
	n = sort_by_delay(order, parts, count);
	n = open_paths(parts, order, n, 8 * size, &finish);
	for (i = 0; i < count; i++)
		parts[i].bytes = 0;
	for (i = 0; i < n; i++) {
		struct divide_part *p = &parts[order[i]];

		exact = fmax(p->rate_bps * (finish - p->delay_s) / 8, 0);
		p->bytes = exact < (double)rest ? (uint64_t)exact : rest;
		rest -= p->bytes;
	}
	while (rest > 0) {
		for (i = 0, best = 0, most = -INFINITY; i < n; i++) {
			const struct divide_part *p = &parts[order[i]];

			exact = p->rate_bps * (finish - p->delay_s) / 8;
			if (exact - (double)p->bytes > most) {
				most = exact - (double)p->bytes;
				best = order[i];
			}
		}
		/* Beyond 2^53 bytes a double's rounding leaves more than one a path. */
		parts[best].bytes += rest > n ? rest : 1;
		rest -= rest > n ? rest : 1;
	}
	*finish_s = finish;
	return 0;
}

/* ---- measurement_budget ---- */

static bool known(double sd)
{
	return sd >= 0 && isfinite(sd);
}

/* Relative to the largest, so that their sum cannot overflow. */
static double weights(double *w, const double *sd, size_t links)
{
	double largest = 0, sum = 0;
	size_t i;

	for (i = 0; i < links; i++)
		if (known(sd[i]))
			largest = fmax(largest, sd[i]);
	for (i = 0; i < links; i++) {
		w[i] = largest > 0 && known(sd[i]) ? sd[i] / largest : 1;
		sum += w[i];
	}
	return sum;
}

void measurement_budget_allocate(unsigned *counts, const double *sd, double *scratch, size_t links,
    unsigned total, unsigned least)
{
	double sum = weights(scratch, sd, links), share;
	unsigned rest = total, divided;
	size_t i, best;

	if (links == 0)
		return;
	for (i = 0; i < links; i++) {
		counts[i] = least < rest ? least : rest;
		rest -= counts[i];
	}
	divided = rest;
	for (i = 0; i < links; i++) {
		share = divided * (scratch[i] / sum);
		if (floor(share) > rest)
			share = rest;
		counts[i] += (unsigned)share;
		rest -= (unsigned)share;
		scratch[i] = share - floor(share);
	}
	for (; rest > 0; rest--) {
		best = 0;
		for (i = 1; i < links; i++)
			if (scratch[i] > scratch[best])
				best = i;
		counts[best]++;
		scratch[best] -= 1;
	}
}
