/* make campaign-report: scores advice and transfers with --streams auto on random paths (see the script `campaign`).
 *
 *   campaign_report [-r mixture|fit] [-s odd|even] [-v] FILE..
 *
 *   -r  score the answers of src/model to the recorded probes instead of the recorded answers of ptcp advise: of all
 *       evidence, or of the throughput alone
 *   -s  only odd or even seeds: parameters are calibrated on odd seeds
 *   -v  list the answers
 *
 * Forms (full, tuning, short) are reported apart, and within each form the seeds that the decision was tuned on (1 to
 * 60), the fresh seeds (from 1001 on), and any others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/advice/records.h"
#include "bench/advice/replay.h"
#include "bench/advice/seed_score.h"

#define TUNING_LAST 60
#define FRESH_FIRST 1001

/* ---- Classes of paths ---- */

static bool any(const struct seed_case *c) { (void)c; return true; }
static bool nobody(const struct seed_case *c) { return c->others == 0; }
static bool one_or_two(const struct seed_case *c) { return c->others >= 1 && c->others <= 2; }
static bool three_to_five(const struct seed_case *c) { return c->others >= 3 && c->others <= 5; }
static bool six_to_ten(const struct seed_case *c) { return c->others >= 6 && c->others <= 10; }
static bool over_ten(const struct seed_case *c) { return c->others > 10; }
static unsigned kinds(const struct seed_case *c) { return (unsigned)c->others_reno + c->others_cubic + c->others_bbr; }
static bool only_reno(const struct seed_case *c) { return c->others_reno && kinds(c) == 1; }
static bool only_cubic(const struct seed_case *c) { return c->others_cubic && kinds(c) == 1; }
static bool only_bbr(const struct seed_case *c) { return c->others_bbr && kinds(c) == 1; }
static bool mixed(const struct seed_case *c) { return kinds(c) > 1; }
static bool come_and_go(const struct seed_case *c) { return c->come_and_go; }
static bool mixed_rtt(const struct seed_case *c) { return c->mixed_rtt; }
static bool own_reno(const struct seed_case *c) { return strcmp(c->congestion, "reno") == 0; }
static bool own_cubic(const struct seed_case *c) { return strcmp(c->congestion, "cubic") == 0; }
static bool own_bbr(const struct seed_case *c) { return strcmp(c->congestion, "bbr") == 0; }
static bool lossless(const struct seed_case *c) { return c->loss_percent == 0; }
static bool little_loss(const struct seed_case *c) { return c->loss_percent > 0 && c->loss_percent < 0.1; }
static bool much_loss(const struct seed_case *c) { return c->loss_percent >= 0.1; }
static bool loss_alone(const struct seed_case *c) { return c->loss_percent > 0 && c->others == 0; }
static bool window(const struct seed_case *c) { return c->window_bytes > 0; }
static bool red(const struct seed_case *c) { return c->red; }
static bool short_queue(const struct seed_case *c) { return c->queue_packets < c->bdp_packets / 4; }
static bool long_queue(const struct seed_case *c) { return c->queue_packets >= c->bdp_packets; }

static const struct class {
	const char *name;
	bool (*has)(const struct seed_case *);
} classes[] = {
	{ "all", any }, { "no other flows", nobody }, { "1 or 2 others", one_or_two },
	    { "3 to 5 others", three_to_five },
	{ "6 to 10 others", six_to_ten }, { "11 to 20 others", over_ten }, { "others Reno", only_reno },
	{ "others CUBIC", only_cubic }, { "others BBR", only_bbr }, { "others mixed", mixed },
	{ "others come and go", come_and_go }, { "mixed RTTs", mixed_rtt }, { "ours Reno", own_reno },
	{ "ours CUBIC", own_cubic }, { "ours BBR", own_bbr }, { "no random loss", lossless },
	{ "loss below 0.1 %", little_loss }, { "loss from 0.1 %", much_loss }, { "loss, no others", loss_alone },
	{ "receive window", window }, { "RED", red }, { "queue < 1/4 BDP", short_queue },
	    { "queue >= 1 BDP", long_queue },
};
#define CLASSES (sizeof classes / sizeof *classes)

/* ---- Sets of seeds ---- */

enum set { TUNING, FRESH, OTHER, SETS };
static const char *const set_names[SETS] = { "tuning seeds (1 to 60)", "fresh seeds (from 1001 on)", "other seeds" };

static enum set set_of(const struct seed_case *c)
{
	return c->seed >= FRESH_FIRST ? FRESH : c->seed >= 1 && c->seed <= TUNING_LAST ? TUNING : OTHER;
}

static struct seed_score *score(const struct seed_case *c, size_t n, const char *form, enum set set,
    bool (*has)(const struct seed_case *))
{
	struct seed_score *s = calloc(1, sizeof *s);
	size_t i;

	if (s == NULL)
		abort();
	for (i = 0; i < n; i++)
		if (strcmp(c[i].form, form) == 0 && set_of(&c[i]) == set && has(&c[i]))
			seed_score_add(s, &c[i]);
	return s;
}

/* ---- Printing: no row without a sample ---- */

static void print_value(double v, const char *end)
{
	if (isnan(v))
		printf("-%s", end);
	else
		printf("%.0f%s", v, end);
}

static void print_quantiles(const char *what, struct samples *s, double first, double second, const char *goal)
{
	if (s->n == 0)
		return;
	printf("| %s | ", what);
	print_value(100 * samples_quantile(s, first), " / ");
	print_value(100 * samples_quantile(s, second), "");
	printf(" | %s | %zu |\n", goal, s->n);
}

static void print_share(const char *what, const struct share *s, const char *goal)
{
	if (s->all == 0)
		return;
	printf("| %s | ", what);
	print_value(share_percent(s), "");
	printf(" | %s | %u of %u |\n", goal, s->yes, s->all);
}

static void print_all(struct seed_score *s)
{
	printf("| | measured | goal | of |\n|---|---:|---:|---:|\n");
	print_quantiles("throughput error, median / 9 in 10, %", &s->throughput, 0.5, 0.9, "12 / 35");
	print_quantiles("scatter of truth, 1 or 2 streams, median / 9 in 10, %", &s->scatter_few, 0.5, 0.9, "");
	print_quantiles("scatter of truth, more streams, median / 9 in 10, %", &s->scatter_many, 0.5, 0.9, "");
	print_quantiles("impact error, median / 9 in 10, points", &s->impact, 0.5, 0.9, "6 / -");
	print_quantiles("scatter of true impact, median / 9 in 10, points", &s->scatter_impact, 0.5, 0.9, "");
	print_quantiles("goodput of the answer / best in the budget, median / worst tenth, %", &s->share, 0.5, 0.1, "");
	print_share("budget broken by over 5 points, %", &s->broken, "10");
	print_share("answers of high confidence, %", &s->confident, "60");
	print_share("of these, budget broken, %", &s->confident_broken, "6");
	print_share("true throughput in the 80 % range, %", &s->throughput_inside, "70 to 90");
	print_share("true impact in the 80 % range, %", &s->impact_inside, "70 to 90");
	print_quantiles("throughput error of all predictions, median / 9 in 10, %", &s->curve, 0.5, 0.9, "");
	print_quantiles("impact error of all predictions, median / 9 in 10, points", &s->curve_impact, 0.5, 0.9, "");
	print_share("true throughput in the range, all predictions, %", &s->curve_inside, "70 to 90");
	print_share("true impact in the range, all predictions, %", &s->curve_impact_inside, "70 to 90");
	print_quantiles("auto / best fixed number in the budget, median / worst tenth, %", &s->best,
	    0.5, 0.1, "92 / 80");
	print_quantiles("auto / 1 stream where more do not help, median / worst tenth, %", &s->no_gain,
	    0.5, 0.1, "97 / -");
	print_quantiles("auto / 32 streams, random loss alone, median / worst tenth, %", &s->lossy_alone,
	    0.5, 0.1, "90 / -");
	print_quantiles("auto / best fixed number, receive window, median / worst tenth, %", &s->windowed,
	    0.5, 0.1, "90 / -");
	print_quantiles("auto, impact over any 60 s above budget, median / 9 in 10, points", &s->excess,
	    0.5, 0.9, "5 / 5");
	print_quantiles("others, worst run of 1 stream below their mean, median / 9 in 10, points",
	    &s->varies, 0.5, 0.9, "");
	print_share("auto, budget kept within 5 points over any 60 s, %", &s->within, "100");
	print_quantiles("auto from 20 s after all others end / best alone, median / worst tenth, %", &s->again,
	    0.5, 0.1, "90 / -");
	printf("\n%u answers, %u failed, %u disturbed by the machine, %u without truth; probing takes ",
	    s->answers, s->failed, s->disturbed, s->unknown);
	print_value(samples_quantile(&s->probing_s, 0.9), " s in 9 of 10. ");
	printf("%u transfers with --streams auto, %u failed.\n", s->transfers, s->transfers_failed);
}

static void print_cell(double v)
{
	printf(" | ");
	print_value(v, "");
}

static void print_class(const char *name, struct seed_score *s)
{
	printf("| %s | %u | %u", name, s->paths, s->answers);
	print_cell(100 * samples_quantile(&s->throughput, 0.5));
	print_cell(100 * samples_quantile(&s->throughput, 0.9));
	print_cell(100 * samples_quantile(&s->impact, 0.5));
	print_cell(share_percent(&s->broken));
	print_cell(share_percent(&s->confident));
	print_cell(share_percent(&s->confident_broken));
	print_cell(share_percent(&s->throughput_inside));
	print_cell(share_percent(&s->impact_inside));
	print_cell(100 * samples_quantile(&s->best, 0.5));
	print_cell(100 * samples_quantile(&s->best, 0.1));
	print_cell(100 * samples_quantile(&s->excess, 0.9));
	printf(" |\n");
}

static void print_classes(const struct seed_case *c, size_t n, const char *form, enum set set)
{
	size_t k;

	printf("\n| paths | paths | answers | throughput error, median, %% | 9 in 10, %% | impact error, points | "
	    "broken, %% | high, %% | of these broken, %% | throughput in range, %% | impact in range, %% | auto / "
	    "best, median, %% | worst tenth, %% | auto above budget, 9 in 10, points |\n|---");
	for (k = 0; k < 13; k++)
		printf("|---:");
	printf("|\n");
	for (k = 0; k < CLASSES; k++) {
		struct seed_score *s = score(c, n, form, set, classes[k].has);

		if (s->paths > 0)
			print_class(classes[k].name, s);
		free(s);
	}
}

static void print_set(const struct seed_case *c, size_t n, const char *form, enum set set)
{
	struct seed_score *s = score(c, n, form, set, any);

	if (s->paths > 0) {
		printf("\n## %s form, %s: %u path%s", form, set_names[set], s->paths, s->paths > 1 ? "s" : "");
		if (s->unanswered > 0)
			printf(", %u without an answer", s->unanswered);
		printf("\n\n");
		print_all(s);
		print_classes(c, n, form, set);
	}
	free(s);
}

static const char *const forms[] = { "full", "tuning", "short" };
#define FORMS (sizeof forms / sizeof *forms)

static size_t of_other_forms(const struct seed_case *c, size_t n)
{
	size_t others = n, i, f;

	for (i = 0; i < n; i++)
		for (f = 0; f < FORMS; f++)
			others -= strcmp(c[i].form, forms[f]) == 0;
	return others;
}

/* ---- Command ---- */

static const char *method, *only;
static bool list;

static int usage(void)
{
	fputs("usage: campaign_report [-r mixture|fit] [-s odd|even] [-v] FILE..\n"
	    "FILE: JSON lines of the campaign, one file per seed\n", stderr);
	return 2;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
	return word == NULL || strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static int read_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "r:s:v")) != -1) {
		if (c == 'r')
			method = optarg;
		else if (c == 's')
			only = optarg;
		else if (c == 'v')
			list = true;
		else
			return -1;
	}
	return optind < argc && is_one_of(method, "mixture", "fit") && is_one_of(only, "odd", "even") ? 0 : -1;
}

static void list_answers(const struct seed_case *c)
{
	double ours = NAN, others = NAN;
	size_t i;

	for (i = 0; i < c->answers; i++) {
		const struct seed_answer *a = &c->answer[i];

		seed_truth_at(c, a->streams, a->congestion, &ours, &others);
		printf("seed %llu, %u others, %s, budget %.0f: %u streams, %.1f (%.1f to %.1f) Mbit/s, truth %.1f, "
		    "best %.1f; ",
		    c->seed, c->others, a->congestion, 100 * a->budget_ratio, a->streams, a->mbps, a->low_mbps,
		    a->high_mbps, ours, seed_best_mbps(c, a->congestion, a->budget_ratio));
		printf("impact %.0f (%.0f to %.0f), truth %.0f; %s\n", 100 * a->impact_ratio, 100 * a->impact_low_ratio,
		    100 * a->impact_high_ratio, 100 * seed_impact(c, a->streams, a->congestion),
		    a->confident ? "high" : "low");
	}
}

/* 1: read, 0: not wanted. */
static int read_seed(struct seed_case *c, const char *file)
{
	if (records_read(file, c) < 0)
		return -1;
	if (only != NULL && (c->seed % 2 == 1) != (strcmp(only, "odd") == 0))
		return 0;
	if (method != NULL && replay_answers(c, file, strcmp(method, "fit") == 0 ? REPLAY_FIT : REPLAY_MIXTURE) < 0)
		return -1;
	if (list)
		list_answers(c);
	return 1;
}

int main(int argc, char **argv)
{
	struct seed_case *all = calloc((size_t)argc, sizeof *all);
	size_t n = 0, f;
	int set, r;

	if (all == NULL)
		return 1;
	if (read_options(argc, argv) < 0)
		return usage();
	for (argv += optind; *argv != NULL; argv++, n += (size_t)r)
		if ((r = read_seed(&all[n], *argv)) < 0)
			return 1;
	for (f = 0; f < FORMS; f++)
		for (set = 0; set < SETS; set++)
			print_set(all, n, forms[f], (enum set)set);
	if (of_other_forms(all, n) > 0)
		printf("\n%zu files of other forms ignored.\n", of_other_forms(all, n));
	free(all);
	return 0;
}
