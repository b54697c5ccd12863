/* ptcp measure: throughput of given numbers of streams, over many rounds. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/show/json.h"
#include "cli/show/plot.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define ACCURATE 0.1     /* relative standard error of a mean that still tells levels apart */
#define ROUNDS_MAX 1000  /* max rounds to advise */

/* A stream in a round, for the plot. */
struct stream_rate {
	unsigned round, streams;
	double bps;
};

struct measure_args {
	struct client_opts connect; /* first */
	struct stream_rate *rates;
	size_t n_rates, cap_rates;
	const char *csv_file, *plot;
	char congestion[16]; /* congestion control of the streams; "": unknown */
	FILE *csv; /* NULL: none */
	struct ptcp_measure_opts opts;
	unsigned streams[PTCP_LEVELS_MAX];
};

/* Results by number of streams, ascending. */
struct summary {
	struct ptcp_level level[PTCP_LEVELS_MAX];
	size_t n;
	unsigned saturates_at; /* 0: throughput was still increasing at the highest level */
	bool receive;
	const char *congestion;
	const struct stream_rate *rates;
	size_t n_rates;
};

static int set_streams(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct measure_args *a = args;

	a->opts.streams = a->streams;
	return connect_stream_counts(o, text, a->streams, PTCP_LEVELS_MAX, &a->opts.n_streams, e);
}

#define AT(member) offsetof(struct measure_args, member)

#define OPT_AT(member) AT(opts.member)

static const struct opt measure_options[] = {
	{ "streams", 0, "N,..", "stream counts (default: 10,20,30,40,50)", set_streams, 0, 0, 0 },
	OPT_ROWS(PTCP_OPTIONS_MEASURE)
	{ "direction", 0, "send|recv", "direction of the streams (default: send)", connect_direction, AT(opts.receive),
	    0, 0 },
	{ "csv", 0, "FILE", "write a line per stream and round", opt_text, AT(csv_file), 0, 0 },
	{ "plot", 0, "FILE.svg", "plot throughput, and the rate of each stream, with gnuplot", opt_text,
	    AT(plot), 0, 0 },
	{ .name = NULL },
};

/* ---- Text ---- */

static void print_round(FILE *f, const struct ptcp_round *r)
{
	char rate[UNITS_TEXT_BYTES], slow[UNITS_TEXT_BYTES], fast[UNITS_TEXT_BYTES];
	double min, max;
	unsigned i;

	if (r->why != NULL) {
		fprintf(f, "round %u with %u: failed: %s\n", r->number, r->streams, r->why);
		fflush(f);
		return;
	}
	min = max = r->per_stream_bps[0];
	for (i = 1; i < r->streams; i++) {
		min = r->per_stream_bps[i] < min ? r->per_stream_bps[i] : min;
		max = r->per_stream_bps[i] > max ? r->per_stream_bps[i] : max;
	}
	fprintf(f, "round %u with %u: %s, per stream %s to %s, %llu retransmitted\n", r->number,
	    r->streams, units_rate_text(rate, r->throughput_bps), units_rate_text(slow, min),
	    units_rate_text(fast, max), (unsigned long long)r->retransmits);
	fflush(f);
}

static void print_rates(FILE *f, double mean_bps, double min_bps, double max_bps, double sd_bps)
{
	char mean[UNITS_TEXT_BYTES], min[UNITS_TEXT_BYTES], max[UNITS_TEXT_BYTES], sd[UNITS_TEXT_BYTES];

	fprintf(f, " %12s %12s %12s %12s", units_rate_text(mean, mean_bps), units_rate_text(min, min_bps),
	    units_rate_text(max, max_bps), units_rate_text(sd, sd_bps));
}

/* A line for the rounds, and a line for their streams. */
static void print_level(FILE *f, const struct ptcp_level *l)
{
	fprintf(f, "%7u %6u %6u", l->streams, l->rounds, l->failed);
	if (l->rounds == l->failed) {
		fprintf(f, " %12s\n", "-");
		return;
	}
	print_rates(f, l->mean_bps, l->min_bps, l->max_bps, l->stddev_bps);
	fprintf(f, " %8.3f %6d\n%21s", l->fairness, l->clusters, "per stream");
	print_rates(f, l->per_stream_mean_bps, l->per_stream_min_bps, l->per_stream_max_bps, l->per_stream_stddev_bps);
	fputc('\n', f);
}

/* Relative standard error of the mean; infinite for a single round. */
static double error_ratio(const struct ptcp_level *l)
{
	unsigned n = l->rounds - l->failed;

	return n > 1 ? l->stddev_bps / l->mean_bps / sqrt(n) : INFINITY;
}

/* The largest error of a level with results. */
static double largest_error(const struct summary *s)
{
	double most = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->level[i].rounds > s->level[i].failed)
			most = fmax(most, error_ratio(&s->level[i]));
	return most;
}

/* The numbers of rounds that an error of ACCURATE needs, if the rounds keep scattering like this. */
static unsigned rounds_needed(const struct summary *s)
{
	double most = 5, n;
	size_t i;

	for (i = 0; i < s->n; i++) {
		n = s->level[i].rounds - s->level[i].failed;
		if (n > 1)
			most = fmax(most, fmax(n + 1, ceil(n * pow(error_ratio(&s->level[i]) / ACCURATE, 2))));
	}
	return (unsigned)fmin(most, ROUNDS_MAX);
}

/* The conclusion, and the command that follows from it. */
static void print_answer(FILE *f, const struct summary *s)
{
	double error = largest_error(s);
	unsigned most = s->level[s->n - 1].streams;
	const char *again = connect_congestion(s->congestion);
	size_t i;

	if (error > ACCURATE) {
		if (isinf(error))
			fprintf(f, "One round does not tell how many streams are best.\n");
		else
			fprintf(f, "The rounds scatter too much to tell how many streams are best: a mean is off by "
			    "%.0f %% (standard error).\n", 100 * error);
		fprintf(f, "run: ptcp measure --rounds %u%s", rounds_needed(s), again);
		for (i = 0; i < s->n; i++)
			fprintf(f, "%s%u", i > 0 ? "," : " --streams ", s->level[i].streams);
		fprintf(f, " ...\n");
	} else if (s->saturates_at > 0) {
		fprintf(f,
		    "Saturates at %u stream%s: additional streams add less than 5 %%.\nrun: ptcp %s --streams %u%s "
		    "...\n",
		    s->saturates_at, plural(s->saturates_at), s->receive ? "recv" : "send", s->saturates_at, again);
	} else if (most < PTCP_STREAMS_MAX) {
		fprintf(f,
		    "Throughput still increases at the highest number of streams.\nrun: ptcp measure --streams %u,%u%s "
		    "...\n", most, 2 * most < PTCP_STREAMS_MAX ? 2 * most : PTCP_STREAMS_MAX, again);
	} else {
		fprintf(f,
		    "Throughput still increases at the highest number of streams.\nrun: ptcp %s --streams %u%s ...\n",
		    s->receive ? "recv" : "send", most, again);
	}
}

static void print_summary(FILE *f, const struct summary *s)
{
	size_t i;

	fprintf(f, "%7s %6s %6s %12s %12s %12s %12s %8s %6s\n", "streams", "rounds", "failed", "mean", "min",
	    "max", "std dev", "fairness", "groups");
	for (i = 0; i < s->n; i++)
		print_level(f, &s->level[i]);
	print_answer(f, s);
}

static void write_csv_head(FILE *f)
{
	fprintf(f, "round,streams,ok,throughput_bps,retransmits,stream,stream_bps\n");
}

static void write_csv_round(FILE *f, const struct ptcp_round *r)
{
	unsigned i;

	if (r->why != NULL)
		fprintf(f, "%u,%u,0,,,,\n", r->number, r->streams);
	for (i = 0; r->why == NULL && i < r->streams; i++)
		fprintf(f, "%u,%u,1,%.0f,%llu,%u,%.0f\n", r->number, r->streams, r->throughput_bps,
		    (unsigned long long)r->retransmits, i, r->per_stream_bps[i]);
	fflush(f);
}

/* ---- JSON: fields and units are described in ptcp-measure(1) ---- */

static void print_round_json(const struct ptcp_round *r)
{
	json_t *each;
	unsigned i;

	if (r->why != NULL) {
		json_line(json_pack("{s:s, s:o, s:b, s:n, s:[], s:n, s:s}", "event", "round",
		    "streams", json_count(r->streams), "ok", 0, "throughput_bps", "per_stream_bps",
		    "retransmits", "error", r->why));
		return;
	}
	each = json_array();
	for (i = 0; i < r->streams; i++)
		json_array_append_new(each, json_real(r->per_stream_bps[i]));
	json_line(json_pack("{s:s, s:o, s:b, s:f, s:o, s:o}", "event", "round", "streams",
	    json_count(r->streams), "ok", 1, "throughput_bps", r->throughput_bps, "per_stream_bps",
	    json_whole(each, r->streams), "retransmits", json_count(r->retransmits)));
}

/* Null if all rounds have failed. */
static json_t *rate(const struct ptcp_level *l, double value)
{
	return l->rounds > l->failed ? json_real(value) : json_null();
}

static json_t *level(const struct ptcp_level *l)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "streams",
	    json_count(l->streams), "rounds", json_count(l->rounds), "failed", json_count(l->failed),
	    "mean_bps", rate(l, l->mean_bps), "min_bps", rate(l, l->min_bps), "max_bps",
	    rate(l, l->max_bps), "stddev_bps", rate(l, l->stddev_bps), "per_stream_mean_bps",
	    rate(l, l->per_stream_mean_bps), "per_stream_min_bps", rate(l, l->per_stream_min_bps), "per_stream_max_bps",
	    rate(l, l->per_stream_max_bps), "per_stream_stddev_bps", rate(l, l->per_stream_stddev_bps), "fairness",
	    rate(l, l->fairness), "clusters", l->clusters);
}

static void print_summary_json(const struct summary *s)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < s->n; i++)
		json_array_append_new(list, level(&s->level[i]));
	json_line(json_pack("{s:s, s:o, s:o, s:b, s:s?}", "event", "summary", "levels",
	    json_whole(list, s->n), "saturates_at",
	    s->saturates_at > 0 ? json_count(s->saturates_at) : json_null(), "certain", largest_error(s) <= ACCURATE,
	    "congestion", s->congestion[0] != '\0' ? s->congestion : NULL));
}

/* ---- Plot ---- */

/* Marks the answer, if there is one. */
static void write_answer(FILE *f, const struct summary *s)
{
	char label[40];

	if (largest_error(s) > ACCURATE)
		fprintf(f, "set title 'the rounds scatter too much to tell how many streams are best'\n");
	else if (s->saturates_at == 0)
		fprintf(f, "set title 'throughput still increases at %u streams'\n", s->level[s->n - 1].streams);
	else {
		fprintf(f, "set title 'throughput saturates at %u stream%s'\n", s->saturates_at,
		    plural(s->saturates_at));
		snprintf(label, sizeof label, "%u stream%s", s->saturates_at, plural(s->saturates_at));
		plot_answer(f, s->saturates_at, s->level[s->n - 1].streams, label);
	}
}

/* Throughput by the number of streams. */
static void write_levels(FILE *f, const struct summary *s)
{
	double most = 0, unit;
	const char *prefix;
	size_t i;

	for (i = 0; i < s->n; i++)
		most = s->level[i].max_bps > most ? s->level[i].max_bps : most;
	unit = plot_unit(most, &prefix);
	fprintf(f, "$levels << EOD\n");
	for (i = 0; i < s->n; i++)
		if (s->level[i].rounds > s->level[i].failed)
			fprintf(f, "%u %.9g %.9g %.9g %.9g %.9g %.9g\n", s->level[i].streams,
			    s->level[i].mean_bps / unit,
			    s->level[i].min_bps / unit, s->level[i].max_bps / unit,
			    s->level[i].per_stream_mean_bps / unit,
			    s->level[i].per_stream_min_bps / unit, s->level[i].per_stream_max_bps / unit);
	fprintf(f, "EOD\n");
	write_answer(f, s);
	plot_counts(f, 'x', s->level[s->n - 1].streams);
	fprintf(f, "set xlabel 'streams'\nset ylabel 'throughput (%sbit/s)'\n"
	    "set yrange [0:*]\nset key outside right top\nset grid\n"
	    "plot $levels using 1:2:3:4 with yerrorlines pt 7 lc rgb '#0060ad' title 'mean, min to max', "
	    "'' using 1:5:6:7 with yerrorlines pt 6 lc rgb '#b05000' title 'per stream, min to max'\n", prefix);
}

/* The rate of each stream over the rounds; streams of the same number share a color. */
static void write_streams(FILE *f, const struct summary *s)
{
	double most = 0, unit;
	const char *prefix;
	unsigned last = 1;
	size_t i, k;

	for (i = 0; i < s->n_rates; i++) {
		most = fmax(most, s->rates[i].bps);
		last = s->rates[i].round > last ? s->rates[i].round : last;
	}
	unit = plot_unit(most, &prefix);
	for (k = 0; k < s->n; k++) {
		fprintf(f, "$streams%zu << EOD\n", k);
		for (i = 0; i < s->n_rates; i++)
			if (s->rates[i].streams == s->level[k].streams)
				fprintf(f, "%u %.9g\n", s->rates[i].round, s->rates[i].bps / unit);
		fprintf(f, "EOD\n");
	}
	plot_counts(f, 'x', last);
	fprintf(f, "unset arrow\nunset label\nset tmargin 3\nset title offset 0,0\nset title 'rate of each "
	    "stream'\nset xlabel 'round'\nset ylabel 'rate of a stream (%sbit/s)'\nset yrange [0:*]\nplot ", prefix);
	for (k = 0; k < s->n; k++)
		fprintf(f, "%s$streams%zu using 1:2 with points pt 7 ps 0.5 lc rgb '#%06x' title '%u stream%s'",
		    k > 0 ? ", " : "", k, plot_color(k, s->n), s->level[k].streams, plural(s->level[k].streams));
	fprintf(f, "\n");
}

static int write_plot(FILE *f, const char *file, const void *summary)
{
	const struct summary *s = summary;
	bool streams = s->n_rates > 0;

	plot_begin(f, file, PLOT_WIDTH, streams ? 800 : 420);
	fprintf(f, "set multiplot\nset lmargin 12\nset rmargin 27\nset size 1,%g\nset origin 0,%g\n", streams ? 0.5 : 1,
	    streams ? 0.5 : 0);
	write_levels(f, s);
	if (streams) {
		fprintf(f, "set origin 0,0\n");
		write_streams(f, s);
	}
	fprintf(f, "unset multiplot\n");
	return 0;
}

/* ---- The command ---- */

/* For the plot, which lacks rounds beyond memory. */
static void add_rates(struct measure_args *a, const struct ptcp_round *r)
{
	struct stream_rate *more = a->rates;
	unsigned i;

	if (a->plot == NULL || r->why != NULL)
		return;
	if (a->n_rates + r->streams > a->cap_rates) {
		size_t cap = 2 * (a->cap_rates + r->streams);

		if ((more = realloc(a->rates, cap * sizeof *more)) == NULL)
			return;
		a->rates = more;
		a->cap_rates = cap;
	}
	for (i = 0; i < r->streams; i++)
		more[a->n_rates++] = (struct stream_rate){ r->number, r->streams, r->per_stream_bps[i] };
}

static void on_round(void *arg, const struct ptcp_round *r)
{
	struct measure_args *a = arg;

	if (r->congestion != NULL)
		snprintf(a->congestion, sizeof a->congestion, "%s", r->congestion);
	add_rates(a, r);
	if (a->connect.log.json)
		print_round_json(r);
	else if (!a->connect.log.quiet)
		print_round(stdout, r);
	if (a->csv != NULL)
		write_csv_round(a->csv, r);
}

/* Prints the measured levels, even if measuring has failed later. */
static int summarize(const struct measure_args *a, const struct ptcp_task *t, struct ptcp_err *e)
{
	struct summary s = { .receive = a->opts.receive, .congestion = a->congestion, .rates = a->rates,
		.n_rates = a->n_rates };

	s.n = ptcp_measure_levels(t, s.level, PTCP_LEVELS_MAX, &s.saturates_at);
	if (s.n == 0)
		return 0;
	if (a->connect.log.json)
		print_summary_json(&s);
	else
		print_summary(stdout, &s);
	return a->plot != NULL ? plot_draw(a->plot, write_plot, &s, e) : 0;
}

static int close_csv(const struct measure_args *a, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int failed = ferror(a->csv), error = fclose(a->csv) == 0 ? 0 : errno; /* errno of an earlier failure is lost */

	if (error == 0 && !failed)
		return 0;
	return err_set(e, PTCP_EIO, "--csv %s: incomplete%s%s (free disk space, or name a different file)",
	    text_escape(shown, sizeof shown, a->csv_file), error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
}

static void print_waiting_json(void *arg, const struct ptcp_event *ev)
{
	(void)arg;
	if (ev->type == PTCP_EVENT_WAITING)
		json_line(json_waiting(ev));
}

static int measure(struct measure_args *a, const char *target, struct ptcp_err *e)
{
	struct ptcp_task *t = NULL;
	struct ptcp_err later = { .code = 0 };
	char shown[TEXT_NAME_BYTES];
	int r;

	if (a->csv_file != NULL && (a->csv = fopen(a->csv_file, "w")) == NULL)
		return err_sys(e, PTCP_EIO, "--csv %s", text_escape(shown, sizeof shown, a->csv_file));
	if (a->csv != NULL)
		write_csv_head(a->csv);
	connect_show_streams(&a->connect);
	if (a->connect.log.json)
		a->connect.transfer.event = print_waiting_json;
	a->opts.round = on_round;
	a->opts.arg = a;
	r = ptcp_measure_new(&t, &a->connect.transfer, target, &a->opts, e);
	if (r == 0) {
		r = connect_run(t, e);
		if (summarize(a, t, r < 0 ? &later : e) < 0 && r == 0)
			r = e->code;
	}
	ptcp_task_free(t);
	if (a->csv != NULL && close_csv(a, r < 0 ? &later : e) < 0 && r == 0)
		r = e->code;
	return r;
}

static int run_measure(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct measure_args a;
	int r;

	memset(&a, 0, sizeof a);
	ptcp_measure_opts_init(&a.opts);
	if ((r = connect_parse(&a.connect, c, argc, argv, NULL, NULL, &e)) == 0)
		r = measure(&a, argv[0], &e);
	client_opts_fini(&a.connect);
	free(a.rates);
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(measure_options), GROUP_CONNECTION, GROUP_SSH,
	GROUP_LOG, GROUP_END };

const struct command command_measure = { "measure", "[options] HOST[:PORT]",
	"measure a path with many streams, over many rounds", run_measure, tables, 1, 1, "needs one host" };
