#include "cli/plan_output.h"

#include <math.h>
#include <stdlib.h>

#include "cli/json.h"
#include "cli/plot.h"
#include "core/units.h"

/* ---- Text ---- */

static void print_method(FILE *f, const struct plan_shown *s, int m)
{
	const struct ptcp_plan_info *i = &s->baseline[m];
	char b[UNITS_TEXT_BYTES];

	fprintf(f, "%-12s", ptcp_plan_method_name((enum ptcp_plan_method)m));
	if (isnan(i->makespan_s)) {
		fprintf(f, "%12s\n", "impossible");
		return;
	}
	if (isinf(i->makespan_s)) {
		fprintf(f, "%12s\n", "not planned");
		return;
	}
	fprintf(f, "%10.6g s  %-8s", i->makespan_s, units_time_text(b, i->makespan_s));
	if (m == PTCP_PLAN_COORDINATED && i->slot_s > 0)
		fprintf(f, "  slots of %.6g s", i->slot_s);
	if (m == PTCP_PLAN_PIPELINED)
		fprintf(f, "  fluid bound of all methods");
	fprintf(f, "\n");
}

static void print_proof(FILE *f, const struct ptcp_plan_info *i)
{
	char b[UNITS_TEXT_BYTES];

	if (i->method <= PTCP_PLAN_BEST_PATH)
		return;
	if (i->bound_s >= i->makespan_s * (1 - 1e-6))
		fprintf(f, "No %s plan is shorter.\n", ptcp_plan_method_name(i->method));
	else
		fprintf(f, "A %s plan may be up to %.3g %% shorter (bound %.6g s).\n",
		    ptcp_plan_method_name(i->method), 100 * (1 - i->bound_s / i->makespan_s), i->bound_s);
	if (i->relayed_bytes > i->relayed_bound_bytes + 1e-6 * i->data_bytes)
		fprintf(f, "Relayed data may be reducible by %s.\n", units_size_text(b,
		    (uint64_t)(i->relayed_bytes - i->relayed_bound_bytes)));
}

/* "-" for a link without a stream count. */
static const char *streams_text(char b[UNITS_TEXT_BYTES], const struct plan_shown *s,
    const struct ptcp_plan_step *st)
{
	unsigned n = ptcp_plan_streams(s->plan, st->from, st->to);

	snprintf(b, UNITS_TEXT_BYTES, n > 0 ? "%u" : "-", n);
	return b;
}

static void print_steps(FILE *f, const struct plan_shown *s)
{
	struct ptcp_plan_step st;
	char size[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES], streams[UNITS_TEXT_BYTES], link[LINK_NAME_BYTES];
	size_t i, n = ptcp_plan_steps(s->plan);

	fprintf(f, "\n%12s %12s  %-24s %-12s %10s %12s %8s\n", "from s", "to s", "link", "source",
	    "size", "rate", "streams");
	for (i = 0; i < n; i++) {
		ptcp_plan_step(s->plan, i, &st);
		fprintf(f, "%12.6g %12.6g  %-24s %-12s %10s %12s %8s\n", st.start_s, st.end_s,
		    link_name(link, s->overlay, st.from, st.to), host_name(s->overlay, st.source),
		    units_size_text(size, st.bytes), units_rate_text(rate, (double)st.bytes * 8 / (st.end_s - st.start_s)),
		    streams_text(streams, s, &st));
	}
}

void plan_text(FILE *f, const struct plan_shown *s)
{
	struct ptcp_plan_info info;
	char b[UNITS_TEXT_BYTES], c[UNITS_TEXT_BYTES], d[UNITS_TEXT_BYTES];
	size_t i, n = ptcp_overlay_hosts(s->overlay);
	int m;

	ptcp_plan_info(s->plan, &info);
	fprintf(f, "%s: %.6g s (%s) for %s, %s relayed\n", ptcp_plan_method_name(info.method),
	    info.makespan_s, units_time_text(b, info.makespan_s), units_size_text(c, (uint64_t)info.data_bytes),
	    units_size_text(d, (uint64_t)info.relayed_bytes));
	print_proof(f, &info);
	fprintf(f, "\n");
	for (m = 0; m < PLAN_METHODS; m++)
		print_method(f, s, m);
	print_steps(f, s);
	fprintf(f, "\n");
	for (i = 0; i < n; i++) {
		double stored = ptcp_plan_storage_bytes(s->plan, (int)i);

		if (stored >= 1)
			fprintf(f, "%s stores up to %s in transit\n",
			    host_name(s->overlay, (int)i), units_size_text(b, (uint64_t)stored));
	}
}

/* ---- JSON: fields and units are described in ptcp-plan(1) ---- */

static const char *const baseline_names[PLAN_METHODS] = {
	[PTCP_PLAN_DIRECT] = "direct_s",
	[PTCP_PLAN_BEST_PATH] = "best_path_s",
	[PTCP_PLAN_COORDINATED] = "coordinated_s",
	[PTCP_PLAN_PIPELINED] = "pipelined_s",
};

static json_t *baselines(const struct plan_shown *s)
{
	json_t *o = json_object();
	int m;

	for (m = 0; m < PLAN_METHODS; m++)
		json_object_set_new(o, baseline_names[m], !isfinite(s->baseline[m].makespan_s) ? json_null() :
		    json_real(s->baseline[m].makespan_s));
	return o;
}

/* Null for a link without a stream count. */
static json_t *streams(const struct ptcp_plan *p, const struct ptcp_plan_step *st)
{
	unsigned n = ptcp_plan_streams(p, st->from, st->to);

	return n > 0 ? json_integer(n) : json_null();
}

json_t *plan_json_schedule(const struct ptcp_overlay *o, const struct ptcp_plan *p)
{
	json_t *list = json_array();
	struct ptcp_plan_step st;
	size_t i;

	for (i = 0; i < ptcp_plan_steps(p); i++) {
		ptcp_plan_step(p, i, &st);
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:f, s:f, s:o, s:o}", "from",
		    host_name(o, st.from), "to", host_name(o, st.to), "source", host_name(o, st.source), "start_s",
		    st.start_s, "end_s", st.end_s, "bytes", json_count(st.bytes), "streams", streams(p, &st)));
	}
	return json_whole(list, ptcp_plan_steps(p));
}

static json_t *bytes(double n)
{
	return json_integer((json_int_t)floor(n + 0.5));
}

static json_t *storage(const struct plan_shown *s)
{
	json_t *o = json_object();
	struct ptcp_overlay_host h;
	size_t i;

	for (i = 0; i < ptcp_overlay_hosts(s->overlay); i++) {
		ptcp_overlay_host(s->overlay, i, &h);
		if (h.relay && (int)i != ptcp_overlay_destination(s->overlay))
			json_object_set_new(o, h.name, bytes(ptcp_plan_storage_bytes(s->plan, (int)i)));
	}
	return o;
}

int plan_json(const struct plan_shown *s, struct ptcp_err *e)
{
	struct ptcp_plan_info info;

	ptcp_plan_info(s->plan, &info);
	return json_result(json_pack("{s:s, s:f, s:f, s:f, s:o, s:f, s:o, s:o, s:o}", "method",
	    ptcp_plan_method_name(info.method), "makespan_s", info.makespan_s, "bound_s",
	    info.bound_s, "slot_s", s->baseline[PTCP_PLAN_COORDINATED].slot_s, "baselines",
	    baselines(s), "solve_s", info.solve_s, "relayed_bytes", bytes(info.relayed_bytes),
	    "schedule", plan_json_schedule(s->overlay, s->plan), "storage_bytes", storage(s)), e);
}

/* ---- Plot ---- */

/* Rows of the plot: used links, from the top in the order of first use. */
static size_t number_links(const struct plan_shown *s, int *row)
{
	size_t i, n = 0, hosts = ptcp_overlay_hosts(s->overlay);
	struct ptcp_plan_step st;

	for (i = 0; i < hosts * hosts; i++)
		row[i] = -1;
	for (i = 0; i < ptcp_plan_steps(s->plan); i++) {
		int *r;

		ptcp_plan_step(s->plan, i, &st);
		r = &row[(size_t)st.from * hosts + (size_t)st.to];
		if (*r < 0)
			*r = (int)n++;
	}
	return n;
}

static void write_links(FILE *f, const struct plan_shown *s, const int *row, size_t rows)
{
	size_t i, hosts = ptcp_overlay_hosts(s->overlay), n = 0;
	struct ptcp_plan_step st;
	char link[LINK_NAME_BYTES];

	fprintf(f, "$links << EOD\n");
	for (i = 0; i < ptcp_plan_steps(s->plan); i++) {
		ptcp_plan_step(s->plan, i, &st);
		fprintf(f, "%.9g %d %.9g %d\n", st.start_s,
		    row[(size_t)st.from * hosts + (size_t)st.to], st.end_s - st.start_s, st.source);
	}
	fprintf(f, "EOD\nset yrange [%zu.5:-0.5]\nset ytics (", rows > 0 ? rows - 1 : 0);
	for (i = 0; i < hosts * hosts; i++)
		if (row[i] >= 0)
			fprintf(f, "%s'%s' %d", n++ == 0 ? "" : ", ",
			    link_name(link, s->overlay, (int)(i / hosts), (int)(i % hosts)), row[i]);
	fprintf(f, ")\n");
}

struct rate_change {
	double t, rate;
};

static int by_time(const void *a, const void *b)
{
	const struct rate_change *x = a, *y = b;

	return x->t < y->t ? -1 : x->t > y->t;
}

/* Data of other hosts that a host stores over time, piecewise linear. */
static size_t write_stored(FILE *f, const struct plan_shown *s, int host, struct rate_change *h)
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
			b = (double)p.bytes;
			h[n++] = (struct rate_change){ in->start_s, b / (in->end_s - in->start_s) };
			h[n++] = (struct rate_change){ in->end_s, -b / (in->end_s - in->start_s) };
			h[n++] = (struct rate_change){ out->start_s, -b / (out->end_s - out->start_s) };
			h[n++] = (struct rate_change){ out->end_s, b / (out->end_s - out->start_s) };
		}
	}
	if (n == 0)
		return 0;
	qsort(h, n, sizeof *h, by_time);
	fprintf(f, "$stored%d << EOD\n0 0\n", host);
	for (i = 0; i < n; i++) {
		if (i > 0)
			stored += rate * (h[i].t - h[i - 1].t);
		fprintf(f, "%.9g %.9g\n", h[i].t, stored > 0 ? stored : 0);
		rate += h[i].rate;
	}
	fprintf(f, "EOD\n");
	return n;
}

static int write_plot(FILE *f, const char *file, const void *shown_plan)
{
	const struct plan_shown *s = shown_plan;
	size_t hosts = ptcp_overlay_hosts(s->overlay), rows, i, hops = 0, shown = 0;
	int *row = calloc(hosts * hosts + 1, sizeof *row);
	char *stores = calloc(hosts + 1, 1);
	struct ptcp_plan_info info;
	struct ptcp_plan_piece p;
	struct rate_change *h;

	for (i = 0; i < ptcp_plan_pieces(s->plan); i++) {
		ptcp_plan_piece(s->plan, i, &p);
		hops += p.nhops;
	}
	h = calloc(4 * hops + 1, sizeof *h);
	if (row == NULL || stores == NULL || h == NULL) {
		free(row);
		free(stores);
		free(h);
		return -1;
	}
	ptcp_plan_info(s->plan, &info);
	rows = number_links(s, row);
	plot_begin(f, file, 360 + 18 * rows);
	fprintf(f, "set multiplot layout 2,1\nset xrange [0:%.9g]\nset xlabel 'time (s)'\n"
	    "set grid x\nset key outside\nset title '%s: %.6g s'\n", info.makespan_s > 0 ?
	    info.makespan_s : 1, ptcp_plan_method_name(info.method), info.makespan_s);
	write_links(f, s, row, rows);
	fprintf(f, "plot ");
	for (i = 0; i < hosts; i++) {
		struct ptcp_overlay_host host;

		ptcp_overlay_host(s->overlay, i, &host);
		if (host.data_bytes > 0)
			fprintf(f, "%s$links using ($4==%zu?$1:NaN):2:3:(0) with vectors nohead lw 8 "
			    "title '%s'", shown++ == 0 ? "" : ", ", i, host.name);
	}
	fprintf(f, "%s\nset title 'data in transit'\nunset yrange\nset yrange [0:*]\nset ytics auto\n"
	    "set format y '%%.1s %%cB'\n", shown == 0 ? "NaN notitle" : "");
	for (i = 0; i < hosts; i++)
		stores[i] = write_stored(f, s, (int)i, h) > 0;
	fprintf(f, "plot 0 notitle");
	for (i = 0; i < hosts; i++)
		if (stores[i])
			fprintf(f, ", $stored%zu with lines lw 2 title '%s'", i, host_name(s->overlay, (int)i));
	fprintf(f, "\nunset multiplot\n");
	free(row);
	free(stores);
	free(h);
	return 0;
}

int plan_plot(const char *file, const struct plan_shown *s, struct ptcp_err *e)
{
	return plot_draw(file, write_plot, s, e);
}
