/* make advice-sensitivity: what changes with each parameter of model (model/parameters.def) at 70 and 130 % of its
 * value, on simulated paths (tests/model/drawn_path.h) whose seeds no test uses. The sources of model are compiled with
 * PARAMETERS_VARY, so that parameters are variables.
 *
 *   sensitivity [PATHS [TEXT]]   PATHS: number of paths (default 60); TEXT: only parameters with this text in the name
 *
 * Prints CSV. `change` is the largest change of a figure; a parameter without change is a candidate for removal, or has
 * no effect in these paths: of one host, one path, CUBIC, without yielding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/drawn_path.h"
#include "model/parameters.h"
#include "model/stats.h"
#include "quantile.h"

#define PARAMETER(name, value, unit, text) double name = value;
#define PARAMETER_COUNT(name, value, unit, text) int name = value;
#include "model/parameters.def"
#undef PARAMETER
#undef PARAMETER_COUNT

#define FIRST_SEED 10001
#define PATHS_MAX 1000

static const struct parameter {
	const char *name;
	double *real; /* or */
	int *count;
} parameters[] = {
#define PARAMETER(name, value, unit, text) { #name, &name, NULL },
#define PARAMETER_COUNT(name, value, unit, text) { #name, NULL, &name },
#include "model/parameters.def"
};
#define N_PARAMETERS (sizeof parameters / sizeof *parameters)

/* In percent, or points. */
enum figure { MEDIAN, TENTH, ABOVE, THROUGHPUT, THROUGHPUT_90, IMPACT, IMPACT_90, FIGURES };
static const char *const names[FIGURES] = { "auto/best median", "auto/best worst tenth", "above budget 9 in 10",
	"throughput error median", "throughput error 9 in 10", "impact error median", "impact error 9 in 10" };

static double at(double *x, size_t n, double q)
{
	stats_sort(x, n);
	return n > 0 ? 100 * quantile(x, n, q) : 0;
}

static void measure(double figure[FIGURES], size_t paths)
{
	static double part[PATHS_MAX], above[PATHS_MAX], throughput[PATHS_MAX], impact[PATHS_MAX];
	size_t i, n_above = 0, n_first = 0;

	for (i = 0; i < paths; i++) {
		struct drawn p = draw_path(FIRST_SEED + i);
		struct outcome o = drawn_transfer(&p, FIRST_SEED + i);

		part[i] = o.bps / drawn_best_bps(&p);
		if (p.others > 0)
			above[n_above++] = o.above;
		if (o.first > 0) {
			throughput[n_first] = fabs(expm1(o.throughput_error));
			impact[n_first++] = fabs(o.impact_error);
		}
	}
	figure[MEDIAN] = at(part, paths, 0.5);
	figure[TENTH] = at(part, paths, 0.1);
	figure[ABOVE] = at(above, n_above, 0.9);
	figure[THROUGHPUT] = at(throughput, n_first, 0.5);
	figure[THROUGHPUT_90] = at(throughput, n_first, 0.9);
	figure[IMPACT] = at(impact, n_first, 0.5);
	figure[IMPACT_90] = at(impact, n_first, 0.9);
}

static void set(const struct parameter *p, double value)
{
	if (p->real != NULL)
		*p->real = value;
	else
		*p->count = (int)lround(value);
}

static void print(const char *name, double value, const double figure[FIGURES], const double usual[FIGURES])
{
	double most = 0;
	int f;

	printf("%s,%g", name, value);
	for (f = 0; f < FIGURES; f++) {
		printf(",%.1f", figure[f]);
		most = fmax(most, fabs(figure[f] - usual[f]));
	}
	printf(",%.1f\n", most);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	size_t paths = argc > 1 ? strtoul(argv[1], NULL, 10) : 60, i;
	double usual[FIGURES], figure[FIGURES];
	int f, k;

	if (argc > 3 || paths == 0 || paths > PATHS_MAX) {
		fprintf(stderr, "usage: sensitivity [PATHS [TEXT]], 1 to %d paths\n", PATHS_MAX);
		return 2;
	}
	printf("parameter,value");
	for (f = 0; f < FIGURES; f++)
		printf(",%s", names[f]);
	printf(",change\n");
	measure(usual, paths);
	print("none", 0, usual, usual);
	for (i = 0; i < N_PARAMETERS; i++) {
		const struct parameter *p = &parameters[i];
		double value = p->real != NULL ? *p->real : *p->count;

		if (argc > 2 && strstr(p->name, argv[2]) == NULL)
			continue;
		for (k = 0; k < 2; k++) {
			set(p, value * (k == 0 ? 0.7 : 1.3));
			measure(figure, paths);
			print(p->name, p->real != NULL ? *p->real : *p->count, figure, usual);
		}
		set(p, value);
	}
	return 0;
}
