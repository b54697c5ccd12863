#include "collect/collect_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collect_impl.h"
#include "collect/fluid.h"
#include "collect/played_tasks.h"
#include "collect/shared_cause.h"
#include "conf/overlay.h"
#include "draw.h"

#define LONGEST_S 3600.0

/* ---- Draws ---- */

static double between(struct rng *r, double least, double most)
{
	return least * pow(most / least, rng_uniform(r));
}

static void draw_data(struct world *w, double seconds, bool skewed, struct rng *r)
{
	double all_bps = 0, sum = 0, want;
	size_t i;

	for (i = 0; i < w->points; i++)
		all_bps += w->point[i].bps;
	for (i = 0; i < w->sources; i++) {
		want = 25 + 50 * rng_uniform(r);
		w->source[i].bytes = skewed && i == 0 ? want * (double)w->sources : want;
		sum += w->source[i].bytes;
	}
	for (i = 0; i < w->sources; i++)
		w->source[i].bytes = floor(w->source[i].bytes / sum * all_bps / 8 * seconds);
	w->access_bps = 2 * all_bps;
}

void world_draw(struct world *w, uint64_t seed)
{
	struct rng r = { seed };
	double most_bps = between(&r, 10e6, 300e6), rtt_s = between(&r, 0.005, 0.1);
	size_t i;

	*w = (struct world){ .points = 1 + rng_below(&r, WORLD_POINTS), .sources = 3 + rng_below(&r, WORLD_SOURCES - 2),
		.impact_percent = 10, .seed = seed };
	if (w->points > w->sources)
		w->points = w->sources;
	for (i = 0; i < w->points; i++)
		w->point[i] = (struct world_point){ .bps = fmax(5e6, most_bps * between(&r, 0.4, 1)),
			.queue_s = between(&r, 0.01, 0.25), .later_at_s = INFINITY, .others_from_s = INFINITY,
			.others_until_s = INFINITY, .told_ratio = 1 };
	for (i = 0; i < w->sources; i++)
		w->source[i] = (struct world_source){ .point = i < w->points ? i : rng_below(&r, (unsigned)w->points),
			.rtt_s = rtt_s * (0.8 + 0.4 * rng_uniform(&r)), .start_s = 0.3 + 0.4 * rng_uniform(&r) };
	draw_data(w, between(&r, 15, 90), seed % 3 == 0, &r);
}

/* ---- The overlay ---- */

static void print_links(FILE *f, const struct world *w)
{
	const struct world_point *p;
	size_t i, k;

	for (i = 0; i < w->sources; i++) {
		p = &w->point[w->source[i].point];
		fprintf(f, "  - {from: S%zu, to: D, rate: %.0fbit/s}\n", i + 1,
		    fmin(p->bps, w->access_bps) * p->told_ratio);
		for (k = 0; k < w->sources; k++)
			if (k != i)
				fprintf(f, "  - {from: S%zu, to: S%zu, rate: %.0fbit/s}\n", i + 1, k + 1,
				    w->access_bps);
	}
}

static void print_shared(FILE *f, const struct world *w)
{
	const char *comma;
	size_t i, k;

	fputs("shared:\n", f);
	for (k = 0; k < w->points; k++) {
		fprintf(f, "  - {rate: %.0fbit/s, links: [", w->point[k].bps * w->point[k].told_ratio);
		for (comma = "", i = 0; i < w->sources; i++)
			if (w->source[i].point == k) {
				fprintf(f, "%sS%zu>D", comma, i + 1);
				comma = ", ";
			}
		fputs("]}\n", f);
	}
}

static struct ptcp_overlay *overlay_of(const struct world *w)
{
	struct ptcp_overlay *o;
	struct ptcp_err e;
	char *text;
	size_t n, i;
	FILE *f = open_memstream(&text, &n);

	fputs("destination: D\nhosts:\n  D: {}\n", f);
	for (i = 0; i < w->sources; i++)
		fprintf(f, "  S%zu: {address: 192.0.2.%zu, path: /a, data: %.0fB, relay: true}\n", i + 1, i + 1,
		    w->source[i].bytes);
	fputs("links:\n", f);
	print_links(f, w);
	if (!w->blind)
		print_shared(f, w);
	fclose(f);
	if (ptcp_overlay_parse(&o, text, n, "world", &e) < 0)
		fail_msg("%s", e.msg);
	free(text);
	return o;
}

/* All points full from the first data to the end, or one source's access. */
static double best_of(const struct world *w)
{
	double all = 0, most = 0, t, bps;
	size_t i;

	for (i = 0; i < w->sources; i++) {
		all += 8 * w->source[i].bytes;
		most = fmax(most, 8 * w->source[i].bytes / w->access_bps);
	}
	for (t = 0; all > 0; t += FLUID_STEP_S) {
		for (bps = 0, i = 0; i < w->points; i++)
			bps += fluid_point_bps(w, i, t);
		all -= bps * FLUID_STEP_S;
	}
	return fmax(most, t);
}

/* ---- The collection ---- */

static void on_event(void *arg, const struct ptcp_collect_event *ev)
{
	struct world_outcome *out = arg;

	if (getenv("WORLD_TRACE") != NULL && (ev->type != PTCP_COLLECT_PROGRESS || getenv("WORLD_TRACE")[0] == '2'))
		fprintf(stderr, "#   %6.2f %6.1f Mbit/s  event %d, source %d: %s\n", ev->elapsed_s, ev->rate_bps / 1e6,
		    (int)ev->type, ev->source, ev->text != NULL ? ev->text : "-");
	if (ev->type == PTCP_COLLECT_PLAN && ev->text != NULL && strstr(ev->text, "competing flows use") != NULL) {
		out->found_s = fmin(out->found_s, ev->elapsed_s);
		out->found++;
	}
	if (ev->elapsed_s > LONGEST_S)
		fail_msg("nothing moves any more");
}

void world_collect(const struct world *w, struct world_outcome *out)
{
	struct ptcp_shared_bottleneck shared[SHARED_CAUSE_MAX];
	size_t links[SHARED_CAUSE_MAX * WORLD_SOURCES];
	struct ptcp_transfer_opts connect;
	struct ptcp_collect_result result;
	struct ptcp_collect_opts o;
	struct ptcp_overlay *overlay = overlay_of(w);
	char dir[] = "/tmp/collect_world.XXXXXX";
	struct ptcp_collect *c;
	struct ptcp_err e;

	*out = (struct world_outcome){ .best_s = best_of(w), .found_s = INFINITY };
	ptcp_transfer_opts_init(&connect);
	ptcp_collect_opts_init(&o);
	ptcp_collect_result_init(&result);
	o.impact_percent = w->impact_percent;
	o.event = on_event;
	o.arg = out;
	assert_non_null(mkdtemp(dir));
	if (ptcp_collect_new(&c, overlay, &connect, dir, &o, &e) < 0)
		fail_msg("%s", e.msg);
	played_begin(w);
	played_collection(c);
	if (ptcp_collect_run(c, &e) < 0)
		fail_msg("%s", e.msg);
	ptcp_collect_result(c, &result);
	out->seconds = result.seconds;
	out->plans = result.replans;
	out->others_bps = played_others_bps();
	out->shared = shared_cause_list(overlay, shared, links, sizeof links / sizeof *links);
	played_collection(NULL);
	ptcp_collect_free(c);
	played_end();
	ptcp_overlay_free(overlay);
	rmdir(dir);
}
