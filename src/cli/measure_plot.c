#include "cli/measure_output.h"
#include "cli/plot.h"

static int write_script(FILE *f, const char *file, const void *summary)
{
	const struct measure_summary *s = summary;
	size_t i;

	plot_begin(f, file, 480);
	fprintf(f, "$levels << EOD\n");
	for (i = 0; i < s->levels; i++)
		if (s->level[i].rounds > s->level[i].failed)
			fprintf(f, "%u %.9g %.9g %.9g %.9g\n", s->level[i].streams, s->level[i].mean_bps,
			    s->level[i].min_bps, s->level[i].max_bps, s->level[i].per_stream_mean_bps);
	fprintf(f, "EOD\nset xlabel 'streams'\nset ylabel 'throughput'\nset xrange [0:*]\n"
	    "set yrange [0:*]\nset format y '%%.0s %%cbit/s'\nset key below\nset grid\n"
	    "plot $levels using 1:2:3:4 with yerrorlines pt 7 title 'all streams: mean, least, most', "
	    "'' using 1:5 with linespoints pt 6 title 'a stream'\n");
	return 0;
}

int measure_plot(const char *file, const struct measure_summary *s, struct ptcp_err *e)
{
	return plot_draw(file, write_script, s, e);
}
