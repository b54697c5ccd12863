#include "bench/collect/measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/stats.h"
#include "quantile.h"

#define ROWS_MAX 1000
#define SETTINGS_MAX 8

struct row {
	int draw, north, south, error;
	char way[40];
	double seconds, planned, replans, others, alone, held, stalled, waited;
	int tries; /* 0: not recorded, like `waited` */
};

static struct row rows[ROWS_MAX];
static size_t nrows;

struct interval interval_of(const double *x, size_t n)
{
	/* 97.5 % quantiles for 1, 2, .. degrees of freedom; behind them the normal one, near enough. */
	static const double t[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201,
		2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093 };
	struct stats s;

	stats_of(&s, x, n);
	return (struct interval){ s.mean, n < 2 ? 0 : (n - 2 < sizeof t / sizeof *t ? t[n - 2] : 1.98) * s.sd /
	    sqrt((double)n), n };
}

static int read_rows(const char *file)
{
	char line[400];
	FILE *f = fopen(file, "r");
	int number = 0;

	if (f == NULL) {
		fprintf(stderr, "%s: cannot be read\n", file);
		return 1;
	}
	while (fgets(line, sizeof line, f) != NULL) {
		struct row *r = &rows[nrows];

		if (++number == 1 || strstr(line, ",estimate,") != NULL)
			continue;
		if (nrows == ROWS_MAX || sscanf(line, "%d,%d,%d,%d,%39[^,],%lf,%lf,%lf,%*[^,],%lf,%lf,%lf,%lf,%lf,%d",
		    &r->draw, &r->north, &r->south, &r->error, r->way, &r->seconds, &r->planned,
		    &r->replans, &r->others, &r->alone, &r->held, &r->stalled, &r->waited, &r->tries) < 12) {
			fprintf(stderr, "%s:%d: not a row\n", file, number);
			fclose(f);
			return 1;
		}
		nrows++;
	}
	fclose(f);
	return 0;
}

static int is_of(const struct row *r, const struct row *setting, const char *way)
{
	return r->north == setting->north && r->south == setting->south && r->error == setting->error &&
	    strcmp(r->way, way) == 0;
}

static const struct row *find(const struct row *setting, const char *way, int draw)
{
	size_t i;

	for (i = 0; i < nrows; i++)
		if (rows[i].draw == draw && is_of(&rows[i], setting, way))
			return &rows[i];
	return NULL;
}

static struct interval of_way(const struct row *setting, const char *way, double (*value)(const struct row *))
{
	double x[ROWS_MAX];
	size_t i, n = 0;

	for (i = 0; i < nrows; i++)
		if (is_of(&rows[i], setting, way))
			x[n++] = value(&rows[i]);
	return interval_of(x, n);
}

/* By how many per cent a way takes longer than another, over the draws that have both. */
static struct interval longer(const struct row *setting, const char *way, const char *than)
{
	double x[ROWS_MAX];
	size_t i, n = 0;

	for (i = 0; i < nrows; i++) {
		const struct row *other = find(setting, than, rows[i].draw);

		if (is_of(&rows[i], setting, way) && other != NULL)
			x[n++] = 100 * (rows[i].seconds / other->seconds - 1);
	}
	return interval_of(x, n);
}

static double seconds_of(const struct row *r)
{
	return r->seconds;
}

static double planned_of(const struct row *r)
{
	return r->planned;
}

static double plans_of(const struct row *r)
{
	return r->replans;
}

static double loss_of(const struct row *r)
{
	return 100 * (1 - r->others / r->alone);
}

static double held_of(const struct row *r)
{
	return r->held;
}

static double stalled_of(const struct row *r)
{
	return r->stalled;
}

static void print_setting(const struct row *s)
{
	static const char *const ways[] = { "direct", "naive", "best-path", "coordinated-impact-100",
	    "pipelined-impact-100", "pipelined", "default-impact-100", "default", "pipelined-no-replan" };
	size_t i;

	for (i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct interval t = of_way(s, ways[i], seconds_of), best = longer(s, "best-path", ways[i]),
		    direct = longer(s, "direct", ways[i]);

		if (t.n == 0)
			continue;
		printf("| %d:%d, %d %% | %s | %zu | %.1f +- %.1f | %.1f | %.1f |", s->north, s->south,
		    s->error, ways[i],
		    t.n, t.mean, t.half, of_way(s, ways[i], planned_of).mean, of_way(s, ways[i], plans_of).mean);
		if (direct.n > 0)
			printf(" %.0f +- %.0f |", direct.mean, direct.half);
		else
			printf(" - |");
		if (best.n > 0)
			printf(" %.0f +- %.0f |", best.mean, best.half);
		else
			printf(" - |");
		if (s->north + s->south > 0)
			printf(" %.0f |", of_way(s, ways[i], loss_of).mean);
		else
			printf(" - |");
		printf(" %.1f | %.1f |\n", of_way(s, ways[i], held_of).mean, of_way(s, ways[i], stalled_of).mean);
	}
}

/* ---- Executed, over the plan and over all sources at once ---- */

#define STALLED_MAX 3.0 /* per cent of the time, as in `lab` */
#define WAITED_MAX 25.0

static int is_starved(const struct row *r) { return r->stalled > STALLED_MAX || r->waited > WAITED_MAX; }

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of the draws that have both; `than` NULL: its own plan. Draws in which the machine was taken away from either count
 * only with `starved`. */
static size_t list_ratios(const struct row *setting, const char *way, const char *than, int starved, double *x)
{
	const struct row *other;
	size_t i, n = 0;

	for (i = 0; i < nrows; i++) {
		if (!is_of(&rows[i], setting, way) || (other = than != NULL ? find(setting, than, rows[i].draw) :
		    &rows[i]) == NULL || (!starved && (is_starved(&rows[i]) || is_starved(other))))
			continue;
		x[n++] = rows[i].seconds / (than != NULL ? other->seconds : other->planned);
	}
	qsort(x, n, sizeof *x, compare);
	return n;
}

static void print_ratio(const struct row *setting, const char *way, const char *than, int starved)
{
	double x[ROWS_MAX];
	size_t n = list_ratios(setting, way, than, starved, x);

	if (n == 0)
		printf(" - |");
	else
		printf(" %.2f, %.2f (%zu) |", quantile(x, n, 0.5), x[n - 1], n);
}

static void print_executed(const struct row *s)
{
	static const struct { const char *way, *naive; } pairs[] = { { "pipelined", "direct" }, { "default", "naive" },
		{ "default-impact-100", "naive" } };
	double x[ROWS_MAX];
	size_t i;

	for (i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		if (list_ratios(s, pairs[i].way, NULL, 1, x) == 0)
			continue;
		printf("| %d:%d, %d %% | %s |", s->north, s->south, s->error, pairs[i].way);
		print_ratio(s, pairs[i].way, NULL, 1);
		print_ratio(s, pairs[i].way, NULL, 0);
		print_ratio(s, pairs[i].way, pairs[i].naive, 1);
		print_ratio(s, pairs[i].way, pairs[i].naive, 0);
		printf("\n");
	}
}

int report_measured(const char *file)
{
	const struct row *seen[SETTINGS_MAX];
	size_t i, k, n = 0;

	nrows = 0;

	if (read_rows(file) != 0)
		return 1;
	printf("\n## In the laboratory\n\nSeconds, mean and half of the 95 %% confidence interval; additional time of "
	    "direct and best path in per cent, draw by draw; loss of competing flows, planned storage of hosts, and "
	    "the emulator's stalls, in per cent.\n\n| flows, estimates off | method | draws | seconds | planned | "
	    "plans after the first | direct longer | best path longer | loss | stored | stalled |\n"
	    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
	for (i = 0; i < nrows; i++) {
		for (k = 0; k < n && !(seen[k]->north == rows[i].north && seen[k]->south == rows[i].south &&
		    seen[k]->error == rows[i].error); k++)
			;
		if (k < n || n == SETTINGS_MAX)
			continue;
		seen[n++] = &rows[i];
		print_setting(&rows[i]);
	}
	printf("\nSeconds over the plan's (goal: median 1.15, worst 1.3) and over those of all sources at once in the "
	    "same draw, direct for pipelined and naive for default (goal: 1 at worst): median, worst, (draws). "
	    "Starved: draws in which a process of ptcp waited for a processor for over %.0f %% of the time, or the "
	    "emulator stood still for over %.0f %%, in each of some tries.\n\n| flows, estimates off | method | over "
	    "the plan | without starved draws | over all at once | without starved draws "
	    "|\n|---|---|---:|---:|---:|---:|\n", WAITED_MAX, STALLED_MAX);
	for (k = 0; k < n; k++)
		print_executed(seen[k]);
	return 0;
}
