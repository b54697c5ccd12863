#include "collect/schedule.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/sorted.h"

#define SAME_S 1e-6 /* closer times are equal */
#define MIN_BPS 0.01 /* smaller rates are rounding errors; a byte in a slot of minutes has more */

/* Start or end of a piece: change of a rate, or of stored bytes. */
struct change {
	double at_s, by;
};

/* ---- Pieces by path ---- */

static int by_path(const void *a, const void *b)
{
	const struct ptcp_plan_piece *x = a, *y = b;
	size_t i;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->nhops != y->nhops)
		return x->nhops < y->nhops ? -1 : 1;
	for (i = 0; i < x->nhops; i++)
		if (x->hops[i].to != y->hops[i].to)
			return x->hops[i].to < y->hops[i].to ? -1 : 1;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

static int by_source(const void *a, const void *b)
{
	const struct schedule_path *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Appends the rates of one path, from the changes by its pieces. */
static size_t add_rates(struct schedule_rate *out, struct change *c, size_t n)
{
	size_t i, k = 0;
	double sum = 0;

	sort_array(c, n, sizeof *c, by_time);
	for (i = 0; i < n; i++) {
		sum += c[i].by;
		if (i + 1 < n && c[i + 1].at_s - c[i].at_s < SAME_S)
			continue;
		out[k++] = (struct schedule_rate){ c[i].at_s, sum > MIN_BPS ? sum : 0 };
	}
	return k;
}

/* Whether a relay stores the piece longer than it takes to arrive. */
static bool is_stored(const struct ptcp_plan_piece *p)
{
	size_t i;

	for (i = 1; i < p->nhops; i++)
		if (p->hops[i].start_s > p->hops[i - 1].start_s + SAME_S)
			return true;
	return false;
}

/* Peak of the bytes between the first hop and the last, from the changes by pieces. */
static double peak_stored(const struct ptcp_plan_piece *piece, size_t n, struct change *c)
{
	double sum = 0, most = 0;
	size_t i, k = 0;

	for (i = 0; i < n; i++) {
		if (!is_stored(&piece[i]))
			continue;
		c[k++] = (struct change){ piece[i].hops[0].start_s, (double)piece[i].bytes };
		c[k++] = (struct change){ piece[i].hops[piece[i].nhops - 1].end_s - SAME_S, -(double)piece[i].bytes };
	}
	sort_array(c, k, sizeof *c, by_time);
	for (i = 0; i < k; i++) {
		sum += c[i].by;
		most = fmax(most, sum);
	}
	return most;
}

/* Adds the path of n pieces with the same hops. */
static void add_path(struct schedule *s, const struct ptcp_plan_piece *piece, size_t n, struct change *scratch,
    size_t *n_rates, size_t *n_hops)
{
	struct schedule_path *p = &s->path[s->n++];
	const struct ptcp_plan_hop *leave;
	size_t i;
	double bps;

	*p = (struct schedule_path){ .source = piece->source, .hop = s->hops + *n_hops, .nhops = piece->nhops,
		.first = *n_rates };
	for (i = 0; i < piece->nhops; i++)
		s->hops[(*n_hops)++] = piece->hops[i].to;
	p->stored_bytes = peak_stored(piece, n, scratch);
	for (i = 0; i < n; i++) {
		leave = &piece[i].hops[0];
		bps = (double)piece[i].bytes * 8 / (leave->end_s - leave->start_s);
		p->bytes += (double)piece[i].bytes;
		scratch[2 * i] = (struct change){ leave->start_s, bps };
		scratch[2 * i + 1] = (struct change){ leave->end_s, -bps };
	}
	p->n = add_rates(s->rate + *n_rates, scratch, 2 * n);
	*n_rates += p->n;
}

/* ---- Streams ---- */

double schedule_link_bytes(const struct schedule *s, int from, int to)
{
	const struct schedule_path *p;
	double sum = 0;
	size_t i;

	for (p = s->path; p < s->path + s->n; p++)
		for (i = 0; i < p->nhops; i++)
			if (p->hop[i] == to && (i > 0 ? p->hop[i - 1] : p->source) == from)
				sum += p->bytes;
	return sum;
}

static void count_streams(const struct schedule *s, const struct ptcp_plan *plan, struct schedule_path *p)
{
	double least = INFINITY;
	unsigned n;
	size_t i;
	int from = p->source;

	for (i = 0; i < p->nhops; from = p->hop[i++])
		if ((n = ptcp_plan_streams(plan, from, p->hop[i])) > 0)
			least = fmin(least, n * p->bytes / schedule_link_bytes(s, from, p->hop[i]));
	p->streams = isfinite(least) ? (unsigned)fmax(1, floor(least + SAME_S)) : 0;
}

int schedule_new(struct schedule **out, const struct ptcp_plan *p, struct ptcp_err *e)
{
	size_t n = ptcp_plan_pieces(p), i, end, hops = 0, n_rates = 0, n_hops = 0;
	struct schedule *s = calloc(1, sizeof *s);
	struct ptcp_plan_piece *piece = calloc(n + 1, sizeof *piece);
	struct change *scratch = calloc(2 * n + 1, sizeof *scratch);
	struct ptcp_plan_info info;
	int r = 0;

	for (i = 0; piece != NULL && i < n; i++) {
		ptcp_plan_piece(p, i, &piece[i]);
		hops += piece[i].nhops;
	}
	if (s == NULL || piece == NULL || scratch == NULL ||
	    (s->path = calloc(n + 1, sizeof *s->path)) == NULL ||
	    (s->rate = calloc(2 * n + 1, sizeof *s->rate)) == NULL ||
	    (s->hops = calloc(hops + 1, sizeof *s->hops)) == NULL) {
		r = err_nomem(e);
		schedule_free(s);
	} else {
		ptcp_plan_info(p, &info);
		s->end_s = info.makespan_s;
		sort_array(piece, n, sizeof *piece, by_path);
		for (i = 0; i < n; i = end) {
			for (end = i + 1; end < n && by_path(&piece[i], &piece[end]) == 0; end++)
				;
			add_path(s, piece + i, end - i, scratch, &n_rates, &n_hops);
		}
		sort_array(s->path, s->n, sizeof *s->path, by_source);
		for (i = 0; i < s->n; i++)
			count_streams(s, p, &s->path[i]);
		*out = s;
	}
	free(piece);
	free(scratch);
	return r;
}

void schedule_free(struct schedule *s)
{
	if (s == NULL)
		return;
	free(s->path);
	free(s->rate);
	free(s->hops);
	free(s);
}

/* ---- Queries by time ---- */

double schedule_bps(const struct schedule *s, size_t i, double t_s)
{
	const struct schedule_path *p = &s->path[i];
	const struct schedule_rate *r = s->rate + p->first;
	double bps = 0;
	size_t k;

	t_s = fmax(t_s, 0);
	for (k = 0; k < p->n && r[k].from_s <= t_s + SAME_S; k++)
		if (r[k].bps > 0 || t_s < s->end_s - SAME_S)
			bps = r[k].bps;
	return bps;
}

double schedule_next_s(const struct schedule *s, double t_s)
{
	double next = INFINITY;
	size_t i, k;

	for (i = 0; i < s->n; i++)
		for (k = 0; k < s->path[i].n; k++)
			if (s->rate[s->path[i].first + k].from_s > t_s + SAME_S)
				next = fmin(next, s->rate[s->path[i].first + k].from_s);
	return next;
}

double schedule_left_bytes(const struct schedule *s, int source, double t_s)
{
	const struct schedule_path *p;
	double left = 0, from, until;
	size_t k;

	for (p = s->path; p < s->path + s->n; p++)
		for (k = 0; p->source == source && k + 1 < p->n; k++) {
			from = fmax(t_s, s->rate[p->first + k].from_s);
			until = s->rate[p->first + k + 1].from_s;
			if (until > from)
				left += s->rate[p->first + k].bps * (until - from) / 8;
		}
	return left;
}
