/* The plot of a plan: a row for each link, with the rates of its sources stacked over time, and stored data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show/plan_output.h"
#include "cli/show/plot.h"
#include "core/sorted.h"
#include "core/units.h"

#define ROW_PX 22
#define TIME_PX 560      /* width of the time axis */
#define CHAR_PX 8
#define KEY_PX 18        /* height of a source in the legend */
#define MARGINS_PX 160
#define STORAGE_PX 260
#define HEIGHT 0.9       /* part of a row that the largest rate of its link fills */

struct box {
	int link, source;    /* link: from * hosts + to */
	double start_s, end_s, bps;
};

struct chart {
	const struct plan_shown *shown;
	size_t hosts, n;
	struct box *box;     /* sorted by link, then by start */
	size_t *first;       /* first box of each row, and n */
	size_t rows;
	double *max_bps;     /* largest rate of each row */
	double makespan_s;
	double time_unit_s;
	const char *time_unit;
};

static int by_link(const void *a, const void *b)
{
	const struct box *x = a, *y = b;

	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return x->source - y->source;
}

static void chart_fini(struct chart *c)
{
	free(c->box);
	free(c->first);
	free(c->max_bps);
}

/* Tens to hundreds of units, in which people think. */
static void choose_time_unit(struct chart *c)
{
	static const struct { const char *name; double s, from_s; } units[] = { { "days", 86400, 10 * 86400 },
		{ "hours", 3600, 3 * 3600 }, { "minutes", 60, 600 } };
	size_t i;

	for (i = 0; i < sizeof units / sizeof *units; i++)
		if (c->makespan_s >= units[i].from_s) {
			c->time_unit = units[i].name;
			c->time_unit_s = units[i].s;
			return;
		}
}

static int chart_init(struct chart *c, const struct plan_shown *s)
{
	struct ptcp_plan_info info;
	struct ptcp_plan_step st;
	size_t i;

	ptcp_plan_info(s->plan, &info);
	*c = (struct chart){ .time_unit = "s", .time_unit_s = 1, .shown = s, .hosts = ptcp_overlay_hosts(s->overlay),
	    .n = ptcp_plan_steps(s->plan),
		.makespan_s = info.makespan_s > 0 ? info.makespan_s : 1 };
	choose_time_unit(c);
	c->box = calloc(c->n + 1, sizeof *c->box);
	c->first = calloc(c->n + 1, sizeof *c->first);
	c->max_bps = calloc(c->n + 1, sizeof *c->max_bps);
	if (c->box == NULL || c->first == NULL || c->max_bps == NULL) {
		chart_fini(c);
		return -1;
	}
	for (i = 0; i < c->n; i++) {
		ptcp_plan_step(s->plan, i, &st);
		c->box[i] = (struct box){ st.from * (int)c->hosts + st.to, st.source, st.start_s, st.end_s,
			8 * (double)st.bytes / (st.end_s - st.start_s) };
	}
	sort_array(c->box, c->n, sizeof *c->box, by_link);
	for (i = 0; i < c->n; i++)
		if (i == 0 || c->box[i].link != c->box[i - 1].link)
			c->first[c->rows++] = i;
	c->first[c->rows] = c->n;
	return 0;
}

/* Calls `draw` for each span of time in which the boxes of a row do not change, with the boxes first[0] to
 * first[count - 1] by index. */
struct span_of {
	const struct chart *chart;
	size_t row;
	double from_s, until_s;
	const size_t *at;
	size_t count;
};

static void each_span(struct chart *c, size_t row, size_t *at, void (*draw)(struct span_of *, void *), void *arg)
{
	size_t next = c->first[row], end = c->first[row + 1], count = 0, i, k;
	double t = 0, until;

	while (next < end || count > 0) {
		if (count == 0)
			t = c->box[next].start_s;
		for (; next < end && c->box[next].start_s <= t; next++)
			at[count++] = next;
		until = next < end ? c->box[next].start_s : INFINITY;
		for (i = 0; i < count; i++)
			until = fmin(until, c->box[at[i]].end_s);
		draw(&(struct span_of){ c, row, t, until, at, count }, arg);
		for (i = k = 0; i < count; i++)
			if (c->box[at[i]].end_s > until)
				at[k++] = at[i];
		count = k;
		t = until;
	}
}

static void find_max(struct span_of *s, void *arg)
{
	double sum = 0, *max_bps = arg;
	size_t i;

	for (i = 0; i < s->count; i++)
		sum += s->chart->box[s->at[i]].bps;
	max_bps[s->row] = fmax(max_bps[s->row], sum);
}

struct source_boxes {
	FILE *f;
	int source;
	size_t n;
};

/* The boxes of one source, above those of the sources before it. */
static void write_boxes(struct span_of *s, void *arg)
{
	struct source_boxes *out = arg;
	double below = 0, scale = HEIGHT / s->chart->max_bps[s->row], bottom = (double)s->row + HEIGHT / 2;
	int source;
	size_t i;

	for (i = 0; i < s->count; i++)
		below += s->chart->box[s->at[i]].source < out->source ? s->chart->box[s->at[i]].bps : 0;
	for (i = 0; i < s->count; i++) {
		source = s->chart->box[s->at[i]].source;
		if (source != out->source)
			continue;
		fprintf(out->f, "%.9g %.9g %.9g %.9g %.9g %.9g\n", (s->from_s + s->until_s) / 2,
		    (double)s->row, s->from_s,
		    s->until_s, bottom - scale * below, bottom - scale * (below + s->chart->box[s->at[i]].bps));
		below += s->chart->box[s->at[i]].bps;
		out->n++;
	}
}

static void write_axis(FILE *f, const struct chart *c)
{
	char link[LINK_NAME_BYTES], rate[UNITS_TEXT_BYTES];
	const struct box *b;
	size_t i;

	fprintf(f, "set yrange [%zu.5:-0.5]\nset label 'link (rate of a full row)' at graph 0, graph 1 right offset "
	    "-1,0.7\nset ytics nomirror (", c->rows > 0 ? c->rows - 1 : 0);
	for (i = 0; i < c->rows; i++) {
		b = &c->box[c->first[i]];
		fprintf(f, "%s\"%s (%s)\" %zu", i > 0 ? ", " : "",
		    link_name(link, c->shown->overlay, b->link / (int)c->hosts, b->link % (int)c->hosts),
		    units_rate_text(rate, c->max_bps[i]), i);
	}
	fprintf(f, ")\n");
}

static size_t count_sources(const struct chart *c, bool *used)
{
	size_t i, n = 0;

	for (i = 0; i < c->n; i++) {
		n += !used[c->box[i].source];
		used[c->box[i].source] = true;
	}
	return n;
}

static int write_links(FILE *f, struct chart *c, const bool *used, size_t keys)
{
	size_t *at = calloc(c->n + 1, sizeof *at), i, row, shown = 0;
	double unit = c->time_unit_s;
	struct source_boxes out;

	if (at == NULL)
		return -1;
	for (row = 0; row < c->rows; row++)
		each_span(c, row, at, find_max, c->max_bps);
	for (i = 0; i < c->hosts; i++) {
		if (!used[i])
			continue;
		fprintf(f, "$source%zu << EOD\n", i);
		out = (struct source_boxes){ f, (int)i, 0 };
		for (row = 0; row < c->rows; row++)
			each_span(c, row, at, write_boxes, &out);
		fprintf(f, "EOD\n");
	}
	free(at);
	write_axis(f, c);
	fprintf(f, "plot ");
	for (i = 0; i < c->hosts; i++)
		if (used[i]) {
			fprintf(f, "%s$source%zu using ($1/%g):2:($3/%g):($4/%g):5:6 with boxxyerror fillstyle solid 1 "
			    "border lc rgb 'white' fc rgb '#%06x' title 'data of %s'", shown > 0 ? ", " : "", i,
			    unit, unit, unit, plot_color(shown, keys), host_name(c->shown->overlay, (int)i));
			shown++;
		}
	fprintf(f, "%s\n", shown == 0 ? "NaN notitle" : "");
	return 0;
}

/* ---- Storage ---- */

struct rate_change {
	double t, rate;
};

static int by_time(const void *a, const void *b)
{
	const struct rate_change *x = a, *y = b;

	return x->t < y->t ? -1 : x->t > y->t;
}

/* Data of other hosts that a host stores over time, piecewise linear, in `unit`. */
static void write_stored(FILE *f, const struct plan_shown *s, int host, double unit, struct rate_change *h)
{
	struct ptcp_plan_piece p;
	size_t i, k, n = 0;
	double stored = 0, rate = 0, b;

	for (i = 0; i < ptcp_plan_pieces(s->plan); i++) {
		ptcp_plan_piece(s->plan, i, &p);
		for (k = 1; k < p.nhops; k++) {
			const struct ptcp_plan_hop *in = &p.hops[k - 1], *out = &p.hops[k];

			if (in->to != host)
				continue;
			b = (double)p.bytes / unit;
			h[n++] = (struct rate_change){ in->start_s, b / (in->end_s - in->start_s) };
			h[n++] = (struct rate_change){ in->end_s, -b / (in->end_s - in->start_s) };
			h[n++] = (struct rate_change){ out->start_s, -b / (out->end_s - out->start_s) };
			h[n++] = (struct rate_change){ out->end_s, b / (out->end_s - out->start_s) };
		}
	}
	sort_array(h, n, sizeof *h, by_time);
	fprintf(f, "$stored%d << EOD\n0 0\n", host);
	for (i = 0; i < n; i++) {
		if (i > 0)
			stored += rate * (h[i].t - h[i - 1].t);
		fprintf(f, "%.9g %.9g\n", h[i].t, stored > 0 ? stored : 0);
		rate += h[i].rate;
	}
	fprintf(f, "EOD\n");
}

static bool stores(const struct plan_shown *s, size_t host)
{
	return ptcp_plan_storage_bytes(s->plan, (int)host) >= 1;
}

/* The largest amount that a host stores. */
static double max_stored(const struct plan_shown *s)
{
	double most = 0;
	size_t i;

	for (i = 0; i < ptcp_overlay_hosts(s->overlay); i++)
		most = fmax(most, stores(s, i) ? ptcp_plan_storage_bytes(s->plan, (int)i) : 0);
	return most;
}

static int write_storage(FILE *f, const struct chart *c, double most)
{
	const char *prefix;
	double unit = plot_unit(most, &prefix);
	struct ptcp_plan_piece p;
	static const char *const gray[] = { "#202020", "#707070", "#a0a0a0" };
	struct rate_change *h;
	size_t i, hops = 0, shown = 0;

	for (i = 0; i < ptcp_plan_pieces(c->shown->plan); i++) {
		ptcp_plan_piece(c->shown->plan, i, &p);
		hops += p.nhops;
	}
	if ((h = calloc(4 * hops + 1, sizeof *h)) == NULL)
		return -1;
	for (i = 0; i < c->hosts; i++)
		if (stores(c->shown, i))
			write_stored(f, c->shown, (int)i, unit, h);
	free(h);
	fprintf(f, "set title 'data stored at relays'\nset ylabel 'stored data (%sB)'\nset yrange [0:%.9g]\nset ytics "
	    "auto\nunset label\nset tmargin 3\nset title offset 0,0\n"
	    "plot ", prefix, 1.1 * most / unit);
	for (i = 0; i < c->hosts; i++)
		if (stores(c->shown, i)) { /* colors are those of sources */
			fprintf(f, "%s$stored%zu using ($1/%g):2 with lines lw 2 dt %zu lc rgb '%s' title 'at %s'",
			    shown > 0 ? ", " : "", i, c->time_unit_s, shown % 5 + 1, gray[shown / 5 % 3],
			    host_name(c->shown->overlay, (int)i));
			shown++;
		}
	fprintf(f, "\n");
	return 0;
}

/* The answer: how much data arrives in what time. */
static void write_title(FILE *f, const struct chart *c, size_t sources)
{
	char size[UNITS_TEXT_BYTES], time[UNITS_TEXT_BYTES];
	struct ptcp_plan_info info;
	double end = c->makespan_s / c->time_unit_s;

	ptcp_plan_info(c->shown->plan, &info);
	units_time_text(time, info.makespan_s);
	fprintf(f, "set title '%s from %zu source%s in %s (%s plan)'\nset xrange [0:%.9g]\nset xlabel 'time (%s)'\n",
	    units_size_text(size, (uint64_t)info.data_bytes), sources, plural(sources), time,
	    ptcp_plan_method_name(info.method), 1.03 * end, c->time_unit);
	if (c->rows > 0)
		plot_answer(f, end, 1.03 * end, time);
}

/* Margins for the longest labels, in characters. */
static void find_margins(const struct chart *c, const bool *used, size_t *left_chars, size_t *right_chars)
{
	char link[LINK_NAME_BYTES];
	size_t i, n, left = 24, right = 16;
	int of;

	for (i = 0; i < c->rows; i++) {
		of = c->box[c->first[i]].link;
		n = strlen(link_name(link, c->shown->overlay, of / (int)c->hosts, of % (int)c->hosts)) +
		    strlen(" (100 Mbit/s)");
		left = n > left ? n : left;
	}
	for (i = 0; i < c->hosts; i++) {
		n = strlen(host_name(c->shown->overlay, (int)i));
		if ((used[i] || stores(c->shown, i)) && n + strlen("data of ") > right)
			right = n + strlen("data of ");
	}
	*left_chars = left + 2;
	*right_chars = right + 8; /* the colors */
}

static int write_chart(FILE *f, const char *file, struct chart *c, bool *used)
{
	size_t keys = count_sources(c, used), rows_px = c->rows * ROW_PX, keys_px = keys * KEY_PX;
	size_t links_px = MARGINS_PX + (rows_px > keys_px ? rows_px : keys_px), all, left, right;
	double most = max_stored(c->shown);
	size_t stored_px = most >= 1 ? STORAGE_PX : 0;

	all = links_px + stored_px;
	find_margins(c, used, &left, &right);
	plot_begin(f, file, TIME_PX + CHAR_PX * (left + right), all);
	fprintf(f, "set lmargin %zu\nset rmargin %zu\nset multiplot\nset grid x\nset key outside right top\nset size "
	    "1,%.6f\nset origin 0,%.6f\n",
	    left, right, (double)links_px / (double)all, (double)stored_px / (double)all);
	write_title(f, c, keys);
	if (write_links(f, c, used, keys) < 0)
		return -1;
	if (stored_px > 0) {
		fprintf(f, "set size 1,%.6f\nset origin 0,0\n", (double)stored_px / (double)all);
		if (write_storage(f, c, most) < 0)
			return -1;
	}
	fprintf(f, "unset multiplot\n");
	return 0;
}

static int write_plot(FILE *f, const char *file, const void *shown_plan)
{
	const struct plan_shown *s = shown_plan;
	bool *used = calloc(ptcp_overlay_hosts(s->overlay) + 1, sizeof *used);
	struct chart c;
	int r = -1;

	if (used != NULL && chart_init(&c, s) == 0) {
		r = write_chart(f, file, &c, used);
		chart_fini(&c);
	}
	free(used);
	return r;
}

int plan_plot(const char *file, const struct plan_shown *s, struct ptcp_err *e)
{
	return plot_draw(file, write_plot, s, e);
}
