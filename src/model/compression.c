#include "model/compression.h"

#include <math.h>
#include <stddef.h>

#include "model/parameters.h"

/* Levels, fastest first: how many times longer than the fastest they take, how many times more they save, as measured
 * with blocks of text, source code and tables; the part of the processors' time that they may take. */
static const struct rung {
	int level;
	double cost, gain, share;
} ladder[] = { { COMPRESSION_FASTEST, 1, 1, .8 }, { 5, 2.5, 1.1, .5 }, { 9, 7, 1.15, .5 } };
#define RUNGS (sizeof ladder / sizeof *ladder)

void compression_init(struct compression *c)
{
	*c = (struct compression){ .pack_s = COMPRESSION_PACK_S, .ratio = COMPRESSION_RATIO,
		.patience = COMPRESSION_PATIENCE };
}

void compression_begin(struct compression *c, double rtt_s)
{
	if (rtt_s >= COMPRESSION_NEAR_RTT_S)
		c->level = COMPRESSION_FASTEST;
}

static const struct rung *rung_of(int level)
{
	size_t i = RUNGS - 1;

	while (i > 0 && ladder[i].level > level)
		i--;
	return &ladder[i];
}

static void learn(struct compression *c, const struct compression_sample *v)
{
	const struct rung *g = rung_of(c->level);

	if (!(v->packed_bytes > 0))
		return;
	c->pack_s = (c->pack_s + v->pack_s / v->data_bytes / g->cost) / 2;
	c->ratio = (c->ratio + 1 + (v->data_bytes / v->packed_bytes - 1) / g->gain) / 2;
}

static int choose(const struct compression *c, unsigned threads)
{
	double speed = threads / fmax(c->pack_s, 1e-12), best = c->path_bytes_s, arrives;
	const struct rung *g;
	int level = 0;

	for (g = ladder; g < ladder + RUNGS; g++) {
		arrives = fmin(c->path_bytes_s * (1 + (c->ratio - 1) * g->gain), speed / g->cost * g->share);
		if (arrives > COMPRESSION_GAIN * best) {
			best = arrives;
			level = g->level;
		}
	}
	return level == 0 && c->path_bytes_s < COMPRESSION_TRIES * speed ? COMPRESSION_FASTEST : level;
}

/* The path is full: its rate is known, without compression at once. */
static void measure(struct compression *c, double rate)
{
	c->path_bytes_s = c->path_bytes_s > 0 && c->level > 0 ? (c->path_bytes_s + rate) / 2 : rate;
	c->unfull = 0;
}

void compression_add(struct compression *c, const struct compression_sample *v)
{
	double rate = v->sent_bytes / v->took_s;
	bool looked = c->level == 0 && c->unfull > 0;

	learn(c, v);
	if (v->full)
		measure(c, rate);
	else if (c->level == 0)
		return; /* something else limits the session */
	else if (rate > c->path_bytes_s)
		c->path_bytes_s = rate;
	c->level = choose(c, v->threads);
	if (looked)
		c->patience = c->level > 0 && c->patience < COMPRESSION_PATIENCE_MAX ?
		    2 * c->patience : COMPRESSION_PATIENCE;
	if (!v->full && ++c->unfull >= c->patience)
		c->level = 0;
}
