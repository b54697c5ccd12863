/* make advice-terms: whether each term of the weight of a hypothesis (model/evidence.h) earns its place, on paths
 * of single packets (tests/model/packet_path.h) whose seeds no test uses, and for which no term was made. No
 * formula of the model says there what a flow obtains.
 *
 *   terms [PATHS [SEED]]   PATHS: paths of each limit (default 40); SEED: of the first (default 30001)
 *
 * For each path: the answer to its evidence, with all terms and without one. The loss of an answer is the mean
 * over 1, 4 and 15 streams of |ln(predicted / true throughput)|, plus that of |predicted - true impact|. A term
 * earns its place if the loss without it is larger by two standard errors or more; it harms if the loss is smaller
 * by as much; otherwise these paths do not decide. Prints CSV: the loss with all terms, and its change without
 * each, also on both halves of the seeds, and on the limits of a path that it changes most; the number of answers
 * with high confidence; the verdict. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/advice.h"
#include "model/packet_path.h"

#define PARAMETER(name, value, unit, text) double name = value;
#define PARAMETER_COUNT(name, value, unit, text) int name = value;
#include "model/parameters.def"
#undef PARAMETER
#undef PARAMETER_COUNT

#define FIRST_SEED 30001
#define PATHS_MAX 500 /* of each limit */
#define TRUTH_S 30.0
#define DECIDES 2.0   /* standard errors */

static const unsigned counts[] = ADVICE_PROBES;
#define COUNTS (sizeof counts / sizeof *counts)

static const char *const names[BELIEF_TERMS] = {
#define X(id, name) [id] = name,
	BELIEF_TERM_LIST(X)
#undef X
};

struct path {
	struct evidence evidence;
	double bps[COUNTS], impact[COUNTS];
	bool has_others;
	double loss;      /* with all terms */
};

static struct path paths[PATHS_MAX * PACKET_LIMITS];

static void observe(struct path *x, enum packet_limit limit, uint64_t seed)
{
	struct packet_path p = packet_path_of(limit, seed);
	double others_bps, one_bps = 0;
	size_t i;

	packet_path_evidence(&p, seed, &x->evidence);
	x->has_others = p.others > 0;
	for (i = 0; i < COUNTS; i++) {
		x->bps[i] = packet_path_truth(&p, seed + 1000000, counts[i], TRUTH_S, &others_bps);
		one_bps = i == 0 ? others_bps : one_bps;
		x->impact[i] = x->has_others && one_bps > 0 ? 1 - others_bps / one_bps : 0;
	}
}

/* *confident: counts answers of high confidence. */
static double loss_of(const struct path *x, unsigned *confident)
{
	struct advice_opts o;
	struct advice_point at;
	struct advice a;
	double rates = 0, impacts = 0;
	size_t i;

	advice_opts_init(&o);
	o.congestion = ADVICE_CC_CUBIC;
	o.prior_others = FIT_PRIOR_OTHERS;
	if (advice_from_evidence(&a, &x->evidence, &o, NULL) < 0)
		return 0;
	*confident += a.confident;
	for (i = 0; i < COUNTS; i++) {
		advice_at(&a, counts[i], &at);
		rates += fabs(log(at.throughput_bps / x->bps[i])) / COUNTS;
		impacts += fabs(at.impact_ratio - x->impact[i]) / COUNTS;
	}
	return rates + impacts;
}

struct mean {
	double sum, squares;
	size_t n;
};

static void mean_add(struct mean *m, double x)
{
	m->sum += x;
	m->squares += x * x;
	m->n++;
}

static double mean_of(const struct mean *m) { return m->n > 0 ? m->sum / (double)m->n : 0; }

static double error_of(const struct mean *m)
{
	double mean = mean_of(m);

	return m->n > 1 ? sqrt(fmax(m->squares / (double)m->n - mean * mean, 0) / (double)(m->n - 1)) : 0;
}

/* The limits on which the loss changes most, one way and the other. */
static void print_term(unsigned term, const struct mean half[2], const struct mean *all,
    const struct mean limit[PACKET_LIMITS], unsigned confident)
{
	unsigned i, worst = 0, best = 0;
	double change = mean_of(all), error = error_of(all);

	for (i = 1; i < PACKET_LIMITS; i++) {
		worst = mean_of(&limit[i]) > mean_of(&limit[worst]) ? i : worst;
		best = mean_of(&limit[i]) < mean_of(&limit[best]) ? i : best;
	}
	printf("%s,%.4f,%.4f,%.4f,%.4f,%s,%.4f,%s,%.4f,%u,%s\n", names[term], change, error, mean_of(&half[0]),
	    mean_of(&half[1]), packet_limit_name[worst], mean_of(&limit[worst]), packet_limit_name[best],
	    mean_of(&limit[best]), confident,
	    change > DECIDES * error ? "earns its place" : change < -DECIDES * error ? "harms" : "undecided");
	fflush(stdout);
}

static void leave_out(unsigned term, size_t n)
{
	struct mean half[2] = { 0 }, all = { 0 }, limit[PACKET_LIMITS] = { 0 };
	unsigned confident = 0;
	size_t i;

	belief_without = 1u << term;
	for (i = 0; i < n; i++) {
		double change = loss_of(&paths[i], &confident) - paths[i].loss;

		mean_add(&all, change);
		mean_add(&half[i / PACKET_LIMITS % 2], change);
		mean_add(&limit[i % PACKET_LIMITS], change);
	}
	belief_without = 0;
	print_term(term, half, &all, limit, confident);
}

int main(int argc, char **argv)
{
	size_t each = argc > 1 ? strtoul(argv[1], NULL, 10) : 40, n = each * PACKET_LIMITS, i;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : FIRST_SEED;
	struct mean usual = { 0 };
	unsigned confident = 0, term;

	if (argc > 3 || each == 0 || each > PATHS_MAX) {
		fprintf(stderr, "usage: terms [PATHS [SEED]], 1 to %d paths of each limit\n", PATHS_MAX);
		return 2;
	}
	for (i = 0; i < n; i++) {
		observe(&paths[i], (enum packet_limit)(i % PACKET_LIMITS), seed + i / PACKET_LIMITS);
		paths[i].loss = loss_of(&paths[i], &confident);
		mean_add(&usual, paths[i].loss);
	}
	printf("without,loss,standard error,first half,second half,most on,by,least on,by,confident,verdict\n");
	printf("none,%.4f,%.4f,,,,,,,%u,%zu paths\n", mean_of(&usual), error_of(&usual), confident, n);
	for (term = 0; term < BELIEF_TERMS; term++)
		leave_out(term, n);
	return 0;
}
