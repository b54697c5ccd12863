/* make advice-report: scores advice against the truth in truth.csv, offline, with the product's own
 * src/model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/advice/cases.h"
#include "bench/advice/score.h"
#include "model/probe.h"
#include "model/stats.h"

static const double budgets[] = { 0.10, 0.20, 0.30 };
#define BUDGETS (sizeof budgets / sizeof *budgets)

/* How an answer is found: from probes, or (levels 0) always `fixed` streams. */
struct method {
	const char *name;
	unsigned fixed;
	unsigned level[CASE_PROBES_MAX];
	size_t levels;
	bool joins;
	double level_s;        /* seconds of each level that count */
	enum fit_model model;
	bool usual;            /* with FIT_AUTO, beside what is usual */
};

#define METHODS_MAX 8

static const struct method methods[METHODS_MAX] = {
	{ .name = "4 streams", .fixed = 4 },
	{ .name = "8 streams", .fixed = 8 },
	{ .name = "two-probe", .level = { 1, 10 }, .levels = 2, .level_s = 5, .model = FIT_PARTIAL_QUADRATIC },
	{ .name = "ptcp", .level = ADVICE_LEVELS, .levels = 2, .joins = true, .level_s = 10, .usual = true },
};

/* What else could be done with as much time. */
static const struct method rivals[METHODS_MAX] = {
	{ .name = "two-probe, 10 s", .level = { 1, 10 }, .levels = 2, .level_s = 10, .model = FIT_PARTIAL_QUADRATIC },
	{ .name = "1, 10 fair share", .level = { 1, 10 }, .levels = 2, .level_s = 10 },
	{ .name = "4, 15 from scratch", .level = { 4, 15 }, .levels = 2, .level_s = 10 },
	{ .name = "4 grows to 15", .level = { 4, 15 }, .levels = 2, .joins = true, .level_s = 10 },
	{ .name = "2 to 15", .level = { 2, 15 }, .levels = 2, .joins = true, .level_s = 10, .usual = true },
	{ .name = "4 to 30", .level = { 4, 30 }, .levels = 2, .joins = true, .level_s = 10, .usual = true },
	{ .name = "ptcp, 5 s", .level = { 4, 15 }, .levels = 2, .joins = true, .level_s = 5, .usual = true },
	{ .name = "ptcp", .level = ADVICE_LEVELS, .levels = 2, .joins = true, .level_s = 10, .usual = true },
};

/* Which answers count: all, or those without warnings. */
enum subset { ALL, SURE, SUBSETS };

static bool list_cases, list_curves, every_sight;
static size_t n_methods; /* of those that are scored now */
static struct score scores[METHODS_MAX][SUBSETS];

static bool same_levels(const struct case_sight *s, const unsigned *level, size_t levels, bool joins)
{
	return s->levels == levels && s->joins == joins && memcmp(s->level, level, levels * sizeof *level) == 0;
}

static bool is_of(const struct case_sight *s, const struct method *m)
{
	return same_levels(s, m->level, m->levels, m->joins);
}

static size_t intervals(double seconds)
{
	return (size_t)(seconds / CASE_INTERVAL_S + 0.5);
}

/* The k-th level until it has told what it can, at most so long; how many intervals that took. */
static size_t take_level(struct steady *out, const struct case_sight *s, size_t k, double level_s)
{
	size_t each = s->n / s->levels, most = intervals(level_s), i;

	out->n = 0;
	for (i = 0; i < each && i < most && !probe_is_done(out, (double)i * CASE_INTERVAL_S, 0, PROBE_MANY_S); i++)
		steady_add(out, s->rate_mbps[k * each + i] * 1e6);
	return i;
}

/* What each stream of the first of two levels got over what each that joined it got, from half of the longest
 * time of the second level on; 1 where it ended before. */
static double older_ratio(const struct case_sight *s, double level_s, size_t used)
{
	size_t begin = s->n / s->levels, i = intervals(level_s / 2);
	double older = 0, all = 0;

	if (i >= used)
		return 1;
	for (; i < used; i++) {
		older += s->older_mbps[begin + i];
		all += s->rate_mbps[begin + i];
	}
	return older / s->level[0] / ((all - older) / (s->level[1] - s->level[0]));
}

/* What ptcp advise makes of what it sees, with levels of at most so long. */
static bool take_probes(struct probe *out, const struct case_sight *s, double level_s)
{
	size_t used = 0, k;
	struct steady settle;
	struct steady_result steady;

	for (k = 0; k < s->levels; k++) {
		used = take_level(&settle, s, k, level_s);
		if (steady_result(&steady, &settle) < 0)
			return false;
		probe_of_steady(&out[k], s->level[k], &steady);
	}
	if (s->joins)
		probe_grew(&out[0], &out[1], older_ratio(s, level_s, used));
	return true;
}

/* Whether the kernel was asked what held those streams up. */
static bool is_told(const struct case_sight *s)
{
	return s->times[0].elapsed_s > 0;
}

/* What held the probes up, as ptcp advise says it: of the levels the first that was not the network. */
static enum limit limit_of_sight(const struct case_sight *s)
{
	enum limit l = LIMIT_UNKNOWN;
	size_t k;

	for (k = 0; k < s->levels && (l == LIMIT_UNKNOWN || l == LIMIT_NETWORK); k++)
		l = limit_of(&s->times[k]);
	return l;
}

/* Whether that makes confidence low. Where the kernel was not asked, it is what it said of other such probes. */
static bool is_held(const struct path_case *c, const struct case_sight *s)
{
	const struct case_sight *other;
	size_t k;

	for (k = 0; k < s->levels; k++)
		if (limit_advice(limit_of(&s->times[k])) != NULL || limit_is_partial(&s->times[k]))
			return true;
	for (other = c->sight; !is_told(s) && other < c->sight + c->sights; other++)
		if (is_told(other) && same_levels(other, s->level, s->levels, s->joins) && is_held(c, other))
			return true;
	return false;
}

/* `drawn` says in which subsets the curve counts already. */
static void add_answer(struct score score[SUBSETS], const struct path_case *c, const struct advice *a,
    bool held, bool drawn[SUBSETS])
{
	bool counts[SUBSETS] = { true, !held && a->warnings == 0 };
	int i;

	for (i = 0; i < SUBSETS; i++) {
		if (!counts[i])
			continue;
		if (!drawn[i])
			score_curve(&score[i], c, &a->fit);
		drawn[i] = true;
		score_answer(&score[i], c, a->streams, a->budget_ratio);
	}
}

/* One line for each n measured: method, path, n, throughput (Mbit/s) and impact (%), true and predicted. */
static void print_curve(const struct method *m, const struct path_case *c, const struct fit *f)
{
	size_t i;

	for (i = 0; i < c->truths; i++) {
		unsigned n = c->truth[i].streams;

		printf("%s,%s,%u,%.4g,%.4g,%.1f,%.1f\n", m->name, c->name, n, c->truth[i].ours_mbps,
		    fit_throughput_bps(f, n) / 1e6, 100 * case_impact(c, n), 100 * fit_impact_ratio(f, n));
	}
}

/* One line for each answer: method, path, budget (%), streams, throughput predicted (Mbit/s) and true,
 * impact (%) true, share of the best (%), deviations of throughput and impact, warnings, what held the probes
 * up ("in-part": so do windows or buffers), probes. */
static void print_case(const struct method *m, const struct path_case *c, const struct probe *p,
    const struct case_sight *s, const struct advice *a)
{
	const char *limit = limit_name(limit_of_sight(s));
	double ours, cross;
	size_t i;

	if (is_held(c, s) && limit_advice(limit_of_sight(s)) == NULL)
		limit = "in-part";
	case_truth_at(c, a->streams, &ours, &cross);
	printf("%s,%s,%.0f,%u,%.3g,%.3g,%.0f,%.0f,%.2f,%.2f,%#x,%s", m->name, c->name, 100 * a->budget_ratio,
	    a->streams, a->throughput_bps / 1e6, ours, 100 * case_impact(c, a->streams),
	    100 * ours / case_best_mbps(c, a->budget_ratio), a->throughput_sd_ratio, a->impact_sd_ratio,
	    a->warnings, limit);
	for (i = 0; i < s->levels; i++)
		printf(",%u:%.3g+-%.2g", p[i].streams, p[i].throughput_bps / 1e6, p[i].error_bps / 1e6);
	printf("\n");
}

static void score_sight(struct score score[SUBSETS], const struct method *m, const struct path_case *c,
    const struct case_sight *s)
{
	struct probe p[CASE_PROBES_MAX];
	struct advice_opts o;
	struct advice a;
	bool drawn[SUBSETS] = { false };
	size_t b;

	if (!take_probes(p, s, m->level_s))
		return;
	for (b = 0; b < BUDGETS; b++) {
		advice_opts_init(&o);
		o.model = m->model;
		o.budget_ratio = budgets[b];
		o.congestion = advice_congestion_by_name(c->cc);
		o.prior_others = m->usual ? FIT_PRIOR_OTHERS : 0;
		if (advice_from_probes(&a, p, s->levels, &o, NULL) < 0)
			continue;
		add_answer(score, c, &a, is_held(c, s), drawn);
		if (list_cases)
			print_case(m, c, p, s, &a);
		if (list_curves && b == 0)
			print_curve(m, c, &a.fit);
	}
}

static void score_method(struct score score[SUBSETS], const struct method *m, const struct path_case *c)
{
	struct advice fixed = { .streams = m->fixed };
	bool no_curve[SUBSETS] = { true, true };
	size_t i;

	for (i = 0; m->levels == 0 && i < BUDGETS; i++) {
		fixed.budget_ratio = budgets[i];
		add_answer(score, c, &fixed, false, no_curve);
	}
	/* Each path counts once, by what was probed there first. */
	for (i = 0; m->levels > 0 && i < c->sights; i++)
		if (is_of(&c->sight[i], m)) {
			score_sight(score, m, c, &c->sight[i]);
			if (!every_sight)
				break;
		}
}

/* ---- Printing ---- */

static void print_cell(double v, const char *form)
{
	if (isnan(v))
		printf(" | -");
	else {
		printf(" | ");
		printf(form, v);
	}
}

static void print_row(const char *what, enum subset of, double (*value)(const struct score *), const char *form)
{
	size_t m;

	printf("| %s", what);
	for (m = 0; m < n_methods; m++)
		print_cell(scores[m][of].cases > 0 ? value(&scores[m][of]) : NAN, form);
	printf(" |\n");
}

static double throughput_median(const struct score *s) { return 100 * sample_quantile(&s->throughput, 0.5); }
static double throughput_p90(const struct score *s) { return 100 * sample_quantile(&s->throughput, 0.9); }
static double correlation(const struct score *s) { return s->streams.n > 0 ? score_correlation(s) : NAN; }
static double impact_median(const struct score *s) { return 100 * sample_quantile(&s->impact, 0.5); }
static double impact_same(const struct score *s) { return 100 * sample_quantile(&s->impact_same, 0.5); }
static double share_median(const struct score *s) { return 100 * sample_quantile(&s->share, 0.5); }
static double share_p10(const struct score *s) { return 100 * sample_quantile(&s->share, 0.1); }
static double broken(const struct score *s) { return 100.0 * (double)s->broken / (double)s->cases; }
static double excess_p90(const struct score *s) { return 100 * sample_quantile(&s->excess, 0.9); }
static double cases(const struct score *s) { return (double)s->cases; }

static void print_table(const char *title, const struct method *all, enum subset of)
{
	size_t m;

	printf("\n%s\n\n| ", title);
	for (m = 0; m < n_methods; m++)
		printf(" | %s", all[m].name);
	printf(" |\n|---");
	for (m = 0; m < n_methods; m++)
		printf("|---:");
	printf("|\n");
	print_row("answers", of, cases, "%.0f");
	print_row("throughput error, median, %", of, throughput_median, "%.0f");
	print_row("throughput error, 9 in 10, %", of, throughput_p90, "%.0f");
	print_row("its correlation with n", of, correlation, "%.2f");
	print_row("impact error, median, points", of, impact_median, "%.0f");
	print_row("impact error, Reno and CUBIC", of, impact_same, "%.0f");
	print_row("share of the best, median, %", of, share_median, "%.0f");
	print_row("share of the best, 1 in 10, %", of, share_p10, "%.0f");
	print_row("budget broken by over 5 points, %", of, broken, "%.0f");
	print_row("impact above budget, 9 in 10, points", of, excess_p90, "%.0f");
}

/* The goals for answers without warnings beside what ptcp reaches. */
static void print_marks(void)
{
	static const struct {
		const char *what;
		double (*value)(const struct score *);
		double least, better;
	} mark[] = {
		{ "throughput error, median, %", throughput_median, 15, 10 },
		{ "throughput error, 9 in 10, %", throughput_p90, 35, 25 },
		{ "impact error, Reno and CUBIC, median, points", impact_same, 12, 8 },
		{ "share of the best, median, %", share_median, 85, 90 },
		{ "share of the best, 1 in 10, %", share_p10, 65, 75 },
		{ "budget broken by over 5 points, %", broken, 15, 10 },
	};
	const struct score *s = scores[n_methods - 1];
	size_t i;

	printf("\nAnswers without warnings by ptcp\n\n|  | goal | stretch goal | ptcp |\n|---|---:|---:|---:|\n");
	for (i = 0; i < sizeof mark / sizeof *mark; i++) {
		printf("| %s | %.0f | %.0f", mark[i].what, mark[i].least, mark[i].better);
		print_cell(s[SURE].cases > 0 ? mark[i].value(&s[SURE]) : NAN, "%.0f");
		printf(" |\n");
	}
	printf("| of all answers, %% | 50 | 70");
	print_cell(100.0 * (double)s[SURE].cases / (double)s[ALL].cases, "%.0f");
	printf(" |\n");
}

static bool has_sight(const struct path_case *c, const struct method *m)
{
	size_t i;

	for (i = 0; i < c->sights; i++)
		if (is_of(&c->sight[i], m))
			return true;
	return m->levels == 0;
}

/* Scores all methods on the paths that have truth and what every method needs. */
static size_t score_all(const struct method all[METHODS_MAX], const struct path_case *c, size_t count)
{
	size_t i, m, paths = 0;

	memset(scores, 0, sizeof scores);
	for (n_methods = 0; n_methods < METHODS_MAX && all[n_methods].name != NULL; n_methods++)
		;
	for (i = 0; i < count; i++) {
		for (m = 0; m < n_methods && case_is_whole(&c[i]) && has_sight(&c[i], &all[m]); m++)
			;
		if (m < n_methods)
			continue;
		paths++;
		for (m = 0; m < n_methods; m++)
			score_method(scores[m], &all[m], &c[i]);
	}
	return paths;
}

int main(int argc, char **argv)
{
	struct path_case *all;
	size_t count, paths;

	list_cases = argc == 3 && strcmp(argv[1], "-v") == 0;
	list_curves = argc == 3 && strcmp(argv[1], "-c") == 0;
	every_sight = argc == 3 && strcmp(argv[1], "-a") == 0;
	if (argc != 2 && !list_cases && !list_curves && !every_sight) {
		fprintf(stderr, "usage: report [-v | -c | -a] truth.csv\n");
		return 2;
	}
	if (cases_read(argv[argc - 1], &all, &count) < 0)
		return 1;
	paths = score_all(methods, all, count);
	if (!list_cases && !list_curves) {
		printf("%zu paths, budgets of 10, 20 and 30 %%.\n", paths);
		print_table("All answers", methods, ALL);
		print_table("Answers without warnings", methods, SURE);
		print_marks();
		paths = score_all(rivals, all, count);
		printf("\nOther ways to probe, on the %zu paths where all were tried.\n", paths);
		print_table("All answers", rivals, ALL);
	}
	free(all);
	return 0;
}
