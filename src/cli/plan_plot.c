#include <stdlib.h>

#include "cli/plan_output.h"
#include "cli/plot.h"

/* Rows of the picture: links in use, from the top in the order of first use. */
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
		    row[(size_t)st.from * hosts + (size_t)st.to], st.end_s - st.start_s,
		    st.source);
	}
	fprintf(f, "EOD\nset yrange [%zu.5:-0.5]\nset ytics (", rows > 0 ? rows - 1 : 0);
	for (i = 0; i < hosts * hosts; i++)
		if (row[i] >= 0)
			fprintf(f, "%s'%s' %d", n++ == 0 ? "" : ", ",
			    link_name(link, s->overlay, (int)(i / hosts), (int)(i % hosts)), row[i]);
	fprintf(f, ")\n");
}

struct held {
	double t, rate;
};

static int by_time(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return x->t < y->t ? -1 : x->t > y->t;
}

/* What a host holds for others over time, as a line of straight pieces. */
static size_t write_held(FILE *f, const struct plan_shown *s, int host, struct held *h)
{
	struct ptcp_plan_piece p;
	size_t i, k, n = 0;
	double held = 0, rate = 0, b;

	for (i = 0; i < ptcp_plan_pieces(s->plan); i++) {
		ptcp_plan_piece(s->plan, i, &p);
		for (k = 1; k < p.nhops; k++) {
			const struct ptcp_plan_hop *in = &p.hops[k - 1], *out = &p.hops[k];

			if (in->to != host)
				continue;
			b = (double)p.bytes;
			h[n++] = (struct held){ in->start_s, b / (in->end_s - in->start_s) };
			h[n++] = (struct held){ in->end_s, -b / (in->end_s - in->start_s) };
			h[n++] = (struct held){ out->start_s, -b / (out->end_s - out->start_s) };
			h[n++] = (struct held){ out->end_s, b / (out->end_s - out->start_s) };
		}
	}
	if (n == 0)
		return 0;
	qsort(h, n, sizeof *h, by_time);
	fprintf(f, "$held%d << EOD\n0 0\n", host);
	for (i = 0; i < n; i++) {
		if (i > 0)
			held += rate * (h[i].t - h[i - 1].t);
		fprintf(f, "%.9g %.9g\n", h[i].t, held > 0 ? held : 0);
		rate += h[i].rate;
	}
	fprintf(f, "EOD\n");
	return n;
}

static int write_script(FILE *f, const char *file, const void *shown_plan)
{
	const struct plan_shown *s = shown_plan;
	size_t hosts = ptcp_overlay_hosts(s->overlay), rows, i, hops = 0, shown = 0;
	int *row = calloc(hosts * hosts + 1, sizeof *row);
	char *holds = calloc(hosts + 1, 1);
	struct ptcp_plan_info info;
	struct ptcp_plan_piece p;
	struct held *h;

	for (i = 0; i < ptcp_plan_pieces(s->plan); i++) {
		ptcp_plan_piece(s->plan, i, &p);
		hops += p.nhops;
	}
	h = calloc(4 * hops + 1, sizeof *h);
	if (row == NULL || holds == NULL || h == NULL) {
		free(row);
		free(holds);
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
	fprintf(f, "%s\nset title 'held for others'\nunset yrange\nset yrange [0:*]\nset ytics auto\n"
	    "set format y '%%.1s %%cB'\n", shown == 0 ? "NaN notitle" : "");
	for (i = 0; i < hosts; i++)
		holds[i] = write_held(f, s, (int)i, h) > 0;
	fprintf(f, "plot 0 notitle");
	for (i = 0; i < hosts; i++)
		if (holds[i])
			fprintf(f, ", $held%zu with lines lw 2 title '%s'", i,
			    host_name(s->overlay, (int)i));
	fprintf(f, "\nunset multiplot\n");
	free(row);
	free(holds);
	free(h);
	return 0;
}

int plan_plot(const char *file, const struct plan_shown *s, struct ptcp_err *e)
{
	return plot_draw(file, write_script, s, e);
}
