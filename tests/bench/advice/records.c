#include "bench/advice/records.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fields ---- */

static double number(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static bool is_true(const json_t *j, const char *key)
{
	return json_is_true(json_object_get(j, key));
}

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s != NULL ? s : "";
}

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
}

/* ---- Records ---- */

static int read_path(struct seed_case *c, const json_t *j)
{
	const json_t *p = json_object_get(j, "path"), *groups = json_object_get(p, "groups"), *g;
	size_t i;

	copy(c->form, sizeof c->form, text(j, "form"));
	c->seed = (unsigned long long)number(p, "seed");
	c->rate_mbps = number(p, "rate_mbps");
	c->rtt_ms = number(p, "rtt_ms");
	c->queue_packets = number(p, "queue_packets");
	c->bdp_packets = number(p, "bdp_packets");
	c->loss_percent = number(p, "loss_percent");
	c->window_bytes = (unsigned)number(p, "window_bytes");
	c->others = (unsigned)number(p, "others");
	c->red = is_true(p, "red");
	copy(c->congestion, sizeof c->congestion, text(p, "congestion"));
	json_array_foreach(groups, i, g) {
		c->others_reno |= strcmp(text(g, "congestion"), "reno") == 0;
		c->others_cubic |= strcmp(text(g, "congestion"), "cubic") == 0;
		c->others_bbr |= strcmp(text(g, "congestion"), "bbr") == 0;
		c->come_and_go |= number(g, "on_s") > 0;
		c->mixed_rtt |= number(g, "rtt_ms") != c->rtt_ms;
	}
	return c->form[0] != '\0' && c->congestion[0] != '\0' && c->rate_mbps > 0 ? 0 : -1;
}

static int read_truth(struct seed_case *c, const json_t *j)
{
	const struct seed_truth *found = seed_truth_of(c, (unsigned)number(j, "streams"), text(j, "congestion"));
	struct seed_truth *t = found != NULL ? &c->truth[found - c->truth] : &c->truth[c->truths];
	bool disturbed = is_true(j, "disturbed");

	if (!(number(j, "ours_mbps") >= 0 && number(j, "others_mbps") >= 0))
		return -1;
	if (found == NULL) {
		if (c->truths == SEED_TRUTHS_MAX)
			return -1;
		c->truths++;
		t->streams = (unsigned)number(j, "streams");
		copy(t->congestion, sizeof t->congestion, text(j, "congestion"));
		t->disturbed = disturbed;
	}
	if (disturbed && !t->disturbed)
		return 0;
	if (!disturbed && t->disturbed)
		t->runs = 0;
	t->disturbed = disturbed;
	if (t->runs == SEED_RUNS_MAX)
		return -1;
	t->ours_mbps[t->runs] = number(j, "ours_mbps");
	t->others_mbps[t->runs++] = number(j, "others_mbps");
	return 0;
}

static void read_curve(struct seed_answer *out, const json_t *curve)
{
	const json_t *p;
	size_t i;

	json_array_foreach(curve, i, p)
		if (i < SEED_STREAMS_MOST)
			out->curve[out->n_curve++] = (struct seed_point){ number(p, "throughput_bps") / 1e6,
				number(p, "throughput_low_bps") / 1e6, number(p, "throughput_high_bps") / 1e6,
				number(p, "impact_percent") / 100, number(p, "impact_low_percent") / 100,
				number(p, "impact_high_percent") / 100 };
}

static int read_answer(struct seed_case *c, const json_t *j)
{
	const json_t *a = json_object_get(j, "advice");
	struct seed_answer *out = c->answer;

	/* A repetition replaces the answer that the machine disturbed. */
	while (out < c->answer + c->answers && out->budget_ratio != number(j, "budget_percent") / 100)
		out++;
	if (out == c->answer + c->answers && c->answers++ == SEED_ANSWERS_MAX)
		return -1;
	*out = (struct seed_answer){
		.budget_ratio = number(j, "budget_percent") / 100, .failed = !json_is_object(a),
		.mbps = number(a, "throughput_bps") / 1e6, .low_mbps = number(a, "throughput_low_bps") / 1e6,
		.high_mbps = number(a, "throughput_high_bps") / 1e6, .impact_ratio = number(a, "impact_percent") / 100,
		.impact_low_ratio = number(a, "impact_low_percent") / 100,
		.impact_high_ratio = number(a, "impact_high_percent") / 100,
		.confident = strcmp(text(a, "confidence"), "high") == 0, .disturbed = is_true(j, "disturbed"),
		.seconds = number(j, "seconds"),
	};
	if (!out->failed)
		out->streams = (unsigned)number(a, "streams");
	read_curve(out, json_object_get(a, "curve"));
	copy(out->congestion, sizeof out->congestion, text(a, "congestion"));
	return out->budget_ratio > 0 && (out->failed || out->streams > 0) ? 0 : -1;
}

static size_t series(double *out, const json_t *array)
{
	const json_t *v;
	size_t i;

	json_array_foreach(array, i, v)
		if (i < SEED_SECONDS_MAX)
			out[i] = json_number_value(v);
	return json_array_size(array) < SEED_SECONDS_MAX ? json_array_size(array) : SEED_SECONDS_MAX;
}

static int read_auto(struct seed_case *c, const json_t *j)
{
	const json_t *end = json_object_get(j, "end");
	struct seed_auto *out = c->transfer;
	bool changes = strcmp(text(j, "record"), "change") == 0;

	while (out < c->transfer + c->transfers && (out->changes != changes ||
	    out->budget_ratio != number(j, "budget_percent") / 100))
		out++;
	if (out == c->transfer + c->transfers && c->transfers++ == SEED_AUTOS_MAX)
		return -1;
	memset(out, 0, sizeof *out);
	out->budget_ratio = number(j, "budget_percent") / 100;
	out->disturbed = is_true(j, "disturbed");
	out->changes = changes;
	out->seconds = series(out->ours_mbps, json_object_get(j, "ours_mbps"));
	series(out->others_mbps, json_object_get(j, "others_mbps"));
	copy(out->congestion, sizeof out->congestion, text(end, "congestion"));
	/* The campaign interrupts the transfer: exit status 8. */
	out->failed = !(number(end, "exit") == 8 || number(end, "exit") == 0);
	return out->budget_ratio > 0 && out->seconds > 0 ? 0 : -1;
}

static int read_alone(struct seed_case *c, const json_t *j)
{
	c->alone_mbps = fmax(c->alone_mbps, number(j, "ours_mbps"));
	return number(j, "ours_mbps") >= 0 ? 0 : -1;
}

/* Of several, the latest that the machine did not disturb. */
static int read_probe(struct seed_case *c, const json_t *j)
{
	if (strncmp(text(j, "levels"), "1:", 2) == 0 && (c->probes[0] == '\0' || !is_true(j, "disturbed")))
		copy(c->probes, RECORD_FILE_BYTES, text(j, "file"));
	return 0;
}

static int read_record(struct seed_case *c, const json_t *j)
{
	static const struct {
		const char *name;
		int (*read)(struct seed_case *, const json_t *);
	} kinds[] = {
		{ "path", read_path }, { "truth", read_truth }, { "alone", read_alone }, { "advice", read_answer },
		{ "auto", read_auto }, { "change", read_auto }, { "probe", read_probe },
	};
	const char *record = text(j, "record");
	size_t i;

	for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(record, kinds[i].name) == 0)
			return kinds[i].read(c, j);
	return -1;
}

int records_read(const char *file, struct seed_case *out)
{
	FILE *f = fopen(file, "r");
	char *line = NULL;
	size_t size = 0;
	unsigned number_of_line = 0;
	int r = 0;

	if (f == NULL) {
		perror(file);
		return -1;
	}
	memset(out, 0, sizeof *out);
	while (r == 0 && getline(&line, &size, f) > 0) {
		json_t *j = json_loads(line, 0, NULL);

		number_of_line++;
		r = read_record(out, j);
		json_decref(j);
		if (r < 0 || (number_of_line == 1 && out->form[0] == '\0')) {
			fprintf(stderr, "%s:%u: not a record of a campaign\n", file, number_of_line);
			r = -1;
		}
	}
	free(line);
	fclose(f);
	return r;
}

/* ---- Truth ---- */

const struct seed_truth *seed_truth_of(const struct seed_case *c, unsigned streams, const char *congestion)
{
	size_t i;

	for (i = 0; i < c->truths; i++)
		if (c->truth[i].streams == streams && strcmp(c->truth[i].congestion, congestion) == 0)
			return &c->truth[i];
	return NULL;
}

static double mean(const double *x, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += x[i];
	return sum / (double)n;
}

double truth_ours_mbps(const struct seed_truth *t)
{
	return mean(t->ours_mbps, t->runs);
}

double truth_others_mbps(const struct seed_truth *t)
{
	return mean(t->others_mbps, t->runs);
}

/* The measured numbers next to n: the most up to n, the fewest from n on; NULL: none. */
static void neighbors(const struct seed_case *c, unsigned streams, const char *congestion,
    const struct seed_truth **below, const struct seed_truth **above)
{
	size_t i;

	*below = *above = NULL;
	for (i = 0; i < c->truths; i++) {
		const struct seed_truth *t = &c->truth[i];

		if (t->streams == 0 || strcmp(t->congestion, congestion) != 0)
			continue;
		if (t->streams <= streams && (*below == NULL || t->streams > (*below)->streams))
			*below = t;
		if (t->streams >= streams && (*above == NULL || t->streams < (*above)->streams))
			*above = t;
	}
}

bool seed_truth_at(const struct seed_case *c, unsigned streams, const char *congestion, double *ours_mbps,
    double *others_mbps)
{
	const struct seed_truth *a, *b;
	double part;

	neighbors(c, streams, congestion, &a, &b);
	if (a == NULL || b == NULL || b->streams > 2 * a->streams)
		return false;
	part = b == a ? 0 : (double)(streams - a->streams) / (b->streams - a->streams);
	*ours_mbps = truth_ours_mbps(a) + part * (truth_ours_mbps(b) - truth_ours_mbps(a));
	*others_mbps = truth_others_mbps(a) + part * (truth_others_mbps(b) - truth_others_mbps(a));
	return true;
}

double seed_impact(const struct seed_case *c, unsigned streams, const char *congestion)
{
	const struct seed_truth *one = seed_truth_of(c, 1, congestion);
	double ours, others;

	if (one == NULL || c->others == 0 || truth_others_mbps(one) <= 0 ||
	    !seed_truth_at(c, streams, congestion, &ours, &others))
		return NAN;
	return 1 - others / truth_others_mbps(one);
}

double seed_best_mbps(const struct seed_case *c, const char *congestion, double budget_ratio)
{
	double best = NAN, ours, others;
	unsigned n;

	for (n = 1; n <= SEED_STREAMS_MOST; n++)
		if (seed_truth_at(c, n, congestion, &ours, &others) &&
		    (n == 1 || c->others == 0 || seed_impact(c, n, congestion) <= budget_ratio))
			best = fmax(best, ours);
	return best;
}
