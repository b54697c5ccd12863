#include "model/deadline.h"

#include <math.h>

void deadline_init(struct deadline *d, double left_s)
{
	*d = (struct deadline){ .mode = DEADLINE_YIELDS, .streams = 1, .impact_ratio = 0, .room = DEADLINE_ROOM_RATIO,
		.margin_s = fmin(fmax(DEADLINE_MARGIN_RATIO * left_s, DEADLINE_MARGIN_MIN_S), DEADLINE_MARGIN_MAX_S) };
}

static double needed_bps(const struct deadline *d, const struct deadline_step *s)
{
	return s->left_s > d->margin_s ? s->left_bits / (s->left_s - d->margin_s) : INFINITY;
}

/* As predicted, but in proportion to what the present streams deliver, unless they yield. */
static double predicted_bps(const struct deadline *d, const struct deadline_step *s, const struct advice_point *then)
{
	struct advice_point now;
	double part = 1;

	if (d->mode == DEADLINE_COMPETES && s->streams > 0) {
		advice_at(s->advice, s->streams, &now);
		if (now.mean_bps > 0)
			part = fmin(fmax(d->recent_bps / now.mean_bps, DEADLINE_PART_MIN), 1 / DEADLINE_PART_MIN);
	}
	return then->mean_bps * part;
}

/* The fewest streams that deliver so much, with their impact; 0: none up to `most`. */
static unsigned fewest(const struct deadline *d, const struct deadline_step *s, double bps, unsigned most,
    double *impact_ratio)
{
	struct advice_point at;
	unsigned n;

	for (n = 1; n <= most; n++) {
		advice_at(s->advice, n, &at);
		if (predicted_bps(d, s, &at) < bps)
			continue;
		*impact_ratio = fmax(at.impact_ratio, 0);
		return n;
	}
	return 0;
}

static bool enter(struct deadline *d, enum deadline_mode mode, unsigned streams, double impact_ratio)
{
	bool changed = d->mode != mode || d->streams != streams;

	if (d->mode != mode)
		d->mode_s = d->short_s = 0;
	d->mode = mode;
	d->streams = streams;
	d->impact_ratio = impact_ratio;
	return changed;
}

static bool compete(struct deadline *d, const struct deadline_step *s)
{
	struct advice_point at = { .impact_ratio = NAN };

	if (s->advice != NULL)
		advice_at(s->advice, s->most, &at);
	return enter(d, DEADLINE_COMPETES, 0, at.impact_ratio);
}

/* The smallest number of streams with room for the floor. */
static bool choose(struct deadline *d, const struct deadline_step *s, double bps)
{
	double impact_ratio;
	unsigned n = isinf(bps) ? 0 : fewest(d, s, d->room * bps, s->most, &impact_ratio);

	return n > 0 ? enter(d, DEADLINE_YIELDS, n, impact_ratio) : compete(d, s);
}

static bool yields(struct deadline *d, const struct deadline_step *s, double bps)
{
	double patience_s = fmin(fmax(DEADLINE_PATIENCE_RATIO * s->left_s, DEADLINE_PATIENCE_MIN_S),
	    DEADLINE_PATIENCE_MAX_S);

	d->short_s = d->recent_bps < DEADLINE_SHORT_RATIO * bps ? d->short_s + s->interval_s :
	    fmax(d->short_s - s->interval_s, 0);
	if (s->yields_only || (d->short_s < patience_s && !isinf(bps)))
		return false;
	if (s->advice != NULL && !isinf(bps))
		d->room = fmin(d->room * DEADLINE_ROOM_GROWTH, DEADLINE_ROOM_MAX);
	return compete(d, s);
}

static bool competes(struct deadline *d, const struct deadline_step *s, double bps)
{
	if (isinf(bps) || s->probes || d->mode_s < DEADLINE_COMPETES_S)
		return compete(d, s);
	if (s->advice != NULL)
		return choose(d, s, bps);
	return d->recent_bps >= d->room * bps ? enter(d, DEADLINE_YIELDS, 0, NAN) : false;
}

static void set_floor(struct deadline *d, const struct deadline_step *s)
{
	d->floor_bps = d->mode == DEADLINE_COMPETES ? INFINITY : s->yields_only ? 0 : needed_bps(d, s);
}

void deadline_begin(struct deadline *d, const struct deadline_step *s)
{
	if (s->advice != NULL && !s->yields_only)
		choose(d, s, needed_bps(d, s));
	set_floor(d, s);
}

bool deadline_step(struct deadline *d, const struct deadline_step *s)
{
	double bps = needed_bps(d, s), weight = 1 - exp(-s->interval_s / DEADLINE_RECENT_S);
	bool changed;

	d->mode_s += s->interval_s;
	/* The rates of the other mode say nothing here. */
	weight = fmax(weight, s->interval_s / fmax(d->mode_s, s->interval_s));
	d->recent_bps += weight * (s->delivered_bps - d->recent_bps);
	changed = d->mode == DEADLINE_YIELDS ? yields(d, s, bps) : competes(d, s, bps);
	set_floor(d, s);
	return changed;
}

/* More streams than the budget permits. */
static void look_above(struct deadline_outlook *out, const struct deadline *d, const struct deadline_step *s,
    unsigned max_streams)
{
	struct advice_point at;
	double best_bps = 0, bps;
	unsigned n;

	for (n = s->most + 1; n <= max_streams; n++) {
		advice_at(s->advice, n, &at);
		bps = predicted_bps(d, s, &at);
		if (bps <= best_bps)
			continue;
		best_bps = bps;
		out->larger_ratio = fmax(at.impact_ratio, 0);
		out->larger_left_s = s->left_bits / bps;
		if (out->larger_left_s <= s->left_s)
			return;
	}
}

void deadline_outlook(struct deadline_outlook *out, const struct deadline *d, const struct deadline_step *s,
    unsigned max_streams)
{
	bool floor = d->mode == DEADLINE_YIELDS && !s->yields_only;

	*out = (struct deadline_outlook){ .larger_ratio = NAN, .larger_left_s = NAN };
	if (!floor && ((s->probes && s->left_s > d->margin_s) || d->mode_s < DEADLINE_COMPETES_S ||
	    !(d->recent_bps > 0)))
		return;
	out->known = true;
	out->left_s = d->recent_bps > 0 ? s->left_bits / d->recent_bps : INFINITY;
	if (floor)
		out->left_s = fmin(out->left_s, fmax(s->left_s - d->margin_s, 0));
	out->possible = out->left_s <= s->left_s;
	if (!out->possible && s->advice != NULL && !s->yields_only)
		look_above(out, d, s, max_streams);
}
