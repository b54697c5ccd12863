#include "model/probe.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/parameters.h"
#include "model/stats.h"

#define BATCH_MIN 2 /* intervals */

void steady_add(struct steady *s, double rate_bps)
{
	if (s->n < STEADY_MAX)
		s->rate_bps[s->n++] = rate_bps;
}

/* Number of intervals to truncate, computed from the end with running sums. */
static size_t truncation(const struct steady *s)
{
	double sum = 0, squares = 0, spread, least = INFINITY;
	size_t i = s->n, best = 0;

	while (i-- > 0) {
		double k = (double)(s->n - i);

		sum += s->rate_bps[i];
		squares += s->rate_bps[i] * s->rate_bps[i];
		spread = (squares - sum * sum / k) / (k * k);
		if (i <= s->n / 2 && spread <= least) {
			least = spread;
			best = i;
		}
	}
	return best;
}

int steady_result(struct steady_result *out, const struct steady *s)
{
	size_t skip = truncation(s), batch = (s->n - skip) / STEADY_BATCHES, b;
	double mean[STEADY_BATCHES];
	struct stats st;

	if (batch < BATCH_MIN)
		return -1;
	skip = s->n - batch * STEADY_BATCHES; /* the latest whole batches */
	for (b = 0; b < STEADY_BATCHES; b++) {
		stats_of(&st, s->rate_bps + skip + b * batch, batch);
		mean[b] = st.mean;
	}
	stats_of(&st, mean, STEADY_BATCHES);
	if (!(st.mean > 0))
		return -1;
	*out = (struct steady_result){ skip, st.mean, st.sd / sqrt(STEADY_BATCHES) };
	return 0;
}

/* ---- Probes ---- */

double probe_error_ratio(const struct probe *p)
{
	if (p->error_bps > 0)
		return p->error_bps / p->throughput_bps;
	return p->streams >= 8 ? 0.1 : 0.1 * pow(8.0 / p->streams, 0.6);
}

/* Level next to n: with at most n streams, or with at least n; NULL: none. */
static const struct probe *level_beside(const struct probe *all, size_t count, unsigned n, bool below)
{
	const struct probe *p, *found = NULL;

	for (p = all; p < all + count; p++)
		if ((below ? p->streams <= n : p->streams >= n) &&
		    (found == NULL || (below ? p->streams >= found->streams : p->streams < found->streams)))
			found = p;
	return found;
}

double probe_between(const struct probe *p, size_t count, unsigned streams, double *error_ratio)
{
	const struct probe *from = level_beside(p, count, streams, true), *to = level_beside(p, count, streams, false);

	*error_ratio = probe_error_ratio(from != NULL ? from : to);
	if (from == NULL)
		return to->throughput_bps * streams / to->streams;
	if (to == NULL || to->streams == from->streams)
		return from->throughput_bps;
	return from->throughput_bps + (to->throughput_bps - from->throughput_bps) * (streams - from->streams) /
	    (to->streams - from->streams);
}

void probe_of_steady(struct probe *out, unsigned streams, const struct steady_result *s)
{
	*out = (struct probe){ streams, s->mean_bps, 0 };
	out->error_bps = hypot(s->error_bps, probe_error_ratio(out) * s->mean_bps);
}

static void widen(struct probe *p, double error_ratio)
{
	p->error_bps = hypot(probe_error_ratio(p), error_ratio) * p->throughput_bps;
}

/* The newer streams took at least half of the rate, entirely from the older: the path has no competing flows.
 * One competing flow would have raised the total by a sixth. */
static bool is_alone(const struct probe *before, const struct probe *after, double older_ratio)
{
	return fabs(after->throughput_bps / before->throughput_bps - 1) <= PROBE_ALONE_RATIO &&
	    before->streams * older_ratio <= after->streams - before->streams;
}

void probe_lag(const struct probe *before, const struct probe *after, double older_ratio, double *lag_before,
    double *lag_after)
{
	double lag = older_ratio > 1 ? PROBE_LAG_ERROR * log(older_ratio) : 0;
	double more = log(after->throughput_bps / after->streams * before->streams / before->throughput_bps);

	*lag_after = lag;
	*lag_before = hypot(lag, more > 0 ? PROBE_MORE_EACH_ERROR * more : 0);
}

void probe_grew(struct probe *before, struct probe *after, double older_ratio)
{
	double lag_before, lag_after;

	probe_lag(before, after, older_ratio, &lag_before, &lag_after);
	if (is_alone(before, after, older_ratio)) {
		before->error_bps = PROBE_ALONE_RATIO * before->throughput_bps;
		after->error_bps = PROBE_ALONE_RATIO * after->throughput_bps;
		return;
	}
	widen(after, lag_after);
	widen(before, lag_before);
}

double probe_max_s(unsigned streams)
{
	return fmax(PROBE_ONE_STREAM_S / sqrt(streams), PROBE_MANY_S);
}

double probe_share_s(const double *longest_s, size_t levels, double left_s)
{
	double sum_s = 0, rest_s = left_s - PROBE_MIN_S * (double)levels;
	size_t i;

	for (i = 0; i < levels; i++)
		sum_s += longest_s[i] - PROBE_MIN_S;
	if (rest_s >= sum_s)
		return longest_s[0];
	return PROBE_MIN_S + fmax(rest_s, 0) * (longest_s[0] - PROBE_MIN_S) / sum_s;
}

bool probe_is_done(const struct steady *s, double elapsed_s, double cycle_s, double max_s)
{
	struct steady_result r;

	if (elapsed_s >= max_s)
		return true;
	return elapsed_s >= fmax(PROBE_MIN_S, PROBE_STEADY_CYCLES * cycle_s) && steady_result(&r, s) == 0 &&
	    r.error_bps <= PROBE_STEADY_RATIO * r.mean_bps;
}

/* ---- Profile ---- */

size_t profile_find(const struct profile *l, unsigned streams)
{
	size_t i;

	for (i = 0; i < l->n && l->probe[i].streams != streams; i++)
		;
	return i;
}

const struct probe *profile_fewest(const struct profile *l)
{
	const struct probe *p, *least = l->probe;

	for (p = l->probe; p < l->probe + l->n; p++)
		if (p->streams < least->streams)
			least = p;
	return least;
}

const struct probe *profile_worst(const struct profile *l, unsigned from, unsigned until, unsigned now,
    double below_worth)
{
	const struct probe *found = NULL;
	double known, least = INFINITY;
	size_t i;

	for (i = 0; i < l->n; i++) {
		known = l->runs[i] * (l->probe[i].streams < now ? below_worth : 1);
		if (l->probe[i].streams >= from && l->probe[i].streams <= until && known < least) {
			least = known;
			found = &l->probe[i];
		}
	}
	return found;
}

void profile_add(struct profile *l, unsigned streams, double mean_bps, double runs, bool host_limited)
{
	struct probe p = { streams, mean_bps, 0 };
	size_t i = profile_find(l, streams);
	double known = 0;

	if (i == PROFILE_MAX) {
		i = (size_t)(profile_worst(l, 1, UINT_MAX, 1, 1) - l->probe);
	} else if (i == l->n) {
		l->n++;
	} else {
		known = fmin(l->runs[i], PROFILE_RUNS_MAX - fmin(runs, PROFILE_RUNS_MAX));
		p.throughput_bps = (known * l->probe[i].throughput_bps + runs * mean_bps) / (known + runs);
	}
	l->runs[i] = fmin(known + runs, PROFILE_RUNS_MAX);
	p.error_bps = probe_error_ratio(&p) * p.throughput_bps / sqrt(l->runs[i]);
	l->probe[i] = p;
	l->host_limited[i] = host_limited;
}

void profile_drop(struct profile *l, size_t i)
{
	l->n--;
	memmove(&l->probe[i], &l->probe[i + 1], (l->n - i) * sizeof *l->probe);
	memmove(&l->runs[i], &l->runs[i + 1], (l->n - i) * sizeof *l->runs);
	memmove(&l->host_limited[i], &l->host_limited[i + 1], (l->n - i) * sizeof *l->host_limited);
}

void profile_recall(struct profile *l, const struct probe *p, size_t count)
{
	for (l->n = 0; l->n < count; l->n++) {
		l->probe[l->n] = p[l->n];
		l->runs[l->n] = 1;
		l->host_limited[l->n] = false;
	}
}

/* Whether every smaller level has about the same throughput per stream. */
static bool each_as_much(const struct profile *l, const struct probe *of)
{
	const struct probe *p;

	for (p = l->probe; p < l->probe + l->n; p++)
		if (p->streams < of->streams &&
		    of->throughput_bps / of->streams < PROBE_EACH_RATIO * p->throughput_bps / p->streams)
			return false;
	return true;
}

const struct probe *profile_host_limited(const struct profile *l, const struct probe **above)
{
	const struct probe *p, *room = NULL;

	*above = NULL;
	for (p = l->probe; p < l->probe + l->n; p++)
		if (l->host_limited[p - l->probe] && each_as_much(l, p) && (room == NULL || p->streams > room->streams))
			room = p;
	for (p = l->probe; room != NULL && p < l->probe + l->n; p++)
		if (p->streams > room->streams && (*above == NULL || p->streams < (*above)->streams))
			*above = p;
	return room;
}

/* ---- Sender limit ---- */

static const struct {
	const char *name, *advice;
} all[] = {
#define X(id, name, advice) { name, advice },
	LIMIT_LIST(X)
#undef X
};

const char *limit_name(enum limit l)
{
	return all[l].name;
}

int limit_by_name(enum limit *out, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i].name, name) == 0) {
			*out = (enum limit)i;
			return 0;
		}
	return -1;
}

const char *limit_advice(enum limit l)
{
	return all[l].advice;
}

enum limit limit_of(const struct limit_times *t)
{
	if (!(t->elapsed_s > 0))
		return LIMIT_UNKNOWN;
	if (t->busy_s < t->elapsed_s / 2)
		return LIMIT_APPLICATION;
	if (t->window_s > t->busy_s / 2)
		return LIMIT_RECEIVE_WINDOW;
	if (t->buffer_s > t->busy_s / 2)
		return LIMIT_SEND_BUFFER;
	return LIMIT_NETWORK;
}

bool limit_is_partial(const struct limit_times *t)
{
	return t->window_s + t->buffer_s > t->busy_s / 20;
}
