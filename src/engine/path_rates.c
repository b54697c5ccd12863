#include "engine/path_rates.h"

#include <string.h>

#include "engine/sender.h"

_Static_assert(SND_RATES >= ENGINE_PATHS_MAX && ENGINE_PATH_IDLE == SND_IDLE, "rates");

void path_rates_init(struct path_rates *r)
{
	unsigned i;

	memset(r, 0, sizeof *r);
	pacer_init(&r->all);
	for (i = 0; i < ENGINE_PATHS_MAX; i++)
		pacer_init(&r->of[i]);
}

static uint64_t rate_bps(const struct path_rates *r, unsigned path)
{
	uint64_t requested = r->requested[path], selected = r->selected[path];

	if (requested == 0 || (selected > 0 && selected < requested && requested != ENGINE_PATH_IDLE))
		return selected;
	return requested;
}

bool path_rates_limited(const struct path_rates *r)
{
	unsigned i;

	for (i = 0; i < ENGINE_PATHS_MAX; i++)
		if (rate_bps(r, i) != 0)
			return true;
	return false;
}

/* ---- The starter ---- */

uint32_t path_rates_apply(struct path_rates *r, unsigned n_paths, bool loose, struct mono now)
{
	uint32_t changed = 0;
	uint64_t bps;
	unsigned i;

	r->checked = now;
	for (i = 0; i < n_paths; i++) {
		bps = rate_bps(r, i);
		if (bps == r->applied[i])
			continue;
		r->applied[i] = bps;
		changed |= UINT32_C(1) << i;
		if (bps != ENGINE_PATH_IDLE) /* the old rate stays for data in transit */
			pacer_set(&r->of[i], loose ? pacer_loose_bps(bps) : bps, now);
	}
	return changed;
}

/* Names only paths with a limit. */
static void describe(const struct path_rates *r, struct wire_rate *f, const uint8_t *path_of, unsigned n_streams,
    unsigned n_paths)
{
	unsigned share[ENGINE_PATHS_MAX] = { 0 }, i;

	for (i = 0; i < n_paths; i++)
		if (rate_bps(r, i) != 0) {
			f->bps[f->n++] = rate_bps(r, i);
			share[i] = f->n;
		}
	for (i = 0; i < n_streams; i++)
		if ((f->of[i] = (uint8_t)share[path_of[i]]) != 0)
			f->m = (uint8_t)(i + 1);
}

static bool same(const struct wire_rate *a, const struct wire_rate *b)
{
	return a->all_bps == b->all_bps && a->n == b->n && a->m == b->m &&
	    memcmp(a->bps, b->bps, sizeof a->bps) == 0 && memcmp(a->of, b->of, sizeof a->of) == 0;
}

bool path_rates_report(struct path_rates *r, struct wire_rate *f, uint64_t all_bps, const uint8_t *path_of,
    unsigned n_streams, unsigned n_paths, struct mono now)
{
	*f = (struct wire_rate){ .all_bps = all_bps };
	describe(r, f, path_of, n_streams, n_paths);
	r->pending = !same(f, &r->frame);
	if (!r->pending || (r->reported.ns > 0 && mono_diff_ns(now, r->reported) < PATH_RATES_REPORT_NS))
		return false;
	r->frame = *f;
	r->reported = now;
	r->pending = false;
	return true;
}

struct mono path_rates_deadline(const struct path_rates *r, bool reports, bool recheck)
{
	if (r->pending)
		return mono_add_ns(r->reported, PATH_RATES_REPORT_NS);
	return recheck ? mono_add_ns(r->checked, reports ? PATH_RATES_CHECK_NS : PATH_RATES_RECHECK_NS) : MONO_NEVER;
}

/* ---- The acceptor that sends ---- */

void path_rates_received(struct path_rates *r, const struct wire_rate *f, struct mono now)
{
	unsigned i;

	r->frame = *f;
	pacer_set(&r->all, f->all_bps, now);
	for (i = 0; i < ENGINE_PATHS_MAX; i++)
		if (f->bps[i] != ENGINE_PATH_IDLE)
			pacer_set(&r->of[i], f->bps[i], now);
}

unsigned path_rates_share(const struct path_rates *r, unsigned stream)
{
	return stream < r->frame.m ? r->frame.of[stream] : 0;
}

bool path_rates_exchanged(const struct path_rates *r) { return r->frame.all_bps > 0 || r->frame.n > 0; }
