/* Blocks of another version, in the part or in the file to be replaced: hashes of the sender are requested in windows,
 * two at a time, and compared step by step (verify_queue.c). Between found blocks, pieces of the others are looked for
 * in the same way. */
#include <stdlib.h>

#include "core/bitmap.h"
#include "core/charged.h"
#include "core/err.h"
#include "core/units.h"
#include "engine/match_pace.h"
#include "session/receive_impl.h"

#define RATE_NS (200 * NS_PER_MS) /* period of a rate of the path */

/* Hashes of the blocks [first, first + count). */
struct match_window {
	uint32_t first, count;
	uint32_t got, done;     /* number of blocks with hashes, and of compared blocks */
	uint64_t equal_bytes;
	struct mono asked;
	struct block_sum sum[];
};

enum {
	GAP_BLOCKS_MAX = 1024, /* blocks of a file at once: their hashes take 1 MiB */
	FILE_WEIGHT = 16       /* share of a file without many blocks, see weight() */
};

/* Blocks not found as a whole: the hashes of their pieces are requested. */
struct match_gap {
	struct match_gap *next;
	uint32_t first, n, got; /* got: number of blocks with hashes */
	uint64_t from, to;      /* offsets of the old file */
	struct block_sum sum[]; /* WIRE_PIECES_MAX for each */
};

struct receive_match {
	struct match_window *window[2]; /* in order; NULL: none */
	uint32_t next;                  /* earlier candidates were requested or given up */
	struct match_gap *gap, **last_gap; /* in order */
	uint32_t gap_blocks;            /* number of all their blocks */
	bool related;                   /* a block, or a piece, was found */
	bool sampling;                  /* nothing was found yet: the pieces of the gap decide */
	uint64_t piece_bytes;           /* bytes of pieces found since the last window was judged */
	struct match_pace pace;
	struct mono judged;             /* end of the last window */
};

static uint32_t candidate(const struct receive_entry *t, uint32_t from, uint32_t end)
{
	return from < end ? bitmap_next(t->existing.candidates, true, from, end) : end;
}

/* ---- Memory ---- */

static size_t window_bytes(uint32_t count)
{
	return sizeof(struct match_window) + count * sizeof(struct block_sum);
}

static size_t gap_bytes(uint32_t n)
{
	return sizeof(struct match_gap) + (size_t)n * WIRE_PIECES_MAX * sizeof(struct block_sum);
}

static void window_free(struct session *sess, struct match_window *w)
{
	if (w != NULL)
		memory_free(sess->o.memory, w, window_bytes(w->count));
}

/* The first gap is done. */
static void gap_pop(struct session *sess, struct receive_match *m)
{
	struct match_gap *g = m->gap;

	m->gap_blocks -= g->n;
	if ((m->gap = g->next) == NULL)
		m->last_gap = &m->gap;
	memory_free(sess->o.memory, g, gap_bytes(g->n));
}

bool receive_match_charge(struct session *sess, struct receive_entry *t)
{
	uint64_t bytes = 2 * bitmap_bytes(wire_grid_blocks(t->grid)); /* the sink may have another bitmap */

	if (t->existing.candidates == NULL)
		return true;
	if (memory_charge(sess->o.memory, bytes, NULL) == 0) {
		t->match_bytes = bytes;
		return true;
	}
	free(t->existing.candidates);
	t->existing.candidates = NULL;
	return false;
}

/* Blocks with hashes in memory, and the share of a file without many. */
static unsigned weight(const struct receive_entry *t)
{
	uint32_t n = wire_grid_blocks(t->grid);

	return FILE_WEIGHT + (n < 2 * MATCH_WINDOW_MAX ? n : 2 * MATCH_WINDOW_MAX);
}

static void match_free(struct session *sess, struct receive_entry *t)
{
	if (t->match == NULL)
		return;
	window_free(sess, t->match->window[0]);
	window_free(sess, t->match->window[1]);
	while (t->match->gap != NULL)
		gap_pop(sess, t->match);
	memory_free(sess->o.memory, t->match, sizeof *t->match);
	t->match = NULL;
	sess->receive->matching -= weight(t);
}

void receive_match_fini(struct session *sess, struct receive_entry *t)
{
	match_free(sess, t);
	free(t->existing.candidates);
	if (t->match_bytes > 0)
		memory_release(sess->o.memory, t->match_bytes);
}

/* ---- Requests ---- */

static struct match_window *request(struct session *sess, struct receive_entry *t, uint32_t first, uint32_t end,
    struct ptcp_err *e)
{
	struct match_window *w;

	while (!bitmap_has(t->existing.candidates, end - 1))
		end--;
	if ((w = memory_calloc(sess->o.memory, window_bytes(end - first), e)) == NULL)
		return NULL;
	w->first = first;
	w->count = end - first;
	w->asked = mono_now();
	rcv_match(engine_rcv(sess->engine), t->id, first, end - first);
	return w;
}

/* Fills both windows; a sample is alone, and an undecided one is waited for. False: all candidates are compared, and no
 * gap is left. */
static bool request_more(struct session *sess, struct receive_entry *t)
{
	uint32_t n = wire_grid_blocks(t->grid), first, left;
	struct receive_match *m = t->match;
	struct ptcp_err why;
	unsigned i, most = m->sampling ? 0 : m->pace.window == MATCH_WINDOW_MIN ? 1 : 2;

	for (i = 0; i < most; i++) {
		if (m->window[i] != NULL || (first = candidate(t, m->next, n)) == n)
			continue;
		left = n - first;
		left = left < m->pace.window ? left : m->pace.window;
		if ((m->window[i] = request(sess, t, first, first + left, &why)) == NULL) {
			engine_fail(sess->engine, &why);
			return false;
		}
		m->next = m->window[i]->first + m->window[i]->count;
	}
	return m->window[0] != NULL || m->gap != NULL;
}

void receive_match_begin(struct session *sess, struct receive_entry *t)
{
	struct ptcp_err why;

	if ((t->match = memory_calloc(sess->o.memory, sizeof *t->match, &why)) == NULL) {
		engine_fail(sess->engine, &why);
		return;
	}
	sess->receive->matching += weight(t);
	t->match->last_gap = &t->match->gap;
	t->match->pace = match_pace_begin(t->grid.block_bytes, t->existing.in_part ||
	    (engine_open(sess->engine)->flags & WIRE_OPEN_DELTA) != 0);
	t->match->judged = mono_now();
	if (!request_more(sess, t))
		match_free(sess, t);
}

/* ---- Comparing ---- */

static bool next_gap(const struct receive_entry *t, struct match_step *out)
{
	const struct match_gap *g = t->match->gap;

	if (g == NULL || g->got < g->n)
		return false;
	*out = (struct match_step){ .split = true, .first = g->first, .n = g->n, .sum = g->sum, .from = g->from,
		.to = g->to };
	return true;
}

static bool next_blocks(const struct receive_entry *t, struct match_step *out)
{
	const struct match_window *w = t->match->window[0];
	uint32_t first, end, known, max = (uint32_t)(FILE_DIGEST_STEP_BYTES / t->grid.block_bytes);

	if (w == NULL)
		return false;
	known = w->first + w->got;
	if ((first = candidate(t, w->first + w->done, known)) == known)
		return false;
	end = bitmap_next(t->existing.candidates, false, first, known);
	*out = (struct match_step){ .first = first, .n = end - first < max ? end - first : max, .ahead = known - first,
		.sum = &w->sum[first - w->first] };
	out->n = out->n < SINK_RUNS ? out->n : SINK_RUNS;
	return true;
}

bool receive_match_next(const struct receive_entry *t, struct match_step *out)
{
	return t->match != NULL && (next_gap(t, out) || next_blocks(t, out));
}

void receive_match_hashes(struct receive_entry *t, struct span hashes)
{
	struct match_window *w = t->match->window[0];
	size_t i;

	if (w->got == w->count)
		w = t->match->window[1];
	for (i = 0; i < hashes.n; i += WIRE_HASH_BYTES)
		w->sum[w->got++] = wire_hash_decode(hashes.p + i);
}

void receive_match_pieces(struct receive_entry *t, struct span hashes)
{
	struct match_gap *g = t->match->gap;
	struct block_sum *sum;
	size_t i;

	while (g->got == g->n)
		g = g->next;
	sum = g->sum + (size_t)g->got++ * WIRE_PIECES_MAX;
	for (i = 0; i < hashes.n; i += WIRE_HASH_BYTES)
		*sum++ = wire_hash_decode(hashes.p + i);
}

static double path_bps(struct receive_side *r, struct mono now)
{
	uint64_t bytes = rcv_stats(engine_rcv(r->session->engine)).done.wire_bytes - r->omitted_bytes;
	uint64_t ns = mono_diff_ns(now, r->path.since);
	double bps = (double)(bytes - r->path.bytes) * 8 * NS_PER_S / (double)(ns > 0 ? ns : 1);

	if (ns < RATE_NS)
		return r->path.bps;
	r->path.bps = r->path.since.ns > 0 && bps > r->path.bps ? bps : r->path.bps;
	r->path.since = now;
	r->path.bytes = bytes;
	return r->path.bps;
}

/* Gives the next candidates up: the sender sends these blocks. */
static void skip(struct session *sess, struct receive_entry *t, uint32_t n)
{
	uint32_t all = wire_grid_blocks(t->grid), first, end, last;
	struct receive_match *m = t->match;

	last = n < all - m->next ? m->next + n : all;
	for (; (first = candidate(t, m->next, last)) < last; m->next = end) {
		end = bitmap_next(t->existing.candidates, false, first, last);
		rcv_verified(engine_rcv(sess->engine), t->id, first, end - first, false, (struct digest){ 0, 0 });
	}
	m->next = last;
}

/* What was compared since then had so many equal bytes, beside pieces. */
static void judge(struct session *sess, struct receive_entry *t, uint64_t equal_bytes, struct mono since)
{
	struct receive_match *m = t->match;
	struct mono now = mono_now();

	since = since.ns > m->judged.ns ? since : m->judged;
	match_pace_judge(&m->pace, equal_bytes + m->piece_bytes, mono_diff_ns(now, since),
	    path_bps(sess->receive, now));
	m->piece_bytes = 0;
	m->judged = now;
	if (m->pace.skip > 0)
		skip(sess, t, m->pace.skip);
}

/* The first window is compared. */
static void window_done(struct session *sess, struct receive_entry *t)
{
	struct receive_match *m = t->match;
	struct match_window *w = m->window[0];

	m->window[0] = m->window[1];
	m->window[1] = NULL;
	if (!m->sampling)
		judge(sess, t, w->equal_bytes, w->asked);
	window_free(sess, w);
}

/* Requests the hashes of the pieces: true; or gives these blocks up. */
static bool add_gap(struct session *sess, struct receive_entry *t, const struct sink_run *run)
{
	struct receive_match *m = t->match;
	struct match_gap *g = NULL;
	struct ptcp_err why;

	if (m->gap_blocks + run->n <= GAP_BLOCKS_MAX)
		g = memory_calloc(sess->o.memory, gap_bytes(run->n), &why);
	if (g == NULL || !rcv_split(engine_rcv(sess->engine), t->id, run->first, run->n)) {
		memory_free(sess->o.memory, g, gap_bytes(run->n));
		rcv_verified(engine_rcv(sess->engine), t->id, run->first, run->n, false, run->sum);
		return false;
	}
	g->first = run->first;
	g->n = run->n;
	g->from = run->from;
	g->to = run->to;
	*m->last_gap = g;
	m->last_gap = &g->next;
	m->gap_blocks += g->n;
	return true;
}

uint64_t receive_match_allowance(struct session *sess)
{
	struct receive_side *r = sess->receive;
	uint64_t bytes = rcv_stats(engine_rcv(sess->engine)).done.wire_bytes - r->omitted_bytes;

	if ((engine_open(sess->engine)->flags & WIRE_OPEN_DELTA) != 0)
		return UINT64_MAX;
	search_pace_received(&r->search.pace, bytes - r->search.received_bytes, r->path.bps);
	r->search.received_bytes = bytes;
	return r->search.pace.left_bytes;
}

bool receive_match_split(struct session *sess, struct receive_entry *t, const uint64_t *has)
{
	struct receive_match *m = t->match;
	struct match_gap *g = m->gap;
	struct match_step step;
	uint32_t i;

	for (i = 0; i < g->n; i++) {
		rcv_patch(engine_rcv(sess->engine), t->id, g->first + i, has[i]);
		m->piece_bytes += (uint64_t)__builtin_popcountll(has[i]) * HASH_PIECE_BYTES;
	}
	gap_pop(sess, m);
	m->related = m->related || m->piece_bytes > 0;
	if (m->sampling && !t->ended && m->window[0] == NULL)
		judge(sess, t, 0, m->judged);
	m->sampling = false;
	if (!t->ended && !request_more(sess, t))
		match_free(sess, t);
	return !t->ended && receive_match_next(t, &step);
}

bool receive_match_stepped(struct session *sess, struct receive_entry *t, const struct sink_run *run, unsigned n_runs)
{
	struct receive_match *m = t->match;
	struct match_window *w = m->window[0];
	struct match_step step;
	unsigned i;

	for (i = 0; i < n_runs; i++) {
		w->done = run[i].first + run[i].n - w->first;
		if (run[i].good)
			w->equal_bytes += wire_grid_range_bytes(t->grid, run[i].first, run[i].n);
		if (run[i].to > 0 && !t->ended && add_gap(sess, t, &run[i]))
			m->sampling = !m->pace.always;
	}
	m->related = m->related || w->equal_bytes > 0;
	m->sampling = m->sampling && !m->related;
	if (w->done == w->count && !t->ended)
		window_done(sess, t);
	if (!t->ended && !request_more(sess, t))
		match_free(sess, t);
	return !t->ended && receive_match_next(t, &step);
}
