/* ptcp measure TARGET: what n streams bring, over many rounds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/measure_opts.h"
#include "cli/measure_output.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct measure_args {
	struct connect_args connect; /* first */
	const char *csv, *plot;
	struct ptcp_measure_opts opts;
	unsigned streams[PTCP_LEVELS_MAX];
};

static int set_streams(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct measure_args *a = args;

	a->opts.streams = a->streams;
	return probe_levels(o, text, a->streams, PTCP_LEVELS_MAX, &a->opts.n_streams, e);
}

static int set_rounds(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct measure_args *a = args;

	if (opt_number(text, 1, 1000000, &a->opts.rounds) < 0)
		return opt_reject(o, text, e, "not a number from 1 to 1000000");
	return 0;
}

static int set_interval(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	uint64_t ns;

	if (units_parse_time(text, &ns) < 0 || ns > 1000000 * NS_PER_S)
		return opt_reject(o, text, e, "not a time up to 1000000 seconds (such as 5m)");
	((struct measure_args *)args)->opts.interval_s = (double)ns / (double)NS_PER_S;
	return 0;
}

static int set_bytes(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct measure_args *a = args;

	if (units_parse_size(text, &a->opts.bytes_per_stream) < 0 || a->opts.bytes_per_stream == 0 ||
	    a->opts.bytes_per_stream > UINT64_C(1) << 40)
		return opt_reject(o, text, e, "not a size above 0 and up to 1 TiB (such as 2MB)");
	return 0;
}

static const struct opt own_options[] = {
	{ "streams", 0, "N,..", "numbers of streams (10,20,30,40,50)", set_streams, 0 },
	{ "rounds", 0, "R", "rounds with each of them (5)", set_rounds, 0 },
	{ "interval", 0, "T", "from the start of a round to the next, at least (0)", set_interval, 0 },
	{ "bytes-per-stream", 0, "SIZE", "what each stream carries in a round (2MB)", set_bytes, 0 },
	{ "direction", 0, "send|recv", "streams from here, or to here (send)", probe_direction,
	    offsetof(struct measure_args, opts.receive) },
	{ "csv", 0, "FILE", "a line for each stream of each round", opt_text,
	    offsetof(struct measure_args, csv) },
	{ "plot", 0, "FILE.svg", "a picture of throughput over streams, by gnuplot", opt_text,
	    offsetof(struct measure_args, plot) },
	{ .name = NULL },
};

const struct opt *const measure_options[] = { own_options, connect_options, ssh_options, log_opts_options, NULL };

/* Where rounds go as they end. */
struct sinks {
	bool json, quiet;
	FILE *csv;
};

static void on_round(void *arg, const struct ptcp_round *r)
{
	struct sinks *s = arg;

	if (s->json)
		measure_json_round(r);
	else if (!s->quiet)
		measure_text_round(stdout, r);
	if (s->csv != NULL)
		measure_csv_round(s->csv, r);
}

/* What has been measured, also when the rest could not be. */
static int summarize(const struct measure_args *a, const struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct ptcp_level level[PTCP_LEVELS_MAX];
	struct measure_summary s = { .level = level };

	s.levels = ptcp_transfer_levels(t, level, PTCP_LEVELS_MAX, &s.saturates_at);
	if (s.levels == 0)
		return 0;
	if (a->connect.talk.json)
		measure_json_summary(&s);
	else
		measure_text_summary(stdout, &s);
	return a->plot != NULL ? measure_plot(a->plot, &s, e) : 0;
}

static int close_csv(const struct measure_args *a, FILE *csv, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int failed = ferror(csv), now = fclose(csv) == 0 ? 0 : errno; /* of an earlier failure errno is gone */

	if (now == 0 && !failed)
		return 0;
	return err_set(e, PTCP_EIO, "--csv %s: not all of it could be written%s%s (make room, or name another file)",
	    text_escape(shown, sizeof shown, a->csv), now != 0 ? ": " : "", now != 0 ? strerror(now) : "");
}

static int run(struct measure_args *a, const char *target, struct ptcp_err *e)
{
	struct sinks s = { .json = a->connect.talk.json, .quiet = a->connect.talk.quiet };
	struct ptcp_transfer_opts o;
	struct ptcp_transfer *t = NULL;
	struct ptcp_err later = { .code = 0 };
	char shown[TEXT_NAME_BYTES];
	int r;

	if (a->csv != NULL && (s.csv = fopen(a->csv, "w")) == NULL)
		return err_sys(e, PTCP_EIO, "--csv %s", text_escape(shown, sizeof shown, a->csv));
	if (s.csv != NULL)
		measure_csv_head(s.csv);
	probe_opts(&a->connect, &o);
	a->opts.round = on_round;
	a->opts.arg = &s;
	r = ptcp_measure_new(&t, &o, target, &a->opts, e);
	if (r == 0) {
		r = probe_run(t, e);
		if (summarize(a, t, r < 0 ? &later : e) < 0 && r == 0)
			r = e->code;
	}
	ptcp_transfer_free(t);
	if (s.csv != NULL && close_csv(a, s.csv, r < 0 ? &later : e) < 0 && r == 0)
		r = e->code;
	return r;
}

int cmd_measure(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct measure_args a;
	int n = 0, r;

	memset(&a, 0, sizeof a);
	connect_init(&a.connect);
	ptcp_measure_opts_init(&a.opts);
	r = options_parse(c, argc, argv, &a, &n, &e);
	if (r == 0 && n != 1)
		r = err_set(&e, PTCP_EUSAGE, "%s: needs one host (ptcp %s --help)", c->name, c->name);
	if (r == 0)
		r = run(&a, argv[0], &e);
	connect_fini(&a.connect);
	return command_end(c, r, &e);
}
