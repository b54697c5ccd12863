#include "model/divide.h"

#include <math.h>
#include <string.h>

#include "core/err.h"

static int divide_check(const struct divide_part *p, size_t count, struct ptcp_err *e)
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

/* Indices of the paths with a rate, by delay (insertion sort: paths are few). */
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

/* Adds paths while they shorten the finish; returns the number of paths used. */
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

	if ((r = divide_check(parts, count, e)) < 0)
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
		/* Above 2^53 bytes rounding of doubles leaves more than one byte per path. */
		parts[best].bytes += rest > n ? rest : 1;
		rest -= rest > n ? rest : 1;
	}
	*finish_s = finish;
	return 0;
}

/* ---- Measurements ---- */

static bool known(double sd)
{
	return sd >= 0 && isfinite(sd);
}

/* Relative to the largest, to avoid overflow of the sum. */
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

void divide_measurements(unsigned *counts, const double *sd, double *scratch, size_t links,
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

/* ---- Capacity ---- */

#define USED_UP 1e-11 /* part of a limit that rounding leaves */

static bool has_room(const struct divide_flow *f, const double *limit, const double *rest)
{
	size_t i;

	for (i = 0; i < f->n_limits; i++)
		if (isfinite(limit[f->limit[i]]) && !(rest[f->limit[i]] > USED_UP * limit[f->limit[i]]))
			return false;
	return true;
}

/* Stops flows over used up limits, and returns how far the level of all others can rise; 0 without others. */
static double next_step(struct divide_flow *f, size_t n, const double *limit, size_t n_limits, const double *rest,
    double *load)
{
	double step = 0;
	size_t i, k;

	memset(load, 0, n_limits * sizeof *load);
	for (i = 0; i < n; i++) {
		f[i].grows = f[i].grows && has_room(&f[i], limit, rest);
		if (f[i].grows)
			step = INFINITY;
		for (k = 0; f[i].grows && k < f[i].n_limits; k++)
			load[f[i].limit[k]] += f[i].weight;
	}
	for (i = 0; i < n_limits; i++)
		if (load[i] > 0)
			step = fmin(step, rest[i] / load[i]);
	return step;
}

void divide_fairly(struct divide_flow *f, size_t n, const double *limit, size_t n_limits, double from, double to,
    double *rest, double *load)
{
	double level = from, step;
	size_t i, k;

	memcpy(rest, limit, n_limits * sizeof *rest);
	for (i = 0; i < n; i++) {
		f[i].grows = f[i].weight > 0;
		f[i].rate = f[i].weight * from;
		for (k = 0; k < f[i].n_limits; k++)
			rest[f[i].limit[k]] -= f[i].rate;
	}
	while (level < to && (step = fmin(next_step(f, n, limit, n_limits, rest, load), to - level)) > 0) {
		level += step;
		for (i = 0; i < n; i++) {
			if (!f[i].grows)
				continue;
			f[i].rate = f[i].weight * level;
			for (k = 0; k < f[i].n_limits; k++)
				rest[f[i].limit[k]] -= step * f[i].weight;
		}
	}
}
