#include "model/path_limit.h"

#include <math.h>
#include <stdio.h>

#include "core/units.h"
#include "model/parameters.h"

const char *path_limit_name(enum path_limit l)
{
	static const char *const names[] = {
#define X(id, name) name,
		PATH_LIMIT_LIST(X)
#undef X
	};

	return names[l];
}

/* ---- What the levels show ---- */

struct traces {
	const struct evidence *e;
	const struct evidence_level *few, *many, *before; /* fewest and most streams, and the most below */
	double most_bps; /* largest rate of a level */
};

static bool traces_of(struct traces *t, const struct evidence *e)
{
	const struct evidence_level *l;

	*t = (struct traces){ .e = e };
	for (l = e->level; l < e->level + e->n; l++) {
		if (l->rtt_s <= 0 || l->loss_ratio < 0 || !(l->segments > 0) || l->window_ratio > EVIDENCE_LIMITED_MAX)
			return false;
		if (t->few == NULL || l->probe.streams < t->few->probe.streams)
			t->few = l;
		if (t->many == NULL || l->probe.streams > t->many->probe.streams)
			t->many = l;
		t->most_bps = fmax(t->most_bps, l->probe.throughput_bps);
	}
	for (l = e->level; l < e->level + e->n; l++)
		if (l != t->many && (t->before == NULL || l->probe.streams > t->before->probe.streams))
			t->before = l;
	return e->n > 1 && e->base_rtt_s > 0 && t->many->probe.streams >= PATH_LIMIT_LEVER * t->few->probe.streams;
}

/* Packets of 1500 bytes that leave in a queueing time. */
static double packets(const struct traces *t, double queue_s) { return queue_s * t->most_bps / (8 * 1500); }

static double mean_packets(const struct traces *t, const struct evidence_level *l)
{
	return packets(t, l->rtt_s - t->e->base_rtt_s);
}

static bool has_no_queue(const struct traces *t, const struct evidence_level *l)
{
	double queue_s = l->rtt_s - t->e->base_rtt_s;

	return mean_packets(t, l) <= PATH_LIMIT_NO_QUEUE || queue_s <= PATH_LIMIT_NO_QUEUE_S;
}

/* The same, or what delayed acknowledgments look like. */
static bool has_hardly_a_queue(const struct traces *t, const struct evidence_level *l)
{
	return has_no_queue(t, l) || l->rtt_s <= (1 + PATH_LIMIT_NO_QUEUE_RATIO) * t->e->base_rtt_s;
}

/* Loss events for a segment: a burst of losses is one. One more event than seen is likely enough. */
static double event_ratio(const struct evidence_level *l, double more)
{
	return (l->loss_events + more) / l->segments;
}

/* ---- Each limit ---- */

/* The second largest number of streams already has all that is let pass, and a single one most of it: of one competing
 * flow, a single stream has half. */
static bool is_alone(const struct traces *t)
{
	double few = t->few->probe.throughput_bps, before = t->before->probe.throughput_bps;

	return t->many->probe.throughput_bps <= PATH_LIMIT_ALONE_RATIO * before &&
	    before <= PATH_LIMIT_ALONE_FEW * few;
}

/* No queue at any level; or, as hosts delay the acknowledgments of many streams, a short one, if a burst was faster
 * than all that follows: no link does that. */
static bool has_queue_of_policer(const struct traces *t)
{
	const struct evidence_level *l;

	for (l = t->e->level; l < t->e->level + t->e->n && has_no_queue(t, l); l++)
		;
	return l == t->e->level + t->e->n || (is_alone(t) && has_hardly_a_queue(t, t->few) &&
	    t->e->burst_bps >= PATH_LIMIT_BURST_RATIO * t->most_bps &&
	    t->many->rtt_s <= (1 + PATH_LIMIT_LITTLE_QUEUE) * t->e->base_rtt_s);
}

/* More streams lose more often, although the queue is empty at every level. */
static bool is_policer(struct path_limit_found *out, const struct traces *t)
{
	if (!has_queue_of_policer(t))
		return false;
	if (t->many->loss_ratio < PATH_LIMIT_POLICED_LOSS || t->many->loss_events < EVIDENCE_LOSS_EVENTS_MIN ||
	    event_ratio(t->many, 0) < PATH_LIMIT_POLICED_RATIO * event_ratio(t->few, 1))
		return false;
	*out = (struct path_limit_found){ .limit = PATH_LIMIT_POLICER,
		.alone = is_alone(t), .rate_bps = t->most_bps };
	if (t->e->second_bytes > 0)
		out->burst_bytes = fmax(t->e->second_bytes - t->most_bps / 8, 0);
	return true;
}

static bool is_shallow(struct path_limit_found *out, const struct traces *t, double nobody_ratio)
{
	double most = packets(t, t->e->peak_rtt_s - t->e->base_rtt_s);

	if (nobody_ratio < PATH_LIMIT_NOBODY_RATIO || most > PATH_LIMIT_SHALLOW_MOST ||
	    most > PATH_LIMIT_SHALLOW_PART * packets(t, t->e->base_rtt_s) ||
	    mean_packets(t, t->many) < PATH_LIMIT_SHALLOW_LEAST ||
	    t->few->probe.throughput_bps >= ADVICE_RESOLUTION * t->most_bps)
		return false;
	*out = (struct path_limit_found){ .limit = PATH_LIMIT_SHALLOW, .queue_packets = fmax(most, 1) };
	return true;
}

/* The streams lose as often with few as with more, while no queue forms. */
static bool is_random_loss(struct path_limit_found *out, const struct traces *t)
{
	const struct evidence_level *few = t->few, *l;

	if (few->loss_ratio < PATH_LIMIT_LOSS_RATIO || few->loss_ratio > EVIDENCE_LOSS_RATIO_MAX ||
	    few->loss_events < EVIDENCE_LOSS_EVENTS_MIN || !has_hardly_a_queue(t, few) ||
	    few->probe.throughput_bps >= ADVICE_RESOLUTION * t->most_bps)
		return false;
	for (l = t->e->level; l < t->e->level + t->e->n; l++)
		if (has_hardly_a_queue(t, l) && event_ratio(l, 0) > PATH_LIMIT_SAME_LOSS * event_ratio(few, 1))
			return false;
	*out = (struct path_limit_found){ .limit = PATH_LIMIT_LOSS, .loss_ratio = few->loss_ratio };
	return true;
}

void path_limit_of(struct path_limit_found *out, const struct evidence *e, double nobody_ratio)
{
	struct traces t;

	*out = (struct path_limit_found){ .limit = PATH_LIMIT_NONE };
	if (e->growth == EVIDENCE_MODEL || !traces_of(&t, e))
		return;
	if (!is_policer(out, &t) && !is_shallow(out, &t, nobody_ratio))
		is_random_loss(out, &t);
}

/* ---- Text ---- */

const char *path_limit_text(char out[PATH_LIMIT_TEXT_BYTES], const struct path_limit_found *l)
{
	char rate[UNITS_TEXT_BYTES], burst[UNITS_TEXT_BYTES + 32] = "", size[UNITS_TEXT_BYTES];

	out[0] = '\0';
	switch (l->limit) {
	case PATH_LIMIT_POLICER:
		if (l->burst_bytes > 0)
			snprintf(burst, sizeof burst, " after a burst of about %s",
			    units_size_text(size, (uint64_t)l->burst_bytes));
		snprintf(out, PATH_LIMIT_TEXT_BYTES, "a policer drops what exceeds about %s%s: more streams only "
		    "lose more (%s)", units_rate_text(rate, l->rate_bps), burst, l->alone ?
		    "send with --rate slightly below, where little is lost" :
		    "other flows share it; --rate keeps to a part of it");
		break;
	case PATH_LIMIT_SHALLOW:
		snprintf(out, PATH_LIMIT_TEXT_BYTES, "the queue of the bottleneck holds only about %.0f packets: a "
		    "stream loses before it fills the link (use several streams, or a longer queue in the router)",
		    l->queue_packets);
		break;
	case PATH_LIMIT_LOSS:
		snprintf(out, PATH_LIMIT_TEXT_BYTES, "%.2g %% of the packets are lost at random, which limits each "
		    "stream (use several streams, or --congestion bbr; look for a bad cable or radio link)",
		    l->loss_ratio * 100);
		break;
	case PATH_LIMIT_NONE:
	case PATH_LIMITS:
		break;
	}
	return out;
}
