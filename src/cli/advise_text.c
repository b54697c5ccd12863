#include "cli/advise_output.h"
#include "core/units.h"

static const char *formula(enum ptcp_model m)
{
	switch (m) {
	case PTCP_MODEL_PARTIAL_QUADRATIC: return "n / sqrt(a n^2 + b)";
	case PTCP_MODEL_QUADRATIC: return "n / sqrt(a n^2 + b n + c)";
	case PTCP_MODEL_LINEAR: return "n / sqrt(a n + b)";
	default: return "n / (a n + b)";
	}
}

static void print_reason(FILE *f, const struct ptcp_advice *a)
{
	struct ptcp_advice_point next;
	double gain;

	ptcp_advice_at(a, a->streams + 1, &next);
	gain = (next.throughput_bps / a->throughput_bps - 1) * 100;
	switch (a->limited_by) {
	case PTCP_LIMITED_BY_IMPACT:
		fprintf(f, "One more would take %.3g %%, which is above the budget.\n",
		    next.impact_percent);
		break;
	case PTCP_LIMITED_BY_GAIN:
		fprintf(f, "One more would bring %.3g %%, less than %.3g %%.\n", gain,
		    a->min_gain_percent);
		break;
	case PTCP_LIMITED_BY_MAX_STREAMS:
		fprintf(f, "No more are allowed (--max-streams).\n");
		break;
	case PTCP_LIMITED_BY_SATURATION:
		fprintf(f, "More would bring nothing.\n");
		break;
	}
}

static void print_confidence(FILE *f, const struct ptcp_advice *a)
{
	const char *why;
	size_t i;

	fprintf(f, "Confidence: %s\n", a->confident ? "high" : "low");
	if (a->limit_advice != NULL)
		fprintf(f, "  - %s\n", a->limit_advice);
	for (i = 0; (why = ptcp_advice_warning(a, i)) != NULL; i++)
		fprintf(f, "  - %s\n", why);
	if (a->next_probe > 0)
		fprintf(f, "A probe with %u stream%s would help most.\n", a->next_probe,
		    a->next_probe == 1 ? "" : "s");
	if (a->congestion_advice != NULL)
		fprintf(f, "A gentler congestion control is %s (--congestion).\n",
		    a->congestion_advice);
}

/* Of probes that were measured. */
static void print_path(FILE *f, const struct ptcp_advice *a)
{
	if (a->limit != PTCP_LIMIT_UNKNOWN)
		fprintf(f, "\ncongestion control %s, held up by: %s\n",
		    a->congestion[0] != '\0' ? a->congestion : "unknown", ptcp_limit_name(a->limit));
}

static void print_probes(FILE *f, const struct ptcp_advice *a)
{
	char measured[UNITS_TEXT_BYTES], fitted[UNITS_TEXT_BYTES];
	struct ptcp_advice_point at;
	size_t i;

	fprintf(f, "\n%8s %14s %14s\n", "probe", "measured", "model");
	for (i = 0; i < a->n_probes; i++) {
		ptcp_advice_at(a, a->probes[i].streams, &at);
		fprintf(f, "%8u %14s %14s\n", a->probes[i].streams,
		    units_rate_text(measured, a->probes[i].throughput_bps),
		    units_rate_text(fitted, at.throughput_bps));
	}
}

static void print_model(FILE *f, const struct ptcp_advice *a)
{
	size_t i, terms = a->model == PTCP_MODEL_QUADRATIC ? 3 : 2;

	fprintf(f, "\nmodel %s: %s bit/s,", ptcp_model_name(a->model), formula(a->model));
	for (i = 0; i < terms; i++)
		fprintf(f, " %c = %.6g", "abc"[i], a->used[i]);
	fprintf(f, " (fitted:");
	for (i = 0; i < terms; i++)
		fprintf(f, " %c = %.6g", "abc"[i], a->raw[i]);
	fprintf(f, ")\n");
}

/* 1, 2, 4, 8, .. and the answer and the most allowed, in their order. */
static unsigned next_row(const struct ptcp_advice *a, unsigned n)
{
	unsigned next = 1;

	while (next <= n)
		next *= 2;
	if (n < a->streams && a->streams < next)
		next = a->streams;
	return next < a->max_streams ? next : a->max_streams;
}

static void print_curve(FILE *f, const struct ptcp_advice *a)
{
	char rate[UNITS_TEXT_BYTES];
	struct ptcp_advice_point at;
	unsigned n = 0;

	fprintf(f, "\n%8s %14s %8s %14s\n", "streams", "throughput", "impact", "total impact");
	while (n < a->max_streams) {
		n = next_row(a, n);
		ptcp_advice_at(a, n, &at);
		fprintf(f, "%8u %14s %6.1f %% %12.1f %%%s\n", n, units_rate_text(rate, at.throughput_bps),
		    at.impact_percent, at.impact_total_percent, n == a->streams ? "  <" : "");
	}
}

void advise_text(FILE *f, const struct ptcp_advice *a)
{
	char rate[UNITS_TEXT_BYTES], age[UNITS_TEXT_BYTES];

	fprintf(f, "%u stream%s: %s, taking %.3g %% from each other flow (budget %.3g %%)\n",
	    a->streams, a->streams == 1 ? "" : "s", units_rate_text(rate, a->throughput_bps),
	    a->impact_percent, a->budget_percent);
	if (a->from_history)
		fprintf(f, "From what was learnt %s ago, without probing (--no-history probes).\n",
		    units_time_text(age, a->age_s));
	print_reason(f, a);
	print_confidence(f, a);
	print_path(f, a);
	print_probes(f, a);
	print_model(f, a);
	print_curve(f, a);
}
