#include "bench/multipath/candidates.h"

#include <math.h>
#include <string.h>

#include "core/units.h"
#include "engine/path_select.h"
#include "model/maxmin.h"

#define STEP_S 0.02
#define NOISE_STEPS 10          /* new noise after so many */
#define CONNECT_RTTS 6          /* TCP, TLS and the relay's answer, TLS with the target */
#define FIRST_WINDOW_BITS (10 * 1448 * 8)
#define BLOCK_BITS (8.0 * PATH_SELECT_BLOCK_BYTES)
#define UNLIMITED 1e12
#define NONE SIZE_MAX              /* no candidate */

void candidates_draw(struct candidates *w, size_t n, size_t places, struct rng *r)
{
	size_t i;

	memset(w, 0, sizeof *w);
	w->n = n;
	w->places = places;
	w->access_bps = UNLIMITED;
	w->noise = 0.2;
	w->streams = 8;
	for (i = 0; i < n; i++) {
		w->bps[i] = 5e6 * pow(20, rng_uniform(r));
		w->rtt_s[i] = 0.02 * pow(10, rng_uniform(r));
		w->group[i] = -1;
	}
}

static const double *caps(const struct candidates *w, double at_s)
{
	return w->change_s > 0 && at_s >= w->change_s ? w->later_bps : w->bps;
}

/* Throughput of the places, where each takes at most takes[]: max-min fair in each group, then at the local host. */
static void share(const struct candidates *w, const size_t *place, double *takes)
{
	double in[RATECTL_PATHS_MAX], out[RATECTL_PATHS_MAX];
	size_t at[RATECTL_PATHS_MAX], i, n;
	int g;

	for (g = 0; g < (int)w->n; g++) {
		for (n = 0, i = 0; i < w->places; i++)
			if (place[i] != NONE && w->group[place[i]] == g) {
				at[n] = i;
				in[n++] = takes[i];
			}
		maxmin(out, in, n, w->group_bps[g]);
		for (i = 0; i < n; i++)
			takes[at[i]] = out[i];
	}
	memcpy(in, takes, sizeof in);
	maxmin(takes, in, w->places, w->demand_bps > 0 ? fmin(w->demand_bps, w->access_bps) : w->access_bps);
}

double candidates_best_bps(const struct candidates *w, double at_s)
{
	double best = 0, sum, takes[RATECTL_PATHS_MAX];
	size_t place[RATECTL_PATHS_MAX], i, k;
	uint32_t set;

	for (set = 0; set < UINT32_C(1) << w->n; set++) {
		for (k = 0, i = 0; i < w->n && k <= w->places; i++)
			if ((set >> i & 1) != 0 && k++ < w->places)
				place[k - 1] = i;
		if (k != w->places)
			continue;
		for (i = 0; i < k; i++)
			takes[i] = fmax(caps(w, at_s)[place[i]], 0);
		share(w, place, takes);
		for (sum = 0, i = 0; i < k; i++)
			sum += takes[i];
		best = fmax(best, sum);
	}
	return best;
}

/* ---- A run ---- */

struct world {
	const struct candidates *w;
	struct path_select select;
	struct streams_view v;
	size_t carrier[RATECTL_PATHS_MAX];      /* connected candidate of each place, */
	double connected_s[RATECTL_PATHS_MAX];  /* since then */
	double connects_s[RATECTL_PATHS_MAX];   /* when the chosen candidate replaces the carrier */
	double noise[RATECTL_PATHS_MAX];        /* of each candidate */
	double part[ENGINE_STREAMS_MAX];        /* of the stream in the throughput of its place */
	double partial[ENGINE_STREAMS_MAX];     /* bits of the stream's incomplete block */
	double acked_bits;
	struct mono began;
	bool selects;
};

static struct mono at(const struct world *x, double s) { return mono_add_ns(x->began, (uint64_t)(s * 1e9)); }

/* The old path carries data until the new one is connected. */
static void choose_place(struct world *x, size_t place, double now_s)
{
	size_t c = x->select.model.place[place];

	x->connects_s[place] = caps(x->w, now_s)[c] < 0 ? INFINITY : now_s + CONNECT_RTTS * x->w->rtt_s[c];
}

static void connect_places(struct world *x, double now_s)
{
	size_t k;
	unsigned i;

	for (k = 0; k < x->w->places; k++) {
		bool moves = x->carrier[k] != x->select.model.place[k], moved = moves && now_s >= x->connects_s[k];

		if (moved) {
			x->carrier[k] = x->select.model.place[k];
			x->connected_s[k] = now_s;
		}
		for (i = 0; i < x->v.n_streams; i++) {
			struct stream_view *s = &x->v.stream[i];

			if (s->place != k)
				continue;
			s->moving = moves && !moved;
			if (moved) {
				s->since = at(x, now_s);
				s->generation++;
				s->moved = 0;
				x->partial[i] = 0;
			}
		}
	}
}

static double takes_bps(struct world *x, size_t place, double now_s)
{
	size_t c = x->carrier[place];
	double streams = (double)x->w->streams / (double)x->w->places, cap, age_s, window_bps;

	if (c == NONE || caps(x->w, now_s)[c] < 0)
		return 0;
	cap = caps(x->w, now_s)[c];
	age_s = now_s - x->connected_s[place];
	window_bps = streams * FIRST_WINDOW_BITS / x->w->rtt_s[c] * pow(2, fmin(age_s / x->w->rtt_s[c], 60));
	if (x->selects && x->select.model.rate_bps[place] > 0)
		cap = fmin(cap, x->select.model.rate_bps[place]);
	return fmin(cap * x->noise[c], window_bps);
}

/* Bits acknowledged. */
static double deliver(struct world *x, unsigned i, double bits, struct mono now)
{
	struct stream_view *s = &x->v.stream[i];
	double acked = 0;

	s->moved += (uint64_t)(bits / 8);
	for (x->partial[i] += bits; x->partial[i] >= BLOCK_BITS; x->partial[i] -= BLOCK_BITS) {
		s->acked_bytes += PATH_SELECT_BLOCK_BYTES;
		s->acked = now;
		acked += BLOCK_BITS;
	}
	return acked;
}

static double advance(struct world *x, double now_s)
{
	double takes[RATECTL_PATHS_MAX], acked = 0;
	unsigned i;
	size_t k;

	connect_places(x, now_s);
	for (k = 0; k < x->w->places; k++)
		takes[k] = takes_bps(x, k, now_s);
	share(x->w, x->carrier, takes);
	for (i = 0; i < x->v.n_streams; i++) {
		struct stream_view *s = &x->v.stream[i];

		if (s->since.ns > 0)
			acked += deliver(x, i, takes[s->place] * STEP_S * x->part[i], at(x, now_s + STEP_S));
	}
	x->acked_bits += acked;
	return acked;
}

static unsigned reselect(struct world *x, double now_s)
{
	struct path_select_input in = { .streams = &x->v, .demand_bps = (uint64_t)x->w->demand_bps,
		.left_bytes = UINT64_MAX };
	unsigned replaced, n = 0;
	size_t i;

	if (x->w->left_bits > 0)
		in.left_bytes = (uint64_t)(fmax(x->w->left_bits - x->acked_bits, 0) / 8);

	replaced = path_select_step(&x->select, &in, at(x, now_s));
	for (i = 0; i < x->w->places; i++)
		if ((replaced >> i & 1) != 0) {
			choose_place(x, i, now_s);
			n++;
		}
	return n;
}

static void start(struct world *x, struct rng *r)
{
	const struct candidates *w = x->w;
	size_t place[RATECTL_PATHS_MAX], i;
	double sum[RATECTL_PATHS_MAX] = { 0 };

	choose_paths(place, w->places, w->known, w->n, r);
	x->began = (struct mono){ 1000 * NS_PER_S };
	x->v.n_paths = (unsigned)w->n;
	x->v.sends = !w->receives;
	x->v.n_streams = w->streams;
	for (i = 0; i < w->streams; i++) {
		x->v.stream[i].place = (unsigned)(i % w->places);
		x->part[i] = 0.5 + rng_uniform(r);
		sum[i % w->places] += x->part[i];
	}
	for (i = 0; i < w->streams; i++)
		x->part[i] /= sum[i % w->places];
	path_select_init(&x->select, w->n, place, w->places, w->known, rng_next(r), x->began);
	for (i = 0; i < w->places; i++) {
		x->carrier[i] = NONE;
		choose_place(x, i, 0);
	}
}

void candidates_run(const struct candidates *w, bool selects, unsigned seconds, struct rng *r,
    struct candidates_run *out)
{
	unsigned per_s = (unsigned)lround(1 / STEP_S), step;
	struct world x = { .w = w, .selects = selects };
	double now_s;
	size_t i;

	memset(out, 0, sizeof *out);
	out->seconds = seconds;
	out->done_s = INFINITY;
	start(&x, r);
	for (step = 0; step < seconds * per_s; step++) {
		now_s = step * STEP_S;
		for (i = 0; i < w->n && step % NOISE_STEPS == 0; i++)
			x.noise[i] = 1 + w->noise * (2 * rng_uniform(r) - 1);
		out->bps[step / per_s] += advance(&x, now_s);
		if (x.acked_bits >= w->left_bits)
			out->done_s = fmin(out->done_s, now_s + STEP_S);
		if (selects && at(&x, now_s + STEP_S).ns >= x.select.next.ns)
			out->replaced[step / per_s] += reselect(&x, now_s + STEP_S);
	}
}

double candidates_mean_bps(const struct candidates_run *x, unsigned from, unsigned to)
{
	double sum = 0;
	unsigned i;

	for (i = from; i < to; i++)
		sum += x->bps[i];
	return sum / (to - from);
}

unsigned candidates_replaced(const struct candidates_run *x, unsigned from, unsigned to)
{
	unsigned i, n = 0;

	for (i = from; i < to; i++)
		n += x->replaced[i];
	return n;
}
