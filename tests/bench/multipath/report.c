/* make multipath-report: the rate controller against the optimum, beside the
 * published figures. Exits with 1 when a figure misses its mark. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/multipath/candidates_cases.h"
#include "bench/multipath/study.h"
#include "model/stats.h"
#include "quantile.h"

#define RUNS 30

static const double skews[] = { 0, 0.5, 1 };
static const double loads[] = { 0.6, 1, 1.6, 2 };

#define SKEWS (sizeof skews / sizeof *skews)
#define LOADS (sizeof loads / sizeof *loads)
#define ALL (SKEWS * LOADS * RUNS)

struct setup {
	const char *name;
	size_t k;
	double beta, spread;
	bool proportional;
	double error;
	enum study_sharing sharing;
};

struct sample {
	double gap[ALL], converged[ALL];
	double met[ALL]; /* share of the demand that the optimum could have met */
	size_t count;
};

static void run(const struct setup *u, double skew, double f, struct rng *r, struct sample *out)
{
	static struct study s;
	struct study_outcome o;
	struct ratectl_opts opts;
	double demand = 0;
	size_t i;

	ratectl_opts_init(&opts);
	opts.beta = u->beta;
	opts.delta_ratio = 0;
	study_init(&s, u->k, skew, f, u->spread, r);
	s.sharing = u->sharing;
	study_choose(&s, u->proportional, u->error, r);
	study_run(&s, &opts, r, &o);
	for (i = 0; i < s.sources; i++)
		demand += s.demand[i];
	out->gap[out->count] = 1 - o.reached / o.optimum;
	out->met[out->count] = o.reached / (demand * (f < 1 ? f : 1));
	out->converged[out->count++] = (double)o.converged;
}

static void print_row(const char *name, struct sample *x, size_t from)
{
	size_t n = x->count - from, i, near = 0;
	struct stats gap, met;
	double sorted[ALL];

	stats_of(&gap, x->gap + from, n);
	stats_of(&met, x->met + from, n);
	for (i = 0; i < n; i++) {
		near += x->gap[from + i] <= 0.04;
		sorted[i] = x->converged[from + i];
	}
	stats_sort(sorted, n);
	printf("%-34s %6.2f %6.2f %8.1f %7.0f %5.0f %8.1f\n", name, gap.mean * 100, gap.max * 100,
	    100.0 * (double)near / (double)n, quantile(sorted, n, 0.5),
	    quantile(sorted, n, 0.9), met.mean * 100);
}

static void print_head(void)
{
	printf("%-34s %6s %6s %8s %7s %5s %8s\n", "", "mean", "max", "within", "conv.", "", "demand");
	printf("%-34s %6s %6s %8s %7s %5s %8s\n", "", "gap %", "gap %", "4 %, %", "median", "p90",
	    "met %");
}

static void study_all(const struct setup *u, struct rng *r, struct sample *x, bool rows)
{
	char name[64];
	size_t b, f, i, from;

	x->count = 0;
	for (b = 0; b < SKEWS; b++)
		for (f = 0; f < LOADS; f++) {
			from = x->count;
			for (i = 0; i < RUNS; i++)
				run(u, skews[b], loads[f], r, x);
			snprintf(name, sizeof name, "  skew %.1f, f %.1f", skews[b], loads[f]);
			if (rows)
				print_row(name, x, from);
		}
	print_row(u->name, x, 0);
}

/* Issue 9's marks for the 360 runs. */
static int judge(struct sample *x)
{
	struct stats gap;
	double median, p90, near = 0;
	size_t i;

	for (i = 0; i < x->count; i++)
		near += x->gap[i] <= 0.04;
	stats_of(&gap, x->gap, x->count);
	stats_sort(x->converged, x->count);
	median = quantile(x->converged, x->count, 0.5);
	p90 = quantile(x->converged, x->count, 0.9);
	printf("%-34s %6s %6s %8s %7s %5s\n", "published (paper, numerical)", "", "4", "", "tens", "");
	printf("%-34s %6s %6s %8s %7s %5s\n", "an independent implementation", "0.70", "", "", "17",
	    "41");
	printf("%-34s %6s %6s %8s %7s %5s\n", "mark", "0.80", "", "99.0", "20", "50");
	return gap.mean <= 0.008 && near >= 0.99 * (double)x->count && median <= 20 && p90 <= 50;
}

static void print_reselections(struct rng *r)
{
	static const double f[] = { 1.2, 1.4, 1.6, 1.8, 2.0 };
	static const char *const names[] = {
		"uniform, k-reselection", "uniform, 1-reselection",
		"proportional, k-reselection", "proportional, 1-reselection"
	};
	static const char *const published[] = { "24.3", "36.8", "", "" } /* for uniform demands */;
	static struct study s;
	struct ratectl_opts opts;
	double total;
	size_t i, j;
	int kind;

	ratectl_opts_init(&opts);
	opts.delta_ratio = 0;
	printf("\nReselections until all demands are met (skew 1, k 2, mean of 10; 100 at most)\n"
	    "%-34s", "f");
	for (j = 0; j < sizeof f / sizeof *f; j++)
		printf(" %6.1f", f[j]);
	printf("   published\n");
	for (kind = 0; kind < 4; kind++) {
		printf("%-34s", names[kind]);
		for (j = 0; j < sizeof f / sizeof *f; j++) {
			for (total = 0, i = 0; i < 10; i++) {
				study_init(&s, 2, 1, f[j], 0, r);
				study_choose(&s, kind >= 2, 0, r);
				total += study_reselect(&s, &opts,
				    kind & 1 ? RESELECT_WORST : RESELECT_ALL, kind >= 2, 100, r);
			}
			printf(" %6.1f", total / 10);
		}
		printf("   %s\n", published[kind]);
	}
}

#define DRAWS 200
#define LONG_S 500 /* of the runs that count replacements */

static bool print_candidates(struct rng *r)
{
	struct candidates_figures f;
	bool good = true;
	size_t i;

	printf("\nSelection among candidates of 5 to 100 Mbit/s, 20 to 200 ms, noise 20 %%: %d random draws a row; the "
	    "mean\nof %d s, after %d s, against the best paths\n", DRAWS, CANDIDATES_MEASURED_S, CANDIDATES_AFTER_S);
	printf("%-34s %6s %8s %6s %8s %10s\n", "", "mean", "90 % of", "", "replaced", "10 s with");
	printf("%-34s %6s %8s %6s %8s %10s\n", "", "%", "best, %", "mark", "a minute", "1st choice");
	for (i = 0; i < CANDIDATES_CASES; i++) {
		candidates_measure(&candidates_cases[i], DRAWS, LONG_S, r, &f);
		printf("%-34s %6.1f %8.1f %6.0f %8.2f %8.1f s\n", candidates_cases[i].name, f.percent, f.good,
		    candidates_cases[i].mark, f.replaced, f.short_s);
		good = good && f.good >= candidates_cases[i].mark;
	}
	return good;
}

int main(int argc, char **argv)
{
	static const struct setup main_study = { "all 360, AIAD, k 2", 2, 0, 0, false, 0, STUDY_MAXMIN };
	static const struct setup others[] = {
		{ "k 2, shared in proportion", 2, 0, 0, false, 0, STUDY_PROPORTIONAL },
		{ "k 2, the same, MIMD", 2, 0.1, 0, false, 0, STUDY_PROPORTIONAL },
		{ "k 1", 1, 0, 0, false, 0, STUDY_MAXMIN },
		{ "k 3", 3, 0, 0, false, 0, STUDY_MAXMIN },
		{ "k 4", 4, 0, 0, false, 0, STUDY_MAXMIN },
		{ "k 2, MIMD", 2, 0.1, 0, false, 0, STUDY_MAXMIN },
		{ "k 2, demands 0.5 to 1.5", 2, 0, 0.5, false, 0, STUDY_MAXMIN },
		{ "k 3, demands 0.5 to 1.5", 3, 0, 0.5, false, 0, STUDY_MAXMIN },
		{ "k 2, proportional", 2, 0, 0, true, 0, STUDY_MAXMIN },
		{ "k 2, proportional, off by 50 %", 2, 0, 0, true, 0.5, STUDY_MAXMIN },
	};
	static struct sample x;
	struct rng r = { argc > 1 ? strtoull(argv[1], NULL, 0) : 1 };
	size_t i;
	int good;

	printf("100 sources, 100 relays, %d random path choices a row, eps 0.01, delta 0\n", RUNS);
	print_head();
	study_all(&main_study, &r, &x, true);
	good = judge(&x);
	printf("\n");
	print_head();
	for (i = 0; i < sizeof others / sizeof *others; i++)
		study_all(&others[i], &r, &x, false);
	print_reselections(&r);
	if (!print_candidates(&r))
		good = 0;
	printf("\n%s\n", good ? "all marks met" : "A MARK IS MISSED");
	return good ? 0 : 1;
}
