#include "bench/advice/replay.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/advice.h"

#define STREAMS_MAX 64

static const unsigned levels[] = ADVICE_PROBES;
#define LEVELS (sizeof levels / sizeof *levels)
static const double budgets[] = { 0.10, 0.30 };

/* ---- Raw data ---- */

/* Counters of one stream. */
struct row {
	double at_s, acked_bytes, delivered_bytes, sent_segments, retransmits, rtt_s, min_rtt_s, busy_s, window_s;
	unsigned streams, stream;
};

enum { MSS_BYTES = 1448 };

/* Columns: see tests/lab/flow.c. */
static bool read_row(struct row *r, FILE *f)
{
	char line[1024];
	double delivered, rtt_us, min_rtt_us, busy_us, window_us, buffer_us;

	while (fgets(line, sizeof line, f) != NULL)
		if (sscanf(line,
		    "%lf,%u,%u,%lf,%*f,%*f,%lf,%lf,%lf,%*f,%*f,%*f,%*f,%lf,%*f,%lf,%*f,%*f,%*f,%*f,%lf,%lf,%lf",
		    &r->at_s,
			&r->streams, &r->stream, &r->acked_bytes, &r->sent_segments, &r->retransmits,
			&delivered, &rtt_us, &min_rtt_us, &busy_us, &window_us, &buffer_us) == 12) {
			r->delivered_bytes = MSS_BYTES * delivered;
			r->rtt_s = rtt_us / 1e6;
			r->min_rtt_s = min_rtt_us < UINT32_MAX ? min_rtt_us / 1e6 : 0;
			r->busy_s = busy_us / 1e6;
			r->window_s = (window_us + buffer_us) / 1e6;
			return true;
		}
	return false;
}

/* ---- Levels, as in src/measure/advise.c ---- */

struct replay {
	const struct seed_case *c;
	const char *name;     /* of the raw data */
	FILE *f;
	struct row row;       /* the next */
	bool more;
	struct evidence evidence;
	struct probe probe[LEVELS];
	size_t n_probes;
	bool windows;         /* limit_is_partial() at a level */
};

/* All streams at one time. */
struct moment {
	struct row row[STREAMS_MAX];
	unsigned n;
	double at_s;
};

/* All rows of the next time; false at the end of the file. */
static bool next_moment(struct replay *r, struct moment *m)
{
	m->n = 0;
	m->at_s = r->row.at_s;
	while (r->more && r->row.at_s == m->at_s) {
		if (m->n < STREAMS_MAX)
			m->row[m->n++] = r->row;
		r->more = read_row(&r->row, r->f);
	}
	return m->n > 0;
}

static struct evidence_sample difference(const struct moment *then, const struct moment *now,
    struct loss_events *events)
{
	struct evidence_sample s = { .interval_s = now->at_s - then->at_s };
	unsigned i;

	for (i = 0; i < now->n && i < then->n; i++) {
		const struct row *a = &then->row[i], *b = &now->row[i];

		s.delivered_bytes += b->delivered_bytes - a->delivered_bytes;
		s.sent_segments += b->sent_segments - a->sent_segments;
		s.lost_segments += b->retransmits - a->retransmits;
		s.loss_events += loss_events_of(&events[i], b->retransmits - a->retransmits, b->rtt_s, s.interval_s);
		s.rtt_s += b->rtt_s / now->n;
		s.busy_s += b->busy_s - a->busy_s;
		s.window_s += b->window_s - a->window_s;
		if (b->min_rtt_s > 0 && (s.min_rtt_s == 0 || b->min_rtt_s < s.min_rtt_s))
			s.min_rtt_s = b->min_rtt_s;
	}
	return s;
}

static double acked(const struct moment *m, unsigned from, unsigned until)
{
	double sum = 0;
	unsigned i;

	for (i = from; i < until && i < m->n; i++)
		sum += m->row[i].acked_bytes;
	return sum;
}

/* The RTTs of the first segments, until they are known. */
static void observe_idle(struct replay *r, const struct moment *m)
{
	double sum_s = 0;
	unsigned i, n = 0;

	for (i = 0; i < m->n; i++) {
		sum_s += m->row[i].min_rtt_s;
		n += m->row[i].min_rtt_s > 0;
	}
	if (r->evidence.idle_rtt_s == 0 && n > 0)
		r->evidence.idle_rtt_s = sum_s / n;
}

/* Rate of older streams over that of newer streams, in the second half of the longest level. */
static double older_ratio(const struct moment *half, const struct moment *end, unsigned older)
{
	double old = acked(end, 0, older) - acked(half, 0, older);
	double new = acked(end, older, end->n) - acked(half, older, end->n);

	return half->n > 0 && new > 0 ? old / older / (new / (end->n - older)) : 1;
}

/* older: streams of the level before that remain. */
static int replay_level(struct replay *r, unsigned streams, unsigned older)
{
	static struct moment first, last, now, half;
	struct loss_events events[STREAMS_MAX] = { { 0 } }, unused[STREAMS_MAX] = { { 0 } };
	static struct evidence_watch watch;
	static struct steady settle;
	struct evidence_sample s, all;
	struct steady_result result;
	struct probe *p = &r->probe[r->n_probes];

	while (next_moment(r, &first) && first.n != streams)
		;
	if (first.n != streams)
		return -1;
	observe_idle(r, &first);
	settle.n = watch.n = half.n = 0;
	last = first;
	while (!probe_is_done(&settle, last.at_s - first.at_s, evidence_watch_cycle_s(&watch, &r->evidence, streams),
	    probe_max_s(streams)) && next_moment(r, &now) && now.n == streams) {
		observe_idle(r, &now);
		s = difference(&last, &now, events);
		evidence_watch_add(&watch, &r->evidence, &s);
		steady_add(&settle, 8 * (acked(&now, 0, now.n) - acked(&last, 0, now.n)) / s.interval_s);
		if (half.n == 0 && now.at_s - first.at_s >= probe_max_s(streams) / 2)
			half = now;
		last = now;
	}
	if (steady_result(&result, &settle) < 0)
		return -1;
	evidence_add_level(&r->evidence, &watch, streams, &result, older > 0 ? older_ratio(&half, &last, older) : 0);
	probe_of_steady(p, streams, &result);
	if (older > 0)
		probe_grew(&p[-1], p, older_ratio(&half, &last, older));
	r->n_probes++;
	all = difference(&first, &last, unused);
	r->windows |= limit_is_partial(&(struct limit_times){ all.busy_s, all.busy_s, all.window_s, 0 });
	return 0;
}

/* ---- Answers ---- */

static int answer(const struct replay *r, struct seed_answer *out, double budget_ratio, enum replay_method method)
{
	struct advice_opts o;
	struct advice_point p;
	static struct advice a;
	unsigned n;

	advice_opts_init(&o);
	o.budget_ratio = budget_ratio;
	o.congestion = advice_congestion_by_name(r->c->congestion);
	o.prior_others = FIT_PRIOR_OTHERS;
	if ((method == REPLAY_MIXTURE ? advice_from_evidence(&a, &r->evidence, &o, NULL) :
	    advice_from_probes(&a, r->probe, r->n_probes, &o, NULL)) < 0)
		return -1;
	*out = (struct seed_answer){ .budget_ratio = budget_ratio, .streams = a.streams, .mbps = a.throughput_bps / 1e6,
		.low_mbps = a.throughput_low_bps / 1e6, .high_mbps = a.throughput_high_bps / 1e6,
		.impact_ratio = a.impact_ratio,
		.impact_low_ratio = a.impact_low_ratio, .impact_high_ratio = a.impact_high_ratio,
		.confident = a.confident && !r->windows, .seconds = NAN };
	snprintf(out->congestion, sizeof out->congestion, "%s", r->c->congestion);
	for (n = 1; n <= SEED_STREAMS_MOST; n++) {
		advice_at(&a, n, &p);
		out->curve[out->n_curve++] = (struct seed_point){ p.throughput_bps / 1e6, p.throughput_low_bps / 1e6,
			p.throughput_high_bps / 1e6, p.impact_ratio, p.impact_low_ratio, p.impact_high_ratio };
	}
	return 0;
}

/* FOLDER/raw/NAME beside FOLDER/SEED.jsonl. */
static FILE *open_raw(const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	char path[4096];

	snprintf(path, sizeof path, "%.*sraw/%s", slash != NULL ? (int)(slash + 1 - file) : 0, file, name);
	return fopen(path, "r");
}

static bool open_probes(struct replay *r, const char *file, const char *name)
{
	r->name = name;
	r->f = open_raw(file, name);
	r->more = r->f != NULL && read_row(&r->row, r->f);
	if (r->f == NULL)
		perror(name);
	return r->f != NULL;
}

static int no_level(const struct replay *r, unsigned streams)
{
	fprintf(stderr, "%s: no level of %u streams with a rate\n", r->name, streams);
	return -1;
}

static int replay_levels(struct replay *r, const char *file)
{
	int result = 0;
	size_t k;

	if (!open_probes(r, file, r->c->probes))
		return -1;
	for (k = 0; k < LEVELS && result == 0; k++)
		if (replay_level(r, levels[k], k > 0 ? levels[k - 1] : 0) < 0)
			result = no_level(r, levels[k]);
	fclose(r->f);
	return result;
}

static int replay(struct replay *r, struct seed_case *c, const char *file, enum replay_method method)
{
	size_t i;

	r->c = c;
	if (replay_levels(r, file) < 0)
		return -1;
	for (i = 0; i < sizeof budgets / sizeof *budgets; i++, c->answers++)
		if (answer(r, &c->answer[i], budgets[i], method) < 0)
			return -1;
	return 0;
}

int replay_answers(struct seed_case *c, const char *file, enum replay_method method)
{
	struct replay *r;
	int result;

	c->answers = 0;
	if (c->probes[0] == '\0')
		return 0;
	if ((r = calloc(1, sizeof *r)) == NULL)
		return -1;
	result = replay(r, c, file, method);
	free(r);
	return result;
}
