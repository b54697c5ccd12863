#include "cli/advise_output.h"
#include "cli/plot.h"

static void write_data(FILE *f, const struct ptcp_advice *a)
{
	struct ptcp_advice_point at;
	unsigned n;
	size_t i;

	fprintf(f, "$curve << EOD\n");
	for (n = 1; n <= a->max_streams; n++) {
		ptcp_advice_at(a, n, &at);
		fprintf(f, "%u %.9g %.9g\n", n, at.throughput_bps, at.impact_percent);
	}
	fprintf(f, "EOD\n$probes << EOD\n");
	for (i = 0; i < a->n_probes; i++)
		fprintf(f, "%u %.9g\n", a->probes[i].streams, a->probes[i].throughput_bps);
	fprintf(f, "EOD\n$answer << EOD\n%u %.9g %.9g\nEOD\n", a->streams, a->throughput_bps,
	    a->impact_percent);
}

static int write_script(FILE *f, const char *file, const void *advice)
{
	const struct ptcp_advice *a = advice;

	plot_begin(f, file, 480);
	write_data(f, a);
	fprintf(f, "set title '%u stream%s, by the model %s'\n", a->streams,
	    a->streams == 1 ? "" : "s", ptcp_model_name(a->model));
	fprintf(f, "set xlabel 'streams'\nset xrange [0:*]\nset yrange [0:*]\nset y2range [0:100]\n"
	    "set ylabel 'throughput'\nset format y '%%.0s %%cbit/s'\nset ytics nomirror\n"
	    "set y2label 'taken from each other flow, against one stream'\n"
	    "set format y2 '%%g %%%%'\nset y2tics\nset key below\nset grid\n");
	fprintf(f, "plot $curve using 1:2 with lines lw 2 title 'throughput', "
	    "'' using 1:3 axes x1y2 with lines lw 2 title 'impact', "
	    "%.9g axes x1y2 with lines dt 2 title 'budget', "
	    "$probes using 1:2 with points pt 6 ps 1.5 title 'probes', "
	    "$answer using 1:2 with points pt 7 title 'answer', "
	    "'' using 1:3 axes x1y2 with points pt 7 notitle\n", a->budget_percent);
	return 0;
}

int advise_plot(const char *file, const struct ptcp_advice *a, struct ptcp_err *e)
{
	return plot_draw(file, write_script, a, e);
}
