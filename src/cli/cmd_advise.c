/* ptcp advise: recommends a number of streams, from probes of the path or from given probes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/show/json.h"
#include "cli/show/plot.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/units.h"

struct advise_args {
	struct client_opts connect; /* first */
	const char *plot;
	struct ptcp_advice_opts opts;
	unsigned levels[PTCP_PROBES_MAX];
	struct ptcp_probe probes[PTCP_PROBES_MAX];
	size_t n_probes;
};

/* ---- Options ---- */

static int add_probe(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct advise_args *a = args;
	struct ptcp_probe p = { .error_bps = NAN };
	char streams[16];
	const char *colon = strchr(part, ':');
	uint64_t bps;

	if (a->n_probes == PTCP_PROBES_MAX)
		return opt_reject(o, part, e, "more than %d probes (leave some out)", PTCP_PROBES_MAX);
	if (colon == NULL || (size_t)(colon - part) >= sizeof streams)
		return opt_reject(o, part, e, "not a number of streams and a rate (such as 10:412Mbit/s)");
	snprintf(streams, sizeof streams, "%.*s", (int)(colon - part), part);
	if (opt_number(streams, 1, PTCP_ADVICE_STREAMS_MAX, &p.streams) < 0 ||
	    units_parse_rate(colon + 1, &bps) < 0 || bps == 0)
		return opt_reject(o, part, e,
		    "not a number of streams and a rate, both above 0 (such as 10:412Mbit/s)");
	p.throughput_bps = (double)bps;
	a->probes[a->n_probes++] = p;
	return 0;
}

static int set_from_probes(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	((struct advise_args *)args)->n_probes = 0;
	return opt_each(args, o, text, e, add_probe);
}

static int set_probes(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct advise_args *a = args;

	a->opts.levels = a->levels;
	return connect_stream_counts(o, text, a->levels, PTCP_PROBES_MAX, &a->opts.n_levels, e);
}

#define AT(member) offsetof(struct advise_args, member)

#define OPT_AT(member) AT(opts.member)

static const struct opt advise_options[] = {
	{ "from-probes", 0, "N:RATE,..", "advise from throughput measured with N streams, without a network",
	    set_from_probes, 0, 0, 0 },
	OPT_ROWS(PTCP_OPTIONS_ADVISE)
	{ "probes", 0, "N,..", "stream counts to probe with (default: 1,4,15)", set_probes, 0, 0, 0 },
	{ "direction", 0, "send|recv", "direction of the streams (default: send)", connect_direction, AT(opts.receive),
	    0, 0 },
	{ "no-history", 0, NULL, "neither read nor update the path history", opt_true,
	    AT(connect.transfer.no_history), 0, 0 },
	{ "plot", 0, "FILE.svg", "plot throughput and impact with gnuplot", opt_text, AT(plot), 0, 0 },
	{ .name = NULL },
};

/* ---- Text ---- */

static const char *formula(enum ptcp_model m)
{
	switch (m) {
	case PTCP_MODEL_PARTIAL_QUADRATIC: return "n / sqrt(a n^2 + b)";
	case PTCP_MODEL_QUADRATIC: return "n / sqrt(a n^2 + b n + c)";
	case PTCP_MODEL_LINEAR: return "n / sqrt(a n + b)";
	default: return "n / (a n + b)";
	}
}

/* No digits of shares that nobody could measure. */
static const char *percent(char out[UNITS_TEXT_BYTES], double x, int digits)
{
	if (x > 0 && x < 0.1)
		return "less than 0.1";
	snprintf(out, UNITS_TEXT_BYTES, x < 99 ? "%.*g" : "%.*f", x < 99 ? digits : 0, x);
	return out;
}

/* The same with its sign, or "unknown". */
static const char *share(char out[UNITS_TEXT_BYTES], double x)
{
	char digits[UNITS_TEXT_BYTES];

	snprintf(out, UNITS_TEXT_BYTES, isnan(x) ? "unknown" : "%.20s %%", percent(digits, x, 2));
	return out;
}

/* Competing flows are supposed, but not seen by the probes of this host. */
static bool supposes_flows(const struct ptcp_advice *a)
{
	return a->others == PTCP_OTHERS_NONE_SEEN || (a->others == PTCP_OTHERS_UNKNOWN && a->n_curve > 0);
}

/* The impact of one stream is a fact about the path: the budget limits the further streams. */
static void print_answer(FILE *f, const struct ptcp_advice *a)
{
	struct ptcp_advice_point one, two;
	char rate[UNITS_TEXT_BYTES], high[UNITS_TEXT_BYTES], total[UNITS_TEXT_BYTES], more[UNITS_TEXT_BYTES];
	char age[UNITS_TEXT_BYTES];
	const char *where = supposes_flows(a) ? ", if there are any" : " here";

	ptcp_advice_at(a, 1, &one);
	ptcp_advice_at(a, 2, &two);
	fprintf(f, "%u stream%s: %s", a->streams, plural(a->streams), units_rate_text(rate, a->throughput_bps));
	if (a->from_history)
		fprintf(f, ", by probes %s ago", units_time_text(age, a->age_s));
	fprintf(f, "; ");
	if (isnan(a->impact_percent))
		fprintf(f, "a host, not the network, limits: the impact is unknown");
	else if (a->others == PTCP_OTHERS_NONE_SEEN)
		fprintf(f, "no competing flows seen");
	else if (a->streams == 1)
		fprintf(f, "any transfer takes %s %% from competing flows%s; a second stream would take %s %% more",
		    percent(total, one.impact_total_percent, 2), where, percent(more, two.impact_percent, 2));
	else
		fprintf(f, "any transfer takes %s %% from competing flows%s; %u streams take %s %% more",
		    percent(total, one.impact_total_percent, 2), where, a->streams,
		    percent(more, a->impact_percent, 2));
	fprintf(f, " (budget %.3g %%)\n", a->budget_percent);
	fprintf(f, "In 80 %% of cases %s to %s", units_rate_text(rate, a->throughput_low_bps),
	    units_rate_text(high, a->throughput_high_bps));
	if (a->streams > 1 && !isnan(a->impact_percent)) /* the impact is relative to one stream */
		fprintf(f, ", and %.0f to %.0f %% of impact", a->impact_low_percent, a->impact_high_percent);
	fprintf(f, "; competing flows: %s.\n", ptcp_others_name(a->others));
}

static void print_reason(FILE *f, const struct ptcp_advice *a)
{
	struct ptcp_advice_point next;
	char more[UNITS_TEXT_BYTES];
	double gain;

	ptcp_advice_at(a, a->streams + 1, &next);
	gain = (next.throughput_bps / a->throughput_bps - 1) * 100;
	switch (a->limited_by) {
	case PTCP_LIMITED_BY_IMPACT:
		if (supposes_flows(a))
			fprintf(f, "An additional stream would slow a flow that the probes cannot see by an expected "
			    "%s %%, which exceeds the budget.\n", percent(more, next.impact_percent, 3));
		else
			fprintf(f,
			    "An additional stream would slow competing flows by %s %%, which exceeds the budget.\n",
			    percent(more, next.impact_percent, 3));
		break;
	case PTCP_LIMITED_BY_GAIN:
		fprintf(f, "An additional stream would add %s %%, less than %.3g %%.\n",
		    percent(more, fmax(gain, 0), 3), a->min_gain_percent);
		break;
	case PTCP_LIMITED_BY_MAX_STREAMS:
		fprintf(f, "The number is limited by --max-streams.\n");
		break;
	case PTCP_LIMITED_BY_SATURATION:
		fprintf(f, "Additional streams would add no throughput.\n");
		break;
	}
}

static void print_confidence(FILE *f, const struct ptcp_advice *a)
{
	const char *warning;
	size_t i;

	fprintf(f, "Confidence: %s\n", a->confident ? "high" : "low");
	if (a->limit_advice != NULL)
		fprintf(f, "  - %s\n", a->limit_advice);
	if (a->path_limit != NULL)
		fprintf(f, "  - %s: %s\n", a->path_limit, a->path_advice);
	for (i = 0; (warning = ptcp_advice_warning(a, i)) != NULL; i++)
		fprintf(f, "  - %s\n", warning);
	if (a->congestion_advice != NULL && strcmp(a->congestion_advice, "bbr") == 0)
		fprintf(f, "Random loss limits each stream: bbr would carry more, and --streams auto changes to it.\n");
	else if (a->congestion_advice != NULL)
		fprintf(f, "A less aggressive congestion control: %s (--congestion).\n", a->congestion_advice);
}

static void print_probes(FILE *f, const struct ptcp_advice *a)
{
	char measured[UNITS_TEXT_BYTES], fitted[UNITS_TEXT_BYTES];
	struct ptcp_advice_point at;
	size_t i;

	fprintf(f, "\n%8s %14s %14s\n", "probe", "measured", "model");
	for (i = 0; i < a->n_probes; i++) {
		ptcp_advice_at(a, a->probes[i].streams, &at);
		fprintf(f, "%8u %14s %14s\n", a->probes[i].streams,
		    units_rate_text(measured, a->probes[i].throughput_bps), units_rate_text(fitted, at.throughput_bps));
	}
}

static void print_model(FILE *f, const struct ptcp_advice *a)
{
	size_t i, terms = a->model == PTCP_MODEL_QUADRATIC ? 3 : 2;

	fprintf(f, "\nmodel %s: %s bit/s,", ptcp_model_name(a->model), formula(a->model));
	for (i = 0; i < terms; i++)
		fprintf(f, " %c = %.6g", "abc"[i], a->used[i]);
	fprintf(f, " (fitted:");
	for (i = 0; i < terms; i++)
		fprintf(f, " %c = %.6g", "abc"[i], a->raw[i]);
	fprintf(f, ")\n");
}

/* Rows are 1, 2, 4, 8, .., the advised and the maximum number, in ascending order. */
static unsigned next_row(const struct ptcp_advice *a, unsigned n)
{
	unsigned next = 1;

	while (next <= n)
		next *= 2;
	if (n < a->streams && a->streams < next)
		next = a->streams;
	return next < a->max_streams ? next : a->max_streams;
}

static void print_curve(FILE *f, const struct ptcp_advice *a)
{
	char rate[UNITS_TEXT_BYTES];
	struct ptcp_advice_point at;
	unsigned n = 0;

	fprintf(f, "\n%8s %14s %8s %14s\n", "streams", "throughput", "impact", "total impact");
	while (n < a->max_streams) {
		n = next_row(a, n);
		ptcp_advice_at(a, n, &at);
		fprintf(f, "%8u %14s ", n, units_rate_text(rate, at.throughput_bps));
		if (isnan(at.impact_percent))
			fprintf(f, "%8s %14s", "-", "-");
		else
			fprintf(f, "%6.1f %% %12.1f %%", at.impact_percent, at.impact_total_percent);
		fprintf(f, "%s\n", n == a->streams ? "  <" : "");
	}
}

/* With all that the prediction depends on; or the command that keeps a budget which no number of streams keeps. */
static void command_of(char *out, size_t cap, const struct ptcp_advice *a, unsigned streams, bool receive, bool yields)
{
	const char *verb = receive ? "recv" : "send";
	int n;

	if (yields) {
		snprintf(out, cap, "ptcp %s --impact 0", verb);
		return;
	}
	n = snprintf(out, cap, "ptcp %s --streams %u%s", verb, streams, connect_congestion(a->congestion));
	if (!isnan(a->path_rate_bps))
		snprintf(out + n, cap - (size_t)n, " --rate %.0fkbit/s", a->path_rate_bps / 1e3);
}

/* All choices but the last have a budget. */
static bool choice_yields(const struct ptcp_advice *a, size_t i) { return a->yields && i + 1 < PTCP_CHOICES; }

/* What each budget costs and brings, with the command that keeps the budget. */

static void print_choices(FILE *f, const struct ptcp_advice *a, bool receive)
{
	static const char *const name[PTCP_CHOICES] = { "this budget", "half of it", "the fastest" };
	char rate[UNITS_TEXT_BYTES], command[96], impact[UNITS_TEXT_BYTES];
	struct ptcp_advice_point at;
	size_t i;

	fprintf(f, "\n");
	for (i = 0; i < PTCP_CHOICES; i++) {
		ptcp_advice_at(a, a->choices[i].streams, &at);
		command_of(command, sizeof command, a, a->choices[i].streams, receive, choice_yields(a, i));
		fprintf(f, "%-11s %3.3g %%: ", name[i], a->choices[i].impact_percent);
		if (choice_yields(a, i))
			fprintf(f, "what competing flows leave: %s\n", command);
		else
			fprintf(f, "about %s, impact %s: %s\n", units_rate_text(rate, at.throughput_bps),
			    share(impact, at.impact_percent), command);
	}
}

/* The commands that follow: a probe that tells more, and the transfer. */
static void print_next(FILE *f, const struct ptcp_advice *a, bool receive)
{
	char command[96];
	size_t i;

	if (a->next_probe > 0 && a->n_probes < PTCP_PROBES_MAX) {
		fprintf(f, "\nto be more certain: ptcp advise%s%s --probes ",
		    receive ? " --direction recv" : "", a->yields ? "" : connect_congestion(a->congestion));
		for (i = 0; i < a->n_probes; i++)
			fprintf(f, "%u,", a->probes[i].streams);
		fprintf(f, "%u ...", a->next_probe);
	}
	command_of(command, sizeof command, a, a->streams, receive, a->yields);
	fprintf(f, "\nrun: %s ...\n", command);
}

static void print_text(FILE *f, const struct ptcp_advice *a, bool receive)
{
	char rate[UNITS_TEXT_BYTES];

	print_answer(f, a);
	if (a->from_history)
		fprintf(f, "A probe of 3 seconds now agrees: %s with %u stream%s (without --history all is probed).\n",
		    units_rate_text(rate, a->check_bps), a->streams, plural(a->streams));
	if (!isnan(a->impact_percent))
		print_reason(f, a);
	print_confidence(f, a);
	if (a->limit != PTCP_LIMIT_UNKNOWN)
		fprintf(f, "\ncongestion control %s, limited by: %s\n",
		    a->congestion[0] != '\0' ? a->congestion : "unknown", ptcp_limit_name(a->limit));
	print_probes(f, a);
	if (!isnan(a->impact_percent))
		print_model(f, a);
	print_curve(f, a);
	print_choices(f, a, receive);
	print_next(f, a, receive);
}

/* ---- JSON: fields and units are described in ptcp-advise(1) ---- */

/* All warnings as one text, or null. */
static json_t *warning(const struct ptcp_advice *a)
{
	char all[2048] = "";
	const char *next;
	size_t i, n = 0;

	if (a->limit_advice != NULL)
		n = (size_t)snprintf(all, sizeof all, "%s%s", a->limit_advice, a->warnings != 0 ? "; " : "");
	for (i = 0; (next = ptcp_advice_warning(a, i)) != NULL && n < sizeof all; i++)
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i > 0 ? "; " : "", next);
	return n > 0 ? json_string(all) : json_null();
}

static json_t *probes(const struct ptcp_advice *a)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < a->n_probes; i++)
		json_array_append_new(list, json_pack("{s:o, s:f}", "streams",
		    json_count(a->probes[i].streams), "throughput_bps", a->probes[i].throughput_bps));
	return json_whole(list, a->n_probes);
}

static json_t *model(const struct ptcp_advice *a)
{
	json_t *o = json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", ptcp_model_name(a->model), "a",
	    a->used[0], "b", a->used[1], "raw_a", a->raw[0], "raw_b", a->raw[1]);

	if (a->model == PTCP_MODEL_QUADRATIC) {
		json_object_set_new(o, "c", json_real(a->used[2]));
		json_object_set_new(o, "raw_c", json_real(a->raw[2]));
	}
	return o;
}

static json_t *known(double x) { return isnan(x) ? json_null() : json_real(x); }

static json_t *curve(const struct ptcp_advice *a)
{
	json_t *list = json_array();
	struct ptcp_advice_point p;
	unsigned n;

	for (n = 1; n <= a->max_streams; n++) {
		ptcp_advice_at(a, n, &p);
		json_array_append_new(list, json_pack("{s:o, s:f, s:o}", "streams", json_count(n),
		    "throughput_bps", p.throughput_bps, "impact_percent", known(p.impact_percent)));
	}
	return json_whole(list, a->max_streams);
}

static json_t *choices(const struct ptcp_advice *a, bool receive)
{
	json_t *list = json_array();
	char command[96];
	size_t i;

	for (i = 0; i < PTCP_CHOICES; i++) {
		const struct ptcp_choice *c = &a->choices[i];

		command_of(command, sizeof command, a, c->streams, receive, choice_yields(a, i));
		json_array_append_new(list, json_pack("{s:f, s:o, s:o, s:s}", "impact_percent",
		    c->impact_percent, "streams", json_count(choice_yields(a, i) ? 1 : c->streams), "throughput_bps",
		    choice_yields(a, i) ? json_null() : json_real(c->throughput_bps), "command", command));
	}
	return json_whole(list, PTCP_CHOICES);
}

static int print_json(const struct ptcp_advice *a, bool receive, struct ptcp_err *e)
{
	return json_result(json_pack("{s:o, s:f, s:o, s:f, s:s, s:s, s:o, s:o, s:s?, s:s?, s:s, s:b, s:o, s:o, s:o, "
	    "s:f, s:f, s:o, s:o, s:s, s:o, s:b, s:o, s:o, s:s?, s:s?, s:o}",
	    "streams", json_count(a->streams), "throughput_bps", a->throughput_bps,
	    "impact_percent", known(a->impact_percent), "budget_percent", a->budget_percent,
	    "limited_by", ptcp_limited_by_name(a->limited_by),
	    "confidence", a->confident ? "high" : "low", "warning", warning(a),
	    "impact_total_percent", known(a->impact_total_percent),
	    "congestion", a->congestion[0] != '\0' ? a->congestion : NULL,
	    "congestion_advice", a->congestion_advice, "limit", ptcp_limit_name(a->limit),
	    "from_history", a->from_history, "probes", probes(a), "model", model(a), "curve", curve(a),
	    "throughput_low_bps", a->throughput_low_bps, "throughput_high_bps", a->throughput_high_bps,
	    "impact_low_percent", known(a->impact_low_percent), "impact_high_percent", known(a->impact_high_percent),
	    "others", ptcp_others_name(a->others), "choices", choices(a, receive), "yields", a->yields,
	    "age_s", a->from_history ? json_real(a->age_s) : json_null(), "check_bps", known(a->check_bps),
	    "path_limit", a->path_limit, "path_advice", a->path_limit != NULL ? a->path_advice : NULL,
	    "path_rate_bps", known(a->path_rate_bps)), e);
}

/* ---- Plot ---- */

/* The largest throughput of the plot. */
static double max_bps(const struct ptcp_advice *a)
{
	struct ptcp_advice_point at;
	double most = a->throughput_bps;
	unsigned n;
	size_t i;

	for (n = 1; n <= a->max_streams; n++) {
		ptcp_advice_at(a, n, &at);
		most = fmax(most, at.throughput_bps);
	}
	for (i = 0; i < a->n_probes; i++)
		most = fmax(most, a->probes[i].throughput_bps);
	return most;
}

/* Throughput in `unit`. */
static void write_data(FILE *f, const struct ptcp_advice *a, double unit)
{
	struct ptcp_advice_point at;
	unsigned n;
	size_t i;

	fprintf(f, "$curve << EOD\n");
	for (n = 1; n <= a->max_streams; n++) {
		ptcp_advice_at(a, n, &at);
		fprintf(f, "%u %.9g %.9g\n", n, at.throughput_bps / unit, at.impact_percent);
	}
	fprintf(f, "EOD\n$probes << EOD\n");
	for (i = 0; i < a->n_probes; i++)
		fprintf(f, "%u %.9g\n", a->probes[i].streams, a->probes[i].throughput_bps / unit);
	fprintf(f, "EOD\n$advice << EOD\n%u %.9g %.9g\nEOD\n", a->streams, a->throughput_bps / unit,
	    a->impact_percent);
}

static int write_plot(FILE *f, const char *file, const void *advice)
{
	const struct ptcp_advice *a = advice;
	const char *prefix;
	double unit = plot_unit(max_bps(a), &prefix);
	char label[2 * UNITS_TEXT_BYTES + 80], rate[UNITS_TEXT_BYTES], impact[UNITS_TEXT_BYTES];

	plot_begin(f, file, PLOT_WIDTH, 480);
	write_data(f, a, unit);
	fprintf(f, "set title 'recommended: %u stream%s%s (model %s)'\n", a->streams, plural(a->streams),
	    a->confident ? "" : ", with low confidence", ptcp_model_name(a->model));
	snprintf(label, sizeof label, "%u stream%s: %s, impact %s", a->streams, plural(a->streams),
	    units_rate_text(rate, a->throughput_bps), share(impact, round(a->impact_percent)));
	plot_answer(f, a->streams, a->max_streams, label);
	plot_counts(f, 'x', a->max_streams);
	fprintf(f, "set xlabel 'streams'\nset yrange [0:*]\nset y2range [0:100]\n"
	    "set ylabel 'throughput (%sbit/s)' textcolor rgb '#0060ad'\nset ytics nomirror\n"
	    "set y2label 'impact: slowdown of each competing flow' textcolor rgb '#b05000'\n"
	    "set format y2 '%%g %%%%'\nset y2tics\nset key below\nset bmargin 6\nset grid\n", prefix);
	fprintf(f, "plot $curve using 1:2 with lines lw 2 lc rgb '#0060ad' title 'throughput (left)', "
	    "'' using 1:3 axes x1y2 with lines lw 2 lc rgb '#b05000' title 'impact (right)', "
	    "%.9g axes x1y2 with lines lw 2 dt 3 lc rgb '#b05000' title 'budget (right)', "
	    "$probes using 1:2 with points pt 6 ps 1.5 lc rgb '#0060ad' title 'probes (left)', "
	    "$advice using 1:2 with points pt 7 lc rgb '" PLOT_ANSWER "' title 'recommended', "
	    "'' using 1:3 axes x1y2 with points pt 7 lc rgb '" PLOT_ANSWER "' notitle\n", a->budget_percent);
	return 0;
}

/* ---- The command ---- */

static int probe(struct advise_args *a, const char *target, struct ptcp_advice *advice, struct ptcp_err *e)
{
	struct ptcp_task *t;
	int r;

	connect_show_streams(&a->connect);
	if ((r = ptcp_advise_new(&t, &a->connect.transfer, target, &a->opts, e)) < 0)
		return r;
	if ((r = connect_run(t, e)) == 0)
		r = ptcp_advise_result(t, advice, e);
	ptcp_task_free(t);
	return r;
}

static int advise(struct advise_args *a, const char *target, struct ptcp_err *e)
{
	struct ptcp_advice advice;
	int r;

	ptcp_advice_init(&advice);
	a->opts.congestion = a->connect.transfer.congestion;
	r = a->n_probes > 0 ? ptcp_advice_from_probes(&advice, a->probes, a->n_probes, &a->opts, e) :
	    probe(a, target, &advice, e);
	if (r < 0)
		return r;
	if (!a->connect.log.json)
		print_text(stdout, &advice, a->opts.receive);
	else if ((r = print_json(&advice, a->opts.receive, e)) < 0)
		return r;
	return a->plot != NULL ? plot_draw(a->plot, write_plot, &advice, e) : 0;
}

static int run_advise(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct advise_args a;
	int n, r;

	memset(&a, 0, sizeof a);
	ptcp_advice_opts_init(&a.opts);
	r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e);
	if (r == 0 && (n == 0) != (a.n_probes > 0))
		r = err_set(&e, PTCP_EUSAGE, "%s: needs either a target or --from-probes (HOST[:PORT], or "
		    "--from-probes 1:RATE,10:RATE)", c->name);
	if (r == 0)
		r = advise(&a, argv[0], &e);
	client_opts_fini(&a.connect);
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(advise_options), GROUP_CONNECTION, GROUP_SSH,
	GROUP_LOG, GROUP_END };

const struct command command_advise = { "advise", "[options] HOST[:PORT] | [options] --from-probes N:RATE,..",
	"recommend a number of streams", run_advise, tables, 0, 1, "takes one target" };
