/* make plan-report: the study of study.h as a fluid, beside the published figures, and what was
 * measured of it in the laboratory.
 *
 *   report [-m] [-n DRAWS] [-c RUNS.csv] [LAB.csv..]
 *
 * -m: only what was measured; -n: so many draws of sizes and errors (5); -c: every run as a line into that file,
 * too. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/collect/execute.h"
#include "bench/collect/measured.h"

#define DRAWS_MAX 100
#define OTHERS 60

static const struct {
	const char *name;
	struct way way;
} ways[] = {
	{ "direct", { PTCP_PLAN_DIRECT, false, false } },
	{ "direct paced", { PTCP_PLAN_DIRECT, true, false } },
	{ "direct re-planned", { PTCP_PLAN_DIRECT, true, true } },
	{ "best path", { PTCP_PLAN_BEST_PATH, false, false } },
	{ "best path paced", { PTCP_PLAN_BEST_PATH, true, false } },
	{ "best path re-planned", { PTCP_PLAN_BEST_PATH, true, true } },
	{ "coordinated not paced", { PTCP_PLAN_COORDINATED, false, false } },
	{ "coordinated paced", { PTCP_PLAN_COORDINATED, true, false } },
	{ "coordinated re-planned", { PTCP_PLAN_COORDINATED, true, true } },
	{ "pipelined not paced", { PTCP_PLAN_PIPELINED, false, false } },
	{ "pipelined paced", { PTCP_PLAN_PIPELINED, true, false } },
	{ "pipelined re-planned", { PTCP_PLAN_PIPELINED, true, true } },
};
enum { DIRECT = 0, BEST_PATH = 3, COORDINATED = 7, COORDINATED_AGAIN = 8, PIPELINED = 10, PIPELINED_AGAIN = 11 };
#define WAYS (int)(sizeof ways / sizeof *ways)

static const struct load {
	const char *name;
	double north, south;
} loads[] = { { "1:1", 1, 1 }, { "2:1", 2, 1 }, { "1:3", 1, 3 }, { "3:1", 3, 1 } };
#define LOADS 4

static const char *const errors[] = { "none", "over", "under", "mixed" };

/* One setting: what all draws of all ways came to. */
struct cell {
	struct outcome o[12][DRAWS_MAX];
};

static int draws = 5;
static FILE *lines; /* or NULL */

static void run(struct cell *c, const struct load *l, double others, enum error e, double ratio, double udp,
    unsigned which)
{
	struct rng r;
	struct study s;
	int d, w;

	for (d = 0; d < draws; d++) {
		r.state = 1 + (uint64_t)d; /* a draw has its sizes in all settings */
		study_draw(&s, others, l->north, l->south, e, ratio, &r);
		s.udp_ratio = udp;
		for (w = 0; w < WAYS; w++) {
			struct outcome *o = &c->o[w][d];

			if (!(which & 1u << w))
				continue;
			if (execute(&s, &ways[w].way, o) < 0)
				exit(1);
			if (lines != NULL)
				fprintf(lines, "%s,%s,%g,%s,%g,%g,%d,%.2f,%.2f,%.2f,%.2f,%d\n", ways[w].name, l->name,
				    others, errors[e], 100 * ratio, 100 * udp, d + 1, o->makespan_s, o->planned_s,
				    100 * o->others_loss_ratio, 100 * o->storage_ratio, o->replans);
		}
	}
}

static struct interval makespan(const struct cell *c, int way)
{
	double x[DRAWS_MAX];
	int d;

	for (d = 0; d < draws; d++)
		x[d] = c->o[way][d].makespan_s;
	return interval_of(x, (size_t)draws);
}

/* By how much one way takes longer than another, draw by draw. */
static struct interval worse(const struct cell *c, int way, const struct cell *than, int other)
{
	double x[DRAWS_MAX];
	int d;

	for (d = 0; d < draws; d++)
		x[d] = 100 * (c->o[way][d].makespan_s / than->o[other][d].makespan_s - 1);
	return interval_of(x, (size_t)draws);
}

static double mean(const struct cell *c, int way, double (*value)(const struct outcome *))
{
	double sum = 0;
	int d;

	for (d = 0; d < draws; d++)
		sum += value(&c->o[way][d]);
	return sum / draws;
}

static double loss_of(const struct outcome *o)
{
	return 100 * o->others_loss_ratio;
}

static double storage_of(const struct outcome *o)
{
	return 100 * o->storage_ratio;
}

static double plans_of(const struct outcome *o)
{
	return o->replans;
}

static void print_true(struct cell c[LOADS])
{
	int w, l;

	printf("Makespans in seconds, true estimates, %d competing flows north to south; mean of %d draws and half of "
	    "the 95 %% confidence interval. Loss of competing flows and data stored for other sources, in per cent; "
	    "number of plans after the first.\n\n|  | 1:1 | 2:1 | 1:3 | 3:1 | loss 1:1 | 2:1 | 1:3 | 3:1 | stored 2:1 "
	    "| plans 2:1 |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n", OTHERS, draws);
	for (w = 0; w < WAYS; w++) {
		printf("| %s |", ways[w].name);
		for (l = 0; l < LOADS; l++) {
			struct interval i = makespan(&c[l], w);

			printf(" %.0f +- %.0f |", i.mean, i.half);
		}
		for (l = 0; l < LOADS; l++)
			printf(" %.0f |", mean(&c[l], w, loss_of));
		printf(" %.1f | %.0f |\n", mean(&c[1], w, storage_of), mean(&c[1], w, plans_of));
	}
}

static void print_published(struct cell c[LOADS])
{
	static const struct { const char *text; int load, way, published; } row[] = {
		{ "direct at 1:1", 0, DIRECT, 100 }, { "best path at 1:1", 0, BEST_PATH, 100 },
		{ "direct at 2:1", 1, DIRECT, 156 }, { "best path at 2:1", 1, BEST_PATH, 64 },
	};
	static const int than[] = { COORDINATED, COORDINATED_AGAIN, PIPELINED, PIPELINED_AGAIN };
	size_t i, k;

	printf("\nAdditional makespan in per cent, compared with\n\n|  | published |");
	for (k = 0; k < 4; k++)
		printf(" %s |", ways[than[k]].name);
	printf("\n|---|---:|---:|---:|---:|---:|\n");
	for (i = 0; i < 4; i++) {
		printf("| %s | %s%d |", row[i].text, row[i].load == 0 ? "over " : "", row[i].published);
		for (k = 0; k < 4; k++) {
			struct interval x = worse(&c[row[i].load], row[i].way, &c[row[i].load], than[k]);

			printf(" %.0f +- %.0f |", x.mean, x.half);
		}
		printf("\n");
	}
}

static double share_of(const struct cell *c, int way, const struct cell *than, int other, double most)
{
	int d, n = 0;

	for (d = 0; d < draws; d++)
		n += c->o[way][d].makespan_s <= than->o[other][d].makespan_s * most;
	return (double)n / draws;
}

#define FOR_ERRORS (1u << BEST_PATH | 1u << COORDINATED | 1u << COORDINATED_AGAIN | 1u << PIPELINED | \
	1u << PIPELINED_AGAIN)

/* Shares of the draws in which a way with errors, planned anew, is not slower than the best path with the
 * same errors, and within 15 % of itself with true estimates; the last, for pipelined, of the plan with true
 * estimates that was kept to. */
struct misled {
	double not_worse[2], within[2], of_plan; /* coordinated, pipelined */
};

#define ERROR_WAYS 5
static const int error_ways[ERROR_WAYS] = { BEST_PATH, COORDINATED, COORDINATED_AGAIN, PIPELINED, PIPELINED_AGAIN };

/* Over all loads: adds what each way takes longer to `longer`, of LOADS. */
static void run_misled(const struct cell true_ones[LOADS], enum error e, double ratio, double longer[ERROR_WAYS],
    struct misled *m)
{
	static const int again[] = { COORDINATED_AGAIN, PIPELINED_AGAIN };
	static struct cell c;
	int l, k;

	for (l = 0; l < LOADS; l++) {
		run(&c, &loads[l], OTHERS, e, ratio, 0, FOR_ERRORS);
		for (k = 0; k < ERROR_WAYS; k++)
			longer[k] += worse(&c, error_ways[k], &true_ones[l], error_ways[k]).mean / LOADS;
		for (k = 0; k < 2; k++) {
			m->not_worse[k] += share_of(&c, again[k], &c, BEST_PATH, 1) / LOADS;
			m->within[k] += share_of(&c, again[k], &true_ones[l], again[k], 1.15) / LOADS;
		}
		m->of_plan += share_of(&c, PIPELINED_AGAIN, &true_ones[l], PIPELINED, 1.15) / LOADS;
	}
}

static void print_errors(const struct cell true_ones[LOADS], struct misled *all)
{
	static const double ratios[] = { 0.3, 0.5, 0.7 };
	int e, i, k;

	printf("\nWrong estimates, all loads: additional makespan in per cent, compared with true estimates; and share "
	    "of 100 draws not slower than the best path with the same estimates, and within 15 %% of the same method "
	    "with true estimates.\n\n| off by, %% | best path | coordinated paced | re-planned | pipelined paced | "
	    "re-planned | coordinated: not worse | within | pipelined: not worse | within |\n"
	    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
	*all = (struct misled){ .not_worse = { 0 } };
	for (e = ERROR_OVER; e <= ERROR_MIXED; e++)
		for (i = 0; i < 3; i++) {
			struct misled m = { .not_worse = { 0 } };
			double longer[ERROR_WAYS] = { 0 };

			run_misled(true_ones, (enum error)e, ratios[i], longer, &m);
			printf("| %s, %.0f |", errors[e], 100 * ratios[i]);
			for (k = 0; k < ERROR_WAYS; k++)
				printf(" %.0f |", longer[k]);
			for (k = 0; k < 2; k++) {
				printf(" %.0f | %.0f |", 100 * m.not_worse[k], 100 * m.within[k]);
				all->not_worse[k] += m.not_worse[k] / 9;
				all->within[k] += m.within[k] / 9;
			}
			all->of_plan += m.of_plan / 9;
			printf("\n");
		}
}

static void print_goal(const char *what, double got, const char *want, bool met)
{
	printf("| %s | %s | %.0f | %s |\n", what, want, got, met ? "met" : "**missed**");
}

static void print_goals(struct cell c[LOADS], const struct misled *m)
{
	double x, most = 0, loss = 0;
	int l;

	printf("\n|  | goal | here |  |\n|---|---:|---:|---|\n");
	x = worse(&c[0], DIRECT, &c[0], PIPELINED_AGAIN).mean;
	print_goal("direct longer than pipelined re-planned, at 1:1, %", x, "100", x >= 100);
	x = worse(&c[1], DIRECT, &c[1], PIPELINED_AGAIN).mean;
	print_goal("at 2:1, %", x, "156", x >= 156);
	x = worse(&c[1], BEST_PATH, &c[1], PIPELINED_AGAIN).mean;
	print_goal("best path longer at 2:1, %", x, "64", x >= 64);
	x = 100 * m->not_worse[1];
	print_goal("misled draws in which it is not slower than the best path, %", x, "95", x >= 95);
	x = 100 * m->within[1];
	print_goal("misled draws within 15 % of itself with true estimates, %", x, "all", x >= 99.5);
	x = 100 * m->of_plan;
	print_goal("misled draws within 15 % of the plan with true estimates, not re-planned, %", x, "all", x >= 99.5);
	for (l = 0; l < LOADS; l++) {
		most = fmax(most, fmax(mean(&c[l], COORDINATED_AGAIN, storage_of), mean(&c[l], PIPELINED_AGAIN,
		    storage_of)));
		loss = fmax(loss, mean(&c[l], PIPELINED_AGAIN, loss_of) - mean(&c[l], DIRECT, loss_of));
	}
	print_goal("stored by sources, at most, % of all data", most, "15", most <= 15);
	print_goal("loss of competing flows beyond direct's, at most, points", loss, "10", loss <= 10);
}

#define SETTING_HEAD "direct | best path | coordinated re-planned | pipelined paced | re-planned |\n" \
	"|---:|---:|---:|---:|---:|---:|\n"

static void print_setting(const char *label, double others, double udp)
{
	static const int shown[] = { DIRECT, BEST_PATH, COORDINATED_AGAIN, PIPELINED, PIPELINED_AGAIN };
	static struct cell c;
	size_t k;

	run(&c, &loads[1], others, ERROR_NONE, 0, udp, FOR_ERRORS | 1u << DIRECT);
	printf("| %s |", label);
	for (k = 0; k < sizeof shown / sizeof *shown; k++)
		printf(" %.0f |", makespan(&c, shown[k]).mean);
	printf("\n");
}

static void print_settings(void)
{
	static const char *const others[] = { "0", "10", "20", "30", "40", "50", "60" }, *const udp[] = { "5", "20" };
	size_t i;

	printf("\nMakespans by number of competing flows, 2:1, true estimates\n\n| flows | " SETTING_HEAD);
	for (i = 0; i < sizeof others / sizeof *others; i++)
		print_setting(others[i], atof(others[i]), 0);
	printf("\nWith on/off traffic beside %d flows, 2:1\n\n| %% on average | " SETTING_HEAD, OTHERS);
	for (i = 0; i < sizeof udp / sizeof *udp; i++)
		print_setting(udp[i], OTHERS, atof(udp[i]) / 100);
}

static void report_fluid(void)
{
	static struct cell c[LOADS];
	struct misled misled;
	int l;

	if (lines != NULL)
		fprintf(lines, "way,load,others,error,off_percent,udp_percent,draw,makespan_s,planned_s,loss_percent,"
		    "held_percent,plans\n");
	printf("## As a fluid\n\n");
	for (l = 0; l < LOADS; l++)
		run(&c[l], &loads[l], OTHERS, ERROR_NONE, 0, 0, ~0u);
	print_true(c);
	print_published(c);
	print_errors(c, &misled);
	print_settings();
		print_goals(c, &misled);
}

int main(int argc, char **argv)
{
	bool only_measured = false;
	int opt;

	while ((opt = getopt(argc, argv, "mn:c:")) != -1)
		switch (opt) {
		case 'm': only_measured = true; break;
		case 'n': draws = atoi(optarg); break;
		case 'c':
			if ((lines = fopen(optarg, "w")) == NULL)
				return fprintf(stderr, "%s: cannot be written\n", optarg), 1;
			break;
		default: return 2;
		}
	if (draws < 2 || draws > DRAWS_MAX)
		return 2;
	if (!only_measured)
		report_fluid();
	if (lines != NULL && fclose(lines) != 0)
		return 1;
	for (; optind < argc; optind++)
		if (report_measured(argv[optind]) != 0)
			return 1;
	return 0;
}
