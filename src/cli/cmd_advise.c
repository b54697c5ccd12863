/* ptcp advise: how many streams, from probes of the path or given ones. */
#include <float.h>
#include <string.h>

#include "cli/advise_output.h"
#include "cli/measure_opts.h"
#include "core/err.h"
#include "core/units.h"

struct advise_args {
	struct connect_args connect; /* first */
	const char *plot;
	bool no_history;
	struct ptcp_advice_opts opts;
	unsigned levels[PTCP_PROBES_MAX];
	struct ptcp_probe probes[PTCP_PROBES_MAX];
	size_t n_probes;
};

static int set_impact(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct advise_args *a = args;

	if (opt_decimal(text, 100, &a->opts.impact_percent) < 0)
		return opt_reject(o, text, e, "not a percentage from 0 to 100");
	return 0;
}

static int set_min_gain(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct advise_args *a = args;

	if (opt_decimal(text, DBL_MAX, &a->opts.min_gain_percent) < 0)
		return opt_reject(o, text, e, "not a percentage from 0 on");
	return 0;
}

static int set_max_streams(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct advise_args *a = args;

	if (opt_number(text, 1, PTCP_ADVICE_STREAMS_MAX, &a->opts.max_streams) < 0)
		return opt_reject(o, text, e, "not a number from 1 to 100000");
	return 0;
}

static int set_model(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct advise_args *a = args;

	if (ptcp_model_parse(text, &a->opts.model) < 0)
		return opt_reject(o, text, e,
		    "no such model (auto, partial-quadratic, fair-share, quadratic or linear)");
	return 0;
}

static int add_probe(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct advise_args *a = args;
	struct ptcp_probe p = { .streams = 0 };
	char streams[16];
	const char *colon = strchr(part, ':');
	uint64_t bps;

	if (a->n_probes == PTCP_PROBES_MAX)
		return opt_reject(o, part, e, "more than 64 probes (leave some out)");
	if (colon == NULL || (size_t)(colon - part) >= sizeof streams)
		return opt_reject(o, part, e, "not a number of streams and a rate (such as 10:412Mbit/s)");
	memcpy(streams, part, (size_t)(colon - part));
	streams[colon - part] = '\0';
	if (opt_number(streams, 1, PTCP_ADVICE_STREAMS_MAX, &p.streams) < 0 ||
	    units_parse_rate(colon + 1, &bps) < 0 || bps == 0)
		return opt_reject(o, part, e, "not a number of streams and a rate, both above 0 "
		    "(such as 10:412Mbit/s)");
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
	return probe_levels(o, text, a->levels, PTCP_PROBES_MAX, &a->opts.n_levels, e);
}

static const struct opt own_options[] = {
	{ "from-probes", 0, "N:RATE,..", "what so many streams brought; no network", set_from_probes,
	    0 },
	{ "impact", 0, "PCT", "the most to take from each other flow (10)", set_impact, 0 },
	{ "min-gain", 0, "PCT", "the least that one stream more must bring (1)", set_min_gain, 0 },
	{ "max-streams", 0, "N", "advise no more (32)", set_max_streams, 0 },
	{ "model", 0, "NAME", "auto, partial-quadratic, fair-share, quadratic or linear", set_model,
	    0 },
	{ "probes", 0, "N,..", "numbers of streams to probe with (4,15)", set_probes, 0 },
	{ "direction", 0, "send|recv", "streams from here, or to here (send)", probe_direction,
	    offsetof(struct advise_args, opts.receive) },
	{ "no-history", 0, NULL, "probe, whatever is known of the path, and keep nothing", opt_true,
	    offsetof(struct advise_args, no_history) },
	{ "plot", 0, "FILE.svg", "a picture of throughput and impact, by gnuplot", opt_text,
	    offsetof(struct advise_args, plot) },
	{ .name = NULL },
};

const struct opt *const advise_options[] = { own_options, connect_options, ssh_options, log_opts_options, NULL };

static int parse(struct advise_args *a, const struct command *c, int argc, char **argv,
    struct ptcp_err *e)
{
	int n, r;

	memset(a, 0, sizeof *a);
	connect_init(&a->connect);
	ptcp_advice_opts_init(&a->opts);
	if ((r = options_parse(c, argc, argv, a, &n, e)) != 0)
		return r;
	a->opts.congestion = a->connect.congestion;
	if (n == 0 && a->n_probes == 0)
		return err_set(e, PTCP_EUSAGE, "%s: no target (give HOST[:PORT], or --from-probes "
		    "1:RATE,10:RATE)", c->name);
	if (n > 1 || (n > 0 && a->n_probes > 0))
		return err_set(e, PTCP_EUSAGE, "%s: takes one target, or --from-probes and none (leave one out)",
		    c->name);
	return 0;
}

/* Probes the way to the target. */
static int probe(const struct advise_args *a, const char *target, struct ptcp_advice *advice,
    struct ptcp_err *e)
{
	struct ptcp_transfer_opts o;
	struct ptcp_transfer *t;
	int r;

	probe_opts(&a->connect, &o);
	o.no_history = a->no_history;
	if ((r = ptcp_advise_new(&t, &o, target, &a->opts, e)) < 0)
		return r;
	if ((r = probe_run(t, e)) == 0)
		r = ptcp_transfer_advice(t, advice, e);
	ptcp_transfer_free(t);
	return r;
}

static int run(const struct advise_args *a, const char *target, struct ptcp_err *e)
{
	struct ptcp_advice advice;
	int r;

	ptcp_advice_init(&advice);
	r = a->n_probes > 0 ? ptcp_advice_from_probes(&advice, a->probes, a->n_probes, &a->opts, e) :
	    probe(a, target, &advice, e);
	if (r < 0)
		return r;
	if (!a->connect.talk.json)
		advise_text(stdout, &advice);
	else if ((r = advise_json(&advice, e)) < 0)
		return r;
	return a->plot != NULL ? advise_plot(a->plot, &advice, e) : 0;
}

int cmd_advise(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct advise_args a;
	int r;

	if ((r = parse(&a, c, argc, argv, &e)) == 0)
		r = run(&a, argv[0], &e);
	connect_fini(&a.connect);
	return command_end(c, r, &e);
}
